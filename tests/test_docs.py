"""The pages say what the code does: tables are compared with it, and examples are run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import pytest

from pytest_evalarc import hookspecs
from pytest_evalarc.cli.main import command_parsers, main
from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.grading.candidate import MOST_BYTES, MOST_CHARACTERS, MOST_FILES, MOST_WORDS
from pytest_evalarc.grading.lab import STARTUP_S, FileLab
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.session import RESPONSE_S
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.audit import Audit, MutantClass
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.comparison import Comparison
from pytest_evalarc.model.grading import CheckStatus
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.model.task import Deadlines, Limits
from pytest_evalarc.model.trajectory import Trajectory
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.packs.durable_kv.pack import DurableKv
from pytest_evalarc.packs.robot_evidence_review.pack import RobotEvidenceReview
from pytest_evalarc.packs.support_routing.pack import SupportRouting
from pytest_evalarc.plugin import fixtures
from pytest_evalarc.plugin.options import OPTIONS, Option
from pytest_evalarc.plugin.terminal import AUDIT_COLUMNS
from pytest_evalarc.registry import builtin
from pytest_evalarc.runs.session import session_env
from pytest_evalarc.tasks.checkfiles import python_flaw
from pytest_evalarc.tasks.fields import Table
from pytest_evalarc.tasks.load import load_task
from tests.counting.test_benchmark import make_plan, make_results
from tests.documents import evaluation
from tests.needs import needs_bwrap

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FIRST_TASK = DOCS / "examples" / "first-task"
OWN_EXPECTATIONS = DOCS / "examples/own-expectations/evals/test_expectations.py"
OWN_CLIENT = DOCS / "examples" / "own-client" / "conftest.py"
OWN_PACK = DOCS / "examples" / "own-pack"
OWN_TREATMENT = DOCS / "examples" / "own-treatment" / "conftest.py"
OWN_SKILL = DOCS / "examples" / "own-skill"
OWN_TOOLCHAIN = DOCS / "examples" / "own-toolchain"
PACK_SHOWN = (
    "pyproject.toml",
    "queue_numbers/plugin.py",
    "queue_numbers/pack.py",
    "evals/tasks/queue-numbers/task.toml",
)


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(text: str, title: str) -> str:
    """Return what stands below a heading, up to the next one of its level or above."""
    level, _, _ = title.partition(" ")
    _, _, rest = text.partition(f"\n{title}\n")
    assert rest, f"there is no heading {title!r}"
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row, heads and rules left out."""
    found = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in cells] for cells in found]


def table(text: str, heads: str) -> list[list[str]]:
    """Return the cells of the one table with these heads."""
    _, found, rest = text.partition(f"| {heads} |\n")
    assert found, f"there is no table of {heads!r}"
    return rows(rest.partition("\n\n")[0])


def first_words(text: str) -> list[str]:
    """Return the first code word of each table row."""
    return [re.findall(r"`([^`]+)`", cells[0])[0] for cells in rows(text)]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


# Options, keys and words.


def test_the_readme_lists_every_option_with_its_help() -> None:
    """A reader takes the table for whole, and its words for what `--help` says."""

    def spelled(option: Option) -> str:
        argument = option.metavar or "/".join(option.choices or ())
        return f"`{option.flag} {argument}`" if argument else f"`{option.flag}`"

    table = rows(section(page("README.md"), "## Options"))

    assert table == [[spelled(option), option.help] for option in OPTIONS]


class Keys:
    """Collects what the loader accepts in each table of task.toml while it reads tasks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known: set[str] = set()
        refuse_unknown = Table.refuse_unknown

        def note(table: Table, known: Collection[str]) -> None:
            self.known |= {self._documented(table, name) for name in known}
            refuse_unknown(table, known)

        monkeypatch.setattr(Table, "refuse_unknown", note)

    @staticmethod
    def _documented(table: Table, name: str) -> str:
        parts = list(table.key)
        if parts[:1] == ["checks"]:
            parts[1:] = ["<id>"]
        dotted = ".".join("[]" if isinstance(part, int) else part for part in [*parts, name])
        return dotted.replace(".[]", "[]")


def test_the_page_on_tasks_lists_every_key_that_the_loader_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that no page names is found by nobody, and one that is gone breaks who trusts it."""
    keys = Keys(monkeypatch)
    with_a_pack = tmp_path / "evals" / "tasks" / "packed"
    with_a_pack.mkdir(parents=True)
    (with_a_pack / "task.toml").write_text(
        'kind = "capability"\nprompt = "Do it."\n[pack]\nname = "any"\n', "utf-8"
    )

    load_task(ROOT / "evals/tasks/settings-durability", root=ROOT, toolchains=("python",))
    load_task(
        with_a_pack, root=tmp_path, toolchains=("python",), packs={"any": lambda: DurableKv.info}
    )

    listed = first_words(section(page("docs/tasks.md"), "## Keys of task.toml"))
    assert set(listed) == keys.known
    assert len(listed) == len(keys.known)


