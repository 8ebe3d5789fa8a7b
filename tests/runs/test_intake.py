"""What other hosts claim and bring: this side's disk decides, whatever is cut off."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.parcel import Closing, Content, Opening, parcel
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.intake import Busy, Done, Intake, Keeper, Queued, Run, Skipped
from pytest_evalarc.runs.once import lock_of, mark_of
from pytest_evalarc.runs.parallel import MaxParallel
from pytest_evalarc.runs.slots import LocalSlots, Place

TRIAL = "hello/oracle/night/trial-1-with-skills/result.json"
OTHER = "hello/oracle/night/trial-1-without-skills/result.json"
ROW = "hello/audit/night/rows/silent.json"


class Kept:
    """A results folder whose trials are settled by writing down why."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.plans: dict[str, bytes] = {}
        self.refused: str | None = None
        self.most: int | None = None
        self.running: list[str] = []
        """Trials that whoever looks on is told of just now."""

    def settle(self, path: Path, loss: BaseException | None) -> None:
        """Write the reason in place of a result, under the lock as the real one does."""
        with locked(lock_of(path)):
            path.write_text(f"cancelled: {loss or 'died'}")
            mark_of(path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def announced(self, path: Path) -> Iterator[None]:
        """Note a trial while it runs."""
        name = path.parent.name
        self.running.append(name)
        yield
        self.running.remove(name)

    def keep_plan(self, path: Path, document: bytes) -> None:
        """Keep a plan."""
        self.plans[path.relative_to(self.results).as_posix()] = document

    def intake(self, host: str = "hostA") -> Intake:
        """Return a host's view."""
        folders = Folders(eval_root=self.results, results=self.results, batch="night")
        slots = LocalSlots(folders=folders, limits=MaxParallel(each=self.most))
        keeper = Keeper(
            keep_plan=self.keep_plan,
            line_up=lambda _: slots.line_up("nop", Place("adds", 1, 1)),
            admit=lambda _: self.refused,
            announced=self.announced,
            settle=self.settle,
        )
        return Intake(results=self.results, batch="night", keeper=keeper, host=host)

    def text(self, name: str) -> str:
        """Return what stands at a name."""
        return (self.results / name).read_text("utf-8")

    def names(self) -> list[str]:
        """Return every file but locks."""
        found = (path for path in self.results.rglob("*") if path.is_file())
        names = (path.relative_to(self.results).as_posix() for path in found)
        return sorted(name for name in names if not name.endswith(".lock"))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Return an empty folder of results."""
    return Kept(tmp_path / "results")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return the result folder of a trial that ran elsewhere."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "result.json").write_text("succeeded")
    (folder / "transcript.jsonl").write_text("all that was said")
    return folder


def bring(intake: Intake, name: str, folder: Path, *, cut: int | None = None) -> None:
    """Bring a folder, or so many messages of it."""
    for message in list(parcel(folder))[:cut]:
        match message:
            case Opening():
                intake.begin(name, message)
            case Content():
                intake.take(name, message)
            case Closing():
                intake.finish(name, message)


def test_a_claimed_trial_arrives_with_all_of_its_folder(kept: Kept, made: Path) -> None:
    """And from then on it is done, for whoever asks."""
    intake = kept.intake()

    assert intake.claim(TRIAL) == Run()
    assert mark_of(kept.results / TRIAL).exists()
    bring(intake, TRIAL, made)

    assert kept.names() == [TRIAL, TRIAL.replace("result.json", "transcript.jsonl")]
    assert intake.claim(TRIAL) == Done(b"succeeded")
    assert kept.intake("hostB").claim(TRIAL) == Done(b"succeeded")


def test_a_row_of_an_audit_arrives_among_its_siblings(kept: Kept, tmp_path: Path) -> None:
    """It has no folder of its own, and nothing beside it is touched."""
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/silent.json").write_text("killed")
    sibling = kept.results / "hello/audit/night/rows/nameless.json"
    sibling.parent.mkdir(parents=True)
    sibling.write_text("killed too")
    intake = kept.intake()

    assert intake.claim(ROW) == Run()
    bring(intake, ROW, tmp_path / "rows")

    assert kept.names() == ["hello/audit/night/rows/nameless.json", ROW]


def test_who_looks_on_is_told_of_a_trial_while_its_host_is_at_it(kept: Kept, made: Path) -> None:
    """Until it has arrived or its host is lost; a control is no trial."""
    intake, other = kept.intake("hostA"), kept.intake("hostB")
    intake.claim(TRIAL)
    intake.claim(ROW)
    other.claim(OTHER)
    assert kept.running == ["trial-1-with-skills", "trial-1-without-skills"]

    bring(intake, TRIAL, made)
    assert kept.running == ["trial-1-without-skills"]

    other.lose()
    assert kept.running == []


def test_two_hosts_never_get_the_same_trial(kept: Kept) -> None:
    """Nor does a process of this host, which waits at the same lock."""
    first, second = kept.intake("hostA"), kept.intake("hostB")

    assert first.claim(TRIAL) == Run()
    assert second.claim(TRIAL) == Busy()
    assert second.claim(OTHER) == Run()


def test_a_lost_host_costs_what_it_was_at_and_nothing_else(kept: Kept, made: Path) -> None:
    """What arrived counts, what was under way is cancelled, and what never began is free."""
    intake = kept.intake()
    intake.claim(OTHER)
    bring(intake, OTHER, made)
    intake.claim(TRIAL)
    intake.claim(ROW)
    bring(intake, TRIAL, made, cut=2)

    intake.lose()
    intake.lose()

    assert kept.text(OTHER) == "succeeded"
    assert kept.text(TRIAL) == "cancelled: host hostA was lost while it ran"
    assert kept.names() == [TRIAL, OTHER, OTHER.replace("result.json", "transcript.jsonl")]
    # The row of a control is simply made again.
    assert kept.intake("hostB").claim(ROW) == Run()
    assert intake.claim("hello/oracle/night/trial-2-with-skills/result.json") == Busy()
    with pytest.raises(UsageError, match="which it was not asked for"):
        bring(intake, TRIAL, made)


def test_a_host_may_be_lost_in_another_thread(kept: Kept) -> None:
    """The thread that hears of it is not the one that took the claim."""
    intake = kept.intake()
    claiming = threading.Thread(target=intake.claim, args=(TRIAL,))
    claiming.start()
    claiming.join()

    intake.lose()

    assert kept.text(TRIAL) == "cancelled: host hostA was lost while it ran"


@pytest.mark.parametrize("cut", [1, 2])
def test_what_did_not_arrive_leaves_nothing_half_written(cut: int, kept: Kept, made: Path) -> None:
    """The trial counts as cancelled, and says why."""
    intake = kept.intake()
    intake.claim(TRIAL)
    bring(intake, TRIAL, made, cut=cut)

    with pytest.raises(DocumentError):
        intake.finish(TRIAL, Closing("0" * 64))
    intake.refuse(TRIAL, "another digest")

    assert kept.names() == [TRIAL]
    told = "cancelled: its result did not arrive from host hostA: another digest"
    assert kept.text(TRIAL) == told


def test_a_trial_that_died_with_an_earlier_session_is_settled(kept: Kept) -> None:
    """Its mark is there and its lock is not held: it was begun, and is never begun again."""
    mark = mark_of(kept.results / TRIAL)
    mark.parent.mkdir(parents=True)
    mark.touch()

    assert kept.intake().claim(TRIAL) == Done(b"cancelled: died")


def test_a_trial_beyond_the_budget_is_not_started(kept: Kept) -> None:
    """The budget is the batch's, and only this side knows what all hosts have used."""
    kept.refused = "its budget is used up"

    assert kept.intake().claim(TRIAL) == Skipped("its budget is used up")
    assert kept.intake().claim(ROW) == Run()
    assert kept.names() == []


@pytest.mark.parametrize(
    "name",
    [
        "hello/oracle/other-batch/trial-1/result.json",
        "hello/oracle/night/../../x/result.json",
        "../oracle/night/trial-1/result.json",
        "hello/oracle/night/trial-1/benchmark.json",
        "/hello/oracle/night/trial-1/result.json",
        "hello/oracle/night/.arriving/result.json",
        "hello/oracle/night/rows/x.json",
        "hello/audit/night/rows/.json",
        "hello/audit/night/rows/..json",
        "hello/oracle/night/trial-1\n/result.json",
        "",
    ],
)
@pytest.mark.parametrize("call", [Intake.claim, lambda i, name: i.keep_plan(name, b"{}")])
def test_no_name_leads_out_of_the_batch(
    call: Callable[[Intake, str], object], name: str, kept: Kept
) -> None:
    """A host that is broken, or hostile, writes nowhere else."""
    with pytest.raises(UsageError, match=r"host hostA: brings .*, which it was not asked for"):
        call(kept.intake(), name)

    assert not kept.results.exists()


def test_plans_are_kept_by_those_who_know_them(kept: Kept) -> None:
    """A plan is no result: nobody claims it."""
    kept.intake().keep_plan("hello/oracle/night/plan.json", b"{}")

    assert kept.plans == {"hello/oracle/night/plan.json": b"{}"}


def test_what_nobody_claimed_is_not_taken(kept: Kept, made: Path) -> None:
    """A result of an earlier session of that host would take another's place."""
    with pytest.raises(UsageError, match="which it was not asked for"):
        bring(kept.intake(), TRIAL, made)

    assert not kept.results.exists()


def test_hosts_run_no_more_at_once_than_a_client_may(tmp_path: Path) -> None:
    """The limit is the provider's, who does not care which host asks."""
    kept = Kept(tmp_path / "results")
    kept.most = 1
    first, second = kept.intake("hostA"), kept.intake("hostB")

    assert first.claim(TRIAL) == Run()
    assert [second.claim(OTHER), second.claim(OTHER)] == [Queued(), Queued()]
    assert OTHER not in kept.names()

    first.lose()
    assert second.claim(OTHER) == Run()
