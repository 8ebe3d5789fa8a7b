"""Which values of documents a gate can name, and how: known before anything is run.

What there is to name is read from the schemas, so that every number of a document has a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.base import JsonObject, Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.summary import AcrossTasks, TaskSummary

Kind: TypeAlias = Literal["benchmark", "audit", "evaluation", "summary", "summary row"]
"""A summary is asked for each client, model and treatment, and each of its rows for itself."""

CONFIGURATIONS = ("with", "without", "noise", "baseline")
"""How a gate calls configurations, whatever the treatment's name."""
TREATED = "*"
"""Stands in a path for the configuration that a bare name is of; no name holds such a letter."""
CAUSE_GROUPS = ("setup_failures", "cancelled", "excluded", "failed")
MOST_LISTED = 20
"""More names than that are no hint."""

_MODELS: Mapping[Kind, type[Model]] = {
    "benchmark": Benchmark,
    "audit": Audit,
    "evaluation": EvaluationDoc,
    "summary": AcrossTasks,
    "summary row": TaskSummary,
}
_STARTS: Mapping[Kind, Sequence[tuple[str, ...]]] = {
    "benchmark": ((), ("configurations", TREATED)),
    "audit": ((), ("detection",), ("coverage",)),
    "evaluation": ((),),
    "summary": ((), ("configurations", TREATED)),
    "summary row": ((), ("configurations", TREATED)),
}
"""Where a path may begin in each document; the first place that has the name is meant."""
_UNNAMED: tuple[Kind, ...] = ("benchmark", "audit", "evaluation")
"""Whom a bare name is asked of: a summary has the same names, and is asked by its own alone."""


class Asked(NamedTuple):
    """A kind of document that can answer a condition, and where in it the value stands."""

    kind: Kind
    path: tuple[str, ...]


class _Unknown(NamedTuple):
    """A path that a document does not have."""

    depth: int
    """How many of its names are known."""
    problem: str
    known: tuple[str, ...]


def resolved(name: str, where: str) -> tuple[tuple[Asked, ...], JsonObject]:
    """Return which kinds of documents have a value of that name, and the JSON schema of the value.

    Args:
        name: A dotted path. `audit.`, `benchmark.`, `evaluation.`, `summary.` or `summary.tasks.`
            before it names one kind; without, it begins in the document, in the treatment's
            configuration of a benchmark
            (or `baseline`), or in `detection` or `coverage` of an audit. `with`, `without`,
            `noise` and `baseline` stand for configurations.
        where: What an error begins with.

    Raises:
        UsageError: None has.
    """
    kinds, path = _kinds(tuple(name.split(".")))
    asked: list[Asked] = []
    leaves: list[JsonObject] = []
    unknown: list[_Unknown] = []
    for kind in kinds:
        for start in _STARTS[kind]:
            full = _full_path(kind, (*start, *path))
            found = _leaf(kind, full, depth=len(full) - len(path))
            if not isinstance(found, _Unknown):
                asked.append(Asked(kind, full))
                leaves.append(found)
                break
            unknown.append(found)
    if leaves:
        return tuple(asked), leaves[0]
    raise _refusal(path, unknown, kinds, where)


def _kinds(path: tuple[str, ...]) -> tuple[tuple[Kind, ...], tuple[str, ...]]:
    """Return which kinds of documents a path is asked of, and the path below what names them."""
    match path:
        case ("summary", "tasks", _, *_):
            return ("summary row",), path[2:]
        case ("benchmark" | "audit" | "evaluation" | "summary" as kind, _, *_):
            return (kind,), path[1:]
    return _UNNAMED, path


def _refusal(
    path: tuple[str, ...], unknown: Sequence[_Unknown], kinds: Sequence[Kind], where: str
) -> UsageError:
    """Return what is wrong with a path where the most of it is known, with the nearest names."""
    worst = max(unknown, key=lambda each: each.depth)
    is_first = worst.depth <= 0
    misspelt = path[0] if is_first else path[min(worst.depth, len(path) - 1)]
    problem = f"no document has {misspelt!r}" if is_first else worst.problem
    known = _first_names(kinds) if is_first else worst.known
    hint = nearest(misspelt, known)
    is_long = hint.startswith("known") and len(known) > MOST_LISTED
    return UsageError(where, problem, "docs/gates.md tells what there is" if is_long else hint)


