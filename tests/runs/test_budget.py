from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.planned import Execution, PlannedTrial
from pytest_evalarc.model.transcript import Usage
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.reporting.verify import verify
from pytest_evalarc.runs.budget import Admission, Budget, Figure, kept_back
from pytest_evalarc.runs.draft import Draft
from tests.evals import Evals

KILLED = Cause(kind="worker_crash", detail="it died")
BROKEN = Cause(kind="preparation", detail="no disk")


class Kept:
    """A batch of results that were written and not run."""

    def __init__(self, root: Path, *, trials: int = 5) -> None:
        self.evals = Evals(root, options={"trials": trials})
        self.folder = self.evals.folder
        self.folder.mkdir(parents=True)
        write_model(self.folder / "plan.json", self.plan)

    @property
    def plan(self) -> PlanDoc:
        return self.evals.plan

    def entry(self, number: int, configuration: str = "without-skills") -> PlannedTrial:
        """Return a planned trial."""
        (found,) = [
            entry
            for entry in self.plan.trials
            if (entry.trial, entry.configuration) == (number, configuration)
        ]
        return found

    def finish(self, number: int, configuration: str = "without-skills", **facts: Any) -> None:
        """Write the result of a trial; without further facts its session told no usage."""
        entry = self.entry(number, configuration)
        draft = Draft(plan=self.plan, entry=entry, client=self.evals.known_client)
        for name, value in {"execution": Execution.TIMEOUT, **facts}.items():
            setattr(draft, name, value)
        (self.folder / entry.folder).mkdir(exist_ok=True)
        write_model(self.folder / entry.folder / "result.json", draft.result())

    def budget(self, **limits: Any) -> Budget:
        """Return the view of a process that has just begun."""
        return Budget(results=self.evals.results, batch=self.evals.batch_name, **limits)

    def admits(self, budget: Budget, number: int, configuration: str = "without-skills") -> bool:
        """Return whether a trial may start."""
        return budget.admit(self.folder, self.plan, self.entry(number, configuration)) is None


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def used(tokens: int | None, cost: float | None = None) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=None if tokens is None else 0, cost_usd=cost)


def test_no_round_starts_once_the_tokens_are_used(kept: Kept) -> None:
    """What is reached exactly is reached; one token below, nobody knows what the next will use."""
    kept.finish(1, usage=used(999))
    assert kept.admits(kept.budget(max_tokens=1000), 2)

    kept.finish(2, usage=used(1))
    reason = kept.budget(max_tokens=1000).admit(kept.folder, kept.plan, kept.entry(3))

    assert reason == "the budget is used up: 1,000 of 1,000 tokens are used"


def test_no_round_starts_once_the_money_is_spent(kept: Kept) -> None:
    """Tokens and money are two budgets, and the first that is reached decides."""
    kept.finish(1, usage=used(10, 0.75))
    kept.finish(1, "with-skills", usage=used(10, 0.5))

    assert kept.admits(kept.budget(max_tokens=1000, max_cost_usd=1.5), 2)
    reason = kept.budget(max_tokens=1000, max_cost_usd=1.25).admit(
        kept.folder, kept.plan, kept.entry(3)
    )

    assert reason == "the budget is used up: 1.25 of 1.25 US dollars are used"


def test_a_round_that_was_admitted_runs_in_all_its_configurations(kept: Kept) -> None:
    """Otherwise the configuration that is second in the last round would have a trial less."""
    budget = kept.budget(max_tokens=100)
    assert kept.admits(budget, 1)
    kept.finish(1, usage=used(500))

    assert kept.admits(budget, 1, "with-skills")
    assert kept.admits(kept.budget(max_tokens=50), 1, "with-skills")
    assert not kept.admits(budget, 2)


@pytest.mark.parametrize("mark", ["result.json", ".result.json.begun"])
def test_a_round_that_began_without_a_budget_is_finished_under_one(kept: Kept, mark: str) -> None:
    """A session that was interrupted in the middle of a round is gone on with, now with a limit."""
    kept.finish(1, usage=used(500))
    begun = kept.folder / kept.entry(2).folder / mark
    begun.parent.mkdir()
    begun.write_text("")

    assert kept.admits(kept.budget(max_tokens=100), 2, "with-skills")
    assert not kept.admits(kept.budget(max_tokens=100), 3)


