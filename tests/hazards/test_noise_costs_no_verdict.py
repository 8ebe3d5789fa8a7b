"""The verdict travels with what is printed, and a cut of the one loses the other.

Only the last megabyte of an output is kept, so the result that stood before it does not parse; or
only the first kilobyte, so the reason of a failure is gone. UKGovernmentBEIS/inspect_ai#4506.
"""

from __future__ import annotations

import pytest

from tests.grading.small_task import RIGHT, WRONG
from tests.needs import needs_bwrap

pytestmark = [needs_bwrap, pytest.mark.slow]

MANY = 900 << 10
"""Just below what the small task lets a check print."""


def checked(bench, small_task, core: str, *, said: int):
    """Grade by a check that first prints so many bytes, and fails with a very long reason."""
    small_task.only_check(
        "def test_it():\n"
        f"    print('x' * {said})\n"
        "    from app import core\n\n"
        "    assert core.value() == 42, 'y' * (64 << 10) + 'THE END'\n"
    )
    return bench.check(small_task.load(), {"app/core.py": core}, "only")


@pytest.mark.parametrize("core", [RIGHT, WRONG], ids=["right", "wrong"])
def test_a_check_may_print_as_much_as_its_bound(bench, small_task, core: str) -> None:
    """It travels apart from the verdict, which arrives whole."""
    row = checked(bench, small_task, core, said=MANY // 2)

    assert row.status == ("passed" if core == RIGHT else "failed")


def test_the_end_of_a_long_reason_is_kept(bench, small_task) -> None:
    """It is where the reason stands, and the marker says that something is missing before it."""
    row = checked(bench, small_task, WRONG, said=0)

    assert row.status == "failed"
    assert "THE END" in row.detail
    assert "…" in row.detail
    assert len(row.detail) <= 4000


def test_more_than_the_bound_is_a_failure_that_says_so(bench, small_task) -> None:
    """It is never a verdict that went missing, nor one of somebody else's."""
    row = checked(bench, small_task, RIGHT, said=2 << 20)

    assert (row.status, row.cause.kind) == ("agent_error", "output_limit")
    assert "it printed more than it may" in row.detail
