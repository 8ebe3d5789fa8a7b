"""What becomes of a trial, and which words, letters, counts and exit status tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import TASK, Project, Session

pytestmark = [needs_bwrap, pytest.mark.slow]

ITEMS = ("run", "greets", "names", "installed-greet", "used-greet", "success")

STATUSES = {
    "good": ("PASSED", "PASSED", "PASSED", "PASSED", "PASSED", "PASSED"),
    "nop": ("PASSED", "MISSED", "PASSED", "PASSED", "MISSED", "MISSED"),
    "crashed": ("MISSED", "MISSED", "PASSED", "PASSED", "MISSED", "MISSED"),
    "slow": ("MISSED", "MISSED", "PASSED", "PASSED", "MISSED", "MISSED"),
    "careless": ("PASSED", "PASSED", "PASSED", "PASSED", "MISSED", "MISSED"),
    "unclear": ("PASSED", "PASSED", "PASSED", "PASSED", "INCONCLUSIVE", "INCONCLUSIVE"),
    "outside": ("EXCLUDED",) * 6,
    "unready": ("ERROR", *["SKIPPED"] * 5),
    "oracle": ("ERROR", *["SKIPPED"] * 5),
}
"""The words of a trial's items by what it is: its client, or the task that cannot be prepared."""

OUTCOMES = {
    "good": ("succeeded", None),
    "nop": ("failed", "code"),
    "crashed": ("failed", "client_error"),
    "slow": ("failed", "timeout"),
    "careless": ("failed", "expectation"),
    "unclear": ("inconclusive", "expectation"),
    "outside": ("excluded_isolation", "escape"),
    "unready": ("setup_failure", "preparation"),
    "oracle": ("cancelled", "worker_crash"),
}


def trial(case: str) -> str:
    """Return the node id of a case's trial."""
    task = {"slow": "hurried", "unready": "unready"}.get(case, "hello")
    client = {"unready": "nop"}.get(case, case)
    return f"evals/tasks/{task}/task.toml::{client}::with-skills::trial-001"


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Session]]:
    """Run one trial of every kind in one session."""
    root = tmp_path_factory.mktemp("everything")
    project = Project(root / "project", root / "trials")
    project.add_task("hurried", TASK.replace("agent = 60", "agent = 0.3"))
    project.add_task("unready", TASK.replace('"shell"', '"broken"'))
    # The process that ran oracle's trial has died in it.
    lost = project.results / "hello/oracle/all/trial-1-with-skills/.result.json.begun"
    project.write(str(lost.relative_to(project.root)), "")
    yield (
        project,
        project.pytest("-v", "--evalarc-batch=all", *(trial(case) for case in STATUSES)),
    )


@pytest.mark.parametrize("case", STATUSES)
def test_every_item_of_a_trial_has_the_word_of_its_outcome(
    case: str, everything: tuple[Project, Session]
) -> None:
    """An agent that fails, one that cannot be judged and a broken harness are different facts."""
    project, session = everything
    below = trial(case).partition("::")[2]

    words = session.words(trial(case).partition("::")[0])

    assert tuple(words[f"{below}::{name}"] for name in ITEMS) == STATUSES[case]
    (result,) = (
        document
        for path, document in project.documents("result.json").items()
        if path.startswith("/".join([trial(case).split("/")[2], below.partition("::")[0]]) + "/")
    )
    cause = result["cause"] and result["cause"]["kind"]
    assert (result["outcome"], cause) == OUTCOMES[case]


def test_counts_are_told_by_their_own_words(everything: tuple[Project, Session]) -> None:
    """The last line sums up what was measured, and the exit status that the harness failed."""
    _, session = everything
    words = [word for row in STATUSES.values() for word in row]

    assert session.counts == {
        "passed": words.count("PASSED"),
        "missed": words.count("MISSED"),
        "inconclusive": words.count("INCONCLUSIVE"),
        "excluded": words.count("EXCLUDED"),
        "skipped": words.count("SKIPPED"),
        "error": words.count("ERROR"),
    }
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_what_failed_is_told_in_one_sentence(everything: tuple[Project, Session]) -> None:
    """A trial that never counted is somebody's to mend, so its reason is in plain sight."""
    _, session = everything

    assert "setup failure: preparation: toolchain broken: its tools are gone" in session.stdout
    assert "cancelled: worker_crash: the process that ran it died" in session.stdout
    assert "Traceback" not in session.stdout
    # Before pytest 8.2 its short summary names no errors of a call.
    headed = [line for line in session.stdout.splitlines() if " ERROR at call of " in line]
    assert len(headed) == 2
    missed = [line for line in session.stdout.splitlines() if line.startswith("MISSED evals")]
    assert any(line.endswith("misses greets: nobody says hello") for line in missed)


