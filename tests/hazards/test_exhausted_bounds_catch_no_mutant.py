"""A mutant counts as caught because the machine gave out, and the score says nothing.

One suite had a score of 100 % for months because every mutant ran into its deadline; an exhausted
memory, a flood of output and a skipped test are the same mistake. A mutant is caught by a check
that ran and saw a wrong answer: stryker-mutator/stryker-js#2447, boxed/mutmut#518.
"""

from __future__ import annotations

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

FAULTS = ("sleeps", "crashes", "starves", "floods", "forks", "wrong")
CHECK = """\
case "$(cat src/greeting)" in
*sleeps*) sleep 60 ;;
*crashes*) kill -9 $PPID; sleep 5 ;;
*starves*) tail /dev/zero ;;
*floods*) yes >&2 ;;
*forks*) f() { f | f & }; f; sleep 60 ;;
esac
grep -q hello src/greeting
"""
LIMITS = (
    "[limits]\nmemory_mib = 64\nprocesses = 32\noutput_mib = 1\n\n[checks.greets]\ndeadline = 5"
)
MUTANT = """\
[[mutants]]
name = "{0}"
target = "greets"
edits = [{{ file = "src/greeting", find = "hello", replace = "{0}" }}]
"""


def declare(project: Project, *faults: str) -> None:
    """Let the task have these mutants, and a check in which each of them does what it is called."""
    path = project.root / "evals/tasks/hello/task.toml"
    head = path.read_text().partition("[[mutants]]")[0].replace("[checks.greets]", LIMITS)
    path.write_text(head + "".join(MUTANT.format(fault) for fault in faults))
    project.write("evals/tasks/hello/checks/greets.sh", CHECK)


def test_only_a_wrong_answer_catches_a_mutant(project: Project) -> None:
    """Of six faults one answers wrongly; the others use up time, memory, output or processes."""
    declare(project, *FAULTS)

    session = project.pytest("evals", "-m", "evalarc_audit", "-q")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    audit = project.document("audit.json")
    classes = {mutant["name"]: mutant["class"] for mutant in audit["mutants"]}
    assert classes == {**dict.fromkeys(FAULTS, "broken"), "wrong": "detected"}
    assert (audit["killed"], audit["total"], audit["mutation_score"]) == (
        1,
        6,
        pytest.approx(1 / 6),
    )
    assert not audit["passed"]


def test_an_audit_in_which_everything_was_late_fails(project: Project) -> None:
    """A host that is busy must not look like checks that are sharp, nor hold a gate."""
    declare(project, "sleeps")

    session = project.pytest(
        "evals", "-m", "evalarc_audit", "--evalarc-gate=mutation_score==1", "-q"
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    audit = project.document("audit.json")
    assert (audit["mutation_score"], audit["passed"]) == (0.0, False)
    assert "mutation_score==1: failed, found 0" in session.stdout


def test_a_skipped_check_has_caught_nothing(bench, small_task) -> None:
    """A test that steps aside never looked, whatever made it do so: its row names no answer."""
    small_task.only_check(
        "import pytest\n\n\ndef test_it():\n    from app import core\n\n"
        "    if core.value() != 42:\n        pytest.skip('not today')\n"
    )
    task = small_task.load()

    row = bench.check(task, {}, "only")

    assert (row.status, row.cause.kind) == ("agent_error", "not_run")
