"""The schema of task.toml says of every key and value what the loader says of them."""

from __future__ import annotations

import datetime
import re
import sys
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import TaskProblems
from pytest_evalarc.model.task import Edit, Expected, Mutant
from pytest_evalarc.packs.durable_kv.pack import DurableKv
from pytest_evalarc.tasks import keys, load
from pytest_evalarc.tasks.toml import TomlDocument
from tests.tasks.project import TASK, TOOLCHAINS, Project
from tests.validation import jsonschema

ROOT = Path(__file__).parents[2]
PACKS = {"durable-kv": lambda: DurableKv.info}
VALIDATOR = jsonschema.Draft202012Validator(
    keys.task_schema(toolchains=TOOLCHAINS, packs=tuple(PACKS))
)

WITH_PACK = 'kind = "capability"\nprompt = "Do it."\n[pack]\nname = "durable-kv"\n'
TABLES: dict[tuple[str | int, ...], keys.Keys] = {
    (): keys.TASK,
    ("deadlines",): keys.DEADLINES,
    ("limits",): keys.LIMITS,
    ("expected",): keys.EXPECTED,
    ("checks", "persists"): keys.CHECK,
    ("mutants", 0): keys.MUTANT,
    ("mutants", 0, "edits", 0): keys.EDIT,
    ("pack",): keys.PACK,
}
"""Every table that has keys of its own, by a place where the tiny task has one."""

PLACES = [
    *((*table, name) for table, known in TABLES.items() for name in known if name != "pack"),
    *(("checks", "persists"), ("weights", "speed"), ("mutants", 0)),
]
VALUES: list[object] = [
    *(True, 0, 1, -1, 0.5, float("inf"), "", "ok", "a b", "x" * 101, datetime.date(2024, 1, 1)),
    *([], ["ok"], ["a b"], [1], ["ok", "ok"], [{}], {}, {"ok": 1}),
]

MISFIT = re.compile(
    r"must be |is no key|is no name|is empty|names .* twice|names .* beside|(is|are) missing"
)
"""How the loader tells what a value or a key by itself is wrong for."""


def base(place: tuple[str | int, ...]) -> dict[str, Any]:
    return tomllib.loads(WITH_PACK if place[:1] == ("pack",) else TASK)


def changed(place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Return a valid task's data with another value in one place."""
    data = base(place)
    at: Any = data
    for part in place[:-1]:
        at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
    at[place[-1]] = deepcopy(value)
    return data


def told(project: Project, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the loader tells of a task.toml with these data."""
    monkeypatch.setattr(load, "read_toml", lambda *_, **__: TomlDocument(data, {}))
    try:
        load.load_task(project.task, root=project.root, toolchains=TOOLCHAINS, packs=PACKS)
    except TaskProblems as problems:
        return [str(problem) for problem in problems.problems]
    return []


def disputed(place: tuple[str | int, ...], value: object) -> bool:
    """Whether only the loader can judge, as a plugin of the project may bring toolchains."""
    return place == ("toolchain",) and isinstance(value, str)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the tiny task's project, of which no test here changes a file."""
    return Project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_a_value_that_does_not_fit_is_told_by_both_alike(
    place: tuple[str | int, ...], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that marks what is valid is turned off, and one that marks too little is trusted.

    The prompt that stands beside is left out: which of two keys is meant is a matter of both.
    """
    disagreed = []
    for value in VALUES:
        if disputed(place, value):
            continue
        data = changed(place, value)
        if place == ("prompt_file",):
            del data["prompt"]
        if place == ("mutants", 0, "overlay"):
            del data["mutants"][0]["edits"]
        sentences = told(project, data, monkeypatch)
        is_misfit = any(MISFIT.search(it) for it in sentences)
        errors = [error.message for error in VALIDATOR.iter_errors(data)]
        if (is_misfit and not errors) or (errors and not sentences):
            disagreed.append((value, sentences, errors))
    assert disagreed == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: ".".join(map(str, table)) or "top")
def test_a_mistyped_key_is_refused_by_both(
    table: tuple[str | int, ...], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is passed over in silence is a default that nobody chose."""
    for name in TABLES[table]:
        mistyped = (*table, f"{name[:-1]}_{name[-1]}")
        data = changed(mistyped, 1)

        (error,) = VALIDATOR.iter_errors(data)

        assert f"'{mistyped[-1]}' was unexpected" in error.message
        assert any(
            f"{mistyped[-1]}: is no key that is known here; nearest: {name}" in sentence
            for sentence in told(project, data, monkeypatch)
        )


@pytest.mark.parametrize(
    ("table", "name"),
    [
        *(((), name) for name in ("kind", "toolchain", "prompt")),
        *((("mutants", 0), name) for name in ("name", "target", "edits")),
        *((("mutants", 0, "edits", 0), name) for name in keys.EDIT),
        (("pack",), "name"),
    ],
)
def test_a_missing_key_is_told_by_both(
    table: tuple[str | int, ...], name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no default is asked for where it is written."""
    data = base((*table, name))
    at: Any = data
    for part in table:
        at = at[part]
    del at[name]

    assert list(VALIDATOR.iter_errors(data)) != []
    assert any(MISFIT.search(sentence) for sentence in told(project, data, monkeypatch))


@pytest.mark.parametrize("name", keys.OF_THE_PACK)
def test_what_the_pack_brings_is_refused_beside_it(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two answers to what is graded are none."""
    data = {**tomllib.loads(WITH_PACK), name: tomllib.loads(TASK).get(name, False)}

    (error,) = VALIDATOR.iter_errors(data)

    assert (error.validator, error.parent) == (None, None)
    assert error.message.startswith("False schema does not allow")
    assert any("stands beside [pack]" in it for it in told(project, data, monkeypatch))


def task_files() -> Iterator[Path]:
    for folder in ("evals", "docs/examples", "pytest_evalarc/cli/scaffolds"):
        yield from sorted((ROOT / folder).rglob("task.toml"))


@pytest.mark.parametrize("path", [*task_files()], ids=lambda path: path.parent.name)
def test_every_task_that_ships_validates(path: Path) -> None:
    """The first file that is opened beside the schema has no mark in it."""
    assert list(VALIDATOR.iter_errors(tomllib.loads(path.read_text("utf-8")))) == []


@pytest.mark.parametrize(
    ("known", "model"),
    [(keys.EXPECTED, Expected), (keys.EDIT, Edit), (keys.MUTANT, Mutant)],
)
def test_a_table_that_is_read_as_a_dataclass_has_its_fields(
    known: keys.Keys, model: type[Expected | Edit | Mutant]
) -> None:
    """A field that no key sets would keep its default for ever."""
    assert tuple(known) == tuple(field.name for field in fields(model))


def test_the_schema_is_one_of_its_dialect_and_every_key_has_a_sentence() -> None:
    """An editor shows the sentence where the key is written."""
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)

    for known in TABLES.values():
        assert all(key.meaning.endswith(".") for key in known.values())
    assert VALIDATOR.schema["properties"]["deadlines"]["properties"]["agent"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": sys.float_info.max,
        "description": "Seconds of the client's session.",
        "default": 600.0,
    }