@pytest.mark.parametrize(("table", "model"), [("deadlines", Deadlines), ("limits", Limits)])
def test_the_page_on_tasks_tells_the_default_of_every_number(
    table: str, model: type[Deadlines | Limits]
) -> None:
    """Who leaves a bound out relies on what the page says it is then."""
    told = {
        cells[0].strip("`"): float(cells[2].strip("`"))
        for cells in rows(section(page("docs/tasks.md"), f"### `[{table}]`"))
    }

    assert told == {f"{table}.{name}": usual for name, usual in asdict(model()).items()}


@pytest.mark.parametrize(
    ("document", "model"),
    [
        ("result.json", TrialResult),
        ("benchmark.json", Benchmark),
        ("summary.json", Summary),
        ("audit.json", Audit),
        ("evaluation.json", EvaluationDoc),
        ("regrade-n.json", Regrade),
        ("trajectory", Trajectory),
        ("comparison", Comparison),
    ],
)
def test_the_page_on_results_lists_every_key(document: str, model: type[Model]) -> None:
    """Programs are written against this list."""
    listed = first_words(section(page("docs/results.md"), f"## {document}"))

    assert listed == list(model.model_fields)


def test_the_page_on_results_lists_every_outcome_and_cause() -> None:
    """A count under a word that no page explains cannot be acted on."""
    table = section(page("docs/results.md"), "## Outcomes").partition("On the terminal:")[0]
    words = set(re.findall(r"`([a-z_]+)`", table))

    assert {outcome.value for outcome in Outcome} <= words
    assert {kind.value for kind in CauseKind} <= words


def test_the_page_on_audits_lists_every_class_of_mutants() -> None:
    """Only one class counts, so a reader must be able to tell all of them apart."""
    listed = first_words(section(page("docs/audits.md"), "## Classes of mutants"))

    assert sorted(listed) == sorted(get_args(MutantClass))


def test_the_page_on_extending_lists_every_hook_and_fixture() -> None:
    """An extension point that is not on the page does not exist for its users."""
    text = page("docs/extending.md")
    hooks = [name for name in vars(hookspecs) if name.startswith("pytest_evalarc_")]
    ours = [name for name in vars(fixtures) if name.startswith("evalarc_")]

    assert first_words(text.partition("\n## ")[0]) == hooks
    assert first_words(section(text, "## Fixtures")) == ours


def test_the_page_on_the_environment_lists_every_variable(tmp_path: Path) -> None:
    """A variable that is set for trials and told nowhere is a difference nobody can find."""
    lab = FileLab(
        sandbox=Local(), toolchain=Python(), tools=Python().tools(tmp_path / "tools"), work=tmp_path
    )
    # Whatever starts a program in a folder says so in PWD; it is none of ours.
    table = [cells for cells in rows(page("docs/environment.md")) if cells[0] != "`PWD`"]

    in_session = {cells[0].strip("`") for cells in table if cells[1]}
    in_grading = {cells[0].strip("`") for cells in table if cells[2]}

    assert in_session == set(session_env(RunLayout(root=tmp_path / "run"), lab.tools))
    assert in_grading == set(lab.grading_env(tmp_path))


PACKS: tuple[Pack, ...] = (DurableKv(), SupportRouting(), RobotEvidenceReview())

packs = pytest.mark.parametrize("pack", PACKS, ids=[pack.info.name for pack in PACKS])


def detectors(pack: Pack) -> dict[str, tuple[str, ...]]:
    """Return the cases that notice each fault, by what the tests hold real audits to."""
    tests = importlib.import_module(f"tests.packs.test_{pack.info.name.replace('-', '_')}")
    return {name: tuple(cases) for name, (_, cases, *_) in tests.MARGINS.items()}


def margins(pack: Pack) -> dict[str, int]:
    """Return how many cases notice each fault."""
    return {name: len(cases) for name, cases in detectors(pack).items()}


