"""A trial's session as a document of the Agent Trajectory Interchange Format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.atif import (
    AtifAgent,
    AtifFinalMetrics,
    AtifObservation,
    AtifResult,
    AtifStep,
    AtifSubagentRef,
    AtifToolCall,
    AtifTrajectory,
)
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.transcript import Step, Transcript, Usage
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.turns import Call, Turn, turns_of

NOT_UNDERSTOOD = "Parts of the client's stream were not understood, so something may be missing."


def trajectory_document(
    transcript: Transcript, result: TrialResult, prompt: str | None = None
) -> bytes:
    """Return a session as the bytes of its document: indented UTF-8 JSON.

    Args:
        transcript: What the client did.
        result: The trial.
        prompt: What the agent was asked; None leaves the step out.
    """
    return dumps(trajectory_of(transcript, result, prompt).to_json())


def trajectory_of(
    transcript: Transcript, result: TrialResult, prompt: str | None = None
) -> AtifTrajectory:
    """Return a session as a trajectory, each sub-agent's session embedded in its parent's.

    What it used is told of the whole session alone: no client tells it of each step.

    Args:
        transcript: What the client did.
        result: The trial.
        prompt: What the agent was asked; None leaves the step out.
    """
    turns = turns_of(transcript, prompt=prompt)
    agent = AtifAgent(
        name=result.client.name,
        version=result.client.version or transcript.client_version or "unknown",
        model_name=next(iter((*transcript.models, *result.model.served)), result.model.name),
        extra={"settings": result.model.settings} if result.model.settings else None,
    )
    # One that left nothing has a step all the same, as the format demands.
    steps = _steps(turns or (Turn(step=Step(source="system", text="Nothing was told.")),))
    return AtifTrajectory(
        session_id=f"{result.task.name}/{result.client.name}/trial-{result.trial}-{result.mode}",
        agent=agent,
        steps=steps,
        notes=None if transcript.interpreted else NOT_UNDERSTOOD,
        final_metrics=_final_metrics(result.usage or transcript.usage, len(steps)),
        extra=_extra(transcript, result),
        subagent_trajectories=_subagents(turns, agent),
    )


def _steps(turns: Sequence[Turn]) -> tuple[AtifStep, ...]:
    return tuple(_step(number, turn) for number, turn in enumerate(turns, start=1))


def _step(number: int, turn: Turn) -> AtifStep:
    step = turn.step
    is_agent = step.source == "agent"
    results = tuple(_results(turn.calls))
    return AtifStep(
        step_id=number,
        timestamp=step.at.isoformat() if step.at is not None else None,
        source=step.source,
        model_name=step.model if is_agent else None,
        message=step.text,
        reasoning_content=(step.reasoning or None) if is_agent else None,
        tool_calls=tuple(_tool_call(call) for call in turn.calls) or None,
        observation=AtifObservation(results=results) if results else None,
    )


def _tool_call(call: Call) -> AtifToolCall:
    tool = call.tool
    return AtifToolCall(
        tool_call_id=tool.id,
        function_name=tool.name,
        arguments=tool.arguments or {"target": tool.target},
        extra={"kind": tool.kind},
    )


def _results(calls: Sequence[Call]) -> Iterator[AtifResult]:
    """Yield what came back; a call without a result and without a sub-agent has nothing."""
    for call in calls:
        if call.tool.result is None and not call.turns:
            continue
        yield AtifResult(
            source_call_id=call.tool.id,
            content=call.tool.result,
            subagent_trajectory_ref=(AtifSubagentRef(trajectory_id=call.tool.id),)
            if call.turns
            else None,
            extra=None if call.tool.is_error is None else {"is_error": call.tool.is_error},
        )


def _subagents(turns: Sequence[Turn], agent: AtifAgent) -> tuple[AtifTrajectory, ...] | None:
    below = (call for turn in turns for call in turn.calls if call.turns)
    return (
        tuple(
            AtifTrajectory(
                trajectory_id=call.tool.id,
                agent=agent,
                steps=_steps(call.turns),
                subagent_trajectories=_subagents(call.turns, agent),
            )
            for call in below
        )
        or None
    )


def _final_metrics(usage: Usage | None, steps: int) -> AtifFinalMetrics:
    if usage is None:
        return AtifFinalMetrics(total_steps=steps)
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens
    known = usage.input_tokens is not None
    return AtifFinalMetrics(
        # Their prompt tokens hold what went through a cache, and our input tokens do not.
        total_prompt_tokens=(usage.input_tokens or 0) + read + (written or 0) if known else None,
        total_completion_tokens=usage.output_tokens,
        total_cached_tokens=usage.cache_read_tokens,
        total_cost_usd=usage.cost_usd,
        total_steps=steps,
        extra=None if written is None else {"cache_write_tokens": written},
    )


def _extra(transcript: Transcript, result: TrialResult) -> JsonObject:
    """Return what the trial is and how it ended, for which the format has no keys."""
    facts: JsonObject = {
        "task": result.task.name,
        "content_hash": result.task.content_hash,
        "configuration": result.mode,
        "trial": result.trial,
        "execution": result.execution.value,
        "outcome": result.outcome.value,
        "success": result.success,
    }
    if transcript.hooks:
        facts["hooks"] = [hook.to_json() for hook in transcript.hooks]
    if transcript.fault is not None:
        facts["fault"] = transcript.fault.to_json()
    return facts
