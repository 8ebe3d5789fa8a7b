from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause
from pytest_evalarc.runs.once import once

MADE = Cause(kind="made")

SCRIPT = """
import os, signal, sys
from pathlib import Path
from pytest_evalarc.model.base import Cause
from pytest_evalarc.runs.once import once

path, log, act = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def produce():
    with log.open("a") as file:
        file.write("x")
    if act == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "wait":
        print("begun", flush=True)
        sys.stdin.readline()
    return Cause(kind="made", detail=str(os.getpid()))

lost = None if len(sys.argv) < 5 else lambda error: Cause(kind="lost", detail=repr(error))
print(once(path, Cause, produce, lost=lost).detail)
"""


def process(path: Path, log: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), str(log), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def lost(error: BaseException | None) -> Cause:
    return Cause(kind="lost", detail=repr(error))


def never() -> Cause:
    raise AssertionError("it was produced again")


def raises(error: BaseException) -> Callable[[], Cause]:
    def produce() -> Cause:
        raise error

    return produce


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial" / "result.json"


def left_in(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path.parent) if not name.endswith(".lock"))


def test_many_threads_that_ask_at_once_get_what_one_of_them_produced(path: Path) -> None:
    """Whichever item asks first runs the trial; the others wait for its result."""
    produced: list[int] = []
    answers: list[Cause] = []
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait()
        answers.append(once(path, Cause, produce, lost=lost))

    def produce() -> Cause:
        produced.append(1)
        return MADE

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert produced == [1]
    assert answers == [MADE] * 8
    assert left_in(path) == ["result.json"]


@pytest.mark.slow
def test_two_processes_that_ask_at_once_get_one_document(path: Path, tmp_path: Path) -> None:
    """Under xdist the items of a trial can be on two workers, and paid work is done once."""
    log = tmp_path / "log"
    first = process(path, log, "wait")
    assert first.stdout is not None and first.stdout.readline() == "begun\n"
    second = process(path, log, "go")

    said, _ = first.communicate("\n")
    also_said, _ = second.communicate()

    assert said == also_said == f"{first.pid}\n"
    assert log.read_text() == "x"


@pytest.mark.slow
def test_a_killed_producer_leaves_the_lost_document_and_is_not_repeated(
    path: Path, tmp_path: Path
) -> None:
    """The lock is freed by the death, and the mark says that the work had begun."""
    log = tmp_path / "log"
    killed = process(path, log, "die", "lost")
    killed.communicate()

    found = once(path, Cause, never, lost=lost)

    assert killed.returncode == -signal.SIGKILL
    assert found == Cause(kind="lost", detail="None")
    assert read_model(path, Cause) == found
    assert left_in(path) == ["result.json"]


@pytest.mark.slow
def test_what_may_be_repeated_is_produced_again_after_a_death(path: Path, tmp_path: Path) -> None:
    """Staging and controls cost nothing but time, so a dead worker must not void them."""
    log = tmp_path / "log"
    process(path, log, "die").communicate()

    assert once(path, Cause, lambda: MADE) == MADE


@pytest.mark.parametrize("error", [ValueError("torn"), KeyboardInterrupt("SIGINT"), SystemExit(3)])
def test_an_exception_leaves_the_lost_document_and_is_raised(
    path: Path, error: BaseException
) -> None:
    """Whoever interrupts must be obeyed, and the trial must still end in exactly one place."""
    with pytest.raises(type(error)):
        once(path, Cause, raises(error), lost=lost)

    assert once(path, Cause, never, lost=lost) == Cause(kind="lost", detail=repr(error))
    assert left_in(path) == ["result.json"]


@pytest.mark.parametrize("error", [ValueError("torn"), KeyboardInterrupt()])
def test_without_a_lost_document_an_exception_leaves_nothing(
    path: Path, error: BaseException
) -> None:
    """Half of a staging is no document."""
    with pytest.raises(type(error)):
        once(path, Cause, raises(error))

    assert left_in(path) == []
    assert once(path, Cause, lambda: MADE) == MADE


