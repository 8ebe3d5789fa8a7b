"""The events of `codex exec --json`, as far as anything is read from them.

A session is one thread with one turn. What the agent does comes as items, each of which is started
and completed; words and warnings come completed alone. Keys that are not named here are passed
over. An event that lacks what is named, or that has a type which is not, is not understood.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from pytest_evalarc.model.base import Count, JsonObject, Model


class _Event(Model):
    model_config = ConfigDict(extra="ignore", strict=True)


# Items: what is said and done.


class AgentMessage(_Event):
    """Words to the user."""

    id: str
    type: Literal["agent_message"]
    text: str


class Reasoning(_Event):
    """A summary of what the model thought."""

    id: str
    type: Literal["reasoning"]
    text: str


class CommandExecution(_Event):
    """A command; the folder it runs in is not told."""

    id: str
    type: Literal["command_execution"]
    command: str
    """Shell, option and script, quoted as words of one line."""
    aggregated_output: str
    exit_code: int | None
    status: Literal["in_progress", "completed", "failed", "declined"]


class Change(_Event):
    """One path that a patch changes; of one that it moves, the old path."""

    path: str
    kind: Literal["add", "delete", "update"]


class FileChange(_Event):
    """A patch."""

    id: str
    type: Literal["file_change"]
    changes: list[Change]
    status: Literal["in_progress", "completed", "failed"]


class Problem(_Event):
    """What went wrong."""

    message: str


class ContentPart(_Event):
    """A part of what a server answers; only text has words."""

    type: str
    text: str | None = None


class McpResult(_Event):
    """What a server answered."""

    content: list[ContentPart]


class McpToolCall(_Event):
    """A tool of an MCP server is called."""

    id: str
    type: Literal["mcp_tool_call"]
    server: str
    tool: str
    arguments: JsonValue
    result: McpResult | None
    error: Problem | None
    status: Literal["in_progress", "completed", "failed"]


class CollabToolCall(_Event):
    """A sub-agent is started, told something or waited for; what it does is not told."""

    id: str
    type: Literal["collab_tool_call"]
    tool: str
    prompt: str | None
    status: Literal["in_progress", "completed", "failed"]


class WebSearch(_Event):
    """The model's host searches the web."""

    id: str
    type: Literal["web_search"]
    query: str


class TodoList(_Event):
    """The agent's plan."""

    id: str
    type: Literal["todo_list"]


class Warned(_Event):
    """A warning of the client's own, which ends nothing."""

    id: str
    type: Literal["error"]
    message: str


Doing: TypeAlias = CommandExecution | FileChange | McpToolCall | CollabToolCall | WebSearch
"""Items that are calls of a tool."""

Item: TypeAlias = Annotated[
    AgentMessage | Reasoning | Doing | TodoList | Warned, Field(discriminator="type")
]


# How a session starts, goes on and ends.


class ThreadStarted(_Event):
    """The session's first event."""

    type: Literal["thread.started"]
    thread_id: str


class TurnStarted(_Event):
    """The prompt was taken."""

    type: Literal["turn.started"]


class ItemStarted(_Event):
    """Something began."""

    type: Literal["item.started"]
    item: Item


class ItemUpdated(_Event):
    """Something goes on."""

    type: Literal["item.updated"]
    item: Item


class ItemCompleted(_Event):
    """Something is over, well or not."""

    type: Literal["item.completed"]
    item: Item


class Failing(_Event):
    """A request failed; it may be made again."""

    type: Literal["error"]
    message: str


class TurnUsage(_Event):
    """Tokens of the whole session, sub-agents left out."""

    input_tokens: Count | None = None
    """With what was read from the cache and what was written to it."""
    cached_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None
    output_tokens: Count | None = None
    """With those of reasoning."""


class TurnCompleted(_Event):
    """The session came to its end."""

    type: Literal["turn.completed"]
    usage: TurnUsage


class TurnFailed(_Event):
    """The session ended in an error."""

    type: Literal["turn.failed"]
    error: Problem


End: TypeAlias = TurnCompleted | TurnFailed
Event: TypeAlias = Annotated[
    ThreadStarted | TurnStarted | ItemStarted | ItemUpdated | ItemCompleted | Failing | End,
    Field(discriminator="type"),
]

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def parsed(line: JsonObject) -> Event:
    """Return the event that a line holds.

    Raises:
        ValueError: The event is not understood.
    """
    return _EVENTS.validate_python(line)


def is_end(line: JsonObject) -> bool:
    """Whether a line holds the event that ends a session."""
    try:
        return isinstance(parsed(line), End)
    except ValueError:
        return False