@packs
def test_the_page_on_packs_lists_dimensions_weights_and_cases(pack: Pack) -> None:
    """Who reads a score must find what it is made of."""
    text = section(page("docs/packs.md"), f"### {pack.info.name}")
    weights = table(text, "dimension | weight | what it asks for")
    cases = table(text, "case | judges | what it does")

    assert {name.strip("`"): float(weight) for name, weight, _ in weights} == pack.info.weights
    everything = tuple(pack.info.weights)
    assert {
        name.strip("`"): everything if judged == "all" else (judged.strip("`"),)
        for name, judged, _ in cases
    } == pack.info.cases


@packs
def test_the_page_on_packs_lists_every_fault_with_its_margin(pack: Pack) -> None:
    """A margin on a page is taken for measured."""
    text = section(page("docs/packs.md"), f"### {pack.info.name}")
    listed = table(text, "fault | target | margin | what it does")

    assert [
        [name.strip("`"), target.strip("`"), int(margin)] for name, target, margin, _ in listed
    ] == [[mutant.name, mutant.target, margins(pack)[mutant.name]] for mutant in pack.info.mutants]


def test_the_page_on_audits_shows_the_audits_of_the_packs_as_they_are() -> None:
    """The table is what a reader expects to see after the first run."""
    (shown,) = blocks(page("docs/audits.md"), "text")
    heads, *told = [re.split(r"\s{2,}", line) for line in shown.splitlines()]

    assert tuple(heads) == AUDIT_COLUMNS
    assert sorted(told) == sorted(_audit_row(pack) for pack in PACKS)


def _audit_row(pack: Pack) -> list[str]:
    found = margins(pack)
    single = [cases for cases in detectors(pack).values() if len(cases) == 1]
    counts = (min(found.values()), len(single), len({cases[0] for cases in single}))
    return [pack.info.name, "1.00", f"{len(found)} of {len(found)}", *map(str, counts)]


def test_the_page_on_packs_lists_every_pack_that_ships() -> None:
    """A pack without its section would have a score that nobody can read."""
    titles = re.findall(
        "^### (.*)$", section(page("docs/packs.md"), "## The packs that ship"), re.M
    )

    assert titles == list(builtin.pytest_evalarc_packs())
    assert titles == [pack.info.name for pack in PACKS]


def test_the_page_on_packs_tells_the_bounds_of_sessions_and_candidates() -> None:
    """Whoever writes a candidate relies on them."""
    text = page("docs/packs.md")
    bounds = section(text, "## Sessions").partition("| bound |")[2].partition("\n\n")[0]
    told = [line.split("|")[2].strip() for line in bounds.splitlines()[2:]]
    deadlines, limits = Deadlines(), DurableKv.info.limits

    assert told == [
        f"{RESPONSE_S:g} s",
        f"{deadlines.check:g} s",
        f"{deadlines.grading:g} s",
        f"{limits.output_mib} MiB",
        f"{DurableKv.info.request_bytes} bytes",
        f"{STARTUP_S:g} s",
    ]
    assert f"at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB" in text
    assert f"at most {MOST_WORDS} words and {MOST_CHARACTERS} characters" in text
    assert (
        f"{limits.cpus:g} CPU, {limits.memory_mib} MiB of memory and {limits.processes} processes"
    ) in text


def test_the_page_on_packs_names_every_status_and_cause() -> None:
    """A word in a row that no page explains cannot be acted on."""
    text = section(page("docs/packs.md"), "## Sessions")
    statuses = table(text, "a row's `status` | when | its verdicts")
    causes = table(text, "cause of an `agent_error` | what the candidate did")
    raised = re.findall(r'CandidateError\("(\w+)"', page("pytest_evalarc/grading/session.py"))

    assert [cells[0].strip("`") for cells in statuses] == [
        status for status in get_args(CheckStatus) if status != "not_run"
    ]
    assert {cells[0].strip("`") for cells in causes} == set(raised)


def test_the_page_on_packs_names_keys_that_evaluation_json_has() -> None:
    """The page picks some out, and must not invent one."""
    text = section(page("docs/packs.md"), "## Judging a candidate")
    listed = table(text, "key | what it says")

    named = {word for cells in listed for word in re.findall("`([^`]+)`", cells[0])}
    assert named <= set(EvaluationDoc.model_fields)


def test_every_page_is_reached_from_the_index() -> None:
    """A page that nothing leads to is not read."""
    linked = set(re.findall(r"\]\(([a-z-]+\.md)\)", page("docs/index.md")))

    assert linked == {path.name for path in DOCS.glob("*.md")} - {"index.md"}


# Examples.


