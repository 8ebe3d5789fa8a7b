from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.runs.folders import (
    Folders,
    default_eval_root,
    gradings_folder,
    open_gradings,
)

ENTRY = PlannedTrial(configuration="with-skills", trial=3, round=3, order=2)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(eval_root=tmp_path / "root", results=tmp_path / "results", batch="b1")


def test_every_folder_has_the_documented_place(folders: Folders, tmp_path: Path) -> None:
    """Results of one batch must be found by path, also by other programs."""
    root, results = tmp_path / "root", tmp_path / "results"

    assert folders.work == root / "b1"
    assert folders.tools == root / "b1/tools/common"
    assert folders.run("t", "nop", ENTRY).root == root / "b1/t/nop/trial-3-with-skills"
    assert folders.trials("t", "nop") == results / "t/nop/b1"
    assert folders.audit("t") == results / "t/audit/b1"


def test_making_the_objects_writes_nothing(folders: Folders, tmp_path: Path) -> None:
    """Collecting must leave a project as it is."""
    folders.run("t", "nop", ENTRY)
    folders.close_work()

    assert os.listdir(tmp_path) == []


def test_the_default_root_is_this_users_own() -> None:
    """Two users of one machine must not share the folder that trials run in."""
    assert default_eval_root().name == f"pytest-evalarc-{os.getuid()}"


def test_the_default_root_exists_where_users_have_no_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On Windows the plugin must at least collect, and there each user has a temporary folder."""
    monkeypatch.delattr(os, "getuid")

    assert default_eval_root().name == "pytest-evalarc"


def test_gradings_are_kept_where_the_user_keeps_caches() -> None:
    """A relative path there means nothing, by the specification of the variable."""
    own = gradings_folder({})

    assert own.parts[-2:] == ("pytest-evalarc", "gradings")
    assert own.is_relative_to(Path.home())
    assert gradings_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/pytest-evalarc/gradings")
    assert gradings_folder({"XDG_CACHE_HOME": "c"}) == own


def test_a_user_without_a_home_has_a_folder_of_gradings_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every session denies it to submissions, whether it keeps gradings or not."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)

    assert gradings_folder({}) == Path(f"{default_eval_root()}-cache/pytest-evalarc/gradings")


@pytest.mark.parametrize("spoil", ["file", "link", "open"])
def test_a_folder_of_gradings_that_is_not_the_users_own_is_refused(
    tmp_path: Path, spoil: str
) -> None:
    """What lies there is believed."""
    folder = tmp_path / "gradings"
    if spoil == "file":
        folder.touch()
    elif spoil == "link":
        (tmp_path / "real").mkdir()
        folder.symlink_to(tmp_path / "real")
    else:
        folder.mkdir()
        folder.chmod(0o777)

    with pytest.raises(UsageError) as refused:
        open_gradings(folder)

    assert refused.value.hint == "name another place with XDG_CACHE_HOME"


def test_the_working_folder_is_private(folders: Folders) -> None:
    """It holds what agents left, and soon after the hidden checks."""
    folders.open_work()

    assert folders.eval_root.stat().st_mode & 0o777 == 0o700
    assert folders.work.stat().st_mode & 0o777 == 0o700


def refused(folders: Folders, problem: str) -> None:
    with pytest.raises(UsageError, match=f"{folders.eval_root}: {problem}.*--evalarc-root"):
        folders.open_work()


def test_a_root_that_is_a_link_is_refused(folders: Folders, tmp_path: Path) -> None:
    """Somebody may have put it there, to be led to what we would then remove."""
    (tmp_path / "elsewhere").mkdir()
    folders.eval_root.symlink_to(tmp_path / "elsewhere")

    refused(folders, "is a link, or belongs to another user")
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_root_of_another_user_is_refused(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns it can replace what is in it while we use it."""
    folders.eval_root.mkdir(mode=0o700)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)

    refused(folders, "is a link, or belongs to another user")


