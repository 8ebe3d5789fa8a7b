"""What an API sends: a whole answer, or a stream of events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class Event(NamedTuple):
    """A server-sent event, whose data repeats its name."""

    name: str
    data: Mapping[str, Any]

    def encoded(self) -> bytes:
        """Return its lines."""
        data = json.dumps({"type": self.name, **self.data})
        return f"event: {self.name}\ndata: {data}\n\n".encode()


def pieces(text: str, size: int = 64) -> list[str]:
    """Return a text in the pieces of which a stream sends one at a time; at least one."""
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]
