"""A stream of `claude` folded into a transcript: what is not understood counts as lost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pytest_evalarc.clients.claude.calls import Calls
from pytest_evalarc.clients.claude.events import (
    BY_THE_CLIENT,
    Assistant,
    Event,
    HookResponse,
    HookStarted,
    Init,
    ModelUsage,
    Named,
    Redacted,
    Result,
    TaskStarted,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    User,
    parsed,
    summed,
)
from pytest_evalarc.clients.claude.fault import Faults, told_by
from pytest_evalarc.clients.claude.turns import Turns
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.transcript import (
    Completion,
    HookRun,
    Offered,
    Step,
    Transcript,
    Usage,
)

_AGENTS = frozenset({"in_process_teammate", "local_agent", "local_workflow", "remote_agent"})
"""Tasks that call tools of their own."""


class Reader:
    """Folds events into a transcript; an event out of place counts as not understood."""

    def __init__(self) -> None:
        self.start: Init | None = None
        """The first list of what the session has."""
        self._events = 0
        self._lost = 0
        self._calls = Calls()
        self._hooks: dict[str, HookRun] = {}
        self._steps: list[Step] = []
        self._said_last: tuple[str, str | None] | None = None
        self._models: dict[str, None] = {}
        self._results: list[Result] = []
        self._faults = Faults()
        self._turns = Turns()
        self._agents: set[str] = set()
        self._heard: set[str | None] = set()

    def take(self, line: JsonObject | None) -> None:
        """Take one line's object, or None for a line that held none."""
        if line is None:
            self._lost += 1
            return
        self._events += 1
        try:
            event = parsed(line)
        except ValueError:
            self._lost += 1
            return
        if event is not None:
            self._turns.take(event)
            self._faults.take(event)
            self._lost += not self._apply(event)

    def _apply(self, event: Event) -> bool:
        """Take one event; return whether it may stand where it does."""
        match event:
            case Init():
                self.start = self.start or event
            case HookStarted():
                run = HookRun(event=event.hook_event, name=event.hook_name)
                return self._hooks.setdefault(event.hook_id, run) is run
            case HookResponse():
                return self._end_hook(event)
            case TaskStarted() if event.task_type in _AGENTS and event.tool_use_id is not None:
                self._agents.add(event.tool_use_id)
            case Assistant():
                return self._say(event)
            case User():
                return self._tell(event)
            case Result():
                self._results.append(event)
        return True

    def _end_hook(self, event: HookResponse) -> bool:
        started = self._hooks.get(event.hook_id)
        if started is None or started.succeeded is not None:
            return False
        succeeded = event.outcome == "success" and event.exit_code in (0, None)
        self._hooks[event.hook_id] = started.model_copy(update={"succeeded": succeeded})
        return True

    def _say(self, event: Assistant) -> bool:
        parent, message = event.parent_tool_use_id, event.message
        self._heard.add(parent)
        if message.model != BY_THE_CLIENT:
            self._models.setdefault(message.model)
        uses = [part for part in message.content if isinstance(part, ToolUse)]
        step = Step(
            source="agent",
            text="\n".join(part.text for part in message.content if isinstance(part, Text)),
            reasoning="\n".join(_thoughts(message.content)),
            tool_calls=tuple(use.id for use in uses),
            model=None if message.model == BY_THE_CLIENT else message.model,
            at=_time(event.timestamp),
            parent=parent,
        )
        # One answer comes as several lines, one for each of its parts.
        if self._steps and self._said_last == (message.id, parent):
            step = _joined(self._steps.pop(), step)
        self._steps.append(step)
        self._said_last = (message.id, parent)
        taken = [self._calls.call(use, parent=parent) for use in uses]
        return all(taken)

    def _tell(self, event: User) -> bool:
        parent, parts = event.parent_tool_use_id, event.message.parts
        self._heard.add(parent)
        results = [part for part in parts if isinstance(part, ToolResult)]
        text = "\n".join(part.text for part in parts if isinstance(part, Text))
        if text:
            # The prompt is said again, and a sub-agent is told its own; all else is the client's.
            is_asked = event.is_replay or (parent is not None and not event.is_synthetic)
            source: Literal["user", "system"] = "user" if is_asked else "system"
            at = _time(event.timestamp)
            self._steps.append(Step(source=source, text=text, at=at, parent=parent))
            self._said_last = None
        if event.is_synthetic:
            self._calls.added(text, parent=parent)
        elif event.is_replay:
            self._calls.prompted(text)
        taken = [self._calls.answer(result) for result in results]
        return all(taken)

    def transcript(self) -> Transcript:
        """Return all that was taken."""
        last = self._results[-1] if self._results and self._turns.over else None
        return Transcript(
            events=self._events,
            tool_calls=self._calls.made(cwd=self.start.cwd if self.start else None),
            usage=_usage(self._results),
            completion=None if last is None else _completion(last),
            interpreted=self._is_whole and last is not None,
            response=self._response,
            offered=None if self.start is None else _offered(self.start),
            hooks=tuple(self._hooks.values()),
            steps=tuple(self._steps),
            models=tuple(self._models),
            client_version=self.start.claude_code_version if self.start else None,
            fault=self._faults.fault(events=self._events, over=last is not None),
        )

    @property
    def _is_whole(self) -> bool:
        """Whether nothing of the stream is lost, and nothing was done where it cannot be seen.

        A stream without its start could be the tail of another, and one without its end may have
        lost it: an absence in either is no proof. Sub-agents of sub-agents work unseen in older
        versions of the client.
        """
        return self._lost == 0 and self.start is not None and self._agents <= self._heard

    @property
    def _response(self) -> str:
        """The last words to the user: those of the last result, else of the session's own agent."""
        told = next((it.result for it in reversed(self._results) if it.result is not None), None)
        if told is not None:
            return told
        own = (it.text for it in reversed(self._steps) if it.source == "agent" and not it.parent)
        return next((text for text in own if text), "")