def shown_files() -> list[tuple[str, str]]:
    """Return (page, path of a file that it shows whole)."""
    task = FIRST_TASK / "evals" / "tasks" / "url-slugs"
    files = [path for path in sorted(task.rglob("*")) if path.suffix in (".py", ".toml")]
    of_the_task = [("README.md", path.relative_to(ROOT).as_posix()) for path in files]
    tutorial = [path for path in sorted(OWN_SKILL.rglob("*")) if path.suffix in (".py", ".toml")]
    shown = [path for path in tutorial if "recordings" not in path.parts]
    language = ("conftest.py", "run_commands.py", "evals/tasks/sum-lines/task.toml")
    language = (*language, "evals/tasks/sum-lines/checks/adds.toml")
    return [
        *of_the_task,
        *(("docs/tutorial.md", path.relative_to(ROOT).as_posix()) for path in shown),
        *(("docs/toolchains.md", f"docs/examples/own-toolchain/{path}") for path in language),
        ("docs/extending.md", OWN_CLIENT.relative_to(ROOT).as_posix()),
        ("docs/own-treatment.md", OWN_TREATMENT.relative_to(ROOT).as_posix()),
        ("docs/expectations.md", OWN_EXPECTATIONS.relative_to(ROOT).as_posix()),
        *(("docs/packs.md", (OWN_PACK / path).relative_to(ROOT).as_posix()) for path in PACK_SHOWN),
    ]


@pytest.mark.parametrize(("name", "path"), shown_files())
def test_an_example_is_shown_as_the_file_that_is_run(name: str, path: str) -> None:
    """What is copied from a page must be what the tests below have run."""
    language = {".py": "python", ".toml": "toml"}[Path(path).suffix]

    assert (ROOT / path).read_text("utf-8") in blocks(page(name), language)


def test_every_check_that_is_shown_is_one() -> None:
    """A check that would be refused teaches the wrong form."""
    shown = blocks(page("docs/checks.md"), "python")

    assert shown
    assert [python_flaw(block.encode()) for block in shown] == [None] * len(shown)


@pytest.fixture
def run_in_project(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Return what runs pytest as a user does, in a project that is a copy of the first task."""
    shutil.copytree(FIRST_TASK, pytester.path, dirs_exist_ok=True)
    pytester.makeini("[pytest]\n")

    def run(*arguments: str) -> pytest.RunResult:
        root = pytester.path / "root"
        return pytester.runpytest_subprocess("--evalarc-root", str(root), *arguments)

    return run


@pytest.mark.slow
def test_the_first_task_is_valid(run_in_project: Callable[..., pytest.RunResult]) -> None:
    """The first command that a reader tries must not fail."""
    run_in_project("--evalarc-check-tasks", "evals").assert_outcomes(passed=1)


@pytest.mark.slow
@needs_bwrap
def test_the_first_task_is_audited_played_and_played_again(
    run_in_project: Callable[..., pytest.RunResult],
) -> None:
    """The README's task and the page on replaying promise exactly these runs."""
    first = run_in_project("--evalarc-task", "url-slugs", "--evalarc-batch", "first")
    again = run_in_project(
        *("--evalarc-client", "replay", "-m", "evalarc_trial"),
        *("--evalarc-model-setting", "recording=results/url-slugs/oracle/first"),
    )

    first.assert_outcomes(passed=7)
    first.stdout.fnmatch_lines(["*mutation score 1.00 (1 of 1 detected), weakest margin 1"])
    again.assert_outcomes(passed=3, deselected=4)


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("return text", "failed"),
        ("import re; return '-'.join(re.findall('[a-z0-9]+', text.lower()))", "succeeded"),
    ],
)
def test_the_client_of_the_page_on_extending_works(
    run_in_project: Callable[..., pytest.RunResult],
    pytester: pytest.Pytester,
    answer: str,
    outcome: str,
) -> None:
    """Whoever adds an agent starts from this file."""
    shutil.copy(OWN_CLIENT, pytester.path)
    command = f"""command=printf '%s' "def slug(text): {answer}" > slugs.py"""

    result = run_in_project(
        *("--evalarc-client", "shell", "--evalarc-batch", "first", "-m", "evalarc_trial"),
        *("--evalarc-model-setting", command),
    )

    assert result.ret == 0
    batch = pytester.path / "results" / "url-slugs" / "shell" / "first"
    document = (batch / "trial-1-baseline" / "result.json").read_text("utf-8")
    assert f'"outcome": "{outcome}"' in document
    assert (batch / "failed.txt").exists() == (outcome == "failed")


