"""The cases of durable-kv: which requests each session gets, and how it is ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
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
    """Holds characters beyond ASCII."""
    other_key: str
    value: JsonObject
    steps: tuple[JsonValue, ...]
    """`STEPS` random puts, gets and deletes of these two keys and `SHORT_KEYS`."""


STEPS = 48
SHORT_KEYS = ("", "鍵")
"""Keys of random steps, beside the two that a seed makes."""
LONG_TEXT = "a" * 4096


def material(seed: int) -> Material:
    """Return the keys, the value and the random steps of a seed."""
    draw = random.Random(seed)
    key = f"钥匙-{draw.getrandbits(64):016x}"
    other_key = f"{draw.getrandbits(64):016x}"
    value: JsonObject = {
        "name": "持久",
        "version": draw.randint(1, 9999),
        "tags": ["a", None, 1.5],
    }
    keys = (key, other_key, *SHORT_KEYS)
    steps = tuple(_step(draw, keys, value) for _ in range(STEPS))
    return Material(key=key, other_key=other_key, value=value, steps=steps)


def cases(seed: int) -> tuple[Case, ...]:
    """Return the cases of a seed, in declared order."""
    given = material(seed)
    return tuple(
        Case(id=name, seed=seed, content={"sessions": sessions(given)})
        for name, (_, sessions) in _CASES.items()
    )


def _step(draw: random.Random, keys: tuple[str, ...], value: JsonObject) -> JsonValue:
    key = draw.choice(keys)
    match draw.choice(("put", "get", "delete")):
        case "put":
            values: tuple[JsonValue, ...] = (None, True, draw.randrange(1000), value)
            return _put(key, draw.choice(values))
        case "get":
            return _get(key)
    return _delete(key)


def _session(*requests: JsonValue, end: End = "eof") -> JsonObject:
    return {"requests": list(requests), "end": end}


def _put(key: str, value: JsonValue) -> JsonObject:
    return {"op": "put", "key": key, "value": value}


def _get(key: str) -> JsonObject:
    return {"op": "get", "key": key}


def _delete(key: str) -> JsonObject:
    return {"op": "delete", "key": key}


def _cas(key: str, expected: JsonValue, value: JsonValue) -> JsonObject:
    return {"op": "cas", "key": key, "expected": expected, "value": value}


def _batch(*operations: JsonValue) -> JsonObject:
    return {"op": "batch", "operations": list(operations)}


def _read_write_delete(given: Material) -> list[JsonValue]:
    return [
        _session(
            _get(given.key),
            _put(given.key, given.value),
            _get(given.key),
            _delete(given.key),
            _get(given.key),
            _delete(given.other_key),
        )
    ]


def _json_types_and_overwrite(given: Material) -> list[JsonValue]:
    # One key throughout, and False before 0, so that a value that is taken for another one shows.
    values: list[JsonValue] = [None, False, 0, "", [], {}, LONG_TEXT, given.value]
    requests = (
        request for value in values for request in (_put(given.key, value), _get(given.key))
    )
    return [_session(*requests)]


def _seeded_state_machine(given: Material) -> list[JsonValue]:
    keys = (given.key, given.other_key, *SHORT_KEYS)
    return [_session(*given.steps, *map(_get, keys))]


def _reject_and_continue(given: Material) -> list[JsonValue]:
    return [
        _session(
            _put(given.key, given.value),
            None,
            [],
            {"op": "increment", "key": given.key},
            {"op": "put", "key": 5, "value": "lost"},
            {"op": "put", "key": given.key},
            {"op": "cas", "key": given.key, "value": "lost"},
            {"op": "get", "key": [given.key]},
            {"op": "delete", "key": {"key": given.key}},
            _get(given.key),
        )
    ]


def _empty_and_unicode_keys(given: Material) -> list[JsonValue]:
    return [
        _session(
            _put("", "of the empty key"),
            _get(""),
            _put(given.key, given.value),
            _get(given.key),
        )
    ]


def _commit_batch(given: Material) -> list[JsonValue]:
    return [
        _session(
            _batch(_put(given.key, given.value), _put(given.other_key, 17), _delete(given.key)),
            _get(given.key),
            _get(given.other_key),
            _batch(),
        )
    ]


def _rollback_batch(given: Material) -> list[JsonValue]:
    # What is valid stands on both sides of what is not: neither may be done.
    no_value: JsonObject = {"op": "put", "key": given.other_key}
    return [
        _session(
            _put(given.key, given.value),
            _batch(_put(given.key, "lost"), no_value, _put(given.other_key, "lost")),
            _get(given.key),
            _get(given.other_key),
            _batch(_delete(given.key), _batch()),
            _get(given.key),
            {"op": "batch", "operations": "delete"},
        )
    ]


def _cas_match_and_mismatch(given: Material) -> list[JsonValue]:
    swapped: JsonObject = {**given.value, "swapped": True}
    return [
        _session(
            _put(given.key, given.value),
            _cas(given.key, {"version": 0}, "lost"),
            _get(given.key),
            _cas(given.key, given.value, swapped),
            _get(given.key),
            _cas(given.other_key, None, "lost"),
            _get(given.other_key),
        )
    ]


def _cas_type_sensitivity(given: Material) -> list[JsonValue]:
    return [
        _session(
            _put(given.key, True),
            _cas(given.key, 1, "lost"),
            _get(given.key),
            _cas(given.key, True, None),
            _get(given.key),
        )
    ]


def _restart_preserves_acknowledged_write(given: Material) -> list[JsonValue]:
    return [
        _session(_put(given.key, given.value)),
        _session(_get(given.key), _delete(given.key)),
        _session(_get(given.key)),
    ]


def _restart_preserves_transaction(given: Material) -> list[JsonValue]:
    return [
        _session(_batch(_put(given.key, given.value), _put(given.other_key, [None]))),
        _session(_get(given.key), _get(given.other_key)),
    ]


def _restart_preserves_cas(given: Material) -> list[JsonValue]:
    return [
        _session(_put(given.key, given.value), _cas(given.key, given.value, 321)),
        _session(_get(given.key)),
    ]


def _sigkill_after_acknowledgement(given: Material) -> list[JsonValue]:
    return [
        _session(_put(given.key, given.value), end="kill"),
        _session(_get(given.key)),
    ]


def _sigkill_after_atomic_batch(given: Material) -> list[JsonValue]:
    return [
        _session(_batch(_put(given.key, given.value), _put(given.other_key, "")), end="kill"),
        _session(_get(given.key), _get(given.other_key)),
    ]


def _sigkill_after_delete(given: Material) -> list[JsonValue]:
    return [
        _session(_put(given.key, given.value)),
        _session(_delete(given.key), end="kill"),
        _session(_get(given.key)),
    ]


_CASES: Mapping[str, tuple[str, Callable[[Material], list[JsonValue]]]] = {
    "read-write-delete": ("basic", _read_write_delete),
    "json-types-and-overwrite": ("basic", _json_types_and_overwrite),
    "seeded-state-machine": ("basic", _seeded_state_machine),
    "reject-and-continue": ("validation", _reject_and_continue),
    "empty-and-unicode-keys": ("validation", _empty_and_unicode_keys),
    "commit-batch": ("transactions", _commit_batch),
    "rollback-batch": ("transactions", _rollback_batch),
    "cas-match-and-mismatch": ("compare_swap", _cas_match_and_mismatch),
    "cas-type-sensitivity": ("compare_swap", _cas_type_sensitivity),
    "restart-preserves-acknowledged-write": ("persistence", _restart_preserves_acknowledged_write),
    "restart-preserves-transaction": ("persistence", _restart_preserves_transaction),
    "restart-preserves-cas": ("persistence", _restart_preserves_cas),
    "sigkill-after-acknowledgement": ("crash_recovery", _sigkill_after_acknowledgement),
    "sigkill-after-atomic-batch": ("crash_recovery", _sigkill_after_atomic_batch),
    "sigkill-after-delete": ("crash_recovery", _sigkill_after_delete),
}

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    name: (dimension,) for name, (dimension, _) in _CASES.items()
}
"""The one dimension that each case judges."""
