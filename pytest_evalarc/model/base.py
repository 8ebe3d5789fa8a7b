"""What every schema shares: frozen, strict about keys, and honest about numbers."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from pytest_evalarc.model.plain import SCHEMA_VERSION, Name, Sha256

__all__ = [
    "SCHEMA_VERSION",
    "Cause",
    "Count",
    "Fraction",
    "JsonObject",
    "Model",
    "Name",
    "Sha256",
]

Fraction: TypeAlias = Annotated[float, Field(ge=0.0, le=1.0)]
"""A rate or a score, within [0, 1]."""

Count: TypeAlias = Annotated[int, Field(ge=0)]

JsonObject: TypeAlias = dict[str, JsonValue]


class Model(BaseModel):
    """Base of all schemas: frozen, no unknown key, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        # A process needs the schemas of few documents whole, and each is built when it is first
        # used: with the docstrings left to `cli.schemas`, importing them all takes half the time.
        defer_build=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    def to_json(self) -> JsonValue:
        """Return plain JSON data: keys by alias, null where nothing is known."""
        data: JsonValue = self.model_dump(mode="json", by_alias=True)
        return data


class Cause(Model):
    """Why an outcome is what it is: a word to count by, and a sentence to read."""

    kind: Name
    """The word that reports count by, as `timeout` or `worker_crash`."""
    detail: str = ""
    """A sentence for a person; foreign text in it is already made safe to print."""
