"""What a client did, in one shape for all clients."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from pytest_evalarc.model.base import Cause, Count, JsonObject, Model


class Usage(Model):
    """Tokens of one session; None is unknown and never 0."""

    input_tokens: Count | None = None
    """Without anything read from or written to a cache."""
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    cost_usd: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    """US dollars as the client reckons them; None when it reports no cost."""

    @property
    def total(self) -> int | None:
        """All tokens together, or None when input or output is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        cached = (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)
        return self.input_tokens + self.output_tokens + cached


class ToolCall(Model):
    """One call of a tool, with what came back."""

    id: str
    kind: Literal["skill", "read", "edit", "command", "other"]
    name: str
    """The client's own name of the tool."""
    target: str
    """The skill's name, the path (relative where it lies below the project), or the command."""
    result: str | None = None
    """Text that came back; None when the transcript ends before it."""
    is_error: bool | None = None
    """None when no result was seen."""
    arguments: JsonObject = {}
    """What the tool was given, as the client tells it."""
    parent: str | None = None
    """The call whose sub-agent made this one; None for the session's own agent."""


class Completion(Model):
    """How the client itself said that its session ended."""

    is_error: bool
    detail: str = ""


class HookRun(Model):
    """One run of a hook, as the client reports it."""

    event: str
    """As `SessionStart`."""
    name: str = ""
    """The client's own word, as `PreToolUse:Write`."""
    succeeded: bool | None = None
    """None when its end was not seen."""


class Offered(Model):
    """What a session has by name: at its start as the client says, or as it was planned."""

    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()

    def beyond(self, *others: Offered) -> Offered:
        """Return what is here and in none of the others, each sorted."""

        def rest(kind: str) -> tuple[str, ...]:
            known = {name for other in others for name in getattr(other, kind)}
            return tuple(sorted(set(getattr(self, kind)) - known))

        return Offered(**{kind: rest(kind) for kind in type(self).model_fields})

    def __bool__(self) -> bool:
        """Whether anything is offered at all."""
        return any(getattr(self, kind) for kind in type(self).model_fields)


class Step(Model):
    """One thing that was said in a session, in the order of the stream."""

    source: Literal["user", "agent", "system"]
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[str, ...] = ()
    """Ids of the tool calls that it makes."""
    model: str | None = None
    at: datetime | None = None
    parent: str | None = None
    """The call whose sub-agent this is a step of; None for the session's own agent."""


class Transcript(Model):
    """A session as its client reported it; what was not understood is counted, not guessed."""

    events: Count
    """Lines of the stream that held one event each."""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    completion: Completion | None = None
    """None when the stream holds no completion event."""
    interpreted: bool
    """Whether every line was understood; without it an absence proves nothing."""
    response: str = ""
    """The client's last words."""
    offered: Offered | None = None
    """What the client says at its start that it offers; None when it does not say."""
    hooks: tuple[HookRun, ...] | None = None
    """Every hook that the client reports to have run; None when it reports none by design."""
    steps: tuple[Step, ...] = ()
    models: tuple[str, ...] = ()
    """Models that answered, as the client names them, in the order of their first answer."""
    client_version: str | None = None
    """As the client itself says."""
    fault: Cause | None = None
    """What kept the session from its end, as far as the client tells: `api_unavailable` for a
    model that could not be reached or had no capacity, `api_refused` for one that refused the
    request or the key, `client_error` for all else. None when it tells of nothing."""


class Load(StrEnum):
    """How a transcript shows a skill's load."""

    LOADED = "loaded"
    ATTEMPTED = "attempted"
    NOT_OBSERVED = "not_observed"
    UNKNOWN = "unknown"
