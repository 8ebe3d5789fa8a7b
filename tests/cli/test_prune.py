from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.runs.folders import Folders
from tests.evals import Evals


class Kept(NamedTuple):
    root: Path
    results: Path


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Return an evaluation root with a dead session's folder, and results of three batches."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    for number, batch in enumerate(("b1", "b2", "b3"), start=1):
        evals = Evals(tmp_path, batch_name=batch)
        evals.folder.mkdir(parents=True)
        write_model(evals.folder / "plan.json", evals.plan)
        os.utime(evals.folder / "plan.json", (number, number))
    folders = Folders(eval_root=tmp_path / "root", results=evals.results, batch="b1")
    folders.open_work()
    own = folders.work / "users" / str(os.getpid())
    own.rename(own.with_name(str(process.pid)))
    return Kept(folders.eval_root, evals.results)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_prune_removes_what_it_says(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    """A root that is empty then goes too; the newest batch stays."""
    batches = kept.results / "tiny/oracle"

    status = main(
        ["prune", "--root", str(kept.root), "--results", str(kept.results), "--keep", "1"]
    )

    assert status == 0
    assert capsys.readouterr().out == (
        f"remove {kept.root / 'b1'}\nremove {batches / 'b2'}\nremove {batches / 'b1'}\n"
    )
    assert left(batches) == ["b3"]
    assert not kept.root.exists()


def test_a_dry_run_removes_nothing(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    """One looks before."""
    arguments = ["--root", str(kept.root), "--results", str(kept.results), "--keep", "2"]

    assert main(["prune", *arguments, "--dry-run"]) == 0

    said = capsys.readouterr().out.splitlines()
    assert [line.partition(str(kept.root.parent))[0] for line in said] == ["would remove "] * 2
    assert left(kept.results / "tiny/oracle") == ["b1", "b2", "b3"]
    assert (kept.root / "b1").exists()


def test_without_results_only_working_folders_go(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured is removed only where somebody says so."""
    assert main(["prune", "--root", str(kept.root)]) == 0
    assert main(["prune", "--root", str(kept.root)]) == 0

    assert capsys.readouterr().out == f"remove {kept.root / 'b1'}\nnothing to remove\n"
    assert left(kept.results / "tiny/oracle") == ["b1", "b2", "b3"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--results", "results"], "needs --results and --keep together"),
        (["--keep", "3"], "needs --results and --keep together"),
        (["--results", "results", "--keep", "0"], "--keep 0: is no number of batches"),
        (["--results", "project", "--keep", "1"], "holds no batch"),
        (["--root", "results"], "holds no working folder of a batch"),
    ],
)
def test_a_wrong_call_removes_nothing_and_is_one_sentence(
    kept: Kept,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    """Also what the call's other half would have removed."""
    monkeypatch.chdir(kept.root.parent)
    root = [] if "--root" in arguments else ["--root", str(kept.root)]

    assert main(["prune", *root, *arguments]) == 1

    said = capsys.readouterr()
    assert sentence in said.err and said.err.count("\n") == 1
    assert said.out == ""
    assert left(kept.results / "tiny/oracle") == ["b1", "b2", "b3"]
    assert (kept.root / "b1").exists()


def test_what_resists_is_told_and_keeps_nothing_else_from_going(
    kept: Kept, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One folder of another user's must not stop the night's clean-up."""

    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr("pytest_evalarc.cli.prune.remove_tree", refuse)
    arguments = ["--root", str(kept.root), "--results", str(kept.results), "--keep", "2"]

    assert main(["prune", *arguments]) == 1

    told = f"pytest-evalarc: {kept.results}/tiny/oracle/b1: cannot be removed"
    assert capsys.readouterr().err.startswith(told)
    assert not kept.root.exists()


@pytest.fixture
def gradings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return two kept gradings of 1 MiB each, the oldest first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache/pytest-evalarc/gradings"
    paths = [folder / key / f"{key * 32}.json" for key in ("c1", "a0")]
    for time, path in enumerate(paths, start=1):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * (1 << 20))
        os.utime(path, (time, time))
    folder.chmod(0o700)
    return paths


def test_the_cache_is_cut_to_the_size_that_is_named(
    gradings: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Thousands of names would tell nobody anything, so it is one line."""
    arguments = ["prune", "--root", str(tmp_path / "none"), "--cache", "1"]

    assert main([*arguments, "--dry-run"]) == 0
    assert [path.exists() for path in gradings] == [True, True]
    assert main(arguments) == 0
    assert [path.exists() for path in gradings] == [False, True]
    assert main(arguments) == 0

    assert capsys.readouterr().out == (
        "would remove 1 file of the cache of gradings (1.0 MiB)\n"
        "remove 1 file of the cache of gradings (1.0 MiB)\n"
        "nothing to remove\n"
    )


def test_without_its_option_the_cache_stays(gradings: list[Path], tmp_path: Path) -> None:
    """Whoever clears up after killed sessions has not asked to grade everything again."""
    assert main(["prune", "--root", str(tmp_path / "none")]) == 0

    assert [path.exists() for path in gradings] == [True, True]


def test_a_size_below_nothing_is_refused(
    gradings: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a slip, and must not be taken for 0."""
    assert main(["prune", "--root", str(tmp_path / "none"), "--cache", "-1"]) == 1

    assert "--cache -1: is no size; give 0 to remove all, or more" in capsys.readouterr().err
    assert [path.exists() for path in gradings] == [True, True]
