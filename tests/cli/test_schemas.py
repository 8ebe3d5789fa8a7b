"""Tests of the published JSON Schemas: they are those of the documents, and of all of them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_evalarc
from pytest_evalarc.cli.schemas import (
    DOCUMENTS,
    TASK_SCHEMA,
    schema,
    schema_files,
    task_schema_text,
    write_schemas,
)
from pytest_evalarc.model.summary import Summary

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
PACKAGE = Path(pytest_evalarc.__file__).parent

NOT_KEPT = {
    "AtifTrajectory",  # Its format has a specification of its own.
    "CacheEntry",  # It lies among no results, and only what wrote it reads it.
    "Conditions",  # It is a part of others.
    "_Header",  # It is a part of others.
    "PreflightDoc",  # It lies in the working folder alone.
    "StagedDoc",  # It lies in the working folder alone.
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_published_schema_is_that_of_the_document(name: str) -> None:
    """Programs are written against the file; `nox -s schemas` writes it again."""
    published = json.loads((SCHEMAS / f"{name}.schema.json").read_bytes())

    assert published == schema(DOCUMENTS[name])


def test_no_schema_of_a_document_that_is_gone_is_published() -> None:
    """Whoever finds a schema believes that something like it is written."""
    assert sorted(path.name for path in SCHEMAS.iterdir()) == sorted(dict(schema_files()))


def test_the_published_schema_of_task_toml_is_that_of_the_loader() -> None:
    """Editors of this repository and of others are pointed at the file."""
    assert (SCHEMAS / TASK_SCHEMA).read_text("utf-8") == task_schema_text()


def test_the_schema_of_task_toml_offers_what_ships() -> None:
    """An editor completes the names; a plugin's own are taken as well."""
    told = json.loads(task_schema_text())["properties"]

    (named, _) = told["toolchain"]["anyOf"]
    assert named["enum"] == ["node", "python", "rust"]
    (named, _) = told["pack"]["properties"]["name"]["anyOf"]
    assert named["enum"] == ["durable-kv", "robot-evidence-review", "support-routing"]


def versioned_models() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and line.target.id == "schema_version"
                for line in node.body
            ):
                yield node.name


def test_every_whole_document_has_a_schema() -> None:
    """A document carries a schema version, which means little without the schema."""
    inherited = {"Comparison", "EvaluationDoc"}

    known = {model.__name__ for model in DOCUMENTS.values()}

    assert set(versioned_models()) - NOT_KEPT == known - inherited
    assert inherited <= known


def test_a_schema_tells_keys_bounds_and_meaning() -> None:
    """A reader without our sources learns from it what a value may be."""
    told = schema(Summary)

    assert told["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert told["additionalProperties"] is False
    assert told["required"] == list(Summary.model_fields)
    interval = told["$defs"]["Interval"]
    assert interval["properties"]["low"]["minimum"] == -1.0
    rate = told["$defs"]["ClusteredRate"]["properties"]["ci95"]
    assert rate["description"].startswith("Expanded percentile bootstrap over whole tasks")


def test_schemas_are_written_into_a_new_folder(tmp_path: Path) -> None:
    """The session that writes them again is one call."""
    write_schemas(tmp_path / "new")

    written = json.loads((tmp_path / "new" / "benchmark.schema.json").read_bytes())
    assert written["title"] == "Benchmark"
    assert len(list((tmp_path / "new").iterdir())) == len(DOCUMENTS) + 1
