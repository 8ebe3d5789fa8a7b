"""Where grading happens: what its processes can read, and the clocks and digests it keeps."""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

import pytest

import pytest_evalarc
from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.lab import Cancelled, Stopwatch, grader_digest, require, scratch
from pytest_evalarc.isolation.host import python_home
from tests.grading.small_task import CANARY, RIGHT
from tests.needs import needs_bwrap

SEARCH = """\
import importlib.util
import os


def search():
    system = {"bin", "dev", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr"}
    tops = [os.path.join("/", name) for name in os.listdir("/") if name not in system]
    tops += [f"/proc/{pid}" for pid in os.listdir("/proc") if pid.isdigit()]
    files = [path for top in tops for path in below(top)]
    found = sorted({text for path in files for text in canaries(path)})
    ours = importlib.util.find_spec("pytest_evalarc") is not None
    print("searched:", len(files) > 10, "found:", found, "ours:", ours, "package:", PACKAGE_SEEN)


def below(top):
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in KNOWN]
        yield from (os.path.join(folder, name) for name in names)


def canaries(path):
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        text = os.read(descriptor, 1 << 18)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    word = WORD[::-1].encode()
    return [part.split()[0].decode() for part in text.split(word)[1:]]


"""


@pytest.mark.slow
@needs_bwrap
def test_nothing_hidden_can_be_read_while_grading(bench, small_task, tmp_path):
    """Neither the task, its solution and its other checks, nor the harness with its packs.

    A submission looks for them while it is built, in its own tests, and in either form of check.
    """
    package = Path(pytest_evalarc.__file__).parent
    values = (
        f"WORD = {CANARY[::-1]!r}\n"
        f"KNOWN = {{{str(python_home())!r}, {str(bench.tools.root / 'lib')!r}}}\n"
        f"PACKAGE_SEEN = os.path.exists({str(package)!r})\n"
    )
    source = SEARCH.replace("\n\n\ndef search", f"\n\n{values}\n\ndef search", 1)
    files = {
        "app/core.py": f"{source}\nsearch()\n{RIGHT}",
        "tests/test_it.py": "def test_it():\n    from app import core\n\n    core.search()\n",
    }
    task = small_task.load()
    logs = tmp_path / "logs"

    grading = grade(task, bench.submit(task, files), bench.lab(), outputs=logs)

    assert grading.status == "graded"
    nothing = "searched: True found: [] ours: False package: False"
    for name in ("build", "unit_tests", "child_form"):
        assert nothing in (logs / f"{name}.log").read_text("utf-8"), name
    # In its own process a check cannot hide from what it imports.
    own = nothing.replace("[]", "['-check-in-process']")
    assert own in (logs / "in_process.log").read_text("utf-8")


def test_a_scratch_folder_is_gone_whatever_happens(tmp_path):
    """A work folder that fills up ends a long evaluation in its middle."""
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), scratch(tmp_path, "x") as folder:
            (folder / "deep").mkdir()
            (folder / "deep").chmod(0)
            raise error

    assert list(tmp_path.iterdir()) == []


def test_scratch_folders_of_one_name_are_two(tmp_path):
    """Gradings run at the same time in one folder."""
    with scratch(tmp_path, "x") as first, scratch(tmp_path, "x") as second:
        assert first != second


def test_a_grading_can_be_given_up_alone_or_with_all_others():
    """One that is interrupted ends its own checks; the end of the session ends everybody's."""
    outer = threading.Event()
    one, other = Cancelled(outer), Cancelled(outer)

    one.set()
    assert (one.is_set(), other.is_set(), outer.is_set()) == (True, False, False)

    outer.set()
    assert other.is_set()


def test_a_stopwatch_counts_time_that_overlaps_once():
    """Two checks that run at once do not make the wall clock run twice as fast."""
    now = iter([0.0, 5.0, 7.0, 10.0]).__next__
    watch = Stopwatch(now)

    with watch, watch, watch:
        pass
    with watch:
        pass

    assert watch.total_s == 5.0 + 3.0


@pytest.mark.parametrize(
    "path", ["grading/sandboxed/check.ini", "grading/sandboxed/call.py", "isolation/bwrap.py"]
)
def test_the_digest_of_the_grader_tells_every_byte(tmp_path, monkeypatch, path):
    """Verdicts of different graders are not compared, so any change has to show."""
    package = tmp_path / "pytest_evalarc"
    shutil.copytree(Path(pytest_evalarc.__file__).parent, package)
    monkeypatch.setattr(sys.modules["pytest_evalarc"], "__file__", str(package / "__init__.py"))
    before = grader_digest()
    cache = package / "grading" / "__pycache__" / "new.pyc"
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(b"x")
    with_cache = grader_digest()

    (package / path).write_bytes((package / path).read_bytes() + b"\n")

    assert before == with_cache
    assert grader_digest() != before


def test_what_our_own_steps_promise_is_required():
    """A broken promise of ours is an infrastructure error, with its place."""
    require(True, "pack", "is fine")

    with pytest.raises(InfrastructureError, match="pack: is not"):
        require(False, "pack", "is not")