def test_a_round_that_was_kept_back_stays_so_under_the_same_budget(tmp_path: Path) -> None:
    """Its other configuration may ask later, when a session has told that it used little."""
    kept = Kept(tmp_path, trials=6)
    for number in range(1, 6):
        kept.finish(number)
        kept.finish(number, "with-skills")
    assert not kept.admits(kept.budget(max_tokens=1000), 6)

    kept.finish(1, usage=used(1))

    assert not kept.admits(kept.budget(max_tokens=1000), 6, "with-skills")
    assert kept.admits(kept.budget(max_tokens=1001), 6, "with-skills")


def test_a_larger_budget_goes_on_with_what_was_kept_back(kept: Kept) -> None:
    """Nothing final was written for those trials, and the record tells which they were."""
    kept.finish(1, usage=used(100))
    kept.finish(1, "with-skills", usage=used(100))
    assert not kept.admits(kept.budget(max_tokens=150), 2)
    assert not kept.admits(kept.budget(max_tokens=150), 3, "with-skills")
    assert kept_back(kept.folder, kept.plan) == {
        f"trial-{number}-{mode}" for number in (2, 3) for mode in ("without-skills", "with-skills")
    }

    assert kept.admits(kept.budget(max_tokens=250), 2)
    assert not kept.admits(kept.budget(max_tokens=200), 3)
    assert kept.admits(kept.budget(), 3)

    assert kept_back(kept.folder, kept.plan) == frozenset()


def test_without_a_budget_nothing_is_written(kept: Kept) -> None:
    """Most batches have none, and need no document for each of their rounds."""
    assert kept.admits(kept.budget(), 1)

    assert not (kept.folder / "budget").exists()


def test_the_benchmark_counts_what_was_kept_back_and_is_verified(kept: Kept) -> None:
    """The count rests on what lies in the folder, so whoever computes it again gets the same."""
    kept.finish(1, usage=used(100))
    budget = kept.budget(max_tokens=100)
    for number in (2, 3):
        assert not kept.admits(budget, number)
    benchmark = read_benchmark(kept.folder)
    write_model(kept.folder / "benchmark.json", benchmark)

    causes = {name: c.causes["cancelled"] for name, c in benchmark.configurations.items()}

    assert causes["without-skills"] == {"budget": 2, "not_reached": 2}
    assert causes["with-skills"] == {"budget": 2, "not_reached": 3}
    assert verify(kept.folder / "benchmark.json") == ()


@pytest.mark.parametrize(
    ("known", "untold", "counts"),
    [
        ((), 0, 0),
        ((5.0, 7.0), 0, 12),
        ((5.0, 7.0), 2, 26),
        ((), 9, 90),
        ((), 10, 100),
        # One whose API was never reached used nothing, which says nothing of the others.
        ((0.0,), 3, 30),
    ],
)
def test_a_session_that_told_nothing_counts_like_the_costliest(
    known: tuple[float, ...], untold: int, counts: float
) -> None:
    """Were it nothing, a batch whose sessions are all killed would have no end."""
    assert Figure(known, untold).used(100) == counts


def test_the_summary_names_the_sessions_that_told_nothing(kept: Kept) -> None:
    """Their number says how far the sum can be trusted."""
    kept.finish(1, usage=used(1000, 0.5))
    kept.finish(2)
    kept.finish(3, usage=used(None))

    assert kept.budget(max_tokens=5000, max_cost_usd=9).summary() == (
        "budget: 3,000 of 5,000 tokens are used (2 sessions did not tell its tokens, and each "
        "counts like the costliest); 1.50 of 9.00 US dollars are used (2 sessions did not tell "
        "its cost, and each counts like the costliest)"
    )
    assert kept.budget().summary() is None


