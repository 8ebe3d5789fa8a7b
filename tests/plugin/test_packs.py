"""Tasks whose checks are the cases of a pack, through pytest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.packs.support_routing.pack import SupportRouting
from tests.needs import needs, needs_bwrap
from tests.plugin.project import Project
from tests.reporting.page.batches import Page

pytestmark = [needs_bwrap, pytest.mark.slow]

PACK = SupportRouting()
FILE = "evals/tasks/support/task.toml"
TASK = 'kind = "capability"\ntags = ["pack"]\n[pack]\nname = "support-routing"\nseeds = [17]\n'


@pytest.fixture
def packed(project: Project) -> Project:
    """Return a project with one task more, which a pack judges."""
    project.write(FILE, TASK)
    return project


def run(packed: Project, pytester: pytest.Pytester, *options: str) -> Any:
    return packed.inline(pytester, FILE, "--evalarc-batch=b", "-v", *options)


def document(packed: Project, path: str) -> Any:
    return json.loads((packed.results / "support" / path).read_text("utf-8"))


def candidate(packed: Project, control: str, **more: str) -> Path:
    folder = packed.root / "work"
    files = PACK.control(control, "python")
    write_tree(folder, {**files, **{path: text.encode() for path, text in more.items()}})
    return folder


def test_an_audit_of_a_pack_has_an_item_for_each_case_and_each_fault(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """Its audit is the same table as that of a task with hidden files."""
    session = run(packed, pytester)

    assert session.ret == 0
    words = session.words(FILE)
    assert set(words.values()) == {"PASSED"}
    assert list(words) == [
        "validate",
        *(f"audit::reference::{case}" for case in PACK.info.cases),
        "audit::starter",
        *(f"audit::{mutant.name}" for mutant in PACK.info.mutants),
    ]
    assert "mutation score 1.00 (7 of 7 detected), weakest margin 1" in session.stdout
    audit = document(packed, "audit/b/audit.json")
    assert (audit["passed"], audit["mode"], audit["killed"]) == (True, "full", 7)
    assert audit["task"]["pack"] == {
        "name": "support-routing",
        "seeds": [17],
        "language": "python",
        "version": PACK.info.version,
        "domain": "business-tools",
        "split": "public-development",
    }
    rows = audit["reference"]["cases"]
    assert {row["seed"] for row in rows} == {17}
    assert audit["reference"]["runtime"]["command"][0] == "{python}"


def test_a_fast_audit_runs_only_what_decides_detection_and_says_so(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """Its verdicts on the faults are those of a full one, at a part of the price."""
    session = run(packed, pytester, "--evalarc-audit=fast", "--evalarc-seeds=17,41")

    assert session.ret == 0
    assert "support: audit, fast" in session.stdout
    audit = document(packed, "audit/b/audit.json")
    assert (audit["passed"], audit["mode"], audit["killed"]) == (True, "fast", 7)
    assert audit["task"]["pack"]["seeds"] == [17, 41]
    assert not (packed.results / "support/audit/b/rows/reference-repeat.json").exists()
    assert all(mutant["margin_any"] is not None for mutant in audit["mutants"])
    starter = audit["starter"]
    assert starter["failed_something"] is True
    assert {row["seed"] for row in starter["evaluation"]["cases"]} == {17}


def test_what_one_seed_shows_is_not_run_with_more(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """A starter that fails once has failed, and the document says what that rests on."""
    session = run(packed, pytester, "-k", "reference or starter", "--evalarc-seeds=17,41")

    assert session.ret == 0
    audit = document(packed, "audit/b/audit.json")
    evaluations = [audit["reference"], audit["reference_repeat"], audit["starter"]["evaluation"]]
    assert [evaluation["seeds"] for evaluation in evaluations] == [[17, 41], [17], [17]]
    assert [sorted({row["seed"] for row in found["cases"]}) for found in evaluations] == [
        [17, 41],
        [17],
        [17],
    ]


def test_a_fault_that_slips_through_names_the_cases_that_should_have_caught_it(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """Whoever reads it has to know where to look."""
    packed.write(
        "conftest.py",
        "from shell import *\n"
        "import dataclasses\n"
        "from pytest_evalarc.packs.support_routing.pack import SupportRouting\n"
        "class Lenient(SupportRouting):\n"
        "    info = dataclasses.replace(SupportRouting.info, name='lenient')\n"
        "    def control(self, name, language):\n"
        "        return super().control('reference' if name == 'wrong-queue' else name, language)\n"
        "def pytest_evalarc_packs():\n"
        "    return {'lenient': Lenient}\n",
    )
    packed.write(FILE, TASK.replace("support-routing", "lenient"))

    session = run(packed, pytester, "-k", "reference or wrong-queue")

    assert session.words(FILE)["audit::wrong-queue"] == "FAILED"
    assert (
        "mutant wrong-queue is survived: passes everything that the reference passes; routing is "
        f"judged by {', '.join(PACK.info.cases)}"
    ) in session.stdout


def test_the_oracle_resolves_a_pack_task_and_nop_does_not(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """A trial starts from the pack's starter, and is graded by the pack's cases."""
    session = run(
        packed, pytester, "-m", "evalarc_trial", "--evalarc-client=oracle", "--evalarc-client=nop"
    )

    words = session.words(FILE)
    assert words["oracle::baseline::trial-001::success"] == "PASSED"
    assert words["nop::baseline::trial-001::success"] == "MISSED"
    left = packed.results / "support/nop/b/trial-1-baseline/submission/main.py"
    assert left.read_bytes() == PACK.control("starter", "python")["main.py"]
    result = document(packed, "nop/b/trial-1-baseline/result.json")
    assert (result["outcome"], result["cause"]["kind"]) == ("failed", "code")


def test_a_page_shows_what_became_of_the_starter_of_a_pack(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """What the agent wrote explains its verdicts, whoever made the file that it began with."""
    clients = ("--evalarc-client=oracle", "--evalarc-client=nop")
    run(packed, pytester, "-m", "evalarc_trial", *clients, "--evalarc-html=p.html")

    trials = Page((packed.root / "p.html").read_text("utf-8")).trials
    changed = {
        client: next(
            block
            for block in trials[f"trial:support/{client}/trial-1-baseline"]["blocks"]
            if block["heading"] == "What the agent changed"
        )
        for client in ("oracle", "nop")
    }
    (file,) = changed["oracle"]["files"]
    starter, reference = (
        PACK.control(name, "python")["main.py"].decode().splitlines()
        for name in ("starter", "reference")
    )
    assert (file["path"], file["word"], file["note"]) == ("main.py", "changed", "")
    assert [line[1:] for line in file["lines"] if line[0] == "-"] == [
        line for line in starter if line not in reference
    ]
    assert f"+{reference[-1]}" in file["lines"] or f" {reference[-1]}" in file["lines"]
    assert changed["nop"]["files"] == []
    assert changed["nop"]["note"] == "Nothing differs from the starter."


def test_a_candidate_of_a_pack_gets_its_score(packed: Project, pytester: pytest.Pytester) -> None:
    """A development score is beside the verdict, and never stands for it."""
    folder = candidate(packed, "starter")

    session = run(packed, pytester, f"--evalarc-submission={folder}")

    assert session.ret == 0
    assert "not resolved, score 0.35" in session.stdout
    assert "check route-open-ticket with seed 17: routing: the queue must be" in session.stdout
    evaluation = document(packed, "submission/b/evaluation.json")
    assert (evaluation["score"], evaluation["resolved"]) == (0.35, False)
    assert evaluation["seeds"] == [17]
    assert evaluation["runtime"]["limits"]["memory_mib"] == 256
    assert [row["check"] for row in evaluation["cases"]] == list(PACK.info.cases)
    assert all(row["transcript_sha256"] and row["trace"] for row in evaluation["cases"])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"evalarc.toml": "image = 'x'\n"}, "evalarc.toml: has the key 'image'"),
        ({"evalarc.toml": 'command = ["{workspace}/a"]\n'}, "has no a, which its command starts"),
    ],
)
def test_a_folder_that_can_be_no_candidate_is_refused_and_nothing_is_written(
    packed: Project, pytester: pytest.Pytester, more: dict[str, str], told: str
) -> None:
    """Nobody should find a batch of a folder that was never judged."""
    folder = candidate(packed, "reference", **more)

    session = run(packed, pytester, f"--evalarc-submission={folder}")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert told in session.stderr
    assert not packed.results.exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("--evalarc-seeds=17,17", "--evalarc-seeds 17: is named twice; name each once"),
        ("--evalarc-seeds=many", "--evalarc-seeds 'many': is no whole number; give 17, say"),
    ],
)
def test_wrong_seeds_are_told(
    packed: Project, pytester: pytest.Pytester, given: str, told: str
) -> None:
    """A seed that repeats would count its cases twice."""
    session = run(packed, pytester, given)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert told in session.stderr


@needs("node")
def test_a_pack_task_can_be_in_javascript(packed: Project, pytester: pytest.Pytester) -> None:
    """The cases know no language, so the same faults have the same margins."""
    packed.write(FILE, TASK + 'language = "javascript"\n')

    session = run(packed, pytester, "-k", "reference or skip-retry")

    words = session.words(FILE)
    assert set(words.values()) == {"PASSED"}
    audit = document(packed, "audit/b/audit.json")
    (found,) = [mutant for mutant in audit["mutants"] if mutant["class"] != "not_run"]
    assert (found["name"], found["detection_margin"], found["margin_any"]) == ("skip-retry", 1, 2)


def test_the_packs_can_be_audited_where_there_are_no_evals(pytester: pytest.Pytester) -> None:
    """Whoever installs the package can try its graders before writing a task."""
    session = pytester.runpytest_inprocess(
        *("--pyargs", "pytest_evalarc.packs.support_routing", "-k", "starter or skip-retry"),
        *("--evalarc-seeds=17", "--evalarc-batch=b", "-p", "no:randomly"),
    )

    session.assert_outcomes(passed=2, deselected=11)
    assert (pytester.path / "results/support-routing/audit/b/rows/skip-retry.json").is_file()


def test_all_packs_together_are_a_task_in_each_language(pytester: pytest.Pytester) -> None:
    """Their folder of tasks takes the place of the project's."""
    session = pytester.runpytest_inprocess("--pyargs", "pytest_evalarc.packs", "--co", "-q")

    ids = [line for line in session.outlines if line.endswith("::validate")]
    names = [line.partition("/task.toml")[0].rpartition("/")[2] for line in ids]
    assert sorted(names) == sorted(
        pack + language
        for pack in ("durable-kv", "support-routing", "robot-evidence-review")
        for language in ("", "-javascript")
    )


