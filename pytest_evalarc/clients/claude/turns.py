"""Whether a session is over: its last turn has a result, and nothing runs behind it.

A session can take several turns, each with a result of its own. Commands and sub-agents that were
sent to the background go on when a turn is over, and the client takes another turn once one of
them ends by itself.
"""

from __future__ import annotations

from pytest_evalarc.clients.claude.events import (
    Assistant,
    Event,
    Init,
    Result,
    TaskNotification,
    TaskStarted,
    TaskUpdated,
    User,
    parsed,
)
from pytest_evalarc.model.base import JsonObject

_OVER = frozenset({"completed", "failed", "killed", "stopped"})
_BY_FORCE = frozenset({"killed", "stopped"})


class Turns:
    """Follows the turns of one session."""

    def __init__(self) -> None:
        self._answered = False
        self._sent: set[str] = set()
        self._ended: set[str] = set()

    @property
    def over(self) -> bool:
        """Whether the session has delivered its end, as far as it was followed."""
        return self._answered and self._sent <= self._ended

    def take(self, event: Event) -> None:
        """Follow the session by one event."""
        match event:
            case Result():
                self._answered = True
            case TaskStarted(is_backgrounded=True):
                self._sent.add(event.task_id)
            case TaskUpdated():
                self._end(event.task_id, event.patch.status)
            case TaskNotification():
                self._end(event.task_id, event.status)
            case Init() | Assistant():
                self._answered = False
            case User():
                self._answered = False
                self._sent |= _sent_by(event)

    def _end(self, task: str, status: str | None) -> None:
        if status in _OVER:
            self._ended.add(task)
            # What ends by itself is told to the agent, in another turn.
            self._answered = self._answered and status in _BY_FORCE


class EndWatch:
    """Says of each event of a session whether it is the last that matters."""

    def __init__(self) -> None:
        self._turns = Turns()

    def __call__(self, line: JsonObject) -> bool:
        """Take the next event; return whether the session has delivered its end."""
        try:
            event = parsed(line)
        except ValueError:
            return False
        if event is not None:
            self._turns.take(event)
        return self._turns.over


def is_start(line: JsonObject) -> bool:
    """Whether an event lists what a session has."""
    return line.get("type") == "system" and line.get("subtype") == "init"


def _sent_by(event: User) -> set[str]:
    """Return the task that an answer of a tool says it has sent to the background."""
    answer = event.tool_use_result
    if not isinstance(answer, dict):
        return set()
    named = (answer.get("backgroundTaskId"), answer.get("isAsync") and answer.get("agentId"))
    return {name for name in named if isinstance(name, str) and name}
