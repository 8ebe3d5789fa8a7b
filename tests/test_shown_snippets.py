"""Python and TOML on the pages are right: each is a file that tests run, or is used here."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.isolation.engine import Engine
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.runs.request import client_label
from tests.needs import needs_bwrap
from tests.shown import PAGES, ROOT

BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = ROOT / "docs" / "examples"
FILES = {
    path.read_text("utf-8")
    for path in EXAMPLES.rglob("*")
    if path.suffix in (".py", ".toml") and path.is_file()
}
"""What tests/test_docs.py holds the pages to, and runs."""


class Snippet(NamedTuple):
    """One block of a page."""

    page: str
    language: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """Its page and first line, which tell it from all others."""
        return self.page, self.text.splitlines()[0]


def snippets() -> Iterator[Snippet]:
    for page in PAGES:
        for language, text in BLOCK.findall(page.read_text("utf-8")):
            yield Snippet(page.relative_to(ROOT).as_posix(), language, text)


SNIPPETS = tuple(snippets())
LABELS = tuple(it for it in SNIPPETS if it.text.startswith("[tool.evalarc.clients."))
CHECKS = tuple(it for it in SNIPPETS if it.page == "docs/checks.md")
DOCS = "tests/test_docs.py"
HELD: Mapping[tuple[str, str], str] = {
    ("docs/auditing.md", "[[mutants]]"): DOCS,
    ("docs/auditing.md", "[checks.ticket_without_team]"): DOCS,
    ("docs/mutants.md", "[[mutants]]"): DOCS,
    ("docs/mutants.md", '"""Labels of tickets."""'): DOCS,
    ("docs/packs.md", "#:schema ../.schema/task.schema.json"): DOCS,
    ("docs/packs.md", 'command = ["{python}", "-I", "-S", "-B", "{workspace}/agent.py"]'): DOCS,
    ("docs/packs.md", "from queue_numbers.pack import QueueNumbers"): DOCS,
    ("docs/containers.md", "import os"): "below",
    ("docs/editors.md", "#:schema ../.schema/task.schema.json"): "below",
    ("docs/exports.md", "import json"): "below",
    ("docs/extending.md", "[project]"): "below",
}
"""Parts of files, by page and first line, with where they are used."""


def test_every_snippet_is_used_by_a_test_and_no_other_is_listed() -> None:
    """One that nothing uses is right on the day on which it was written."""
    rest = [it for it in SNIPPETS if it.text not in FILES and it not in (*LABELS, *CHECKS)]

    assert sorted({it.key for it in rest}) == sorted(HELD)


def found(page: str, first: str) -> str:
    (text,) = {it.text for it in SNIPPETS if it.key == (page, first)}
    return text


# Tables of pyproject.toml.


@pytest.mark.parametrize("snippet", LABELS, ids=lambda it: f"{it.page}-{it.key[1]}")
def test_a_table_of_a_client_is_one_that_a_project_can_have(snippet: Snippet) -> None:
    """A key or a setting that is refused is pasted as it stands."""
    tables = tomllib.loads(snippet.text)["tool"]["evalarc"]["clients"]
    known = installed()

    for label in tables:
        made = client_label(label, tables, known=known.clients.names, model=None, settings={})
        # Raises UsageError for a setting that the client does not take.
        client = known.clients.get(made.kind).configured(
            label,
            command=made.command,
            key_env=made.key_env,
            model=made.model,
            settings=made.settings,
        )
        assert set(made.key_env) <= set(client.needs.key_env)


def test_a_package_that_offers_something_is_found_by_the_group_that_is_shown() -> None:
    """Pytest looks in one group alone, and a misspelt one is silent."""
    shown = tomllib.loads(found("docs/extending.md", "[project]"))["project"]
    own = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert list(shown["entry-points"]) == list(own["entry-points"]) == ["pytest11"]
    assert shown["dependencies"] == [own["name"]]


def test_the_first_line_for_editors_is_what_a_new_task_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever adds it to an older task copies it from the page."""
    monkeypatch.chdir(tmp_path)
    main(["init", "first"])

    line = found("docs/editors.md", "#:schema ../.schema/task.schema.json")
    assert (tmp_path / "evals/tasks/first/task.toml").read_text("utf-8").startswith(line)
    assert (tmp_path / "evals/tasks/first" / line.split()[1]).is_file()


# Python.


def test_an_engine_at_another_place_is_offered_as_the_page_shows() -> None:
    """It is a sandbox like those that ship, and asks the engine that the page names."""
    module: dict[str, Any] = {}
    exec(found("docs/containers.md", "import os"), module)

    (offered,) = module["pytest_evalarc_sandboxes"]().items()

    name, maker = offered
    assert name == "docker-of-tests"
    assert isinstance(maker(), Engine)


def test_the_long_table_is_read_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what pandas makes a table of: rows of the same columns, with plain values."""
    written: dict[str, list[dict[str, object]]] = {}

    class Frame:
        """As much of a table of pandas as the page asks of it."""

        def __init__(self, rows: list[dict[str, object]]) -> None:
            self.rows = rows

        def to_parquet(self, path: str) -> None:
            written[path] = self.rows

    rows = [{"batch": "b", "passed": True}, {"batch": "b", "passed": None}]
    (tmp_path / "trials.json").write_text(json.dumps({"rows": rows}))
    pandas = ModuleType("pandas")
    monkeypatch.setattr(pandas, "DataFrame", Frame, raising=False)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    monkeypatch.chdir(tmp_path)

    exec(found("docs/exports.md", "import json"), {})

    assert written == {"trials.parquet": rows}


FIXTURE = "fixtures/fixture-settings"
TASK = """\
kind = "capability"
prompt = "Any."
toolchain = "python"
editable = ["slugs.py", "settings_service"]
fixtures = ["fixture-settings"]
"""


@pytest.mark.slow
@needs_bwrap
def test_the_checks_of_the_page_pass_a_reference_and_fail_a_starter(
    pytester: pytest.Pytester,
) -> None:
    """A form of check that is shown must be one that tells right from wrong."""
    task = pytester.path / "evals" / "tasks" / "shown"
    pytester.makeini("[pytest]\n")
    (task / "checks").mkdir(parents=True)
    shutil.copytree(ROOT / "evals/fixtures/fixture-settings", task.parents[1] / FIXTURE)
    for place in ("starter", "solution"):
        shutil.copytree(EXAMPLES / "first-task/evals/tasks/url-slugs" / place, task / place)
        service = ROOT / "evals/tasks/settings-durability" / place / "settings_service"
        shutil.copytree(service, task / place / "settings_service")
    for number, check in enumerate(CHECKS):
        (name,) = re.findall(r"^def (test_\w+)", check.text, re.MULTILINE)
        own = f"{name}_{number}"
        text = check.text.replace(f"def {name}(", f"def {own}(")
        (task / "checks" / f"{own.removeprefix('test_')}.py").write_text(text, "utf-8")
    (task / "task.toml").write_text(TASK, "utf-8")

    result = pytester.runpytest_subprocess(
        "--evalarc-task=shown",
        "-k",
        "audit",
        f"--evalarc-root={pytester.path / 'root'}",
        "--evalarc-batch=b",
    )

    rows = pytester.path / "results" / "shown" / "audit" / "b" / "rows"
    assert result.ret == 0, result.stdout.str()
    statuses = {
        control: [
            row["status"]
            for row in json.loads((rows / f"{control}.json").read_text("utf-8"))["grading"]["rows"]
        ]
        for control in ("reference", "starter")
    }
    assert statuses == {"reference": ["passed"] * 4, "starter": ["failed"] * 4}
