"""What the service must answer: a dictionary on the host that nothing ever restarts."""

from __future__ import annotations

from pydantic import JsonValue

from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.base import JsonObject


class Oracle:
    """The state that acknowledged requests leave, and the one right reply to each."""

    def __init__(self) -> None:
        self._values: dict[str, JsonValue] = {}

    def answer(self, request: JsonValue) -> JsonObject:
        """Apply a request and return the reply; an invalid one changes nothing."""
        match request:
            case {"op": "get", "key": str(key)}:
                return self._found(key)
            case {"op": "cas", "key": str(key), "expected": expected, "value": value}:
                return {"ok": True, "swapped": self._swap(key, expected, value)}
            case {"op": "batch", "operations": list(operations)} if all(map(_is_write, operations)):
                for operation in operations:
                    self._write(operation)
                return {"ok": True}
            case _ if _is_write(request):
                self._write(request)
                return {"ok": True}
        return {"ok": False, "error": "invalid_request"}

    def _found(self, key: str) -> JsonObject:
        if key not in self._values:
            return {"ok": True, "found": False}
        return {"ok": True, "found": True, "value": self._values[key]}

    def _swap(self, key: str, expected: JsonValue, value: JsonValue) -> bool:
        # Python holds True and 1 for equal; two values are the same when they are spelt the same.
        swaps = key in self._values and canonical(self._values[key]) == canonical(expected)
        if swaps:
            self._values[key] = value
        return swaps

    def _write(self, request: JsonValue) -> None:
        match request:
            case {"op": "put", "key": str(key), "value": value}:
                self._values[key] = value
            case {"op": "delete", "key": str(key)}:
                self._values.pop(key, None)


def _is_write(request: JsonValue) -> bool:
    match request:
        case {"op": "put", "key": str(), "value": _} | {"op": "delete", "key": str()}:
            return True
    return False
