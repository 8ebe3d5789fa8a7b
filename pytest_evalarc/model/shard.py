"""Which part of a split batch lies in a folder: shard.json."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from pytest_evalarc.model.base import Model, Name
from pytest_evalarc.model.planned import Shard


class ShardDoc(Model):
    """shard.json: says of a batch, or of one of its plans, which part of it lies here."""

    schema_version: str
    batch: Name
    shard: Shard
    """Which part, and how many there are."""

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if self.shard.number > self.shard.of:
            raise ValueError("number is more than of")
        return self
