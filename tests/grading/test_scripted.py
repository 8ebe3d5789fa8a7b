"""A toolchain's own script runs isolated, and reports over the channel alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pytest_evalarc.grading.judges import identity
from pytest_evalarc.grading.records import judge
from pytest_evalarc.grading.scripted import script_grader, script_tools, stage_scripts
from pytest_evalarc.isolation.command import Ended, Exit

NONCE = "n" * 32
SCRIPT = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from channel import Channel, leave
channel = Channel()
print("a diagnostic")
channel.send("ready")
word = "passed" if channel.request["wanted"] == [1, {"a": None}] else "failed"
seen = repr((sys.flags.isolated, sys.flags.no_site, os.environ.get("PYTHONPATH")))
channel.send("outcome", id="it", outcome=word, when="call", answered=True, text=seen)
channel.send("end", ran=1)
leave(0)
"""


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    script = tmp_path / "own" / "run_it.py"
    script.parent.mkdir()
    script.write_text(SCRIPT, "utf-8")
    stage_scripts(tmp_path / "staged", script)
    return tmp_path / "staged"


@pytest.mark.parametrize(
    ("wanted", "status"), [([1, {"a": None}], "passed"), ([2], "failed")], ids=["right", "wrong"]
)
def test_a_script_finds_its_request_and_decides_by_its_records(
    staged: Path, wanted: list[object], status: str
) -> None:
    """Its data travel whole, and what it prints is no record."""
    grader = script_grader(script_tools(staged), "run_it.py", wanted=wanted)

    done = subprocess.run(
        grader.argv, input=grader.request(NONCE), capture_output=True, check=False, env={}
    )

    assert done.stderr == b"a diagnostic\n"
    ended = Exit(
        reason=Ended.EXITED,
        status=done.returncode,
        stdout_bytes=len(done.stdout),
        stderr_bytes=len(done.stderr),
        wall_time_s=0.1,
    )
    assert judge(done.stdout, NONCE, ended).status == status
    record = json.loads(done.stdout.splitlines()[1].partition(b" ")[2])
    assert record["text"] == "(1, 1, None)"


def test_a_script_and_the_programs_it_starts_are_judges(staged: Path) -> None:
    """A grading that is kept must not stand for one by another script or another shell."""
    of_script = script_tools(staged)
    assert of_script.judges is not None
    without = identity(of_script.judges)
    with_shell = script_tools(staged, "sh")
    assert with_shell.judges is not None

    assert identity(with_shell.judges) != without
    (staged / "grader" / "run_it.py").write_text("other", "utf-8")
    identity.cache_clear()
    assert identity(of_script.judges) != without
