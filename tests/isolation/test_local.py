from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.task import Limits
from tests.isolation.programs import run, shell

pytestmark = pytest.mark.slow


def test_the_record_says_that_there_was_no_boundary() -> None:
    """A result of a trusted run must not pass for an isolated one."""
    record = Local().record(Limits())

    assert (record.level, record.sandbox) == ("trusted_local", "local")
    assert record.limits["tmp_mib"] is None
    assert record.limits_status == "partial"
    assert Local().private_tmp is None


@pytest.mark.parametrize("given", [{"A": "1"}, {"LC_CTYPE": "C", "A": ""}, {}])
def test_the_environment_is_exactly_what_was_given(given: dict[str, str]) -> None:
    """A control must not pass thanks to a variable of whoever runs it, or of its keeper."""
    ran = run(Local(), ("/usr/bin/env", "-0"), env=given)

    assert ran.exit.status == 0, ran
    seen = dict(line.split("=", 1) for line in ran.stdout.decode().split("\0") if line)
    # A shell puts the limits on, and some tell the working folder.
    assert {name: value for name, value in seen.items() if name != "PWD"} == given


def test_the_policy_is_not_enforced(tmp_path: Path) -> None:
    """The control of every barrier: without a boundary the attack wins."""
    ran = run(Local(), shell('echo x > "$1"', tmp_path / "new"), policy=Policy())

    assert ran.exit.status == 0
    assert (tmp_path / "new").exists()


def test_a_command_starts_with_the_system_s_signals() -> None:
    """Its keeper ignores what goes to the whole group; the command must be free to react."""
    ran = run(Local(), shell("grep -E '^Sig(Ign|Blk)' /proc/self/status"))

    # Two signals above the classic ones belong to the C library.
    assert [int(line.split()[1], 16) & 0x7FFF_FFFF for line in ran.lines] == [0, 0]