def _thoughts(content: Iterable[object]) -> Iterable[str]:
    for part in content:
        if isinstance(part, Thinking):
            yield part.thinking
        elif isinstance(part, Redacted):
            yield "[redacted]"


def _joined(first: Step, second: Step) -> Step:
    """Return two parts of one answer as one step."""
    return first.model_copy(
        update={
            "text": "\n".join(part for part in (first.text, second.text) if part),
            "reasoning": "\n".join(part for part in (first.reasoning, second.reasoning) if part),
            "tool_calls": (*first.tool_calls, *second.tool_calls),
        }
    )


def _time(written: str | None) -> datetime | None:
    try:
        return None if written is None else datetime.fromisoformat(written)
    except ValueError:
        return None


def _offered(start: Init) -> Offered:
    def names(of: list[Named]) -> tuple[str, ...]:
        return tuple(each.name for each in of)

    return Offered(
        skills=tuple(start.skills),
        plugins=names(start.plugins),
        agents=tuple(start.agents),
        mcp_servers=names(start.mcp_servers),
    )


def _completion(last: Result) -> Completion:
    return Completion(is_error=last.is_error, detail=told_by(last))


def _usage(results: list[Result]) -> Usage | None:
    """Return the tokens of a session, its sub-agents and the client's own requests included.

    The tokens by model, and the cost, are those of the whole session so far, so the last ones
    stand. What a result says beside is of one turn, without sub-agents: it is taken, and summed
    over the turns, where no model is listed.
    """
    if not results:
        return None
    last = results[-1]
    counts = _by_model(last.model_usage) if last.model_usage else _by_turn(results)
    return Usage(**counts, cost_usd=last.total_cost_usd)


def _by_model(models: dict[str, ModelUsage]) -> dict[str, int | None]:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return {name: sum(getattr(each, name) for each in models.values()) for name in names}


def _by_turn(results: list[Result]) -> dict[str, int | None]:
    turns = [result.usage for result in results if result.usage is not None]
    return summed(turns) if len(turns) == len(results) else {}