def test_a_root_that_everybody_can_write_is_refused(folders: Folders) -> None:
    """There anybody could rename our folder away and put another in its place."""
    folders.eval_root.mkdir()
    folders.eval_root.chmod(0o777)

    refused(folders, "can be written by every user of this machine")


def test_a_root_that_cannot_be_made_is_told(folders: Folders) -> None:
    """It is the user's to name another, so no traceback buries that."""
    folders.eval_root.write_text("a file")

    refused(folders, "cannot be made")


def test_a_dangling_link_is_no_root(folders: Folders, tmp_path: Path) -> None:
    """Following it would make a folder where somebody else wants it."""
    folders.eval_root.symlink_to(tmp_path / "not-there")

    with pytest.raises(UsageError):
        folders.open_work()
    assert not (tmp_path / "not-there").exists()


def test_closing_removes_the_batch_and_an_empty_root(folders: Folders) -> None:
    """Nothing of a finished session stays in the temporary folder."""
    folders.open_work()
    (folders.work / "deep/er").mkdir(parents=True)
    (folders.work / "deep/er").chmod(0o500)

    folders.close_work()
    folders.close_work()

    assert not folders.eval_root.exists()


def test_closing_keeps_the_other_batches_of_a_root(folders: Folders, tmp_path: Path) -> None:
    """Two sessions may share a root."""
    other = Folders(eval_root=folders.eval_root, results=folders.results, batch="b2")
    folders.open_work()
    other.open_work()

    folders.close_work()

    assert not folders.work.exists()
    assert (other.work / "users").is_dir()


