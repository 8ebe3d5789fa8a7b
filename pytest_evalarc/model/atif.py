"""A session in the Agent Trajectory Interchange Format, which other tools view and train on.

The format and its rules are those of Harbor, whose specification is RFC 0001 of
https://github.com/harbor-framework/harbor; what is written here is version 1.7.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from pytest_evalarc.model.base import Count, JsonObject, Model

ATIF_VERSION: Literal["ATIF-v1.7"] = "ATIF-v1.7"

_OF_AGENTS = ("model_name", "reasoning_content", "tool_calls")


class AtifModel(Model):
    """A part of such a document: a key without a value is left out."""

    def to_json(self) -> JsonValue:
        """Return plain JSON data."""
        data: JsonValue = self.model_dump(mode="json", exclude_none=True)
        return data


class AtifAgent(AtifModel):
    """Who worked."""

    name: str
    version: str
    model_name: str | None = None
    extra: JsonObject | None = None


class AtifToolCall(AtifModel):
    """One call of a tool."""

    tool_call_id: str
    function_name: str
    arguments: JsonObject
    extra: JsonObject | None = None


class AtifSubagentRef(AtifModel):
    """Where the session of a sub-agent stands: its `trajectory_id` in `subagent_trajectories`."""

    trajectory_id: str


class AtifResult(AtifModel):
    """What came back from one call."""

    source_call_id: str
    content: str | None = None
    subagent_trajectory_ref: tuple[AtifSubagentRef, ...] | None = None
    extra: JsonObject | None = None


class AtifObservation(AtifModel):
    """What came back from the calls of a step."""

    results: tuple[AtifResult, ...]


class AtifStep(AtifModel):
    """One turn."""

    step_id: Annotated[int, Field(ge=1)]
    timestamp: str | None = None
    """ISO 8601."""
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    message: str
    reasoning_content: str | None = None
    tool_calls: tuple[AtifToolCall, ...] | None = None
    observation: AtifObservation | None = None

    @model_validator(mode="after")
    def _agents_alone_think_and_call(self) -> Self:
        for name in _OF_AGENTS if self.source != "agent" else ():
            if getattr(self, name) is not None:
                raise ValueError(f"a step of the {self.source} has {name}")
        return self

    @model_validator(mode="after")
    def _results_are_of_its_calls(self) -> Self:
        calls = {call.tool_call_id for call in self.tool_calls or ()}
        results = self.observation.results if self.observation else ()
        for result in results:
            if result.source_call_id not in calls:
                raise ValueError(f"no call of step {self.step_id} is {result.source_call_id!r}")
        return self


class AtifFinalMetrics(AtifModel):
    """What the whole session used; what is not known is left out."""

    total_prompt_tokens: Count | None = None
    """Everything that was put in, caches included."""
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    """What of the input was read from a cache."""
    total_cost_usd: float | None = None
    total_steps: Count | None = None
    extra: JsonObject | None = None


class AtifTrajectory(AtifModel):
    """A whole session, or that of a sub-agent in it."""

    schema_version: Literal["ATIF-v1.7"] = ATIF_VERSION
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AtifAgent
    steps: Annotated[tuple[AtifStep, ...], Field(min_length=1)]
    notes: str | None = None
    final_metrics: AtifFinalMetrics | None = None
    extra: JsonObject | None = None
    subagent_trajectories: tuple[AtifTrajectory, ...] | None = None

    @model_validator(mode="after")
    def _steps_are_counted_from_one(self) -> Self:
        if [step.step_id for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError("steps are not numbered from 1")
        return self

    @model_validator(mode="after")
    def _subagents_can_be_found(self) -> Self:
        known = [sub.trajectory_id for sub in self.subagent_trajectories or ()]
        if None in known or len(set(known)) < len(known):
            raise ValueError("a sub-agent has no id of its own")
        results = [
            result for step in self.steps if step.observation for result in step.observation.results
        ]
        for result in results:
            for ref in result.subagent_trajectory_ref or ():
                if ref.trajectory_id not in known:
                    raise ValueError(f"no sub-agent is {ref.trajectory_id!r}")
        return self