@pytest.mark.parametrize(
    ("facts", "tokens"),
    [
        # A process that died may have had a session, and one that was not prepared had none.
        ({"execution": Execution.NOT_STARTED, "cancellation": KILLED}, 1000),
        ({"execution": Execution.NOT_STARTED, "setup": BROKEN}, 500),
        ({"execution": Execution.NOT_STARTED}, 1000),
        ({"execution": Execution.CLIENT_ERROR}, 1000),
        ({"execution": Execution.CLIENT_ERROR, "usage": used(20)}, 520),
    ],
)
def test_what_a_trial_used_is_judged_by_how_far_it_may_have_come(
    kept: Kept, facts: dict[str, Any], tokens: int
) -> None:
    """Only where no session can have been is nothing used."""
    kept.finish(1, usage=used(500))
    kept.finish(2, **facts)

    summary = kept.budget(max_tokens=9000).summary()

    assert summary is not None
    assert summary.startswith(f"budget: {tokens:,} of 9,000 tokens are used")


def test_a_damaged_result_counts_as_one_that_told_nothing(kept: Kept) -> None:
    """Its session was paid for, and the damage itself is told elsewhere."""
    kept.finish(1, usage=used(500))
    kept.finish(2, usage=used(1))
    (kept.folder / kept.entry(2).folder / "result.json").write_text("{")

    assert not kept.admits(kept.budget(max_tokens=1000), 3)


def test_the_sessions_of_clients_without_a_model_use_nothing(kept: Kept) -> None:
    """They tell no tokens, and a batch of many of them beside an agent must not use it up."""
    kept.finish(1)
    kept.finish(2)

    budget = kept.budget(max_tokens=10, is_free=lambda plan: plan.client_kind == "oracle")

    assert kept.admits(budget, 3)
    assert budget.summary() == "budget: 0 of 10 tokens are used"


def test_all_tasks_and_clients_of_a_batch_share_its_budget(kept: Kept) -> None:
    """A budget is what one command may cost, however many tasks it names."""
    kept.finish(1, usage=used(100))
    other = kept.evals.results / "other" / "claude"
    (kept.folder).rename(kept.folder.with_name("moved"))
    other.mkdir(parents=True)
    kept.folder.with_name("moved").rename(other / "b1")
    (other / "b2" / "trial-1-baseline").mkdir(parents=True)
    kept.folder.mkdir(parents=True)

    assert not kept.admits(kept.budget(max_tokens=100), 1)


def test_results_are_read_once(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has thousands, and a round is admitted for each of them."""
    for number in (1, 2):
        kept.finish(number, usage=used(10))
    read: list[Path] = []

    def counting(path: Path, model: Any) -> Any:
        read.append(path)
        return read_model(path, model)

    monkeypatch.setattr("pytest_evalarc.runs.budget.read_model", counting)
    budget = kept.budget(max_tokens=1000)
    for number in (3, 4, 5):
        assert kept.admits(budget, number)

    assert sorted(path.name for path in read) == ["plan.json", "result.json", "result.json"]


def test_a_round_is_decided_once_whoever_asks(kept: Kept) -> None:
    """Askers meet at the same moment, in threads as in processes."""
    kept.finish(1, usage=used(100))
    answers: list[bool] = []
    start = threading.Barrier(8)

    def ask(configuration: str) -> None:
        start.wait()
        answers.append(kept.admits(kept.budget(max_tokens=100), 2, configuration))

    threads = [
        threading.Thread(target=ask, args=(mode,)) for mode in ("without-skills", "with-skills") * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [False] * 8
    record = read_model(kept.folder / "budget/round-2.json", Admission)
    assert (record.round, record.admitted, record.max_tokens) == (2, False, 100)


@pytest.mark.parametrize(
    "damage", [lambda path: path.write_text("{"), lambda path: path.mkdir()], ids=["torn", "folder"]
)
def test_a_decision_that_cannot_be_read_is_told(
    kept: Kept, damage: Callable[[Path], object]
) -> None:
    """Deciding anew could give one configuration a trial more than the other."""
    (kept.folder / "budget").mkdir()
    damage(kept.folder / "budget/round-1.json")

    with pytest.raises(DocumentError, match=r"round-1\.json"):
        kept.admits(kept.budget(max_tokens=1), 1)
