"""What schemas and plain data share, without pydantic: who only collects has no schema to wait for.

What stays inside a process is a frozen dataclass. One that is also a part of documents is read and
written by the schema around it, which finds here how strict to be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeAlias

SCHEMA_VERSION = "1.0"
"""Version of every whole document; the first number changes when a reader would break."""

NAME_PATTERN = r"^[A-Za-z0-9_+-]+$"
MOST_CHARACTERS = 100
"""Of a name."""

PART_OF_DOCUMENTS = {
    "extra": "forbid",
    "allow_inf_nan": False,
    "revalidate_instances": "always",
}
"""The `__pydantic_config__` of a dataclass that is a field of schemas: as strict as they are.

A dataclass checks little when it is made, so it is checked when it becomes a part of a document.
"""


class Constraint:
    """What a document demands of a field, in the words of pydantic's core (`gt`, `pattern`)."""

    def __init__(self, **demands: Any) -> None:  # noqa: ANN401 - as many types as words
        self._demands = demands

    def __get_pydantic_core_schema__(
        self,
        source: Any,  # noqa: ANN401 - pydantic hands over any type
        handler: Callable[[Any], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the schema of the type with the demands; pydantic asks, and so is there."""
        return {**handler(source), **self._demands}


Name: TypeAlias = Annotated[
    str, Constraint(pattern=NAME_PATTERN, min_length=1, max_length=MOST_CHARACTERS)
]
"""A name that may stand in a node id, a folder and a JSON key alike."""

Sha256: TypeAlias = Annotated[str, Constraint(pattern=r"^[0-9a-f]{64}$")]


def is_name(value: str) -> bool:
    """Whether a string may stand in a node id, a folder and a JSON key alike."""
    # `$` alone would also match before a newline at the end.
    return len(value) <= MOST_CHARACTERS and re.fullmatch(NAME_PATTERN, value) is not None


def require_names(*values: str) -> None:
    """Refuse what is no name, as a pack may declare: its code is checked by no task file.

    Raises:
        ValueError: Tells the first that is none.
    """
    for value in values:
        if not is_name(value):
            raise ValueError(f"{value!r} is not a name")


def require_positive(values: Iterable[float]) -> None:
    """Refuse a bound that is none.

    Raises:
        ValueError: One is not finite, or not above 0.
    """
    for value in values:
        if not 0 < value < math.inf:
            raise ValueError(f"{value!r} is not a finite number above 0")
