"""A stream of `codex` folded into a transcript: what is not understood counts as lost."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_evalarc.clients.codex.calls import Calls
from pytest_evalarc.clients.codex.events import (
    AgentMessage,
    CollabToolCall,
    Doing,
    End,
    Event,
    Failing,
    Item,
    ItemCompleted,
    ItemStarted,
    ItemUpdated,
    Reasoning,
    ThreadStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    TurnUsage,
    Warned,
    parsed,
)
from pytest_evalarc.clients.codex.faults import CLIENT_ERROR, fault_of
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import Cause, JsonObject
from pytest_evalarc.model.transcript import Completion, Step, ToolCall, Transcript, Usage


class Reader:
    """Folds events into a transcript; an event out of place counts as not understood."""

    def __init__(self) -> None:
        self.thread: str | None = None
        """The client's own id of the session."""
        self.has_agents = False
        """Whether sub-agents worked, of which neither calls nor tokens are told."""
        self._events = 0
        self._lost = 0
        self._has_turn = False
        self._calls = Calls()
        self._told: list[Step | str] = []
        """What was said, and the ids of what was done."""
        self._failing: str | None = None
        self._end: End | None = None

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
        self._lost += not self._apply(event)

    def _apply(self, event: Event) -> bool:
        """Take one event; return whether it may stand where it does."""
        match event:
            case ThreadStarted():
                is_first = self._events == 1
                self.thread = event.thread_id if is_first else self.thread
                return is_first
            case TurnStarted():
                is_first, self._has_turn = not self._has_turn, True
                return is_first
            case Failing():
                self._failing = event.message
                return True
            case TurnCompleted() | TurnFailed():
                is_first = self._end is None
                self._end = self._end or event
                return is_first
            case ItemStarted() | ItemUpdated() | ItemCompleted():
                # Whatever was done after a request had failed, the next one did not.
                self._failing = None
                return self._take_item(event, event.item)

    def _take_item(self, event: ItemStarted | ItemUpdated | ItemCompleted, item: Item) -> bool:
        if isinstance(item, Doing):
            return self._take_doing(event, item)
        if isinstance(event, ItemCompleted):
            self._say(item)
        return True

    def _take_doing(self, event: ItemStarted | ItemUpdated | ItemCompleted, item: Doing) -> bool:
        self.has_agents = self.has_agents or isinstance(item, CollabToolCall)
        if isinstance(event, ItemCompleted):
            return self._calls.end(item)
        if isinstance(event, ItemUpdated):
            return self._calls.go_on(item)
        if not self._calls.start(item):
            return False
        self._told.append(item.id)
        return True

    def _say(self, item: Item) -> None:
        match item:
            case AgentMessage():
                self._told.append(Step(source="agent", text=item.text))
            case Reasoning():
                self._told.append(Step(source="agent", reasoning=item.text))
            case Warned():
                self._told.append(Step(source="system", text=item.message))

    def transcript(self, layout: RunLayout) -> Transcript:
        """Return all that was taken.

        Args:
            layout: The trial's folders.
        """
        calls = self._calls.made(project=layout.project)
        steps = tuple(_step(told, calls) for told in self._told)
        said = (step.text for step in reversed(steps) if step.source == "agent")
        return Transcript(
            events=self._events,
            tool_calls=tuple(call for each in calls.values() for call in each),
            usage=self._usage,
            completion=None if self._end is None else _completion(self._end),
            interpreted=self._is_whole,
            response=next((text for text in said if text), ""),
            steps=steps,
            fault=self._fault,
        )

    @property
    def _is_whole(self) -> bool:
        """Whether nothing of the stream is lost, and nothing was done where it cannot be seen.

        A stream without its start could be the tail of another, and one without its end may have
        lost it: an absence in either is no proof.
        """
        has_ends = self.thread is not None and self._has_turn and self._end is not None
        return self._lost == 0 and has_ends and not self.has_agents and not self._calls.hide

    @property
    def _usage(self) -> Usage | None:
        """The tokens of the session; unknown where sub-agents used some that nobody counted."""
        if self.has_agents or not isinstance(self._end, TurnCompleted):
            return None
        return usage_of(self._end.usage)

    @property
    def _fault(self) -> Cause | None:
        if isinstance(self._end, TurnFailed):
            return fault_of(self._end.error.message)
        if self._end is not None:
            return None
        if self._failing is not None:
            return fault_of(self._failing)
        said = "its stream ends before its turn does" if self._events else "it printed no event"
        return Cause(kind=CLIENT_ERROR, detail=said)


def _step(told: Step | str, calls: Mapping[str, tuple[ToolCall, ...]]) -> Step:
    if isinstance(told, Step):
        return told
    return Step(source="agent", tool_calls=tuple(call.id for call in calls[told]))


def usage_of(told: TurnUsage) -> Usage:
    """Return tokens so that no two counts overlap; one that cannot be told apart is unknown.

    The client counts what was read from the cache, and what was written to it, as input too.
    """
    read, written = told.cached_input_tokens, told.cache_write_input_tokens
    fresh = None
    if told.input_tokens is not None and read is not None and written is not None:
        fresh = told.input_tokens - read - written
    return Usage(
        input_tokens=fresh if fresh is None or fresh >= 0 else None,
        output_tokens=told.output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _completion(end: End) -> Completion:
    if isinstance(end, TurnCompleted):
        return Completion(is_error=False)
    return Completion(is_error=True, detail=printable(end.error.message, limit=400))
