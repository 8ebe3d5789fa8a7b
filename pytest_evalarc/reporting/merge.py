"""Join the shards of a batch into the folder of results that one machine would have written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.counting.benchmark import count_each
from pytest_evalarc.counting.met import met
from pytest_evalarc.counting.recount import require_agreement
from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.links import link_file, link_tree, new_folder
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.submission import read_kept
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.audits import read_audit
from pytest_evalarc.reporting.documents import write_whole
from pytest_evalarc.reporting.regrade import write_regrade
from pytest_evalarc.reporting.shards import (
    GO_ON,
    Split,
    SplitPlan,
    WholeAudit,
    read_split,
    same_documents,
    trial_of,
)
from pytest_evalarc.reporting.summary import write_summary_of
from pytest_evalarc.runs.budget import FOLDER, kept_back
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.regrade import as_graded, numbers, objection
from pytest_evalarc.runs.shards import NAME
from pytest_evalarc.runs.start import NAME as START
from pytest_evalarc.runs.start import StartDoc

if TYPE_CHECKING:
    from pytest_evalarc.model.audit import Audit

AUDIT_DOCUMENT = "audit.json"
ROWS = "rows"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The batch that shards were joined into."""

    batch: str
    trials: int
    """With a result."""
    documents: tuple[Path, ...]
    """What was counted anew: benchmarks, audits, and the summary."""


def merge(given: Sequence[Path], output: Path, *, batch: str | None = None) -> Merged:
    """Write the batch that the shards in some folders of results are the parts of.

    Everything is a function of the shards' files; no time that stands in them decides anything.

    Args:
        given: One folder of results for each shard, in any order.
        output: The new folder of results; it appears whole, or not at all.
        batch: The batch's name; None where the folders hold shards of one batch alone.

    Raises:
        UsageError: The output is there already, or a folder holds no shard.
        DocumentError: A shard or a trial is missing or there twice, or what they say does not go
            together: names the folder and the field.
        SubmissionError: A kept submission is not the one that was graded.
        InfrastructureError: Something cannot be read or written.
    """
    if output.exists() or output.is_symlink():
        raise UsageError(f"--output {output}", "is there already", "name a new folder")
    split = read_split(given, batch)
    with new_folder(output) as draft:
        trials, written = _fill(draft, split)
    return Merged(
        batch=split.batch,
        trials=trials,
        documents=tuple(output / path.relative_to(draft) for path in written),
    )


def _fill(draft: Path, split: Split) -> tuple[int, tuple[Path, ...]]:
    """Link and count everything; return the number of finished trials, and what was counted."""
    folders = Folders(eval_root=draft, results=draft, batch=split.batch)
    written: list[Path] = []
    benchmarks: list[Benchmark] = []
    trials = 0
    for plan in split.plans:
        folders.open_results(draft / plan.place)
        joined = _Joined(split=plan, folder=draft / plan.place)
        benchmark, paths = joined.write()
        benchmarks.append(benchmark)
        written += paths
        trials += joined.finished
    for audit in split.audits:
        folders.open_results(draft / audit.place)
        written.append(_join_audit(audit, draft / audit.place))
    if benchmarks:
        written.append(write_summary_of(draft, split.batch, benchmarks)[1])
    return trials, tuple(written)


@dataclass(kw_only=True)
class _Joined:
    """The trials of one plan while they are joined: each is looked at once."""

    split: SplitPlan
    folder: Path
    finished: int = 0
    _met: dict[str, tuple[object, Path]] = field(default_factory=dict)
    """What trials met, with the first result that says so."""

    def write(self) -> tuple[Benchmark, list[Path]]:
        """Link all that is kept, count it, and return the benchmark with what was written."""
        plan = self.split.plan
        link_file(self.split.folders[0] / "plan.json", self.folder / "plan.json")
        start = same_documents([folder / START for folder in self.split.folders], StartDoc)
        if start is not None:
            link_file(start, self.folder / START)
        self._join_budgets()
        back = kept_back(self.folder, plan)
        benchmark = count_each(plan, self._results(back), kept_back=back)
        paths = [write_whole(self.folder / "benchmark.json", benchmark)]
        paths += [write_regrade(self.folder, number).path for number in numbers(self.folder)]
        return benchmark, paths

    def _join_budgets(self) -> None:
        """Link what was decided of each round; a round is decided in its own shard alone."""
        for folder in self.split.folders:
            for path in sorted((folder / FOLDER).glob("round-*.json")):
                (self.folder / FOLDER).mkdir(exist_ok=True)
                place = self.folder / FOLDER / path.name
                if place.exists():
                    raise DocumentError(str(path), "is there in two shards", "move one away")
                link_file(path, place)

    def _results(self, back: frozenset[str]) -> Iterator[tuple[str, TrialResult]]:
        """Yield the result of each trial, checked, with all that lies beside it linked."""
        for entry in self.split.plan.trials:
            trial = trial_of(self.split, entry)
            path = trial / "result.json"
            if not path.exists():
                if entry.folder in back:
                    continue
                problem = "is not there: its shard has not finished that trial"
                raise DocumentError(str(path), problem, GO_ON)
            result = read_model(path, TrialResult)
            require_agreement(result, where=str(path))
            self._require_alike(result, path)
            if objection(result, trial) is None:
                as_graded(read_kept(trial), result, trial)
            link_tree(trial, self.folder / entry.folder)
            self.finished += 1
            yield entry.folder, result

    def _require_alike(self, result: TrialResult, path: Path) -> None:
        """Refuse a trial that met another tool or boundary than one before it."""
        for name, value in met(result):
            first, where = self._met.setdefault(name, (value, path))
            if first != value:
                problem = f"is another one than in {where}"
                hint = "run all shards with the same tools, behind the same sandbox"
                raise DocumentError(f"{path}: {name}", problem, hint)


def _join_audit(audit: WholeAudit, folder: Path) -> Path:
    """Link an audit and write what it shows, counted again.

    Raises:
        DocumentError: Not every control was graded.
    """
    found: Audit = read_audit(audit.folder)
    if found.selection == "partial":
        problem = "is partial: not every control was graded"
        raise DocumentError(str(audit.folder / AUDIT_DOCUMENT), problem, GO_ON)
    link_tree(audit.folder, folder, leave_out=(AUDIT_DOCUMENT, NAME, ROWS))
    link_tree(audit.folder / ROWS, folder / ROWS)
    return write_whole(folder / AUDIT_DOCUMENT, found)
