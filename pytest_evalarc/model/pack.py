"""What a pack declares of itself, its cases' content left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_evalarc.model.task import Limits, Mutant


@dataclass(frozen=True, kw_only=True)
class Language:
    """How candidates in one language are started."""

    toolchain: str
    """Whose interpreter runs them, as `python`."""
    command: tuple[str, ...]
    """Template of the command: `{python}` or `{node}`, `{workspace}` and `{state}` are filled in.
    A candidate's own `evalarc.toml` may name another."""


@dataclass(frozen=True, kw_only=True)
class PackInfo:
    """What a pack is: its dimensions, its cases by name, its declared faults, its languages."""

    name: str
    version: str
    domain: str
    split: Literal["public-development", "private"] = "public-development"
    """Whether candidates may have seen the cases, which all that ships here can be."""
    code: Path
    """Folder with everything that decides a verdict; part of a task's identity, and denied to
    every candidate."""
    prompt: str
    """What a candidate is asked."""
    weights: Mapping[str, float]
    """Share of each dimension; sums to 1."""
    cases: Mapping[str, tuple[str, ...]]
    """Dimensions that each case judges, in order of the cases."""
    mutants: Sequence[Mutant]
    """Declared faults by name and target; the pack makes each in every language."""
    languages: Mapping[str, Language]
    """By name, as `python` and `javascript`; the first is the default."""
    limits: Limits = Limits(  # noqa: RUF009 - a frozen value
        memory_mib=256, processes=64, cpus=1.0, tmp_mib=16, output_mib=1, disk_mib=256
    )
    """What a candidate's process may use, where a task says nothing else."""
    request_bytes: int = 8192
    """Largest request line, newline included."""
