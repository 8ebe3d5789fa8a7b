"""The pages say what the code does: tables are compared with it, and examples are run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import get_args

import pytest

from pytest_evalarc import hookspecs
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.grading.lab import FileLab
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.audit import Audit, MutantClass
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.task import Deadlines, Limits
from pytest_evalarc.model.trial import Outcome, TrialResult
from pytest_evalarc.plugin import fixtures
from pytest_evalarc.plugin.options import OPTIONS, Option
from pytest_evalarc.runs.trial import session_env
from pytest_evalarc.tasks.checkfiles import python_flaw
from pytest_evalarc.tasks.fields import Table
from pytest_evalarc.tasks.load import load_task
from tests.needs import needs_bwrap

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FIRST_TASK = DOCS / "examples" / "first-task"
OWN_EXPECTATIONS = DOCS / "examples/own-expectations/evals/test_expectations.py"
OWN_CLIENT = DOCS / "examples" / "own-client" / "conftest.py"


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
    load_task(with_a_pack, root=tmp_path, toolchains=("python",))

    listed = first_words(section(page("docs/tasks.md"), "## Keys of task.toml"))
    assert set(listed) == keys.known
    assert len(listed) == len(keys.known)


@pytest.mark.parametrize(("table", "model"), [("deadlines", Deadlines), ("limits", Limits)])
def test_the_page_on_tasks_tells_the_default_of_every_number(
    table: str, model: type[Model]
) -> None:
    """Who leaves a bound out relies on what the page says it is then."""
    told = {
        cells[0].strip("`"): float(cells[2].strip("`"))
        for cells in rows(section(page("docs/tasks.md"), f"### `[{table}]`"))
    }

    assert told == {f"{table}.{name}": field.default for name, field in model.model_fields.items()}


@pytest.mark.parametrize(
    ("document", "model"),
    [
        ("result.json", TrialResult),
        ("benchmark.json", Benchmark),
        ("audit.json", Audit),
        ("evaluation.json", EvaluationDoc),
        ("regrade-n.json", Regrade),
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

    assert in_session == set(session_env(RunLayout(root=tmp_path / "run"), lab))
    assert in_grading == set(lab.grading_env(tmp_path))


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
    return [
        *of_the_task,
        ("docs/extending.md", OWN_CLIENT.relative_to(ROOT).as_posix()),
        ("docs/expectations.md", OWN_EXPECTATIONS.relative_to(ROOT).as_posix()),
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