def test_a_miss_is_a_measurement_unless_strict(project: Project, pytester: pytest.Pytester) -> None:
    """An agent that fails is what an evaluation is for; a gate may want it to fail the run."""
    nop = ("--evalarc-client=nop", "evals", "-q", "--evalarc-configuration=with", "-k", "nop")

    lenient = project.inline(pytester, *nop, "-x")
    strict = project.inline(pytester, *nop, "--evalarc-strict")

    assert lenient.ret == 0
    assert lenient.counts == {"passed": 3, "missed": 3, "deselected": 6}
    assert lenient.stdout.splitlines()[0].startswith(".m..mm")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
    assert strict.counts == {"passed": 3, "failed": 3, "deselected": 6}
    assert "the submission misses greets: nobody says hello" in strict.stdout
    benchmark = next(iter(project.documents("benchmark.json").values()))
    assert benchmark["configurations"]["with-skills"]["succeeded"] == 0
    assert benchmark["configurations"]["with-skills"]["eligible"] == 1


def test_options_that_react_to_failures_do_not_react_to_misses(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Stopping at, or repeating, misses alone would bias every rate."""
    nop = ("--evalarc-client=nop", "evals", "-q", "-k", "nop")

    first = project.inline(pytester, *nop, "--maxfail=1")
    again = project.inline(pytester, "evals", "-q", "--lf")

    assert first.counts == {"passed": 5, "missed": 5, "deselected": 6}
    assert again.counts == {"passed": 6}


OWN_WORDS = """
from shell import *
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report):
    status = yield
    return ("xfailed", "x", "XFAIL") if hasattr(report, "wasxfail") else status

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and call.excinfo.typename != "Skipped":
        report.outcome = "failed"
    return report
"""
"""Has words of its own for all outcomes, as plugins that replace the terminal's reporter have, and
asks the call how an item ended, as one that reruns what fails does."""


def test_misses_are_told_beside_a_plugin_that_knows_only_the_words_of_pytest(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Why an agent missed something stands nowhere else, whoever counts it as what."""
    nop = ("--evalarc-client=nop", "evals", "--evalarc-configuration=with", "-k", "nop")
    project.write("conftest.py", OWN_WORDS)

    session = project.inline(pytester, *nop)

    assert session.ret == 0
    assert session.counts == {"passed": 3, "xfailed": 3, "deselected": 6}
    missed = [line for line in session.stdout.splitlines() if line.startswith("MISSED evals")]
    assert len(missed) == 3
    assert missed[0].endswith("misses greets: nobody says hello")


def test_a_surviving_mutant_fails_the_run(project: Project, pytester: pytest.Pytester) -> None:
    """Checks that let a declared fault through cannot be trusted with anything."""
    project.edit('find = "hello", replace = ""', 'find = "hello", replace = "hello hello"')

    session = project.inline(pytester, "evals", "-x", "-q")
    relaxed = project.inline(pytester, "evals", "-q")

    assert session.ret == relaxed.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts == {"passed": 4, "failed": 1}
    assert relaxed.counts == {"passed": 5, "failed": 1}
    assert "mutant silent is survived" in relaxed.stdout
    assert project.documents("audit.json")


def test_a_setup_failure_fails_the_run_whichever_item_is_selected(
    project: Project, pytester: pytest.Pytester
) -> None:
    """The item that would tell it may be deselected; the run was broken all the same."""
    project.edit('"shell"', '"broken"')

    session = project.inline(pytester, "--evalarc-task=hello", "-k", "success")

    assert session.counts == {"skipped": 2, "deselected": 14}
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert "setup failures: 1 preparation" in session.stdout


