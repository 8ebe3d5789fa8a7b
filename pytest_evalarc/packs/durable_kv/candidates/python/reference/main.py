"""A durable key-value service: a JSON request per line in, a JSON reply per line out.

It is started with the path of its journal, which it makes when there is none.
"""

from __future__ import annotations

import json
import sys

FIELDS: dict[str, set[str]] = {
    "get": set(),
    "put": {"value"},
    "delete": set(),
    "cas": {"expected", "value"},
}
"""What each operation needs beside a key."""
INVALID = {"ok": False, "error": "invalid_request"}


def canonical(value: object) -> str:
    """Return the one spelling of a JSON value, in which true, 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True)


class Store:
    """Values by key, each in its spelling, and the journal from which the next process has them."""

    def __init__(self, path: str) -> None:
        self._entries: dict[str, str] = {}
        # Open as long as the process lives; pathlib would take each start some milliseconds.
        self._journal = open(path, "a+", encoding="ascii")  # noqa: PTH123, SIM115
        self._journal.seek(0)
        for line in self._journal:
            self._apply(json.loads(line))

    def get(self, key: str) -> str | None:
        """Return the spelling of a key's value, or None when it has none."""
        return self._entries.get(canonical(key))

    def write(self, operations: list[dict[str, object]]) -> None:
        """Apply puts and deletes in order; no end of this process undoes them when it returns."""
        self._apply(operations)
        self._journal.write(f"{json.dumps(operations)}\n")
        self._journal.flush()

    def swap(self, key: str, expected: object, value: object) -> bool:
        """Set a key's value if it has the expected one; return whether it did."""
        current = self.get(key)
        swapped = current == canonical(expected)
        if swapped:
            self.write([{"op": "put", "key": key, "value": value}])
        return swapped

    def _apply(self, operations: list[dict[str, object]]) -> None:
        for operation in operations:
            key = canonical(operation["key"])
            if operation["op"] == "put":
                self._entries[key] = canonical(operation["value"])
            else:
                self._entries.pop(key, None)


def is_write(operation: object) -> bool:
    """Whether an operation may stand in a batch."""
    match operation:
        case {"op": "put" | "delete"}:
            return is_valid(operation)
    return False


def is_valid(request: object) -> bool:
    """Whether a request keeps the protocol; fields that nobody asked for do no harm."""
    match request:
        case {"op": "batch", "operations": list(operations)}:
            return all(map(is_write, operations))
        case {"op": str(op), "key": key, **others} if op in FIELDS:
            return isinstance(key, str) and others.keys() >= FIELDS[op]
    return False


def answer(store: Store, request: object) -> dict[str, object]:
    """Apply a request and return its reply; an invalid one changes nothing."""
    if not is_valid(request):
        return INVALID
    match request:
        case {"op": "get", "key": key}:
            found = store.get(key)
            if found is None:
                return {"ok": True, "found": False}
            return {"ok": True, "found": True, "value": json.loads(found)}
        case {"op": "cas", "key": key, "expected": expected, "value": value}:
            return {"ok": True, "swapped": store.swap(key, expected, value)}
        case {"op": "batch", "operations": operations}:
            store.write(operations)
        case dict():
            store.write([request])
    return {"ok": True}


def parsed(line: str) -> object:
    """Return the request of a line; what is no JSON is no valid request either."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def serve(store: Store) -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        print(json.dumps(answer(store, parsed(line))), flush=True)


if __name__ == "__main__":
    serve(Store(sys.argv[1]))
