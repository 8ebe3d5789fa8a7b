"""What a comparison of batches and audits looks at, small enough to be kept in a repository."""

from __future__ import annotations

from typing import Literal

from pytest_evalarc.model.base import Count, Fraction, JsonObject, Model, Name, Sha256

Part = Literal["success", "step", "check", "expectation", "control"]
"""What a row counts: whole trials, a build step, a check, an expectation, or a control."""


class MeasuredConditions(Model):
    """What two measurements must share to be compared; None where it is not known."""

    task: str | None = None
    """The task's content hash. Audits may differ in it: the checks are what they judge."""
    seeds: tuple[int, ...] = ()
    """Of a pack."""
    client_version: str | None = None
    """As `2.1.3`, or `2.1.3 + 2.1.4` when trials met several; None for an audit."""
    model: str | None = None
    """What the client was told to use."""
    settings: JsonObject = {}
    """Of the model."""
    served: tuple[str, ...] = ()
    """Models that answered."""
    treatment: Name | None = None
    isolation: str | None = None
    """The level that everything ran at; only `enforced` is compared."""
    mode: Literal["full", "fast"] | None = None
    """Of an audit: a fast one sees fewer of the cases that a margin counts."""


class MeasuredRow(Model):
    """How often one thing passed."""

    configuration: Name | None
    """None in an audit."""
    part: Part
    name: str
    """As `build`, `settings_persist`, `used-tables`, or `<case>.<dimension>` of a pack."""
    passed: Count
    judged: Count
    """Trials with a verdict; 0 says that nothing is known."""
    margin: Count | None = None
    """Of a mutant: distinct cases that caught it in its target dimension."""
    fault_sha256: Sha256 | None = None
    """Of a mutant: only the same fault is compared."""
    pass_rate: Fraction | None = None
    """`passed` over `judged`, rounded to 8 decimals, once accepted; None where `judged` is 0."""


class Measured(Model):
    """One task measured once: its trials with one client, or its audit."""

    schema_version: str
    kind: Literal["trials", "audit", "imported"]
    """`imported`: another program's results, which say less of how they came to be."""
    task: str
    client: str | None
    """None for an audit."""
    batch: str
    selection: Literal["complete", "partial"]
    conditions: MeasuredConditions
    rows: tuple[MeasuredRow, ...]
    content_sha256: Sha256 | None = None
    """Of all other keys as JSON, once accepted, so that an edit by hand is noticed."""
