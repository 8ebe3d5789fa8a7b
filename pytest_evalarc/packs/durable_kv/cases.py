"""The cases of durable-kv: which requests each session gets, and how it is ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

from pydantic import JsonValue

from pytest_evalarc.grading.pack import Case
from pytest_evalarc.model.base import JsonObject

End: TypeAlias = Literal["eof", "kill"]


class Script(TypedDict):
    """One session of a case."""

    requests: list[JsonValue]
    end: End


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a seed varies."""

    key: str
    other_key: str
    value: JsonObject


def material(seed: int) -> Material:
    """Return the keys and the value of a seed."""
    draw = random.Random(seed)
    return Material(
        key=f"钥匙-{draw.getrandbits(64):016x}",
        other_key=f"{draw.getrandbits(64):016x}",
        value={"name": "持久", "version": draw.randint(1, 9999), "tags": ["a", None, 1.5]},
    )


def cases(seed: int) -> tuple[Case, ...]:
    """Return the cases of a seed, in declared order."""
    varied = material(seed)
    return tuple(
        Case(id=name, seed=seed, content={"sessions": [dict(s) for s in sessions(varied)]})  # type: ignore[arg-type]  # a TypedDict of JSON values
        for name, (_, sessions) in _CASES.items()
    )


def _session(*requests: JsonValue, end: End = "eof") -> Script:
    return {"requests": list(requests), "end": end}


def _get(key: str) -> JsonObject:
    return {"op": "get", "key": key}


def _put(key: str, value: JsonValue) -> JsonObject:
    return {"op": "put", "key": key, "value": value}


def _cas(key: str, expected: JsonValue, value: JsonValue) -> JsonObject:
    return {"op": "cas", "key": key, "expected": expected, "value": value}


def _cas_match_and_mismatch(given: Material) -> list[Script]:
    swapped = {**given.value, "swapped": True}
    return [
        _session(
            _put(given.key, given.value),
            _cas(given.key, {"version": 0}, "lost"),
            _get(given.key),
            _cas(given.key, given.value, swapped),
            _get(given.key),
            _cas(given.other_key, None, "made"),
            _get(given.other_key),
        )
    ]


def _cas_type_sensitivity(given: Material) -> list[Script]:
    return [
        _session(
            _put(given.key, True),
            _cas(given.key, 1, "lost"),
            _get(given.key),
            _cas(given.key, True, None),
            _get(given.key),
        )
    ]


def _restart_preserves_acknowledged_write(given: Material) -> list[Script]:
    return [
        _session(_put(given.key, given.value)),
        _session(_get(given.key), {"op": "delete", "key": given.key}),
        _session(_get(given.key)),
    ]


def _sigkill_after_acknowledgement(given: Material) -> list[Script]:
    return [
        _session(_put(given.key, given.value), end="kill"),
        _session(_get(given.key)),
    ]


_CASES: Mapping[str, tuple[str, Callable[[Material], Sequence[Script]]]] = {
    "cas-match-and-mismatch": ("compare_swap", _cas_match_and_mismatch),
    "cas-type-sensitivity": ("compare_swap", _cas_type_sensitivity),
    "restart-preserves-acknowledged-write": (
        "persistence",
        _restart_preserves_acknowledged_write,
    ),
    "sigkill-after-acknowledgement": ("crash_recovery", _sigkill_after_acknowledgement),
}

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    name: (dimension,) for name, (dimension, _) in _CASES.items()
}
"""The one dimension that each case judges."""