def _full_path(kind: Kind, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path as the document spells it."""
    if kind in ("audit", "evaluation"):
        return path
    if path[0] in CONFIGURATIONS or path[0].startswith(("with-", "without-")):
        path = ("configurations", *path)
    for index, pair in enumerate(pairwise(path)):
        # An interval stands beside its rate, and is asked for as if it were below.
        if pair == ("success_rate", "ci95"):
            own = "success_rate_ci95" if path[0] == "delta" else "ci95"
            return (*path[:index], own, *path[index + 2 :])
        if pair == ("delta", "ci95"):
            return (*path[:index], "delta_ci95", *path[index + 2 :])
    return path


def _leaf(kind: Kind, path: tuple[str, ...], *, depth: int) -> JsonObject | _Unknown:
    """Return the schema of a value that is a number, or true or false.

    Args:
        kind: The kind of document.
        path: The path as the document spells it.
        depth: How many names of the path the user did not write.
    """
    node = _schema(kind)
    for index, name in enumerate(path):
        known = _names_below(node, path[:index])
        below = _below(kind, node, name)
        if below is None or (known and name not in known):
            at = ".".join(path[max(depth, 0) : index])
            return _Unknown(index - depth, f"there is no {name!r} in {at}", known)
        node = below
    if node.get("type") not in ("number", "integer", "boolean"):
        below_names = _names_below(node, path)
        problem = f"{path[-1]!r} is neither a number nor true or false"
        return _Unknown(len(path) - depth, problem, below_names)
    return node


@cache
def _schema(kind: Kind) -> JsonObject:
    return _MODELS[kind].model_json_schema(by_alias=True)


def _plain(kind: Kind, node: JsonObject) -> JsonObject:
    """Return a schema without references, and without the null that it may be instead."""
    while True:
        reference, choices = node.get("$ref"), node.get("anyOf")
        if isinstance(reference, str):
            definitions = _object(_schema(kind).get("$defs"))
            node = _object(definitions[reference.rpartition("/")[2]])
        elif isinstance(choices, list):
            kinds = [_object(choice) for choice in choices]
            node = next(choice for choice in kinds if choice.get("type") != "null")
        else:
            return node


def _below(kind: Kind, node: JsonObject, name: str) -> JsonObject | None:
    """Return the schema of what a name stands for in an object or a list; None for nothing."""
    properties = _object(node.get("properties"))
    if name in properties:
        return _plain(kind, _object(properties[name]))
    if isinstance(node.get("items"), dict):
        element = _plain(kind, _object(node["items"]))
        is_named = "name" in _object(element.get("properties"))
        return element if is_named or name.isdecimal() else None
    for patterned in _object(node.get("patternProperties")).values():
        return _plain(kind, _object(patterned))
    if isinstance(node.get("additionalProperties"), dict):
        return _plain(kind, _object(node["additionalProperties"]))
    return None


def _names_below(node: JsonObject, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return what names are known below a place; none where they depend on tasks."""
    if path[-1:] == ("causes",):
        return CAUSE_GROUPS
    if path[-2:-1] == ("causes",):
        return tuple(CauseKind)
    listed = _object(node.get("propertyNames")).get("enum")
    return tuple(str(name) for name in (listed if isinstance(listed, list) else ())) or tuple(
        _object(node.get("properties"))
    )


def _first_names(kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Return every name that a path may begin with and that leads to a value."""
    names: list[str] = [*CONFIGURATIONS] if "benchmark" in kinds else []
    for kind in kinds:
        for start in _STARTS[kind]:
            node = _schema(kind)
            for name in start:
                node = _below(kind, node, name) or node
            for name, below in _object(node.get("properties")).items():
                if _plain(kind, _object(below)).get("type") not in ("string", "array", None):
                    names.append(name)
    return tuple(dict.fromkeys(names))


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
