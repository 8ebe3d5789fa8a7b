from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc import __version__
from pytest_evalarc.cli.main import main
from pytest_evalarc.cli.status import Status
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.runs.trial import cancelled
from tests.evals import Evals

PROGRAM = "import sys; from pytest_evalarc.cli.main import main; sys.exit(main())"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of results with a plan and one result."""
    evals = Evals(tmp_path)
    trial = evals.trial()
    trial.folder.mkdir(parents=True)
    result = cancelled(evals.plan, trial.entry, evals.known_client, None)
    write_model(trial.folder / "result.json", result)
    return evals.folder


def test_benchmark_computes_the_document_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers do not rest on the session that first wrote them."""
    assert main(["benchmark", str(folder)]) == 0
    first = (folder / "benchmark.json").read_bytes()
    (folder / "benchmark.json").unlink()

    assert main(["benchmark", str(folder)]) == 0

    assert (folder / "benchmark.json").read_bytes() == first
    assert capsys.readouterr().out == f"{folder / 'benchmark.json'}\n" * 2


def test_a_call_without_a_command_says_which_makes_a_first_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is what somebody types who has just installed the package."""
    with pytest.raises(SystemExit) as ended:
        main([])

    assert ended.value.code == Status.REFUSED
    assert capsys.readouterr().err == (
        "usage: pytest-evalarc [-h] [--version] COMMAND ...\n"
        "pytest-evalarc: name a command: `init` makes a first task, and --help lists all\n"
    )


def tear(folder: Path) -> None:
    next(folder.glob("*/result.json")).write_bytes(b'{"schema_version": "1.0"')


def mistype(folder: Path) -> None:
    (folder / "plan.json").write_bytes(b'{"schema_version": "1.0", "mutants": 3}')


def age(folder: Path) -> None:
    (folder / "plan.json").write_bytes(b'{"schema_version": "2.0", "trials": []}')


def repeat(folder: Path) -> None:
    (folder / "plan.json").write_bytes(b'{"batch": "a", "batch": "b"}')


def deepen(folder: Path) -> None:
    (folder / "plan.json").write_bytes(b"[" * 100_000)


def empty(folder: Path) -> None:
    (folder / "plan.json").unlink()


def occupy(folder: Path) -> None:
    (folder / "benchmark.json").mkdir()


@pytest.mark.parametrize("damage", [tear, mistype, age, repeat, deepen, empty, occupy])
def test_a_damaged_folder_is_refused_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    """Status 1 and a file to look at, never a traceback."""
    damage(folder)

    assert main(["benchmark", str(folder)]) == 1

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"pytest-evalarc: {folder}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("name", ["none", "file", "foreign", "loop"])
def test_a_foreign_folder_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It may be any path at all."""
    (tmp_path / "file").write_text("")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    assert main(["benchmark", str(tmp_path / name)]) == 1

    err = capsys.readouterr().err
    assert f"{tmp_path / name}" in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_hostile_path_neither_styles_the_terminal_nor_ends_in_a_traceback(
    folder: Path, tmp_path: Path
) -> None:
    """Names of folders can hold anything but a slash, also what is not UTF-8."""
    named = tmp_path / "r\x1b[31m\udcff"
    folder.rename(named)

    for found in (named, named / "none"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "benchmark", str(found)],
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert done.returncode == (0 if found == named else 1)
        assert b"Traceback" not in done.stderr
        assert b"\x1b" not in done.stdout + done.stderr


def test_a_wrong_call_is_told_with_status_4(capsys: pytest.CaptureFixture[str]) -> None:
    """As pytest does it: 1 and 2 are answers of commands, as of `compare`."""
    for words in ([], ["bench"], ["benchmark"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 4
    assert "usage: pytest-evalarc" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """A report of a fault names it."""
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pytest-evalarc {__version__}\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_reader_that_has_gone_is_no_error(folder: Path, is_buffered: bool) -> None:
    """A long document is piped into `head`, or into a pager that is closed."""
    wait = "import sys; sys.stdin.read(); "
    argv = [sys.executable, *([] if is_buffered else ["-u"]), "-c", wait + PROGRAM]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*argv, "benchmark", folder], **pipes) as process:
        process.stdout.close()
        process.stdin.close()
        said = process.stderr.read()

    assert said == b""
    assert process.returncode == Status.UNREAD
    assert (folder / "benchmark.json").exists()
