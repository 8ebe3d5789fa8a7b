from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.plan import make_audit_plan
from pytest_evalarc.runs.prune import old_gradings, old_results, unused_work
from tests.evals import Evals

Plan = Callable[..., Path]


@pytest.fixture
def dead_pid() -> int:
    """Return the id of a process that is over."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def work(root: Path, batch: str, pid: int) -> Path:
    users = root / batch / "users"
    users.mkdir(parents=True)
    (users / str(pid)).touch()
    return root / batch


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Return what writes the plan of a batch, each newer than the one before."""
    times = iter(range(1_000, 2_000))

    def write(batch: str, label: str = "oracle") -> Path:
        evals = Evals(tmp_path, batch_name=batch)
        folder = evals.results / "tiny" / label / batch
        folder.mkdir(parents=True)
        is_audit = label == "audit"
        audit_plan = make_audit_plan(evals.task, evals.request, sandbox="bwrap")
        write_model(folder / "plan.json", audit_plan if is_audit else evals.plan)
        seconds = next(times)
        os.utime(folder / "plan.json", (seconds, seconds))
        return folder

    return write


def test_what_no_live_process_uses_is_unused(tmp_path: Path, dead_pid: int) -> None:
    """A session that was killed leaves its working folder behind."""
    root = tmp_path / "root"
    left, used = work(root, "left", dead_pid), work(root, "used", os.getppid())
    (root / ".left.lock").touch()

    found = unused_work(root)

    assert found.removable == (left,)
    assert found.remarks == (f"{used}: is in use",)


def test_a_batch_that_opens_its_folder_is_in_use_for_others(tmp_path: Path, dead_pid: int) -> None:
    """One live process among dead ones is enough."""
    folders = Folders(eval_root=tmp_path / "root", results=tmp_path / "results", batch="b")
    folders.open_work()
    (folders.work / "users" / str(dead_pid)).touch()
    (folders.work / "users" / str(os.getppid())).touch()

    assert unused_work(folders.eval_root).removable == ()


def test_a_root_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    """A machine that never ran a batch is no error."""
    assert unused_work(tmp_path / "none") == ((), ())


def foreign_folder(root: Path) -> Path:
    (root / "photos").mkdir()
    return root / "photos"


def foreign_users(root: Path) -> Path:
    (root / "app/users/anna").mkdir(parents=True)
    return root / "app"


def link_to_work(root: Path) -> Path:
    (root / "link").symlink_to(root / "left")
    return root / "link"


def linked_users(root: Path) -> Path:
    (root / "odd").mkdir()
    (root / "odd/users").symlink_to(root / "left/users")
    return root / "odd"


def odd_name(root: Path) -> Path:
    (root / "a b/users").mkdir(parents=True)
    return root / "a b"


@pytest.mark.parametrize(
    "make", [foreign_folder, foreign_users, link_to_work, linked_users, odd_name]
)
def test_what_is_not_ours_is_left_alone(
    tmp_path: Path, dead_pid: int, make: Callable[[Path], Path]
) -> None:
    """A root may be a folder that the user has other things in."""
    left = work(tmp_path / "root", "left", dead_pid)
    foreign = make(tmp_path / "root")

    found = unused_work(tmp_path / "root")

    assert found.removable == (left,)
    assert found.remarks == (f"{foreign}: is no working folder of a batch",)


def test_a_root_without_any_batch_is_refused(tmp_path: Path) -> None:
    """Somebody mistyped it."""
    foreign_folder(tmp_path)

    with pytest.raises(UsageError, match="holds no working folder of a batch"):
        unused_work(tmp_path)


def test_a_root_that_others_can_write_is_refused(tmp_path: Path, dead_pid: int) -> None:
    """They could have put there what they want to see removed."""
    work(tmp_path / "root", "left", dead_pid)
    (tmp_path / "root").chmod(0o777)

    with pytest.raises(UsageError, match="can be written by every user"):
        unused_work(tmp_path / "root")


def test_the_newest_batches_of_each_task_and_client_stay(tmp_path: Path, plan: Plan) -> None:
    """By when they were planned: names are the user's."""
    oldest, old, new = plan("z"), plan("y"), plan("x")
    other, audit = plan("z", "nop"), plan("z", "audit")

    found = old_results(tmp_path / "results", keep=1, eval_root=tmp_path / "root")

    assert found == ((old, oldest), ())
    assert all(path.exists() for path in (oldest, old, new, other, audit))


