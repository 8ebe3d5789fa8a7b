"""Read a folder of results for the page: each file on its own, and none that cannot be trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.benchmark import count_each
from pytest_evalarc.counting.differences import ABSENT, differences
from pytest_evalarc.counting.recount import require_agreement
from pytest_evalarc.counting.shards import own_trials
from pytest_evalarc.counting.summary import summarize_batch
from pytest_evalarc.counting.validity import infrastructure_fault
from pytest_evalarc.errors import DocumentError, EvalArcError
from pytest_evalarc.files.strict import loads, read_model
from pytest_evalarc.model.audit import Audit, AuditPlan
from pytest_evalarc.model.base import Cause, Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT, STARTER
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.planned import Outcome, PlannedTrial
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.audits import read_control
from pytest_evalarc.reporting.batch import plan_kind
from pytest_evalarc.reporting.candidates import read_evaluation
from pytest_evalarc.reporting.page.trial import Sources, embedded, trial_data
from pytest_evalarc.reporting.regrade import RegradeReport, read_regrade
from pytest_evalarc.runs.budget import kept_back
from pytest_evalarc.runs.folders import summary_path
from pytest_evalarc.runs.regrade import numbers
from pytest_evalarc.runs.shards import kept_shard

COUNTED = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.INCONCLUSIVE)
"""Where an eligible trial ends."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What became of one step or check of one trial; every seed of a case together."""

    passed: int
    asked: int
    """Seeds that were put to it; 1 for a step and for a check without seeds."""
    unjudged: int = 0
    """Of these, how many nobody could judge, or nobody ran."""

    @property
    def word(self) -> str:
        """`pass`, `fail`, or `unknown` where nothing failed and something was not judged."""
        if self.passed == self.asked:
            return "pass"
        return "unknown" if self.passed + self.unjudged == self.asked else "fail"


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """One planned trial as the page's tables show it."""

    entry: PlannedTrial
    outcome: Outcome | None
    """None without a result that can be trusted."""
    cause: Cause | None = None
    cells: Mapping[str, Cell] = field(default_factory=dict)
    """By step or check."""
    is_graded: bool = False
    """Whether the harness could grade it."""
    elapsed_s: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    data: str | None = None
    """JSON of what the page shows when a reader opens it; None when it has a link, or no result."""
    link: str | None = None
    """Leads from the page to its result, where the page has no room for more."""

    @property
    def is_eligible(self) -> bool:
        """Whether it counts."""
        return self.outcome in COUNTED


@dataclass(frozen=True, kw_only=True)
class TrialsPart:
    """The trials of one task and client."""

    plan: PlanDoc
    benchmark: Benchmark
    trials: tuple[TrialRow, ...]
    columns: tuple[str, ...]
    """Steps, then checks, in the order in which they were graded."""
    regrades: tuple[RegradeReport, ...]
    left_out: int
    """Results that could not be trusted."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What a folder of results holds, and what had to be left out of it."""

    trials: tuple[TrialsPart, ...] = ()
    audits: tuple[Audit, ...] = ()
    evaluations: tuple[EvaluationDoc, ...] = ()
    summaries: tuple[Summary, ...] = ()
    """Of each batch of which all trials are here."""
    unsummed: tuple[str, ...] = ()
    """Batches of which only some tasks or clients are here."""
    problems: tuple[EvalArcError, ...] = ()
    """A sentence for each file or folder that was left out, or says otherwise than its rows."""


def gather(folders: Sequence[Path], sources: Sources) -> Gathered:
    """Return what folders of results hold.

    A file that is torn, edited, of another plan, or there twice is named among the problems and
    counts as absent. What a document beside the results says is compared with what they give.

    Args:
        folders: Each of one batch and of one task and client, its audit or its candidate.
        sources: What the sections of trials are made from.
    """
    reader = _Reader(sources)
    for folder in folders:
        reader.read(folder)
    reader.sum_up()
    return Gathered(
        trials=tuple(reader.trials),
        audits=tuple(reader.audits),
        evaluations=tuple(reader.evaluations),
        summaries=tuple(reader.summaries),
        unsummed=tuple(reader.unsummed),
        problems=tuple(reader.problems),
    )