@pytest.mark.slow
def test_closing_waits_for_the_last_live_process(folders: Folders) -> None:
    """A worker that still grades must not lose its tools; a dead one holds nothing."""
    script = (
        "import sys; from pathlib import Path; from pytest_evalarc.runs.folders import Folders\n"
        "root, results, batch = sys.argv[1:]\n"
        "Folders(eval_root=Path(root), results=Path(results), batch=batch).open_work()\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    paths = (str(folders.eval_root), str(folders.results), folders.batch)
    with subprocess.Popen(
        [sys.executable, "-c", script, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        folders.open_work()

        folders.close_work()
        assert folders.work.is_dir()
        other.communicate()

    folders.close_work()
    assert not folders.work.exists()


def test_a_folder_that_is_being_removed_is_not_opened_meanwhile(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opens it just then would lose it while using it."""
    folders.open_work()
    opened = threading.Thread(target=folders.open_work)
    seen: list[bool] = []

    def removing(path: Path) -> None:
        opened.start()
        opened.join(0.05)
        seen.append(opened.is_alive())
        (path / "users" / str(os.getpid())).unlink()
        (path / "users").rmdir()
        path.rmdir()

    monkeypatch.setattr("pytest_evalarc.runs.folders.remove_tree", removing)
    folders.close_work()
    opened.join()

    assert seen == [True]
    assert (folders.work / "users" / str(os.getpid())).exists()


def test_results_stay_out_of_git_and_latest_follows(folders: Folders) -> None:
    """A result holds transcripts, which nobody commits by accident."""
    folders.open_results(folders.trials("t", "nop"))
    newer = Folders(eval_root=folders.eval_root, results=folders.results, batch="b2")
    newer.open_results(newer.trials("t", "nop"))
    newer.open_results(newer.trials("t", "nop"))

    latest = folders.results / "t/nop/latest"
    assert (folders.results / ".gitignore").read_text() == "*\n"
    assert str(latest.readlink()) == "b2"
    assert sorted(os.listdir(latest.parent)) == ["b1", "b2", "latest"]


def test_a_folder_with_the_users_own_files_is_not_hidden_from_git(tmp_path: Path) -> None:
    """`--evalarc-results .` would otherwise take the whole project out of version control."""
    (tmp_path / "setup.py").write_text("")
    folders = Folders(eval_root=tmp_path / "root", results=tmp_path, batch="b1")

    folders.open_results(folders.trials("t", "nop"))

    assert not (tmp_path / ".gitignore").exists()


def test_a_batch_named_latest_is_a_folder_and_no_link(tmp_path: Path) -> None:
    """A link to itself would hide the results."""
    folders = Folders(eval_root=tmp_path / "root", results=tmp_path / "r", batch="latest")

    folders.open_results(folders.trials("t", "nop"))

    assert os.listdir(tmp_path / "r/t/nop") == ["latest"]
    assert not (tmp_path / "r/t/nop/latest").is_symlink()


def test_results_that_cannot_be_made_are_told(folders: Folders) -> None:
    """The folder is the user's to choose."""
    folders.results.write_text("a file")

    with pytest.raises(UsageError, match=r"cannot be made.*--evalarc-results"):
        folders.open_results(folders.trials("t", "nop"))


def test_of_two_that_close_at_once_the_second_removes_the_folder(folders: Folders) -> None:
    """Both are still alive then, and each would leave it to the other."""
    folders.open_work()
    other = folders.work / "users" / str(os.getppid())
    other.touch()
    folders.close_work()
    assert folders.work.exists()
    # What the other process does when it closes in turn.
    other.rename(folders.work / "users" / str(os.getpid()))

    folders.close_work()

    assert not folders.eval_root.exists()


def test_a_root_that_vanishes_meanwhile_is_closed(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session of the batch ended in the same moment."""
    folders.open_work()

    @contextlib.contextmanager
    def late(path: Path) -> Iterator[None]:
        remove_tree(folders.eval_root)
        with locked(path):
            yield

    monkeypatch.setattr("pytest_evalarc.runs.folders.locked", late)

    folders.close_work()

    assert not folders.eval_root.exists()


@pytest.mark.parametrize("left", ["root", "lock", "work", "users"])
def test_closing_finishes_what_a_process_died_over(folders: Folders, left: str) -> None:
    """A session that had nothing to run opens nothing, and is the last that will ever close it."""
    folders.eval_root.mkdir()
    if left != "root":
        (folders.eval_root / ".b1.lock").touch()
    if left in ("work", "users"):
        (folders.work / "tools").mkdir(parents=True)
    if left == "users":
        (folders.work / "users").mkdir()

    folders.close_work()

    assert not folders.eval_root.exists()


def test_what_says_that_it_is_a_working_folder_is_removed_last(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may die at any moment, and what it leaves must be known as what it is."""
    folders.open_work()
    for name in ("tools", "zoo"):
        (folders.work / name).mkdir()
    removed: list[str] = []

    def watching(path: Path) -> None:
        assert folders.work.joinpath("users").is_dir()
        removed.append(path.name)
        remove_tree(path)

    monkeypatch.setattr("pytest_evalarc.runs.folders.remove_tree", watching)
    folders.close_work()

    assert sorted(removed[:-1]) == ["tools", "zoo"]
    assert removed[-1] == "b1"


def test_what_processes_died_over_is_swept_from_the_results(folders: Folders) -> None:
    """Beside documents and trials, and never in what an agent has left there."""
    name = ".0123456789abcdef.tmp"
    trial = folders.trials("t", "nop") / "trial-1-with-skills"
    other = folders.results / "t/nop/b2"
    for folder in (trial / "submission", other):
        folder.mkdir(parents=True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = (trial.parent.parent / f".latest-{pid}" for pid in (ended.pid, os.getpid()))
    for link in (dead, alive):
        link.symlink_to("b1")
    begun = [folders.results, trial.parent, trial, folders.audit("t") / "rows"]
    for folder in (*begun, trial / "submission", other):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"half of i")

    folders.sweep_results()

    assert [folder for folder in begun if (folder / name).exists()] == []
    assert (trial / "submission" / name).exists()
    assert (other / name).exists()
    assert (dead.is_symlink(), alive.is_symlink()) == (False, True)
