"""The events of `claude --output-format stream-json`, as far as anything is read from them.

Keys come in another order in each version, and more of them with each; so every line is parsed
as JSON, and keys that are not named here are passed over. What a line must have is checked: an
event that lacks it, and a kind of event or of content that is not named here, is not understood.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from pytest_evalarc.model.base import Count, JsonObject, Model

BY_THE_CLIENT = "<synthetic>"
"""The model of what the client says by itself, as that a request failed."""

PASSED_OVER = frozenset(
    {"auth_status", "prompt_suggestion", "rate_limit_event", "tool_progress", "tool_use_summary"}
)
"""Events that tell of no call of a tool and of no end, whatever they hold."""


class _Event(Model):
    model_config = ConfigDict(extra="ignore", strict=True)


# What is said, and the calls of tools in it.


class Text(_Event):
    """Words."""

    type: Literal["text"]
    text: str


class Thinking(_Event):
    """What a model thinks before it speaks."""

    type: Literal["thinking"]
    thinking: str


class Redacted(_Event):
    """The same, not to be read."""

    type: Literal["redacted_thinking"]


class ToolUse(_Event):
    """A tool is called."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: JsonObject


class Other(_Event):
    """Content without words of its own."""

    type: Literal["image", "document", "search_result", "tool_reference"]


ResultPart: TypeAlias = Annotated[Text | Other, Field(discriminator="type")]


class ToolResult(_Event):
    """A tool answered; `is_error` is often left out when nothing went wrong."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[ResultPart] = ""
    is_error: bool | None = None

    @property
    def text(self) -> str:
        """The answer's words."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(
            part.text if isinstance(part, Text) else f"[{part.type}]" for part in self.content
        )


Said: TypeAlias = Annotated[Text | Thinking | Redacted | ToolUse, Field(discriminator="type")]
Told: TypeAlias = Annotated[Text | ToolResult | Other, Field(discriminator="type")]


class AssistantMessage(_Event):
    """A part of one answer of a model; all parts of it have one id."""

    id: str
    model: str
    content: list[Said]


class UserMessage(_Event):
    """What a model is told."""

    content: str | list[Told]

    @property
    def parts(self) -> list[Text | ToolResult | Other]:
        """The content, plain words as one part."""
        if isinstance(self.content, str):
            return [Text(type="text", text=self.content)]
        return list(self.content)


class Assistant(_Event):
    """A model said something, or the client in its place."""

    type: Literal["assistant"]
    message: AssistantMessage
    parent_tool_use_id: str | None = None
    timestamp: str | None = None
    error: str | None = None
    """The client's word for what a request failed of."""


class User(_Event):
    """A model was told something: the prompt, an answer of a tool, or what the client adds."""

    type: Literal["user"]
    message: UserMessage
    parent_tool_use_id: str | None = None
    timestamp: str | None = None
    is_synthetic: Annotated[bool, Field(alias="isSynthetic")] = False
    is_replay: Annotated[bool, Field(alias="isReplay")] = False
    """Whether it is the prompt, said again as the client took it."""
    tool_use_result: JsonValue = None


# How a session starts, goes on and ends.


class Named(_Event):
    """A plugin, or a server."""

    name: str


class Init(_Event):
    """What a session starts with; it comes again before each turn that nobody asked for."""

    subtype: Literal["init"]
    session_id: str
    cwd: str
    skills: list[str] = Field(default_factory=list)
    agents: list[str] = Field(default_factory=list)
    plugins: list[Named] = Field(default_factory=list)
    mcp_servers: list[Named] = Field(default_factory=list)
    claude_code_version: str | None = None


class HookStarted(_Event):
    """A hook is run."""

    subtype: Literal["hook_started"]
    hook_id: str
    hook_event: str
    hook_name: str = ""


class HookResponse(_Event):
    """A hook ended."""

    subtype: Literal["hook_response"]
    hook_id: str
    hook_event: str
    hook_name: str = ""
    outcome: str
    exit_code: int | None = None


