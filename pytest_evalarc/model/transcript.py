"""What a client did, in one shape for all clients."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pytest_evalarc.model.base import Count, Model


class Usage(Model):
    """Tokens of one session; None is unknown and never 0."""

    input_tokens: Count | None = None
    """Without anything read from or written to a cache."""
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None

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


class Completion(Model):
    """How the client itself said that its session ended."""

    is_error: bool
    detail: str = ""


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
    listed_skills: tuple[str, ...] | None = None
    """Skills that the client says it offers at its start; None when it does not say."""


class Load(StrEnum):
    """How a transcript shows a skill's load."""

    LOADED = "loaded"
    ATTEMPTED = "attempted"
    NOT_OBSERVED = "not_observed"
    UNKNOWN = "unknown"
