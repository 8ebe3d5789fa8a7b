"""Hands out numbers, each queue by itself, and never one of them twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path

REFUSED = {"ok": False}


def answer(request: object, numbers: dict[str, int]) -> dict[str, object]:
    """Return the reply to a request, and count a number that is taken."""
    if not isinstance(request, dict) or not is_name(queue := request.get("queue")):
        return REFUSED
    if request.get("op") == "take":
        numbers[queue] = numbers.get(queue, 0) + 1
    elif request.get("op") != "last":
        return REFUSED
    return {"ok": True, "number": numbers.get(queue, 0)}


def is_name(value: object) -> bool:
    """Return whether a queue may be called so."""
    return isinstance(value, str) and value != ""


def save(numbers: dict[str, int], path: Path) -> None:
    """Put the numbers where a kill finds either the old ones or the new ones."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(numbers), "utf-8")
    new.replace(path)


path = Path(sys.argv[1])
numbers: dict[str, int] = json.loads(path.read_text("utf-8")) if path.exists() else {}
for line in sys.stdin:
    reply = answer(json.loads(line), numbers)
    save(numbers, path)
    print(json.dumps(reply), flush=True)