class ApiRetry(_Event):
    """A request failed, and is made again."""

    subtype: Literal["api_retry"]
    error_status: int | None = None
    error: str | None = None


class TaskStarted(_Event):
    """Something runs beside the conversation: a slow command, or a sub-agent."""

    subtype: Literal["task_started"]
    task_id: str
    tool_use_id: str | None = None
    task_type: str | None = None
    is_backgrounded: bool = False


class TaskPatch(_Event):
    """What changed of a task."""

    status: str | None = None


class TaskUpdated(_Event):
    """A task changed."""

    subtype: Literal["task_updated"]
    task_id: str
    patch: TaskPatch


class TaskNotification(_Event):
    """A task ended; unless it was stopped, the agent is told and takes another turn."""

    subtype: Literal["task_notification"]
    task_id: str
    status: str


class RequestUsage(_Event):
    """Tokens of one turn, or of one request."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class ModelUsage(_Event):
    """Tokens of one model over the whole session so far, sub-agents included."""

    input_tokens: Annotated[Count, Field(alias="inputTokens")]
    output_tokens: Annotated[Count, Field(alias="outputTokens")]
    cache_read_tokens: Annotated[Count, Field(alias="cacheReadInputTokens")] = 0
    cache_write_tokens: Annotated[Count, Field(alias="cacheCreationInputTokens")] = 0


class Result(_Event):
    """A turn came to its end; `subtype` may be `success` for one that failed."""

    type: Literal["result"]
    subtype: str
    is_error: bool
    result: str | None = None
    errors: list[str] | None = None
    api_error_status: int | None = None
    terminal_reason: str | None = None
    total_cost_usd: Annotated[float, Field(ge=0.0)] | None = None
    """Of the whole session so far."""
    usage: RequestUsage | None = None
    """Of this turn alone, sub-agents left out."""
    model_usage: Annotated[dict[str, ModelUsage] | None, Field(alias="modelUsage")] = None


System: TypeAlias = (
    Init | HookStarted | HookResponse | ApiRetry | TaskStarted | TaskUpdated | TaskNotification
)
Event: TypeAlias = Assistant | User | Result | System

_SPOKEN: dict[str, TypeAdapter[Event]] = {
    "assistant": TypeAdapter(Assistant),
    "user": TypeAdapter(User),
    "result": TypeAdapter(Result),
}
_SYSTEM: dict[str, TypeAdapter[Event]] = {
    "init": TypeAdapter(Init),
    "hook_started": TypeAdapter(HookStarted),
    "hook_response": TypeAdapter(HookResponse),
    "api_retry": TypeAdapter(ApiRetry),
    "task_started": TypeAdapter(TaskStarted),
    "task_updated": TypeAdapter(TaskUpdated),
    "task_notification": TypeAdapter(TaskNotification),
}


def parsed(line: JsonObject) -> Event | None:
    """Return the event that a line holds; None for one that nothing is read from.

    Notices of kind `system` that are not named here are such: each version has new ones, and none
    of them is a call of a tool.

    Raises:
        ValueError: The event is not understood.
    """
    kind, subtype = line.get("type"), line.get("subtype")
    if kind == "system" and isinstance(subtype, str):
        known = _SYSTEM.get(subtype)
        return known.validate_python(line) if known is not None else None
    if isinstance(kind, str) and kind in PASSED_OVER:
        return None
    known = _SPOKEN.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise ValueError("an unknown event")
    return known.validate_python(line)


def summed(parts: list[RequestUsage]) -> dict[str, int | None]:
    """Return the tokens of several turns or requests together; unknown where one is unknown."""
    names = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "cache_read_input_tokens",
        "cache_write_tokens": "cache_creation_input_tokens",
    }
    found: dict[str, int | None] = {}
    for ours, theirs in names.items():
        counts = [getattr(part, theirs) for part in parts]
        found[ours] = None if None in counts else sum(counts)
    return found
