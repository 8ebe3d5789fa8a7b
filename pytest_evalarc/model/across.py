"""What measurements must share unless a comparison is about it; without pydantic, for options."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, tuple[str, ...]] = {
    "task": ("task",),
    "client": ("client_version",),
    "model": ("model", "settings", "served"),
    "treatment": ("treatment",),
    "isolation": ("isolation",),
    "seeds": ("seeds",),
    "mode": ("mode",),
}
"""Which fields of `MeasuredConditions` a word stands for; `client` is the client's label too."""

ACROSS = tuple(FIELDS)
"""What may be allowed to differ: it is then what the comparison is about."""
