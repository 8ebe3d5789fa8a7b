"""The formatter's step: what ruff says of a file is about that file, unless ruff is broken."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_evalarc.grading.records import judge, request
from pytest_evalarc.grading.sandboxed import submission
from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.isolation.host import base_python

PROGRAM = Path(submission.__file__).with_name("run_format.py")
NONCE = "1" * 32
EMPTY = 'case "$*" in *"-- -") exit 0;; esac\n'
"""Ruff over nothing, which has to go well first."""


@pytest.fixture
def run(tmp_path):
    """Run the step with a shell script in ruff's place; returns its verdict."""

    def run(script: str, sources: list[str]):
        ruff = tmp_path / "ruff"
        ruff.write_text(f"#!/bin/sh\n{script}", "utf-8")
        ruff.chmod(0o755)
        done = subprocess.run(
            [base_python(), "-I", "-S", "-B", PROGRAM],
            input=request(NONCE, project=str(tmp_path), command=[str(ruff)], sources=sources),
            capture_output=True,
            check=False,
        )
        exit = Exit(
            reason=Ended.EXITED,
            status=done.returncode,
            stdout_bytes=len(done.stdout),
            stderr_bytes=len(done.stderr),
            wall_time_s=0.1,
        )
        return judge(done.stdout, NONCE, exit, complaint=done.stderr)

    return run


def test_formatted_sources_pass(run):
    """The ordinary case, against which the others are told."""
    assert run(f"{EMPTY}exit 0\n", ["a.py"]).status == "passed"


@pytest.mark.parametrize("end", ["exit 1", "exit 2", "kill -SEGV $$", "kill -KILL $$"])
def test_a_formatter_that_fails_over_a_file_is_the_files_fault(run, end):
    """Ruff ends with 2 for what it cannot parse, and dies of what is nested too deeply."""
    verdict = run(f"{EMPTY}echo a.py is odd >&2\n{end}\n", ["a.py"])

    assert verdict.status == "failed"
    assert verdict.detail == "a.py is odd"


def test_a_formatter_that_fails_over_nothing_is_ours(run):
    """No file was shown to it, so its settings or the program itself are broken."""
    verdict = run("echo bad settings >&2\nexit 2\n", ["a.py"])

    assert verdict.status == "environment_error"
    assert "bad settings" in verdict.cause.detail


def test_more_sources_than_a_command_line_holds_are_all_seen(run, tmp_path):
    """A submission may hold thousands of files, and the one that is wrong may be the last."""
    sources = [f"{number:05}{'x' * 400}.py" for number in range(8000)]
    script = f'{EMPTY}shift\nprintf "%s\\n" "$@" >> seen\ncase "$*" in *07999*) exit 1;; esac\n'

    verdict = run(script, sources)

    assert verdict.status == "failed"
    assert (tmp_path / "seen").read_text("utf-8").splitlines() == sources


def test_a_source_may_be_named_like_an_option(run, tmp_path):
    """`--` stands before all names."""
    verdict = run(f'{EMPTY}echo "$*" > seen\n', ["-c.py", "--help.py"])

    assert verdict.status == "passed"
    assert (tmp_path / "seen").read_text("utf-8") == "-- -c.py --help.py\n"
