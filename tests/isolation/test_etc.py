from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_evalarc.isolation import etc
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Policy
from tests.isolation.programs import run, shell
from tests.needs import needs_bwrap

PRESENT = [name for name in etc.NAMES if Path("/etc", name).exists()]


@pytest.mark.slow
@needs_bwrap
def test_what_is_shown_is_what_the_host_has() -> None:
    """Programs look up users, libraries and the time zone there."""
    show = "for name; do echo $name; find -L /etc/$name -type f | sort | xargs cat; done | cksum"

    inside = run(Bwrap(), shell(show, *PRESENT)).stdout

    outside = subprocess.run(shell(show, *PRESENT), stdout=subprocess.PIPE, check=True).stdout
    assert inside == outside


@pytest.mark.slow
@needs_bwrap
def test_nothing_else_is_shown() -> None:
    """The rest of it holds keys and password hashes."""
    assert set(run(Bwrap(), shell("ls -A /etc")).lines) <= set(etc.NAMES)


@pytest.mark.slow
@needs_bwrap
def test_a_policy_may_show_more_of_it() -> None:
    """A program may need settings of its own that lie there."""
    extra = next(
        path for path in Path("/etc").iterdir() if path.is_dir() and path.name not in PRESENT
    )

    shown = run(Bwrap(), shell("ls -A /etc"), policy=Policy(read=(extra,))).lines

    assert set(shown) == {*PRESENT, extra.name}


def test_the_copies_go_with_the_process_that_made_them(tmp_path: Path) -> None:
    """A folder that is left by each of thousands of runs fills the disk."""
    code = (
        "import os; from pytest_evalarc.isolation.etc import copied_etc\n"
        "print(sorted(path.name for path in copied_etc(os.getpid()).iterdir()))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )

    assert "passwd" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_process_makes_its_copies_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are for saving time, and each start asks for them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    etc.copied_etc.cache_clear()

    first, second = etc.copied_etc(os.getpid()), etc.copied_etc(os.getpid())

    etc.copied_etc.cache_clear()
    assert first == second
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
