"""`python -m pytest_evalarc.cli.schemas DIR`: JSON Schemas of kept documents and of task.toml."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from pytest_evalarc.cli.doctor import Diagnosis
from pytest_evalarc.cli.tasks_listing import Listing
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.grading.kept import KeptSubmission
from pytest_evalarc.model.audit import Audit, AuditPlan, ControlDoc
from pytest_evalarc.model.base import JsonObject, Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import CandidateDoc, CandidatePlan, EvaluationDoc
from pytest_evalarc.model.comparison import BatchComparison, Comparison
from pytest_evalarc.model.measured import Measured
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.shard import ShardDoc
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.model.trajectory import Trajectory
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.registry import builtin
from pytest_evalarc.reporting.documents import write_text
from pytest_evalarc.runs.budget import Admission
from pytest_evalarc.runs.start import StartDoc
from pytest_evalarc.tasks.keys import task_schema

DOCUMENTS: Mapping[str, type[Model]] = {
    "accepted": Measured,
    "audit": Audit,
    "audit-control": ControlDoc,
    "audit-plan": AuditPlan,
    "batch-comparison": BatchComparison,
    "benchmark": Benchmark,
    "budget-round": Admission,
    "candidate-grading": CandidateDoc,
    "candidate-plan": CandidatePlan,
    "comparison": Comparison,
    "doctor": Diagnosis,
    "evaluation": EvaluationDoc,
    "plan": PlanDoc,
    "regrade": Regrade,
    "result": TrialResult,
    "shard": ShardDoc,
    "start": StartDoc,
    "submission": KeptSubmission,
    "summary": Summary,
    "tasks": Listing,
    "trajectory": Trajectory,
}
"""Every whole document of ours by the name of its schema."""

TASK_SCHEMA = "task.schema.json"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(model: type[Model]) -> JsonObject:
    """Return the JSON Schema of a document, in the 2020-12 dialect, keys as they are written."""
    found = model.model_json_schema(by_alias=True, schema_generator=_Described)
    return {"$schema": _DIALECT, **found}


class _Described(GenerateJsonSchema):
    """Describes each key by the docstring below its attribute.

    Pydantic would read them from the source whenever a schema is imported, for nobody.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
        return _described(super().dataclass_schema(schema), schema["cls"])


def _described(found: dict[str, Any], model: type[Any]) -> dict[str, Any]:
    fields = getattr(model, "model_fields", {})
    for name, docstring in _docstrings(model).items():
        key = (fields[name].alias if name in fields else None) or name
        if key in found.get("properties", {}):
            found["properties"][key].setdefault("description", docstring)
    return found


def _docstrings(model: type[Any]) -> dict[str, str]:
    """Return the docstring of each attribute of a class, its bases' included."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if each.__module__.startswith("pytest_evalarc."):
            found |= _own_docstrings(each)
    return found


def _own_docstrings(model: type[Any]) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(model))
    (body,) = (each.body for each in tree.body if isinstance(each, ast.ClassDef))
    return {
        attribute.target.id: inspect.cleandoc(below.value.value)
        for attribute, below in pairwise(body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def schema_files() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each schema's file."""
    for name, model in DOCUMENTS.items():
        yield f"{name}.schema.json", dumps(schema(model)).decode()
    yield TASK_SCHEMA, task_schema_text()


def task_schema_text() -> str:
    """Return the text of the schema of task.toml, with the toolchains and packs that ship."""
    toolchains, packs = builtin.pytest_evalarc_toolchains(), builtin.pytest_evalarc_packs()
    return dumps(task_schema(toolchains=sorted(toolchains), packs=sorted(packs))).decode()


def write_schemas(folder: Path) -> None:
    """Write every schema into a folder, which is made when it is not there.

    Raises:
        DocumentError: One cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files():
        write_text(folder / name, text)


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