def batch_folders(results: Path, batch: str | None) -> tuple[Path, ...]:
    """Return the batch's folder of each task and client, audit or candidate; none where none is.

    Args:
        results: The folder of results.
        batch: The batch's name; None takes the newest one of each task and client.
    """
    kinds = sorted(results.glob("*/*/"))
    named = (kind / batch if batch is not None else _newest(kind) for kind in kinds)
    return tuple(folder for folder in named if folder is not None and folder.is_dir())


def _newest(kind: Path) -> Path | None:
    latest = kind / "latest"
    if latest.is_symlink() and latest.is_dir():
        return kind / latest.readlink().name
    # Batches are named by their time unless a user names them.
    batches = sorted(path.parent for path in kind.glob("*/plan.json"))
    return batches[-1] if batches else None


class _Reader:
    """Reads folders one after another; a problem of one keeps no other from being read."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.trials: list[TrialsPart] = []
        self.audits: list[Audit] = []
        self.evaluations: list[EvaluationDoc] = []
        self.summaries: list[Summary] = []
        self.unsummed: list[str] = []
        self.problems: list[EvalArcError] = []
        self._batches: dict[tuple[Path, str], dict[Path, TrialsPart]] = {}

    def read(self, folder: Path) -> None:
        with self._told():
            match plan_kind(folder):
                case "audit":
                    self.audits.append(self._audit(folder))
                case "candidate":
                    document = read_evaluation(folder)
                    _require_place(folder, document.task.name, "submission", document.batch)
                    self._compare(folder / "evaluation.json", document)
                    self.evaluations.append(document)
                case "trials":
                    part = self._trials(folder)
                    self.trials.append(part)
                    place = folder.resolve()
                    batch = self._batches.setdefault((place.parents[2], place.name), {})
                    batch[place] = part

    def sum_up(self) -> None:
        """Take what each batch shows over all of its tasks, where all of it was read."""
        for (results, batch), parts in self._batches.items():
            if parts.keys() != _trial_folders(results, batch):
                self.unsummed.append(batch)
                continue
            summary = summarize_batch(batch, [part.benchmark for part in parts.values()])
            if not any(part.left_out for part in parts.values()):
                self._compare(summary_path(results, batch), summary)
            self.summaries.append(summary)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell a problem, and go on."""
        try:
            yield
        except EvalArcError as problem:
            self.problems.append(problem)

    def _stray(self, path: Path) -> None:
        problem = "is not of the plan beside it"
        self.problems.append(DocumentError(str(path), problem, "it is left out; move it away"))

    def _compare(self, path: Path, again: Model) -> None:
        """Tell where a document beside the results says otherwise than they give."""
        if not path.exists():
            return
        with self._told():
            # Keys that an older version did not write are no contradiction.
            found = [
                difference.field
                for difference in differences(
                    loads(path.read_bytes(), where=str(path)), again.to_json()
                )
                if difference.first is not ABSENT and difference.field != "schema_version"
            ]
            if found:
                more = f" and {len(found) - 1} more fields" if len(found) > 1 else ""
                problem = f"says otherwise than the results beside it in {found[0]}{more}"
                hint = "this page shows what those give"
                raise DocumentError(str(path), problem, hint)

    # Trials.

    def _trials(self, folder: Path) -> TrialsPart:
        plan = read_model(folder / "plan.json", PlanDoc)
        _require_place(folder, plan.task.name, plan.client, plan.batch)
        shard = kept_shard(folder)
        entries = own_trials(plan.trials, shard, task=plan.task.name, client=plan.client)
        planned = {entry.folder for entry in entries}
        for path in sorted(folder.glob("trial-*")):
            if path.name not in planned:
                self._stray(path)
        rows: dict[str, TrialRow] = {}
        before = len(self.problems)
        benchmark = count_each(
            plan,
            self._results(folder, plan, entries, rows),
            kept_back=kept_back(folder, plan),
            shard=shard,
        )
        left_out = len(self.problems) - before
        if not left_out:
            self._compare(folder / "benchmark.json", benchmark)
        trials = tuple(
            rows.get(entry.folder) or TrialRow(entry=entry, outcome=None) for entry in entries
        )
        return TrialsPart(
            plan=plan,
            benchmark=benchmark,
            trials=trials,
            columns=tuple(dict.fromkeys(name for row in trials for name in row.cells)),
            regrades=tuple(self._regrades(folder)),
            left_out=left_out,
        )

    def _results(
        self,
        folder: Path,
        plan: PlanDoc,
        entries: Sequence[PlannedTrial],
        rows: dict[str, TrialRow],
    ) -> Iterator[tuple[str, TrialResult]]:
        """Yield each result that can be trusted, and make its row: none is held afterwards."""
        for entry in entries:
            trial = folder / entry.folder
            for path in sorted(trial.glob("result*.json")):
                if path.name != "result.json":
                    self._stray(path)
            path = trial / "result.json"
            if not path.exists():
                continue
            with self._told():
                result = read_model(path, TrialResult)
                require_agreement(result, where=str(path))
                _require_of_plan(plan, entry, result, path)
                rows[entry.folder] = _row(plan, entry, result, trial, self._sources)
                yield entry.folder, result

    def _regrades(self, folder: Path) -> Iterator[RegradeReport]:
        for number in numbers(folder):
            with self._told():
                report = read_regrade(folder, number)
                self._compare(report.path, report.benchmark)
                yield report

    # Audits.

    def _audit(self, folder: Path) -> Audit:
        plan = read_model(folder / "plan.json", AuditPlan)
        _require_place(folder, plan.task.name, "audit", plan.batch)
        planned = {REFERENCE, REFERENCE_REPEAT, STARTER, *(mutant.name for mutant in plan.mutants)}
        controls: dict[str, Grading] = {}
        before = len(self.problems)
        for path in sorted((folder / "rows").glob("*.json")):
            if path.stem not in planned:
                self._stray(path)
                continue
            with self._told():
                controls[path.stem] = read_control(path, plan)
        audit = assess(plan, controls)
        if len(self.problems) == before:
            self._compare(folder / "audit.json", audit)
        return audit