def test_a_missing_toolchain_skips_until_the_task_is_named(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A bare run must not fail on a machine that lacks a language; a named task must run."""
    project.edit('"shell"', '"missing"')

    bare = project.inline(pytester, "evals", "-q", "-rs")
    named = project.inline(pytester, "--evalarc-task=hello", "-q")

    assert bare.ret == 0
    assert bare.counts == {"passed": 1, "skipped": 5}
    assert "toolchain missing: no such language here" in bare.stdout
    assert named.ret == pytest.ExitCode.TESTS_FAILED
    assert named.counts == {"passed": 1, "failed": 5, "error": 2, "skipped": 8}
    assert "Traceback" not in named.stdout


HOSTILE = r"\u001b]0;owned\u0007\u0000 ]]> </script> \ud835 \u202e\n::error::x"
"""As JSON, which the check's runner puts into its report as it is."""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_hostile_text_reaches_no_report_raw(workers: tuple[str, ...], project: Project) -> None:
    """What a submission prints must not restyle a terminal, break XML or kill a worker."""
    project.write(
        "evals/tasks/hello/checks/greets.sh",
        f"grep -q hello src/greeting || {{ printf %s '{HOSTILE}'; false; }}\n",
    )
    report = project.root / "junit.xml"

    session = project.pytest(
        *workers, "-q", "-rA", "evals", "--evalarc-client=nop", f"--junitxml={report}"
    )

    assert session.ret == 0
    assert session.counts["missed"] == 5
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff]", session.stdout)
    cases = ElementTree.parse(report).iter("testcase")
    missed = [case for case in cases if case.find("skipped") is not None]
    assert len(missed) == 5
    assert any("</script>" in str(case.find("skipped").get("message")) for case in missed)


def test_a_session_without_terminal_or_plugins_still_measures(project: Project) -> None:
    """IDEs and services switch off what they do not need."""
    without = [word for name in ("xdist", "timeout", "terminal") for word in ("-p", f"no:{name}")]

    session = project.pytest(*without, "--evalarc-task=hello", "--strict-markers", "-W", "error")

    assert session.ret == 0
    assert session.stdout.strip() == ""
    assert project.document("benchmark.json")["selection"] == "complete"
    assert project.document("audit.json")["mutation_score"] == 1.0
    assert not project.eval_root.exists()


def test_the_summary_is_a_table_a_person_can_read(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Rates stand beside what they are rates of, and the path of the document below them."""
    session = project.inline(pytester, "--evalarc-task=hello", "--evalarc-batch=night")

    table = session.stdout.partition("= evalarc =")[2].splitlines()[1:]
    assert table[:5] == [
        "hello: audit",
        "  mutation score 1.00 (2 of 2 detected), weakest margin 1",
        "  caught by a single case: silent, nameless (by greets, names)",
        "  results/hello/audit/night/audit.json",
        "",
    ]
    assert table[5] == "hello: trials with oracle"
    assert table[6] == "  too few trials to tell whether skills helped"
    assert table[7].split() == [
        *("configuration", "succeeded", "rate", "95", "%", "interval"),
        *("code", "tokens", "agent", "s"),
    ]
    assert table[8].split()[:8] == [
        "without-skills",
        *["1", "of", "1", "1.00", "0.21", "to", "1.00"],
    ]
    assert table[9].split()[:8] == ["with-skills", *["1", "of", "1", "1.00", "0.21", "to", "1.00"]]
    assert table[10].split()[:6] == ["delta", *["+0.00", "-0.79", "to", "+0.79", "+0.00"]]
    assert table[11:13] == [
        "  with-skills: skill greet: 1 loaded",
        "  results/hello/oracle/night/benchmark.json",
    ]
    assert session.last_line.startswith("16 passed in ")


def test_a_document_that_cannot_be_written_is_told_and_fails_the_run(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A damaged file of the batch costs its own benchmark and nothing else."""
    run = ("--evalarc-task=hello", "--evalarc-batch=b", "-q")
    project.inline(pytester, *run)
    damaged = project.results / "hello/oracle/b/trial-1-with-skills/result.json"
    damaged.write_text("{")

    session = project.inline(pytester, *run, "-k", "audit or without")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts == {"passed": 9, "deselected": 7}
    (told,) = (line for line in session.stdout.splitlines() if line.startswith("not written: "))
    assert "trial-1-with-skills/result.json" in told
    assert "hello: audit" in session.stdout
