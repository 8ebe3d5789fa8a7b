"""The cases of support-routing: two tickets, which of them to work on, and what fails once."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, cast

from pytest_evalarc.grading.pack import Case
from pytest_evalarc.model.base import JsonObject

CATEGORIES = ("billing", "technical", "account")

Moment: TypeAlias = Literal["before_commit", "after_commit"]


class Ticket(TypedDict):
    """A ticket as the service keeps it and as `get_ticket` shows it."""

    category: str
    queue: str
    resolved: bool
    status: str
    notes: list[str]


class Disturbance(TypedDict):
    """The one call that answers `temporarily_unavailable`: the first valid one of a tool."""

    tool: str
    moment: Moment
    """Whether the write is then still to be made, or has been made already."""


class Content(TypedDict):
    """All that a case is: the state it begins with, what is asked, and what goes wrong."""

    target: str
    tickets: dict[str, Ticket]
    routing_rules: dict[str, str]
    note: str
    disturbance: Disturbance | None


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """What is the same for every seed."""

    resolved: bool
    disturbance: Disturbance | None = None


_SHAPES: Mapping[str, _Shape] = {
    "route-open-ticket": _Shape(resolved=False),
    "close-resolved-ticket": _Shape(resolved=True),
    "retry-before-commit": _Shape(
        resolved=False, disturbance={"tool": "assign_queue", "moment": "before_commit"}
    ),
    "retry-after-commit": _Shape(
        resolved=True, disturbance={"tool": "add_note", "moment": "after_commit"}
    ),
}

CASES: Sequence[str] = tuple(_SHAPES)
"""Their names, in declared order."""


def cases(seed: int) -> tuple[Case, ...]:
    """Return the cases of a seed, in declared order."""
    draw = random.Random(seed)
    return tuple(
        Case(id=name, seed=seed, content=cast("JsonObject", _content(draw, index, shape)))
        for index, (name, shape) in enumerate(_SHAPES.items())
    )


def _content(draw: random.Random, index: int, shape: _Shape) -> Content:
    target, other = f"T-{draw.getrandbits(32):08x}", f"U-{draw.getrandbits(32):08x}"
    # Unlike in category and in `resolved`: whoever reads the wrong ticket then does the wrong work.
    category, other_category = draw.sample(CATEGORIES, 2)
    tickets = [
        (target, _ticket(category, resolved=shape.resolved, note="The customer wrote to us.")),
        (other, _ticket(other_category, resolved=not shape.resolved, note="Somebody else's.")),
    ]
    draw.shuffle(tickets)
    queues = [f"queue-{index}-{number}" for number in range(len(CATEGORIES))]
    draw.shuffle(queues)
    return {
        "target": target,
        "tickets": dict(tickets),
        "routing_rules": dict(zip(CATEGORIES, queues, strict=True)),
        "note": f"Ticket {target} was routed by the rules of the desk.",
        "disturbance": shape.disturbance,
    }


def _ticket(category: str, *, resolved: bool, note: str) -> Ticket:
    return {
        "category": category,
        "queue": "inbox",
        "resolved": resolved,
        "status": "open",
        "notes": [note],
    }
