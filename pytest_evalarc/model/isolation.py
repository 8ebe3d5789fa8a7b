"""What a result says about the boundary it was produced behind."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from pytest_evalarc.model.base import Cause, Model, Name, Sha256


class IsolationRecord(Model):
    """Which sandbox a process ran in, and which limits it really enforced."""

    level: Literal["enforced", "trusted_local", "exploratory"]
    sandbox: Name
    version: str | None = None
    sha256: Sha256 | None = None
    """Digest of the sandbox program."""
    image: str | None = None
    """The name of the image that a container was started from."""
    image_id: str | None = None
    """What that name stood for, as `sha256:` and 64 digits; this is what ran."""
    limits: dict[str, str | None] = {}
    """Each limit by what enforces it, as `cgroup-v1` or `rlimit`; None is not enforced."""

    @property
    def limits_status(self) -> Literal["enforced", "partial"]:
        """Whether every limit is enforced."""
        return "partial" if None in self.limits.values() else "enforced"


class Barrier(Model):
    """One promise of the sandbox, tried from inside."""

    name: Name
    holds: bool
    detail: str = ""


class PreflightDoc(Model):
    """What the preflight saw: every promised barrier, tried once per batch."""

    schema_version: str
    sandbox: Name
    barriers: tuple[Barrier, ...]

    @property
    def broken(self) -> tuple[Barrier, ...]:
        """The promises that did not hold."""
        return tuple(barrier for barrier in self.barriers if not barrier.holds)


class TrialIsolation(Model):
    """The reference's isolation keys of one trial, with our record beside them."""

    mode: Literal["enforced", "exploratory", "trusted_local"]
    srt_version: str | None = None
    audit_findings: tuple[str, ...] = ()
    """Attempts to leave the trial that the transcript shows and that the sandbox refused."""
    findings: tuple[Cause, ...] = ()
    """What voids the isolation, as an escape that a tool result proves: the trial is excluded."""
    config_changes: tuple[str, ...] = ()
    """Client or treatment files that changed between launch and the end of the session."""
    record: IsolationRecord | None = None
    policy: JsonValue = None