def test_the_tasks_that_ship_are_those_of_the_repository() -> None:
    """Otherwise the ones that are tried here would not be the ones that users get."""
    root = Path(__file__).parents[2]
    shipped = sorted((root / "pytest_evalarc/packs/tasks").glob("*/task.toml"))

    assert len(shipped) == 6
    for path in shipped:
        assert (
            path.read_bytes() == (root / "evals/tasks" / path.parent.name / path.name).read_bytes()
        )


OVERRIDE = """\
from shell import *
import dataclasses
from pytest_evalarc.packs.support_routing.pack import SupportRouting

class Other(SupportRouting):
    info = dataclasses.replace(SupportRouting.info, name="other")
    def control(self, name, language):
        files = super().control(name, language)
        if name == {control!r}:
            files["main.py"] = {source!r}
        return files

def pytest_evalarc_packs():
    return {{"other": Other}}
"""


def override(packed: Project, control: str, source: bytes) -> None:
    """Put a program of the test's in place of one control of the pack."""
    packed.write("conftest.py", OVERRIDE.format(control=control, source=source))
    packed.write(FILE, TASK.replace("support-routing", "other"))


def test_a_mutant_that_cannot_start_is_broken_and_not_detected(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """A syntax error fails everything, and shows nothing about the checks."""
    override(packed, "wrong-queue", b"def broken(:\n")

    session = run(packed, pytester)

    assert session.words(FILE)["audit::wrong-queue"] == "FAILED"
    audit = document(packed, "audit/b/audit.json")
    (found,) = [mutant for mutant in audit["mutants"] if mutant["name"] == "wrong-queue"]
    assert (found["class"], found["killed"], found["detection_margin"]) == ("broken", False, 0)
    assert (audit["killed"], audit["mutation_score"]) == (6, pytest.approx(6 / 7))
    assert audit["detection"]["weakest_margin"] == 0
    assert audit["passed"] is False


def test_a_reference_that_fails_gives_no_score(packed: Project, pytester: pytest.Pytester) -> None:
    """With a broken yardstick every fault would look caught."""
    override(packed, "reference", PACK.control("skip-retry", "python")["main.py"])

    session = run(packed, pytester)

    assert session.ret == 1
    assert "no mutation score: reference failed" in session.stdout
    audit = document(packed, "audit/b/audit.json")
    assert (audit["reference_passed"], audit["reason"]) == (False, "reference_failed")
    assert (audit["mutation_score"], audit["detection"]["weakest_margin"]) == (None, None)
    assert {mutant["detection_margin"] for mutant in audit["mutants"]} == {None}
    assert audit["passed"] is False


def test_a_reference_that_answers_before_it_is_asked_fails_everything(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """Right answers that nobody has asked for are a recording, and no service."""
    early = b"import sys\nprint('{\"finish\": true}', flush=True)\nsys.stdin.read()\n"
    override(packed, "reference", early)

    run(packed, pytester, "-k", "reference")

    rows = document(packed, "audit/b/audit.json")["reference"]["cases"]
    assert {row["status"] for row in rows} == {"agent_error"}
    assert {row["cause"]["kind"] for row in rows} == {"unsolicited"}
    assert {row["verdicts"]["protocol"] for row in rows} == {False}


def test_an_environment_that_fails_gives_nulls_and_fails_the_run(
    packed: Project, pytester: pytest.Pytester
) -> None:
    """What was not assessed is neither a pass nor a failure of anybody."""
    packed.write(
        "conftest.py",
        "from shell import *\n"
        "from pytest_evalarc.errors import InfrastructureError\n"
        "from pytest_evalarc.isolation.bwrap import Bwrap\n"
        "class Gone(Bwrap):\n"
        "    name = 'gone'\n"
        "    def wrap(self, command, policy):\n"
        "        if policy.limits.memory_mib == 256:\n"
        "            raise InfrastructureError('sandbox gone', 'its image is gone')\n"
        "        return super().wrap(command, policy)\n"
        "def pytest_evalarc_sandboxes():\n"
        "    return {'gone': Gone}\n",
    )

    session = run(packed, pytester, "--evalarc-sandbox=gone")

    assert session.ret == 1
    assert "no mutation score: invalid control" in session.stdout
    assert "it could not be graded: sandbox gone: its image is gone" in session.stdout
    audit = document(packed, "audit/b/audit.json")
    assert (audit["valid"], audit["reason"]) == (False, "invalid_control")
    assert (audit["mutation_score"], audit["passed"]) == (None, False)
    reference = audit["reference"]
    assert (reference["valid"], reference["score"]) == (False, None)
    assert {row["status"] for row in reference["cases"]} == {"environment_error"}
    assert {verdict for row in reference["cases"] for verdict in row["verdicts"].values()} == {None}
    assert {mutant["class"] for mutant in audit["mutants"]} == {"invalid"}


@pytest.mark.parametrize("mode", ["full", "fast"])
def test_a_starter_that_passes_with_one_seed_is_tried_with_all_of_them(
    packed: Project, pytester: pytest.Pytester, mode: str
) -> None:
    """An audit must not blame a starter for what it has not looked at."""
    override(packed, "starter", PACK.control("reference", "python")["main.py"])

    session = run(
        packed, pytester, "-k", "starter", f"--evalarc-audit={mode}", "--evalarc-seeds=1,2"
    )

    assert session.words(FILE)["audit::starter"] == "FAILED"
    cases = document(packed, "audit/b/audit.json")["starter"]["evaluation"]["cases"]
    assert {row["seed"] for row in cases} == {1, 2}


def test_a_session_cannot_read_the_code_of_its_pack(
    packed: Project, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """It holds the references, and a package of a third party can be installed anywhere."""
    code = tmp_path / "installed"
    code.mkdir()
    override(packed, "nobody", b"")
    conftest = packed.root / "conftest.py"
    elsewhere = f"name='other', code=__import__('pathlib').Path({str(code)!r})"
    conftest.write_text(conftest.read_text().replace('name="other"', elsewhere))

    session = run(packed, pytester, "-m", "evalarc_trial", "--evalarc-client=nop")

    assert session.words(FILE)["nop::baseline::trial-001::run"] == "PASSED"
    policy = document(packed, "nop/b/trial-1-baseline/bwrap.json")
    assert str(code) in policy["filesystem"]["denyRead"]
