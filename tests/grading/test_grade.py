"""One grading from end to end: which steps run, in which order, and whose fault what is."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.grading import grade as grading_module
from pytest_evalarc.grading.grade import checks_digest, grade, ungradable
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.base import Cause
from tests.grading.small_task import RIGHT, WRONG, facts, outcomes
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

PASSING_TEST = "def test_it():\n    assert True\n"
FAILING_TEST = "def test_it():\n    assert 1 == 2\n"


def test_the_reference_passes_everything(bench, small_task):
    """The positive control: if it fails, nothing that the checks say can be trusted."""
    task = small_task.load()

    grading = bench.grade(task, bench.reference(task))

    assert outcomes(grading) == {
        "build": "pass",
        "unit_tests": "pass",
        "fmt_check": "pass",
        "in_process": "passed",
        "child_form": "passed",
    }
    assert grading.code_passed
    assert grading.status == "graded"
    assert grading.edits_outside_editable == ()


def test_the_starter_fails_every_check(bench, small_task):
    """The negative control: it builds, and it does nothing of what was asked."""
    task = small_task.load()

    grading = bench.grade(task, bench.control(task, "starter"))

    assert outcomes(grading) == {
        "build": "pass",
        "unit_tests": "pass",
        "fmt_check": "pass",
        "in_process": "failed",
        "child_form": "failed",
    }
    assert all(row.answered and row.verdicts == {row.check: False} for row in grading.rows)
    assert "assert 41 == 42" in grading.rows[0].detail
    assert not grading.code_passed


def test_steps_run_before_and_after_the_checks(bench, small_task, monkeypatch):
    """The order is promised, since all of them share one deadline."""
    task = small_task.load()
    ran = []
    run_once = grading_module.Session._run

    def noted(session, name, grader, deadline_s):
        ran.append(name)
        return run_once(session, name, grader, deadline_s)

    monkeypatch.setattr(grading_module.Session, "_run", noted)
    submission = bench.submit(task, {"tests/test_it.py": PASSING_TEST})

    grading = bench.grade(task, submission, jobs=1)

    assert ran == ["build", "unit_tests", "child_form", "in_process", "fmt_check"]
    assert [step.name for step in grading.steps] == ["build", "unit_tests", "fmt_check"]
    assert [row.check for row in grading.rows] == ["child_form", "in_process"]


def test_a_failing_build_skips_the_rest(bench, small_task):
    """What cannot be imported has nothing that could be checked."""
    task = small_task.load()

    grading = bench.grade(task, bench.submit(task, {"app/core.py": "def value(:\n"}))

    assert outcomes(grading) == {
        "build": "fail",
        "unit_tests": "skipped",
        "fmt_check": "skipped",
        "in_process": "not_run",
        "child_form": "not_run",
    }
    assert {row.cause.kind for row in grading.rows} == {"build_failed"}
    assert {step.cause.kind for step in grading.steps[1:]} == {"build_failed"}
    assert "app/core.py: SyntaxError" in grading.rows[0].cause.detail
    assert all(row.verdicts == {row.check: None} for row in grading.rows)
    assert (grading.status, grading.cause) == ("graded", None)
    assert not grading.code_passed


def test_own_tests_that_fail_do_not_keep_the_checks_from_running(bench, small_task):
    """The trial fails, and its checks still say how far the submission came."""
    task = small_task.load()
    files = {"app/core.py": RIGHT, "tests/test_it.py": FAILING_TEST}

    grading = bench.grade(task, bench.submit(task, files))

    assert outcomes(grading) == {
        "build": "pass",
        "unit_tests": "fail",
        "fmt_check": "pass",
        "in_process": "passed",
        "child_form": "passed",
    }
    assert "assert 1 == 2" in grading.steps[1].detail
    assert not grading.code_passed


def test_two_gradings_of_a_submission_agree(bench, small_task):
    """A verdict that depends on the day is none."""
    task = small_task.load()
    submission = bench.submit(task, {"app/core.py": WRONG + "\n\nprint('x')\n"})

    first, second = bench.grade(task, submission), bench.grade(task, submission)

    assert facts(first) == facts(second)
    for digest in ("submission_sha256", "grader_sha256", "checks_sha256"):
        assert getattr(first, digest) == getattr(second, digest)


@pytest.mark.parametrize("files", [{"app/core.py": RIGHT}, {}, {"app/core.py": "import sys; 1/0"}])
def test_the_local_sandbox_gives_the_same_rows(bench, small_task, files):
    """What a trusted submission shows must not depend on the boundary it was graded behind."""
    task = small_task.load()
    submission = bench.submit(task, files | {"tests/test_it.py": FAILING_TEST})

    behind, without = bench.grade(task, submission), bench.grade(task, submission, Local())

    assert facts(behind) == facts(without)
    assert (behind.isolation.level, without.isolation.level) == ("enforced", "trusted_local")


def test_commands_take_no_longer_than_the_grading(bench, small_task):
    """Their difference is what the harness costs, and a negative cost is a wrong clock."""
    task = small_task.load()

    grading = bench.grade(task, bench.reference(task))

    assert 0 < grading.command_time_s <= grading.wall_time_s


def test_the_grading_deadline_bounds_all_steps_together(bench, small_task):
    """Checks that hang one after the other must not add up to hours.

    Those that it left no time to start failed as well: otherwise hanging would buy an exclusion.
    """
    small_task.only_check("def test_it(submission):\n    submission.call('app.core:value')\n")
    for name in ("second", "third"):
        small_task.write(f"checks/{name}.py", (small_task.folder / "checks/only.py").read_text())
    task = small_task.load(grading=1.5, check=1.4)
    hang = "import time\n\n\ndef value():\n    time.sleep(60)\n"

    grading = bench.grade(task, bench.submit(task, {"app/core.py": hang}), jobs=1)

    assert grading.status == "graded"
    assert {row.status for row in grading.rows} == {"agent_error"}
    assert {row.cause.kind for row in grading.rows} == {"timeout"}
    assert all(row.verdicts == {row.check: False} for row in grading.rows)


def test_a_slow_machine_is_not_the_submissions_fault(bench, small_task):
    """Before anything of a submission ran, a deadline that is over says nothing about it."""
    task = small_task.load(grading=0.001)

    grading = bench.grade(task, bench.reference(task))

    assert grading.status == "infrastructure_error"
    assert grading.cause.kind == "grader_not_ready"


@pytest.mark.parametrize("broken", ["tools", "interpreter", "formatter", "starter", "fixture"])
def test_what_is_missing_of_ours_is_an_infrastructure_error(
    bench, small_task, broken, monkeypatch, tmp_path
):
    """The submission is as good as ever, and can be graded again."""
    task = small_task.load()
    submission = bench.reference(task)
    lab = bench.lab()
    if broken == "tools":
        lab = replace(lab, tools=replace(lab.tools, root=tmp_path))
    elif broken == "interpreter":
        module = "pytest_evalarc.grading.scripted.base_python"
        monkeypatch.setattr(module, lambda: Path("/usr/bin/no-such-python"))
    elif broken == "formatter":
        (small_task.folder / "starter" / "ruff.toml").write_text("quote-style = 7\n")
    elif broken == "starter":
        (small_task.folder / "starter").rename(tmp_path / "gone")
    else:
        (small_task.root / "evals" / "fixtures" / "numbers").rename(tmp_path / "gone")

    grading = grade(task, submission, lab)

    assert grading.status == "infrastructure_error"
    assert grading.cause.kind in ("grader_not_ready", "grader_broke")
    assert grading.cause.detail
    assert all(row.status != "failed" for row in grading.rows)
    assert list(bench.work.iterdir()) == []


def test_an_infrastructure_error_says_what_the_grader_complained_of(bench, small_task):
    """Whoever runs the evaluation has to mend it, and has nothing else to go by."""
    task = small_task.load()
    submission = bench.reference(task)
    (small_task.folder / "starter" / "ruff.toml").write_text("quote-style = 7\n")

    grading = grade(task, submission, bench.lab())

    assert "quote-style" in grading.cause.detail


def test_two_gradings_share_a_work_folder(bench, small_task):
    """Workers of one batch grade at the same time."""
    task = small_task.load()
    submissions = [bench.reference(task), bench.control(task, "starter")]
    lab = bench.lab(jobs=1)

    with ThreadPoolExecutor(2) as pool:
        good, bad = pool.map(lambda one: grade(task, one, lab), submissions)

    assert good.code_passed
    assert [row.status for row in bad.rows] == ["failed", "failed"]
    assert list(bench.work.iterdir()) == []


HANGS = "import time\n\n\ndef value():\n    time.sleep(60)\n"


def test_ctrl_c_ends_the_checks_and_leaves_nothing(bench, small_task):
    """The checks that run end at once, those that wait never start, and the copy is gone."""
    task = small_task.load()
    submission = bench.submit(task, {"app/core.py": HANGS})
    lab = bench.lab(jobs=1)
    main = threading.main_thread().ident
    press = threading.Timer(1.0, lambda: signal.pthread_kill(main, signal.SIGINT))

    press.start()
    with pytest.raises(KeyboardInterrupt):
        grade(task, submission, lab)
    press.join()

    assert list(bench.work.iterdir()) == []
    assert not lab.cancelled.is_set()


def test_a_cancelled_lab_ends_its_gradings(bench, small_task):
    """The end of a session reaches every process that is supervised for it."""
    task = small_task.load()
    submission = bench.submit(task, {"app/core.py": HANGS})
    lab = bench.lab()
    timer = threading.Timer(0.5, lab.cancelled.set)

    timer.start()
    with pytest.raises(KeyboardInterrupt):
        grade(task, submission, lab)
    timer.join()

    assert list(bench.work.iterdir()) == []


def test_what_a_process_printed_is_kept_and_made_safe(bench, small_task, tmp_path):
    """A log is read in terminals, which must not act on what a submission prints."""
    task = small_task.load()
    noisy = "print('\\x1b]0;title\\x07', '\\x00')\n" + RIGHT

    grade(task, bench.submit(task, {"app/core.py": noisy}), bench.lab(), outputs=tmp_path / "logs")

    log = (tmp_path / "logs" / "in_process.log").read_bytes()
    assert b"\\x1b]0;title" in log
    assert b"\x1b" not in log
    assert b"\0" not in log


def test_the_digest_of_the_checks_tells_every_byte(small_task):
    """Two gradings can be compared only if the very same checks decided them."""
    before = checks_digest(small_task.load())
    small_task.write(
        "checks/child_form.py",
        (small_task.folder / "checks/child_form.py").read_text().replace("42", "43"),
    )
    changed = checks_digest(small_task.load())
    (small_task.folder / "checks/child_form.py").rename(small_task.folder / "checks/other.py")
    renamed = checks_digest(small_task.load())

    assert len({before, changed, renamed}) == 3


def test_what_is_no_submission_fails_without_being_run(bench, small_task):
    """An agent that leaves too much to be read has failed; that is no fault of the harness."""
    task = small_task.load()

    grading = ungradable(task, bench.lab(), Cause(kind="invalid_submission", detail="too large"))

    assert grading.status == "graded"
    assert not grading.code_passed
    assert [row.status for row in grading.rows] == ["not_run", "not_run"]


DISRUPTIONS = {
    "kills its parent": "os.kill(os.getppid(), 9)",
    "kills everything": "os.kill(-1, 9)",
    "closes all descriptors": "os.closerange(0, 1024)",
    "fills the temporary folders": (
        "for folder in ('/tmp', '/dev/shm'):\n        try:\n"
        "            with open(f'{folder}/full', 'wb') as file:\n"
        "                while file.write(bytes(1 << 20)):\n                    pass\n"
        "        except OSError:\n            pass"
    ),
    "uses up memory in files": (
        "held = [bytearray(1 << 20) for _ in range(100)]\n    while True:\n"
        "        held.append(os.memfd_create('x'))\n        os.write(held[-1], bytes(1 << 20))"
    ),
    "uses up processes": "while True:\n        os.fork()",
    "uses up descriptors": "held = []\n    while True:\n        held += os.pipe()",
    "lowers its limits": (
        "import resource\n\n    for number in range(16):\n        try:\n"
        "            resource.setrlimit(number, (0, 0))\n        except (OSError, ValueError):\n"
        "            pass"
    ),
    "empties the modules": "sys.modules.clear()",
    "lengthens the path": "sys.path[:0] = ['/nowhere' * 100] * 10000",
    "changes our files": (
        "for folder, _, names in os.walk(TOOLS):\n        for name in names:\n"
        "            try:\n                os.unlink(os.path.join(folder, name))\n"
        "            except OSError:\n                pass\n"
        "    for folder in (TOOLS, os.getcwd(), '/'):\n        try:\n"
        "            os.rename(folder, f'{folder}-gone')\n        except OSError:\n            pass"
    ),
    "nests values": "value = []\n    for _ in range(10**6):\n        value = [value]",
    "crashes": "import ctypes\n\n    ctypes.string_at(0)",
    "leaves a process that holds everything": (
        "if os.fork() == 0:\n        os.setsid()\n        while True:\n            pass"
    ),
}


@pytest.mark.parametrize("body", DISRUPTIONS.values(), ids=list(DISRUPTIONS))
def test_no_submission_makes_itself_an_exclusion(bench, small_task, body):
    """Neither in its own check nor in the one after it, which starts as if nothing had been."""
    small_task.only_check("def test_it():\n    from app import core\n\n    core.disrupt()\n")
    small_task.write("checks/then.py", "def test_it():\n    assert True\n")
    task = small_task.load(memory_mib=96)
    core = f"import os\nimport sys\n\nTOOLS = {str(bench.tools.root)!r}\n\n\ndef disrupt():\n    "

    grading = bench.grade(task, bench.submit(task, {"app/core.py": f"{core}{body}\n"}), jobs=1)

    assert grading.status == "graded"
    found = outcomes(grading)
    assert found["only"] in ("passed", "failed", "agent_error")
    assert found["then"] == "passed"


def test_no_files_make_an_exclusion(bench, small_task):
    """The formatter is ours, and what it cannot read is not."""
    task = small_task.load()
    files = {
        "app/-c.py": "x = 1\n",
        b"app/caf\xe9.py": "x = 1\n",
        "app/latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        "app/nested.py": f"x = {'(' * 199}{')' * 199}\n",
        "tests/test_caf\udce9.py": PASSING_TEST,
    }

    grading = bench.grade(task, bench.submit(task, {"app/core.py": RIGHT, **files}))

    assert grading.status == "graded"
    assert outcomes(grading)["fmt_check"] == "fail"