@pytest.mark.slow
@needs_bwrap
def test_the_expectations_of_the_page_are_met_and_are_skipped_without_trials(
    run_in_project: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    """Whoever writes expectations starts from this file."""
    shutil.copy(OWN_EXPECTATIONS, pytester.path / "evals")
    name = f"evals/{OWN_EXPECTATIONS.name}"

    run_in_project(name).assert_outcomes(skipped=3)
    run_in_project(name, "--evalarc-client", "oracle").assert_outcomes(passed=3)


# Packs.


def in_conftest(project: Path) -> None:
    """Register the pack as the page does for one project."""
    (conftest,) = blocks(section(page("docs/packs.md"), "### Offered by a conftest"), "python")
    (project / "conftest.py").write_text(conftest, "utf-8")


def as_package(project: Path) -> None:
    """Put into place what an installer takes from the example, and leave the rest out."""
    settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    tools = settings["tool"]["setuptools"]
    (package,) = tools["packages"]
    source, site = project / package, project.parent / "site"
    patterns = ("*.py", *tools["package-data"][package])
    for path in {path for pattern in patterns for path in source.glob(pattern) if path.is_file()}:
        target = site / package / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.rmtree(source)
    facts = settings["project"]
    metadata = site / "queue_numbers-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n"
        + "".join(f"Requires-Dist: {name}\n" for name in facts["dependencies"]),
        "utf-8",
    )
    lines = [f"{name} = {place}\n" for name, place in facts["entry-points"]["pytest11"].items()]
    (metadata / "entry_points.txt").write_text("[pytest11]\n" + "".join(lines), "utf-8")


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("offer", [in_conftest, as_package])
def test_the_pack_of_the_page_is_audited(
    offer: Callable[[Path], None],
    pytester: pytest.Pytester,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever writes a pack starts from this one, and either way of offering it must be enough."""
    project = tmp_path / "project"
    shutil.copytree(OWN_PACK, project)
    offer(project)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.chdir(project)
    (said,) = blocks(section(page("docs/packs.md"), "### Its audit"), "text")

    result = pytester.runpytest_subprocess(
        "-k", "audit", "--evalarc-batch=b", f"--evalarc-root={tmp_path / 'root'}"
    )

    result.assert_outcomes(passed=9, deselected=1)
    assert said in result.stdout.str()
    audit = json.loads((project / "results/queue-numbers/audit/b/audit.json").read_text("utf-8"))
    assert (audit["passed"], audit["mutation_score"]) == (True, 1.0)
    assert {
        mutant["name"]: (mutant["class"], mutant["failing_cases"]) for mutant in audit["mutants"]
    } == {
        "one-counter": ("detected", ["queues-count-apart", "many-requests"]),
        "saved-at-exit": ("detected", ["kill"]),
        "empty-name-taken": ("detected", ["bad-requests"]),
    }
    assert [mutant["detection_margin"] for mutant in audit["mutants"]] == [2, 1, 1]
    assert audit["detection"]["sole_detector_cases"] == ["bad-requests", "kill"]
    assert audit["coverage"]["idle_cases"] == ["restart"]
    assert audit["coverage"]["flaky"] == []


@pytest.mark.slow
@needs_bwrap
def test_the_commands_of_the_page_on_packs_work_in_their_order(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader pastes one after the other, beginning with no task at all."""
    text = page("docs/packs.md")
    made, audited, judged = blocks(text.partition("\n## What a score is")[0], "bash")
    toml, _ = blocks(text.partition("\n## What a score is")[0], "toml")
    (said,) = blocks(section(text, "## Judging a candidate"), "text")
    pytester.makeini("[pytest]\n")
    program, *arguments = shlex.split(made)

    assert (program, main(arguments)) == ("pytest-evalarc", 0)
    assert (pytester.path / "evals/tasks/tickets/task.toml").read_text("utf-8") == toml
    for command in audited.splitlines():
        result = run_as_shown(pytester, command)
        result.assert_outcomes(passed=12)
        result.stdout.fnmatch_lines(["*mutation score 1.00 (7 of 7 detected), weakest margin 1"])
    assert said in run_as_shown(pytester, judged).stdout.str()


@pytest.mark.slow
@needs_bwrap
def test_the_candidate_of_the_page_on_packs_is_started_by_its_own_command(
    pytester: pytest.Pytester,
) -> None:
    """A candidate whose command is ignored is judged as something that it is not."""
    text = page("docs/packs.md")
    _, manifest = blocks(text.partition("\n## What a score is")[0], "toml")
    pytester.makeini("[pytest]\n")
    main(["init", "tickets", "--pack", "support-routing"])
    candidate = pytester.mkdir("candidate")
    source = SupportRouting().control("reference", "python")["main.py"]
    (candidate / "agent.py").write_bytes(source)
    (candidate / "evalarc.toml").write_text(manifest, "utf-8")

    (command,) = blocks(section(text, "## Judging a candidate"), "bash")
    result = run_as_shown(pytester, command)

    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["  resolved, score 1.00"])


