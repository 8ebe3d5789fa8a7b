"""Gates: what the documents of a run must say, as `success_rate>=0.8 and mutation_score==1`.

A gate is one condition or several joined by `and`. A condition names a value by its dotted path and
compares it with a number, or is the bare path of a value that is true or false.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pytest_evalarc.counting.gate_names import TREATED, Asked, Kind, resolved
from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.model.base import JsonObject

Status: TypeAlias = Literal["held", "failed", "not decidable"]

OPTION = "--evalarc-gate"
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
TRUTH = {"true": True, "false": False}

_MISSING: Mapping[Kind, str] = {
    "benchmark": "no trials were run",
    "audit": "no audit was made",
    "evaluation": "no submission was evaluated",
    "summary": "no summary of trials was written",
    "summary row": "no summary of trials was written",
}
_PARTIAL: Mapping[Kind, str] = {
    "audit": "the audit is partial: not every control was graded",
}
_PARTIAL_TRIALS = "the trials are partial: not every planned one reached its end"

_CONDITION = re.compile(r"(?P<path>[\w+.-]*[\w+])\s*(?P<rest>.*)", re.ASCII | re.DOTALL)
_COMPARISON = re.compile(r"(?P<operator>[^\w\s.+-]+)\s*(?P<value>.*)", re.ASCII | re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One comparison of a gate."""

    text: str
    asked: tuple[Asked, ...]
    """Every kind that has such a value; at least one."""
    operator: str
    value: float | bool

    def holds(self, found: float | bool) -> bool:
        """Whether a value that was found meets the condition."""
        return OPERATORS[self.operator](found, self.value)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """An expression: all its conditions must hold in every document that they are asked of."""

    text: str
    conditions: tuple[Condition, ...]

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of documents that any of its conditions are asked of."""
        return frozenset(asked.kind for each in self.conditions for asked in each.asked)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document as a gate sees it."""

    kind: Kind
    subject: str
    """What it is of, for a person, as `hello with claude`."""
    where: str
    """Its path, as it is to be shown."""
    data: JsonObject


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one document says to one condition, or that none says anything."""

    condition: str
    status: Status
    value: float | bool | None = None
    subject: str = ""
    """Empty where no document answers."""
    where: str = ""
    reason: str = ""
    """Why it cannot be decided; empty where it could."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A gate, decided."""

    gate: str
    answers: tuple[Answer, ...]
    """By condition, and by document in each; at least one."""

    @property
    def status(self) -> Status:
        """`held` only if every answer is; a gate that failed anywhere has failed."""
        found = {answer.status for answer in self.answers}
        order: tuple[Status, ...] = ("failed", "not decidable", "held")
        return next(status for status in order if status in found)


# Reading.


def parse_gate(text: str) -> Gate:
    """Return the gate that an expression writes down.

    Raises:
        UsageError: It names what no document has, compares with what is no value of it, or is no
            expression; with the nearest known name.
    """
    where = f"{OPTION} {text!r}"
    parts = re.split(r"\s+and\s+", text.strip()) if text.strip() else []
    if not parts:
        hint = "write a condition, as success_rate>=0.8"
        raise UsageError(where, "is empty", hint)
    return Gate(text=text.strip(), conditions=tuple(_condition(part, where) for part in parts))


