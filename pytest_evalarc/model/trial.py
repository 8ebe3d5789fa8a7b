"""A planned trial and what became of it: plan.json and result.json."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from pytest_evalarc.model.base import Cause, JsonObject, Model, Name, Sha256
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.isolation import TrialIsolation
from pytest_evalarc.model.planned import Execution, Outcome, PlannedTrial
from pytest_evalarc.model.task import Deadlines, TaskRef
from pytest_evalarc.model.transcript import Load, Usage

Verdict = Literal["pass", "fail", "inconclusive"]


class PlanDoc(Model):
    """plan.json: every planned trial, written before the first one starts."""

    schema_version: str
    batch: Name
    task: TaskRef
    client: Name
    """The client's label."""
    client_kind: Name
    """The built-in or registered client behind the label."""
    model: str | None = None
    settings: JsonObject = {}
    command: tuple[str, ...] = ()
    """What starts the client; empty is the client's own choice."""
    key_env: tuple[str, ...] = ()
    """The variables that carry the client's credentials; empty is the client's own choice."""
    treatment: Name | None = None
    deadlines_secs: Deadlines
    sandbox: Name
    """What the task's submissions are judged in."""
    session_sandbox: Name
    """What the client's sessions run in; never an image."""
    image: str | None = None
    """What candidates of packs run in, as it was named; None for a sandbox without images."""
    trials: tuple[PlannedTrial, ...]

    @property
    def configurations(self) -> tuple[str, ...]:
        """Configurations in the order of the first round."""
        return tuple(dict.fromkeys(trial.configuration for trial in self.trials))


class Versioned(Model):
    """A program as it was used: name, version, digest."""

    name: Name
    version: str | None = None
    sha256: Sha256 | None = None


class ModelRef(Model):
    """The model that a client was told to use, with its settings."""

    name: str | None = None
    settings: JsonObject = {}
    served: tuple[str, ...] = ()
    """Models that answered, as the client reports them."""


class SymposiumRef(Model):
    """The cargo-agents under evaluation."""

    version: str
    sha256: Sha256
    revision: str | None = None


class TreatmentRef(Model):
    """What a treatment configuration offered, by name and digest."""

    name: Name
    digest: Sha256


class SandboxRef(Model):
    """The sandbox of the client session."""

    name: Name
    version: str | None = None
    sha256: Sha256 | None = None
    limits: dict[str, str | None] = {}
    """Each limit by what enforces it; None is not enforced."""


class Decision(Model):
    """One expectation, decided."""

    name: str
    """As `installed-<skill>` or `not_used-<skill>`: the name of its item."""
    verdict: Verdict | None
    """None: nothing in this configuration decides it, so it is not judged."""
    rests_on: tuple[str, ...]
    """The observations that the verdict follows from, each a sentence."""


class SkillFacts(Model):
    """What is known of one skill; the keys of expectations that were not set stay absent."""

    installed: Verdict | None = None
    not_installed: Verdict | None = None
    used: Verdict | None = None
    not_used: Verdict | None = None
    observed_load: Load


class SyncFacts(Model):
    """How the treatment came to be in place; null where a treatment has no such step."""

    skill_dir_empty_before: Verdict | None = None
    session_start: Verdict | None = None
    sync_recorded: Verdict | None = None


class Expectations(Model):
    """Expectations of a treatment configuration, decided from evidence."""

    skills: dict[Name, SkillFacts] = {}
    hooks: dict[Name, Verdict | None] = {}
    sync: SyncFacts = SyncFacts()
    decisions: tuple[Decision, ...] = ()


class TrialResult(Model):
    """result.json: one finished trial, with all that its outcome rests on."""

    schema_version: str
    task: TaskRef
    client: Versioned
    model: ModelRef
    mode: Name
    """The trial's configuration."""
    trial: Annotated[int, Field(ge=1)]
    order: Annotated[int, Field(ge=1)]
    symposium: SymposiumRef | None = None
    treatment: TreatmentRef | None = None
    os: str
    toolchain: str | None = None
    sandbox: SandboxRef | None = None
    started_at: datetime | None = None
    deadlines_secs: Deadlines
    elapsed_secs: Annotated[float, Field(ge=0.0)] | None = None
    """Wall-clock seconds of the client session alone, without set-up and grading."""
    usage: Usage | None = None
    execution: Execution
    fault: Cause | None = None
    """What kept the session from its end, as its client tells: a model API that could not be
    reached is told apart from an agent that failed."""
    isolation: TrialIsolation
    code: dict[str, JsonValue] | None = None
    """The reference's flat keys: a view of the last grading."""
    gradings: tuple[Grading, ...] = ()
    expectations: Expectations | None = None
    """None in a configuration without treatment."""
    redacted_files: tuple[str, ...] = ()
    stages_secs: dict[Name, float] = {}
    """Wall-clock seconds of each stage, as `prepare`, `session`, `grade`."""
    outcome: Outcome
    cause: Cause | None = None
    success: Verdict | None = None

    @model_validator(mode="after")
    def _outcome_has_cause(self) -> Self:
        told = self.outcome in (Outcome.SUCCEEDED, Outcome.INCONCLUSIVE)
        if self.cause is None and not told:
            raise ValueError(f"outcome {self.outcome} needs a cause")
        return self