@pytest.mark.parametrize("kind", ["summary", "shard"])
def test_what_is_of_a_whole_batch_goes_with_its_first_folder(
    kind: str, tmp_path: Path, plan: Plan
) -> None:
    """It is of folders of which one is gone; what is left can be summed up again."""
    old, new = plan("y"), plan("x")
    summaries = [tmp_path / "results" / f"{name}.{kind}.json" for name in ("x", "y", "z")]
    for path in summaries:
        path.touch()

    found = old_results(tmp_path / "results", keep=1, eval_root=tmp_path / "root")

    assert found.removable == (old, summaries[1])
    assert new.exists()


def test_the_batch_that_latest_leads_to_stays(tmp_path: Path, plan: Plan) -> None:
    """It may be an older one, gone on with by name."""
    first, second, _ = plan("a"), plan("b"), plan("c")
    (first.parent / "latest").symlink_to("a")

    found = old_results(tmp_path / "results", keep=1, eval_root=tmp_path / "root")

    assert found == ((second,), ())


def test_a_batch_under_way_stays(tmp_path: Path, plan: Plan) -> None:
    """An older batch can be gone on with just now."""
    first, _ = plan("a"), plan("b")
    work(tmp_path / "root", "a", os.getppid())

    found = old_results(tmp_path / "results", keep=1, eval_root=tmp_path / "root")

    assert found == ((), (f"{first}: is in use",))


def test_folders_without_a_plan_of_their_own_place_stay(tmp_path: Path, plan: Plan) -> None:
    """A copy, a torn plan and a user's own folder are nothing that we wrote there."""
    first, _ = plan("a"), plan("b")
    copy, torn, own = (first.with_name(name) for name in ("copy", "torn", "own"))
    first.rename(copy)
    for folder in (torn, own):
        folder.mkdir()
    (torn / "plan.json").write_text("{")
    (first.parent / "link").symlink_to(copy)

    found = old_results(tmp_path / "results", keep=1, eval_root=tmp_path / "root")

    assert found.removable == ()
    assert found.remarks == tuple(f"{path}: holds no plan of ours" for path in (copy, own, torn))


@pytest.mark.parametrize("name", ["none", "file", "foreign"])
def test_a_folder_that_holds_no_results_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing in it is ours to judge."""
    (tmp_path / "file").touch()
    (tmp_path / "foreign/a/b/c").mkdir(parents=True)

    with pytest.raises(UsageError, match=r"is no folder|holds no batch"):
        old_results(tmp_path / name, keep=1, eval_root=tmp_path / "root")


@pytest.fixture
def gradings(tmp_path: Path) -> list[Path]:
    """Return three kept gradings of 100 bytes each, the oldest first."""
    paths = [tmp_path / f"gradings/{key * 2}/{key * 64}.json" for key in "c1a"]
    for time, path in enumerate(paths, start=1):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (time, time))
    (tmp_path / "gradings").chmod(0o700)
    return paths


@pytest.mark.parametrize(("most_bytes", "gone"), [(0, 3), (99, 3), (100, 2), (299, 1), (300, 0)])
def test_the_oldest_gradings_go_until_the_others_fit(
    gradings: list[Path], tmp_path: Path, most_bytes: int, gone: int
) -> None:
    """What was graded last is what will be asked for next."""
    found = old_gradings(tmp_path / "gradings", most_bytes=most_bytes)

    assert set(found.removable) == set(gradings[:gone])
    assert found.freed_bytes == 100 * gone
    assert found.remarks == ()


def test_a_cache_that_was_never_used_holds_nothing_to_remove(tmp_path: Path) -> None:
    """A nightly call runs before the first audit, too."""
    assert old_gradings(tmp_path / "none", most_bytes=0) == ((), 0, ())


def test_what_a_writer_died_over_goes_and_what_is_nobodys_grading_stays(
    gradings: list[Path], tmp_path: Path
) -> None:
    """The folder is ours, and a note that somebody left there is not."""
    begun = gradings[0].with_name(f".{'0' * 16}.tmp")
    note = gradings[0].with_name("note.json")
    misplaced = gradings[0].with_name(gradings[1].name)
    link = gradings[0].with_name(f"cc{'1' * 62}.json")
    for path in (begun, note, misplaced):
        path.touch()
    link.symlink_to(note)

    found = old_gradings(tmp_path / "gradings", most_bytes=1000)

    assert found.removable == (begun,)
    assert sorted(found.remarks) == sorted(
        f"{path}: is no kept grading" for path in (note, misplaced, link)
    )


def test_a_cache_of_somebody_elses_is_refused(gradings: list[Path], tmp_path: Path) -> None:
    """What others can fill is not for us to clear up."""
    (tmp_path / "gradings").chmod(0o777)

    with pytest.raises(UsageError, match="can be written by every user") as refused:
        old_gradings(tmp_path / "gradings", most_bytes=0)

    assert refused.value.hint == "name another place with XDG_CACHE_HOME"
