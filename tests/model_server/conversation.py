"""What a request tells of the session that it belongs to, in one shape for both APIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A session as its newest request tells it; nothing of it is remembered between requests."""

    opening: str
    """All text that came before the model's first answer: instructions, surroundings, prompt."""
    folder: str | None
    """The session's working folder, as the client tells the model; None when it does not."""
    skills: Mapping[str, str] = field(default_factory=dict)
    """What loads each offered skill, by its plain name: a tool's argument, or a file to read."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that the model may call; none in a side call, as for a title."""
    turn: int
    """How many turns the model has had before this one."""
    results: tuple[str, ...] = ()
    """What the tools gave back so far, oldest first."""
    unfinished: tuple[int, ...] = ()
    """Commands that the last turn started and that still run, as their client numbers them."""

    def path(self, relative: str) -> str:
        """Return the absolute form of a path in the session's working folder.

        Raises:
            ValueError: The client did not say where it works.
        """
        if relative.startswith("/"):
            return relative
        if self.folder is None:
            raise ValueError("the request names no working folder")
        return f"{self.folder}/{relative}"