def _trial_folders(results: Path, batch: str) -> set[Path]:
    """Return every folder of a batch that holds trials, or whose plan nobody can read."""
    found = set()
    for plan in results.glob(f"*/*/{batch}/plan.json"):
        with contextlib.suppress(DocumentError):
            if plan_kind(plan.parent) != "trials":
                continue
        found.add(plan.parent)
    return found


def _require_place(folder: Path, *names: str) -> None:
    """Refuse a folder that was copied or moved: what it holds may then count twice."""
    found = (*folder.resolve().parts[-3:],)
    if found != names:
        problem = f"holds the plan of {'/'.join(names)}"
        raise DocumentError(str(folder), problem, "it is left out; move it back, or away")


def _require_of_plan(plan: PlanDoc, entry: PlannedTrial, result: TrialResult, path: Path) -> None:
    """Refuse a result of another trial, which would make the whole batch uncountable."""
    alone = plan.model_copy(update={"trials": (entry,)})
    try:
        count_each(alone, [(entry.folder, result)])
    except DocumentError as error:
        raise DocumentError(str(path), error.problem, error.hint) from error


def _row(
    plan: PlanDoc, entry: PlannedTrial, result: TrialResult, folder: Path, sources: Sources
) -> TrialRow:
    grading = result.gradings[-1] if result.gradings else None
    is_opened = sources.allowance.open_one()
    return TrialRow(
        entry=entry,
        outcome=result.outcome,
        cause=result.cause,
        cells=_cells(grading) if grading else {},
        is_graded=grading is not None and infrastructure_fault(grading) is None,
        elapsed_s=result.elapsed_secs,
        tokens=result.usage.total if result.usage else None,
        cost_usd=result.usage.cost_usd if result.usage else None,
        data=embedded(trial_data(plan, entry, result, folder, sources)) if is_opened else None,
        link=None if is_opened else sources.link(folder / "result.json"),
    )


def _cells(grading: Grading) -> dict[str, Cell]:
    cells = {
        step.name: Cell(
            passed=int(step.status == "pass"),
            asked=1,
            unjudged=int(step.status in ("error", "skipped")),
        )
        for step in grading.steps
    }
    for check in dict.fromkeys(row.check for row in grading.rows):
        rows = [row for row in grading.rows if row.check == check]
        cells[check] = Cell(
            passed=sum(row.passed for row in rows),
            asked=len(rows),
            unjudged=sum(row.status in ("environment_error", "not_run") for row in rows),
        )
    return cells