def test_where_nothing_can_be_written_the_mark_stays_and_the_first_error_is_raised(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the interrupt must not turn into another error, nor the trial run again."""
    with monkeypatch.context() as patch:
        patch.setattr("pytest_evalarc.runs.once.write_model", full_disk)
        with pytest.raises(KeyboardInterrupt):
            once(path, Cause, raises(KeyboardInterrupt()), lost=lost)

    assert once(path, Cause, never, lost=lost) == Cause(kind="lost", detail="None")


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_document_that_was_written_is_never_replaced_by_a_lost_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt can come after the rename, when the paid result is already there."""

    def written_then_cut(path: Path, model: Cause) -> None:
        write_model(path, model)
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_evalarc.runs.once.write_model", written_then_cut)

    with pytest.raises(KeyboardInterrupt):
        once(path, Cause, lambda: MADE, lost=lost)

    assert read_model(path, Cause) == MADE


def test_a_mark_that_cannot_be_removed_keeps_no_document_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that turns read-only after the result was written has not lost it."""
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only_disk)
        assert once(path, Cause, lambda: MADE, lost=lost) == MADE

    assert once(path, Cause, never, lost=lost) == MADE


def read_only_disk(*_: object, **__: object) -> None:
    raise OSError(30, "Read-only file system")


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"kind": "a b"}', b'{"kind": "a", "kind": "b"}', b"\xff", b"[]"]
)
def test_a_damaged_document_is_told_and_kept(path: Path, content: bytes) -> None:
    """Producing it again would overwrite the evidence, and repeat what may have been paid for."""
    path.parent.mkdir()
    path.write_bytes(content)

    for settle in (lost, None):
        with pytest.raises(DocumentError, match=r"result\.json"):
            once(path, Cause, never, lost=settle)

    assert path.read_bytes() == content


def test_a_folder_in_place_of_the_document_is_told(path: Path) -> None:
    """Whatever stands there was not written by us."""
    path.mkdir(parents=True)

    with pytest.raises(DocumentError, match="cannot be read"):
        once(path, Cause, never)


@pytest.mark.parametrize("settle", [lost, None])
def test_what_cannot_be_written_is_one_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch, settle: Callable[..., Cause] | None
) -> None:
    """A full disk is the user's to mend, and no traceback buries that."""
    monkeypatch.setattr("pytest_evalarc.runs.once.write_model", full_disk)

    with pytest.raises(DocumentError, match=r"result\.json: cannot be written: No space left"):
        once(path, Cause, lambda: MADE, lost=settle)


def test_a_file_where_the_folder_should_be_is_one_sentence(path: Path) -> None:
    """Nothing is produced that could not be kept."""
    path.parent.write_text("")

    with pytest.raises(DocumentError, match="cannot be written"):
        once(path, Cause, never)


def test_an_error_of_what_is_produced_stays_what_it_is(path: Path) -> None:
    """Only our own file is ours to tell."""
    with pytest.raises(OSError, match="No space left") as caught:
        once(path, Cause, raises(OSError(28, "No space left on device")))

    assert not isinstance(caught.value, DocumentError)


@pytest.mark.parametrize("settles", [None, lost], ids=["again", "at-most-once"])
def test_a_document_waits_for_its_turn_before_it_is_begun(
    settles: Callable[[BaseException | None], Cause] | None, path: Path
) -> None:
    """Who is interrupted while it waits has begun nothing, so it can be done later."""

    @contextlib.contextmanager
    def ended() -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        once(path, Cause, never, lost=settles, turn=ended)
    left = left_in(path)

    held: list[str] = []

    @contextlib.contextmanager
    def turn() -> Iterator[None]:
        held.append("from")
        yield
        assert path.exists()
        held.append("to")

    def produce() -> Cause:
        held.append("produced")
        return MADE

    assert left == []
    assert once(path, Cause, produce, lost=settles, turn=turn) == MADE
    assert once(path, Cause, never, lost=settles, turn=ended) == MADE
    assert held == ["from", "produced", "to"]


def test_what_is_lost_waits_for_no_turn(path: Path) -> None:
    """It only needs to be written down."""

    @contextlib.contextmanager
    def turn() -> Iterator[None]:
        raise AssertionError("it waited")
        yield

    path.parent.mkdir()
    path.with_name(f".{path.name}.begun").touch()

    assert once(path, Cause, never, lost=lost, turn=turn) == lost(None)