def _condition(text: str, where: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        hint = "begin with a name, as in success_rate>=0.8"
        raise UsageError(where, f"{text!r} is no condition", hint)
    name, rest = found["path"], found["rest"]
    asked, leaf = resolved(name, where)
    if not rest:
        if leaf["type"] != "boolean":
            hint = f"compare it, as {name}>={_example(leaf)}"
            raise UsageError(where, f"{name} is a number and compared with nothing", hint)
        return Condition(text=text, asked=asked, operator="==", value=True)
    compared = _COMPARISON.fullmatch(rest)
    sign = compared["operator"] if compared else rest.split()[0]
    if compared is None or sign not in OPERATORS:
        hint = nearest(sign, tuple(OPERATORS))
        raise UsageError(where, f"there is no operator {sign!r}", hint)
    value = _value(compared["value"].strip(), name, leaf, where)
    if isinstance(value, bool) and sign not in ("==", "!="):
        hint = f"write {name}=={str(value).lower()}"
        raise UsageError(where, f"{name} is true or false, and neither is more", hint)
    return Condition(text=text, asked=asked, operator=sign, value=value)


def _value(text: str, name: str, leaf: JsonObject, where: str) -> float | bool:
    if leaf["type"] == "boolean":
        if text not in TRUTH:
            problem = f"{name} is true or false, and is compared with {text!r}"
            raise UsageError(where, problem, "compare it with true or false")
        return TRUTH[text]
    if not _NUMBER.fullmatch(text) or not math.isfinite(value := float(text)):
        found = f"{text!r}, which is no number" if text else "nothing"
        problem = f"{name} is compared with {found}"
        raise UsageError(where, problem, "join conditions by `and`")
    low, high = leaf.get("minimum"), leaf.get("maximum")
    too_low = isinstance(low, (int, float)) and value < low
    too_high = isinstance(high, (int, float)) and value > high
    if too_low or too_high:
        bounds = f"within {low:g} and {high:g}" if high is not None else f"{low:g} or more"
        problem = f"{name} is {bounds}, so comparing it with {text} decides nothing"
        raise UsageError(where, problem, "a rate is a fraction: 80 % is 0.8" if too_high else "")
    return value


def _example(leaf: JsonObject) -> str:
    return "1" if leaf["type"] == "integer" else "0.8"


# Deciding.


def decide(gate: Gate, documents: Sequence[Document]) -> Decision:
    """Return what the documents of a run say to a gate.

    Args:
        gate: The gate.
        documents: All documents of the run; each is asked for what its kind has.

    Returns:
        One answer for each condition and document of a kind that it is asked of; a condition that
        no document answers is not decidable.
    """
    answers: list[Answer] = []
    for condition in gate.conditions:
        found = [
            _answer(condition, asked, document)
            for asked in condition.asked
            for document in documents
            if document.kind == asked.kind
        ]
        answers += found or [_unanswered(condition)]
    return Decision(gate=gate.text, answers=tuple(answers))


def is_asked(gate: Gate, documents: Sequence[Document]) -> bool:
    """Whether any of the documents is of a kind that the gate is about."""
    return any(document.kind in gate.kinds for document in documents)


def _unanswered(condition: Condition) -> Answer:
    reasons = " and ".join(_MISSING[asked.kind] for asked in condition.asked)
    reason = f"no document answers it: {reasons}"
    return Answer(condition=condition.text, status="not decidable", reason=reason)


def _answer(condition: Condition, asked: Asked, document: Document) -> Answer:
    reason = _refused(document)
    value = None if reason else _found(document, asked.path)
    status: Status = "not decidable"
    if isinstance(value, (bool, int, float)):
        status = "held" if condition.holds(value) else "failed"
    elif isinstance(value, str):
        reason = value
    return Answer(
        condition=condition.text,
        status=status,
        value=value if isinstance(value, (bool, int, float)) else None,
        subject=document.subject,
        where=document.where,
        reason=reason,
    )


def _refused(document: Document) -> str:
    """Return why a whole document decides nothing; empty where it does."""
    if document.data.get("selection") == "partial":
        shard = _object(document.data.get("shard"))
        if shard.get("of", 1) != 1:
            told = f"{shard.get('number')}/{shard.get('of')}"
            return f"the trials are those of shard {told}: merge the shards, and ask then"
        return _PARTIAL.get(document.kind, _PARTIAL_TRIALS)
    if document.kind == "evaluation" and document.data.get("valid") is False:
        return "the harness broke while it graded"
    return ""


def _found(document: Document, path: tuple[str, ...]) -> float | bool | str:
    """Return the value at a path, or in words why there is none."""
    node: object = document.data
    for index, name in enumerate(path):
        if node is None:
            break
        if path[index - 1 : index] == ("configurations",):
            name = _configuration(_object(node), name)  # noqa: PLW2901 - as the document spells it
        below = _element(node, name) if isinstance(node, list) else _object(node).get(name, ...)
        if below is ...:
            return _absent(path, index, node)
        node = below
    if isinstance(node, (bool, int, float)):
        return node
    return f"it is null: {_why_null(document, path)}"


def _element(elements: Sequence[object], name: str) -> object:
    for element in elements:
        if _object(element).get("name") == name:
            return element
    is_there = name.isdecimal() and int(name) < len(elements)
    return elements[int(name)] if is_there else ...


def _configuration(configurations: JsonObject, name: str) -> str:
    """Return a configuration as the document calls it; the given name when there is none."""
    treated = [key for key in configurations if key.startswith("with-")]
    untreated = [key for key in configurations if key.startswith("without-")]
    noise = [key for key in ("noise",) if key in configurations]
    baseline = [key for key in ("baseline",) if key in configurations]
    chosen = {
        TREATED: treated or noise or baseline,
        "with": treated,
        "without": untreated,
    }.get(name)
    return chosen[0] if chosen else name


def _absent(path: tuple[str, ...], index: int, node: object) -> float | str:
    if "causes" in path[:index]:
        # A cause that nobody met is left out of the counts.
        return 0
    name, known = path[index], tuple(_object(node))
    if path[index - 1 : index] == ("configurations",):
        called = "the treatment's configuration" if name == TREATED else f"configuration {name}"
        return f"{called} was not run, only {', '.join(known)}"
    if path[index] == "delta" and index == 0:
        return "the task has no treatment, so there is no delta"
    return f"there is no {name!r}; {nearest(name, known)}".removesuffix("; ")


def _why_null(document: Document, path: tuple[str, ...]) -> str:
    data = document.data
    if document.kind in ("summary", "summary row"):
        why = data.get("reason") or data.get("left_out") or "there is nothing to count"
        return str(why).replace("_", " ")
    if path[0] == "delta":
        told = _object(data.get("delta")).get("reason")
        return str(told or "a configuration has no such value").replace("_", " ")
    if document.kind == "audit":
        return str(data.get("reason") or "it was not assessed").replace("_", " ")
    if path[0] == "configurations":
        configurations = _object(data.get("configurations"))
        counted = _object(configurations.get(_configuration(configurations, path[1])))
        return "no trial is eligible" if counted.get("eligible") == 0 else "no trial tells it"
    return "it was not assessed"


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