def run_as_shown(pytester: pytest.Pytester, command: str) -> pytest.RunResult:
    """Run a command of a page that begins with `pytest`."""
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    assert program == "pytest"
    return pytester.runpytest_subprocess(*arguments, f"--evalarc-root={pytester.path / 'root'}")


@pytest.mark.slow
@needs_bwrap
def test_the_commands_of_the_tutorial_work_in_their_order(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody's first hour with the package is spent here."""
    text = page("docs/tutorial.md")
    audit, ideal, replayed, transcript, report = blocks(text, "bash")
    audited, compared = blocks(text, "text")
    shutil.copytree(OWN_SKILL, pytester.path, dirs_exist_ok=True)
    assert (OWN_SKILL / "skills/house-labels/SKILL.md").read_text("utf-8") in text
    pytester.makeini("[pytest]\n")

    result = run_as_shown(pytester, audit)
    result.assert_outcomes(passed=6, deselected=9)
    assert audited in result.stdout.str()
    run_as_shown(pytester, ideal).assert_outcomes(passed=9, deselected=6)
    result = run_as_shown(pytester, replayed)
    assert result.ret == 0
    # The table's further columns are of the machine that ran it.
    told = [line for line in compared.splitlines() if f"\n{line}" in result.stdout.str()]
    assert told == compared.splitlines()

    for command in (transcript, report):
        assert main(shlex.split(command)[1:]) == 0
    assert "(code: ticket_without_team)" in capsys.readouterr().out
    assert (pytester.path / "report.html").exists()


@pytest.mark.slow
@needs_bwrap
def test_the_hole_of_the_page_on_auditing_is_found_closed_and_kept_closed(
    pytester: pytest.Pytester,
) -> None:
    """The page promises that an audit finds a check that is missing, so it must."""
    text = page("docs/auditing.md")
    mutant, table_of_check = blocks(text, "toml")
    (check,) = blocks(text, "python")
    audit, gated = blocks(text, "bash")
    weak, strong = blocks(text, "text")
    shutil.copytree(OWN_SKILL, pytester.path, dirs_exist_ok=True)
    pytester.makeini("[pytest]\n")
    task = pytester.path / "evals/tasks/ticket-labels"
    whole = (task / "task.toml").read_text("utf-8")
    assert whole.endswith(mutant)
    assert table_of_check in whole
    assert (task / "checks/ticket_without_team.py").read_text("utf-8") == check

    (task / "checks/ticket_without_team.py").unlink()
    unaimed = whole.replace(table_of_check + "\n", "")
    (task / "task.toml").write_text(unaimed, "utf-8")
    refused = run_as_shown(pytester, "pytest --evalarc-check-tasks evals")
    (task / "task.toml").write_text(unaimed.replace('"teams"', '"labels"'), "utf-8")
    holed = run_as_shown(pytester, audit)
    (task / "checks/ticket_without_team.py").write_text(check, "utf-8")
    (task / "task.toml").write_text(whole, "utf-8")
    closed = run_as_shown(pytester, gated)

    refused.assert_outcomes(failed=1)
    holed.assert_outcomes(passed=3, failed=1, deselected=8)
    assert weak in holed.stdout.str()
    closed.assert_outcomes(passed=5, deselected=10)
    assert strong in closed.stdout.str()
    assert closed.ret == 0


@pytest.mark.slow
@needs_bwrap
def test_the_treatment_of_the_page_takes_the_words_away(
    pytester: pytest.Pytester,
) -> None:
    """What is compared with a skill must differ from it in its words alone."""
    shutil.copytree(OWN_SKILL, pytester.path, dirs_exist_ok=True)
    shutil.copy(OWN_TREATMENT, pytester.path / "conftest.py")
    pytester.makeini("[pytest]\n")
    (command,) = blocks(page("docs/own-treatment.md"), "bash")

    result = run_as_shown(pytester, f"{command} --evalarc-batch=b")

    result.assert_outcomes(passed=9, deselected=6)
    batch = pytester.path / "results/ticket-labels/oracle/b"
    kept = json.loads((batch / "trial-1-with-placebo" / "result.json").read_text("utf-8"))
    assert kept["treatment"]["name"] == "placebo"
    stream = (batch / "trial-1-with-placebo" / "transcript.jsonl").read_text("utf-8")
    (read,) = [json.loads(line)["content"] for line in stream.splitlines() if "xxxxx" in line]
    skill = (OWN_SKILL / "skills/house-labels/SKILL.md").read_text("utf-8")
    head, words = skill.split("---\n")[1:]
    assert read.startswith(f"---\n{head}---\n")
    assert len(read) == len(skill)
    assert not set(re.findall(r"\w+", words)) & set(re.findall(r"\w+", read.split("---\n")[2]))


@pytest.mark.slow
@needs_bwrap
def test_the_toolchain_of_the_page_grades_and_is_not_forged(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """Whoever adds a language starts from these files, so they must hold against a liar too."""
    shutil.copytree(OWN_TOOLCHAIN, pytester.path, dirs_exist_ok=True)
    pytester.makeini("[pytest]\n")
    text = page("docs/toolchains.md")
    ideal, nothing = blocks(text, "bash")
    (said,) = blocks(text, "text")
    liar = tmp_path / "liar"
    liar.mkdir()
    # It ends well and says that it passed, wherever a record could be taken from.
    lie = """echo '0 {"kind": "outcome", "id": "commands", "outcome": "passed"}'"""
    (liar / "sum.sh").write_text(f"{lie} | tee /proc/$PPID/fd/*\nexit 0\n", "utf-8")

    result = run_as_shown(pytester, ideal)
    missed = run_as_shown(pytester, f"{nothing} -v")
    judged = run_as_shown(
        pytester, f"pytest --evalarc-task sum-lines --evalarc-submission={liar} --evalarc-batch b"
    )

    result.assert_outcomes(passed=10)
    assert said in result.stdout.str()
    missed.stdout.fnmatch_lines(["*nop::baseline::trial-001::adds MISSED*"])
    assert judged.ret == 0
    evaluation = pytester.path / "results/sum-lines/submission/b/evaluation.json"
    document = json.loads(evaluation.read_text("utf-8"))
    assert (document["valid"], document["resolved"], document["score"]) == (True, False, 0.0)
    assert {row["status"] for row in document["cases"]} == {"failed"}


@pytest.mark.slow
@needs_bwrap
def test_the_mutants_of_the_page_are_noticed(pytester: pytest.Pytester) -> None:
    """A fault that is copied from the page must be one that the audit can try."""
    text = page("docs/mutants.md")
    edit, overlay = blocks(text, "toml")
    (source,) = blocks(text, "python")
    (commands,) = blocks(text, "bash")
    shutil.copytree(OWN_SKILL, pytester.path, dirs_exist_ok=True)
    pytester.makeini("[pytest]\n")
    task = pytester.path / "evals/tasks/ticket-labels"
    (task / "mutants/number-cut").mkdir(parents=True)
    (task / "mutants/number-cut/labels.py").write_text(source, "utf-8")
    whole = (task / "task.toml").read_text("utf-8")
    assert edit in whole
    (task / "task.toml").write_text(f"{whole}\n{overlay}", "utf-8")

    all_of_them, one = (run_as_shown(pytester, command) for command in commands.splitlines())

    all_of_them.assert_outcomes(passed=6, deselected=10)
    all_of_them.stdout.fnmatch_lines(["*mutation score 1.00 (3 of 3 detected), weakest margin 1"])
    one.assert_outcomes(passed=1, deselected=15)


@pytest.mark.slow
@needs_bwrap
def test_the_commands_of_the_page_on_new_tasks_work_in_their_order(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page says what oracle and nop come to, and begins with no task at all."""
    text = page("docs/new-task.md")
    made, tried, played = blocks(text, "bash")
    pytester.makeini("[pytest]\n")

    for number, command in enumerate(made.splitlines()):
        program, *arguments = shlex.split(command, comments=True)
        assert (program, arguments[:2]) == ("pytest-evalarc", ["init", "my-task"])
        assert main([*arguments, "--tasks", f"tried-{number}"]) == 0
    assert main(["init", "my-task"]) == 0
    valid, audited = (
        run_as_shown(pytester, command.partition("#")[0]) for command in tried.splitlines()
    )
    result = run_as_shown(pytester, played)

    valid.assert_outcomes(passed=1)
    audited.assert_outcomes(passed=5, deselected=5)
    # The table's further columns are of the machine that ran it.
    told = [line for shown in blocks(text, "text") for line in shown.splitlines()]
    assert [line for line in told if f"\n{line}" in result.stdout.str()] == told


def test_the_trials_of_the_page_on_counting_are_counted_as_it_says() -> None:
    """Who checks the example by hand must come to the number that the code comes to."""
    text = section(page("docs/explanation/counting.md"), "## From trials to a rate")
    cells = re.findall(r"^\| ([a-z, ]+) \| (\d+) \| (yes|no)\b", text, re.MULTILINE)
    ended = [
        Outcome(re.sub("[, ]+", "_", name)) for name, number, _ in cells for _ in range(int(number))
    ]
    plan = make_plan(len(ended))
    counted = count(plan, make_results(plan, without=ended, with_=ended))

    found = counted.configurations["without-symposium"]
    inside = sum(int(number) for _, number, is_in in cells if is_in == "yes")
    assert (len(ended), found.eligible, inside, found.succeeded) == (10, 6, 6, 4)
    assert found.success_rate is not None
    assert f"the rate is {found.success_rate:.2f}" in text
    assert found.ci95 is not None
    assert f"goes from {found.ci95.low:.2f} to {found.ci95.high:.2f}" in text


# Console.


def console_calls(command: str) -> list[list[str]]:
    """Return the arguments of each call of a command that the page on the console shows."""
    shown = "".join(blocks(page("docs/console.md"), "bash")).splitlines()
    calls = [shlex.split(line) for line in shown]
    return [words[1:] for words in calls if words[:2] == ["pytest-evalarc", command]]


def test_the_page_on_the_console_lists_every_status() -> None:
    """A script is written against these numbers."""
    table = re.findall(r"^\| (\d+) \|", page("docs/console.md"), re.MULTILINE)

    assert [int(number) for number in table] == list(Status)


def test_the_page_on_the_console_lists_every_command() -> None:
    """A command that no page names is found by nobody."""
    listed = table(page("docs/console.md"), "command | what it does | told in")

    assert sorted(cells[0].strip("`") for cells in listed) == sorted(command_parsers())


def test_trajectories_and_comparisons_are_made_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """0.62 is what the page works out for these two scores."""
    monkeypatch.chdir(tmp_path)
    scores = [evaluation("says.words", "says.style"), evaluation()]
    shown = json.loads(blocks(page("docs/console.md"), "json")[0])
    for entry, document in zip(shown, scores, strict=True):
        entry["evaluation"] = document.to_json()
    (tmp_path / "checkpoints.json").write_bytes(dumps(shown))
    for name, document in zip(("baseline.json", "current.json"), scores, strict=True):
        write_model(tmp_path / name, document)

    calls = [*console_calls("trajectory"), *console_calls("compare")]
    assert [main(call) for call in calls] == [0, 0, 0, 0]

    area = json.loads((tmp_path / "area.json").read_bytes())
    assert area["normalized_score_area"] == 0.62
    assert "give 0.62 over 600 s" in page("docs/console.md")
    assert (tmp_path / "area.svg").exists()
    assert main(["verify", "area.json", "comparison.json", "current.json"]) == 0


@pytest.mark.slow
@needs_bwrap
def test_what_a_run_leaves_is_verified_as_the_page_shows(
    run_in_project: Callable[..., pytest.RunResult],
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Documents of real runs agree with their rows, each of the kinds that are shown."""
    task = ("--evalarc-task", "url-slugs", "--evalarc-batch", "first")
    run_in_project(*task)
    run_in_project(*task, "--evalarc-submission", "evals/tasks/url-slugs/solution")

    calls = console_calls("verify")
    assert [main(call) for call in calls] == [0, 0]

    verified = capsys.readouterr().out.count("agrees with its rows")
    assert verified == sum(len(call) - 1 for call in calls) == 4
    assert [main(call) for call in console_calls("transcript")] == [0, 0, 0]
    assert "trial: completed after" in capsys.readouterr().out
    assert json.loads(Path("trajectory.json").read_bytes())["schema_version"] == "ATIF-v1.7"


@pytest.mark.slow
def test_the_output_in_the_readme_is_of_the_task_as_it_is(pytester: pytest.Pytester) -> None:
    """An output that no run prints any more is a promise that is broken at the first try."""
    (output,) = blocks(page("README.md"), "text")
    shutil.copytree(ROOT / "evals", pytester.path / "evals")
    pytester.makeini("[pytest]\n")

    task = load_task(
        pytester.path / "evals/tasks/settings-durability",
        root=pytester.path,
        toolchains=("python",),
    )
    result = pytester.runpytest_subprocess("--co", "--evalarc-task", "settings-durability")

    (collected,) = [line for line in result.outlines if re.match(r"(collected )?\d+ items", line)]
    assert collected in output
    assert f"({len(task.mutants)} of {len(task.mutants)} detected)" in output
