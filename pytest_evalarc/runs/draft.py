"""What is known of a trial while it runs: it becomes a result on every path."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.outcome import code_view, decide_outcome, success_of
from pytest_evalarc.isolation.host import os_name
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.isolation import IsolationRecord, TrialIsolation
from pytest_evalarc.model.planned import Execution, PlannedTrial
from pytest_evalarc.model.transcript import Transcript, Usage
from pytest_evalarc.model.trial import (
    Expectations,
    ModelRef,
    PlanDoc,
    SandboxRef,
    SymposiumRef,
    TreatmentRef,
    TrialResult,
    Versioned,
)
from pytest_evalarc.runs.redaction import Redaction


@dataclass
class Draft:
    """The facts of one trial so far; what nobody has learnt yet is None."""

    plan: PlanDoc
    entry: PlannedTrial
    client: Client
    execution: Execution = Execution.NOT_STARTED
    setup: Cause | None = None
    cancellation: Cause | None = None
    findings: tuple[Cause, ...] = ()
    audit_findings: tuple[str, ...] = ()
    config_changes: tuple[str, ...] = ()
    started_at: datetime | None = None
    elapsed_s: float | None = None
    usage: Usage | None = None
    policy: JsonValue = None
    isolation: IsolationRecord | None = None
    toolchain: str | None = None
    fmt_step: str = "fmt_check"
    treatment: TreatmentRef | None = None
    symposium: SymposiumRef | None = None
    transcript: Transcript | None = None
    fault: Cause | None = None
    grading: Grading | None = None
    expectations: Expectations | None = None
    redaction: Redaction = field(default_factory=Redaction)
    """Strikes the client's secrets out of the result."""
    redacted_files: tuple[str, ...] = ()
    stages_s: dict[str, float] = field(default_factory=dict)

    def strike(self, folder: Path) -> None:
        """Strike the client's secrets out of all that is kept in the result folder."""
        struck = self.redaction.strike(folder)
        self.redacted_files = tuple(sorted({*self.redacted_files, *struck}))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add up the wall-clock seconds of a stage."""
        started_s = time.monotonic()
        try:
            yield
        finally:
            spent_s = time.monotonic() - started_s
            self.stages_s[name] = round(self.stages_s.get(name, 0.0) + spent_s, 6)

    def result(self) -> TrialResult:
        """Return the result that all of this amounts to."""
        outcome, cause = decide_outcome(
            self.execution,
            fault=self.fault,
            setup=self.setup,
            cancellation=self.cancellation,
            findings=self.findings,
            grading=self.grading,
            decisions=self.expectations.decisions if self.expectations else (),
        )
        result = TrialResult(
            schema_version=SCHEMA_VERSION,
            task=self.plan.task,
            client=self._client(),
            model=ModelRef(
                name=self.plan.model,
                settings=self.plan.settings,
                served=self.transcript.models if self.transcript else (),
            ),
            mode=self.entry.configuration,
            trial=self.entry.trial,
            order=self.entry.order,
            symposium=self.symposium,
            treatment=self.treatment,
            os=os_name(),
            toolchain=self.toolchain,
            sandbox=self._sandbox(),
            started_at=self.started_at,
            deadlines_secs=self.plan.deadlines_secs,
            elapsed_secs=self.elapsed_s,
            usage=self.usage,
            execution=self.execution,
            fault=self.fault,
            isolation=TrialIsolation(
                mode=self._level(),
                srt_version=self._srt_version(),
                audit_findings=self.audit_findings,
                findings=self.findings,
                config_changes=self.config_changes,
                record=self.isolation,
                policy=self.policy,
            ),
            code=code_view(self.grading, fmt_step=self.fmt_step) if self.grading else None,
            gradings=(self.grading,) if self.grading else (),
            expectations=self.expectations,
            redacted_files=self.redacted_files,
            stages_secs=self.stages_s,
            outcome=outcome,
            cause=cause,
            success=success_of(outcome),
        )
        return self.redaction.document(result)

    def _client(self) -> Versioned:
        client, said = self.client, self.transcript.client_version if self.transcript else None
        return Versioned(
            name=self.plan.client, version=said or client.version, sha256=client.sha256()
        )

    def _level(self) -> Literal["enforced", "exploratory", "trusted_local"]:
        if self.isolation is not None:
            return self.isolation.level
        # Nothing has run, so this is what was planned.
        if self.plan.session_sandbox == "exploratory":
            return "exploratory"
        return "trusted_local" if self.plan.session_sandbox == "local" else "enforced"

    def _srt_version(self) -> str | None:
        record = self.isolation
        return record.version if record is not None and record.sandbox == "srt" else None

    def _sandbox(self) -> SandboxRef | None:
        record = self.isolation
        if record is None:
            return None
        return SandboxRef(
            name=record.sandbox, version=record.version, sha256=record.sha256, limits=record.limits
        )
