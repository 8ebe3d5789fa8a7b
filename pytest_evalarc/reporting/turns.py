"""A session in turns, as people and other tools read it: who said what, and what was done then."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_evalarc.model.transcript import Step, ToolCall, Transcript

MOST_LEVELS = 16
"""Sub-agents of sub-agents; what lies deeper is told with the session itself."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step with the calls that it makes, each with what its sub-agent did."""

    step: Step
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool, and the turns of the sub-agent that it started."""

    tool: ToolCall
    turns: tuple[Turn, ...] = ()


def turns_of(transcript: Transcript, *, prompt: str | None = None) -> tuple[Turn, ...]:
    """Return the turns of the session's own agent, those of sub-agents below their calls.

    Every step and every call of the transcript is there once. A call that no step makes is a turn
    of its own, behind all others; a client that tells no steps is read by its calls and its last
    words.

    Args:
        transcript: The session.
        prompt: What the agent was asked, told first unless the session tells it itself; None
            where nobody knows any more.
    """
    turns = _Turns(transcript).of(None)
    if prompt is not None and not any(_says(turn, prompt) for turn in turns):
        turns = (Turn(step=Step(source="user", text=prompt)), *turns)
    return turns


def _says(turn: Turn, prompt: str) -> bool:
    return turn.step.source == "user" and turn.step.text.strip() == prompt.strip()


class _Turns:
    """Finds what belongs to whom; nothing that a client says of it is taken on trust."""

    def __init__(self, transcript: Transcript) -> None:
        pairs = _with_their_calls(transcript)
        self._above = {call.id: step.parent for step, calls in pairs for call in calls}
        """The call that each call is below, as the step that makes it says."""
        self._below: dict[str | None, list[tuple[Step, tuple[ToolCall, ...]]]] = {}
        for step, calls in pairs:
            self._below.setdefault(self._owner(step), []).append((step, calls))

    def _owner(self, step: Step) -> str | None:
        """Return the call that a step is below; None for the session, as for what leads nowhere."""
        at = step.parent
        for _ in range(MOST_LEVELS):
            if at is None:
                return step.parent
            if at not in self._above:
                return None
            at = self._above[at]
        return None

    def of(self, owner: str | None) -> tuple[Turn, ...]:
        """Return the turns below a call, or those of the session itself."""
        return tuple(
            Turn(
                step=step,
                calls=tuple(Call(tool=call, turns=self.of(call.id)) for call in calls),
            )
            for step, calls in self._below.get(owner, ())
        )


def _with_their_calls(transcript: Transcript) -> list[tuple[Step, tuple[ToolCall, ...]]]:
    """Return every step with the calls that it is the first to make, then the calls of no step."""
    unmade: dict[str, ToolCall] = {}
    for call in transcript.tool_calls:
        unmade.setdefault(call.id, call)
    pairs: list[tuple[Step, tuple[ToolCall, ...]]] = []
    for step in transcript.steps or _steps_of_calls(transcript):
        ids = dict.fromkeys(step.tool_calls) if step.source == "agent" else ()
        pairs.append((step, tuple(unmade.pop(id) for id in ids if id in unmade)))
    pairs += [(Step(source="agent", parent=call.parent), (call,)) for call in unmade.values()]
    return pairs


def _steps_of_calls(transcript: Transcript) -> tuple[Step, ...]:
    calls = [
        Step(source="agent", tool_calls=(call.id,), parent=call.parent)
        for call in transcript.tool_calls
    ]
    last = [Step(source="agent", text=transcript.response)] if transcript.response else []
    return (*calls, *last)
