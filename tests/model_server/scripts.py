r"""Scripts: what a model says and does in a session, turn by turn, whichever client asks.

A script is written once and rendered with the tools of the client at hand. In JSON a script is an
object of `turns`; a turn is a list of steps, or an object with `steps`, `when`, `unless` and
`usage`; a step has its word as its only key: `{"say": "Done."}`, or
`{"write": {"path": "a.txt", "content": "a\n"}}`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .conversation import Conversation

# What a turn is made of. Paths are POSIX paths below the session's working folder, or absolute.


@dataclass(frozen=True)
class Say:
    """Tell the user something; a turn that calls no tool ends the session."""

    text: str


@dataclass(frozen=True)
class Think:
    """Reason before acting."""

    text: str


@dataclass(frozen=True)
class Write:
    """Write a whole file.

    Claude Code refuses to overwrite what the session has not read: put a `Read` in a turn before.
    """

    path: str
    content: str
    """Whole lines, at least one: Codex's tool for files knows nothing else."""

    def __post_init__(self) -> None:
        """Refuse what one of the clients would write differently."""
        _check_lines(self.path, self.content)


@dataclass(frozen=True)
class Edit:
    """Replace whole lines that occur exactly once; Claude Code wants the file read before."""

    path: str
    old: str
    new: str
    """Empty: the lines are removed."""

    def __post_init__(self) -> None:
        """Refuse what one of the clients would edit differently."""
        _check_lines(self.path, self.old)
        if self.new:
            _check_lines(self.path, self.new)


@dataclass(frozen=True)
class Read:
    """Read a file."""

    path: str


@dataclass(frozen=True)
class Run:
    """Run a shell command, and wait for its end."""

    command: str


@dataclass(frozen=True)
class Skill:
    """Load a skill, in the way of the client, where it is offered."""

    name: str
    anyway: bool = False
    """Whether to try it where it is not offered, too."""


@dataclass(frozen=True)
class Wait:
    """Wait for a command that the client handed back before its end; in no script."""

    number: int


def slow(seconds: float) -> Run:
    """Return a command that takes that long; Claude Code refuses a bare `sleep`."""
    return Run(f"python3 -c {shlex.quote(f'import time; time.sleep({seconds:g})')}")


Tool: TypeAlias = Write | Edit | Read | Run | Skill | Wait


# What goes wrong. What stands before it in its turn has been sent by then.


@dataclass(frozen=True)
class Error:
    """The API refuses the request; the first step of its turn."""

    status: int
    message: str = ""
    """Empty: what the API says at this status."""
    times: int | None = None
    """How often within a session, before the rest of the turn is played; None is always."""


@dataclass(frozen=True)
class Quota:
    """The account has no more credit; the first step of its turn."""


@dataclass(frozen=True)
class Fail:
    """The API tells of an error in a stream that it has begun."""

    message: str = "The server had an error while processing your request."


@dataclass(frozen=True)
class Broken:
    """The connection ends in the middle of the stream."""


@dataclass(frozen=True)
class Hang:
    """The connection stays open, and nothing more comes."""


Refusal: TypeAlias = Error | Quota
Interruption: TypeAlias = Fail | Broken | Hang
Step: TypeAlias = Say | Think | Tool | Refusal | Interruption


# When a turn is played.


@dataclass(frozen=True)
class Offers:
    """The session is offered a skill."""

    skill: str

    def holds(self, conversation: Conversation) -> bool:
        """Return whether it is."""
        return self.skill in conversation.skills


@dataclass(frozen=True)
class Says:
    """The session began with a text: in its prompt, or in what the client says around it.

    The working folder is part of that, so a trial can be told by its number.
    """

    text: str

    def holds(self, conversation: Conversation) -> bool:
        """Return whether it did."""
        return self.text in conversation.opening


Condition: TypeAlias = Offers | Says


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one turn, as results count them: `input_tokens` without the caches."""

    input_tokens: int = 1000
    output_tokens: int = 50
    cache_read_tokens: int = 300
    cache_write_tokens: int = 200


@dataclass(frozen=True)
class Turn:
    """One answer of the model."""

    steps: tuple[Step, ...]
    when: tuple[Condition, ...] = ()
    """All must hold, else the session has no such turn."""
    unless: tuple[Condition, ...] = ()
    """None may hold."""
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        """Refuse an error where a stream has begun: it would not be one any more."""
        if any(isinstance(step, Refusal) for step in self.steps[1:]):
            raise ValueError(f"{self.steps}: an Error or a Quota is the first step of its turn")
        only = self.steps[0] if len(self.steps) == 1 else None
        if isinstance(only, Error) and only.times is not None:
            raise ValueError(f"{only}: something must come after an error that passes")

    def steps_in(self, conversation: Conversation) -> tuple[Step, ...]:
        """Return what of this turn is played in a session; nothing when it has no such turn."""
        is_played = all(condition.holds(conversation) for condition in self.when)
        if not is_played or any(condition.holds(conversation) for condition in self.unless):
            return ()
        return tuple(step for step in self.steps if _is_possible(step, conversation))

    def after(self, refused: int) -> Turn:
        """Return what is left of this turn when the session was refused it that often."""
        left = (
            step
            for step in self.steps
            if not (isinstance(step, Error) and step.times is not None and refused >= step.times)
        )
        return replace(self, steps=tuple(left))


def turn(
    *steps: Step,
    when: Condition | tuple[Condition, ...] = (),
    unless: Condition | tuple[Condition, ...] = (),
    usage: Usage | None = None,
) -> Turn:
    """Return a turn of these steps."""
    return Turn(steps, _tuple(when), _tuple(unless), usage or Usage())


def _tuple(one_or_more: Any) -> tuple[Any, ...]:
    return one_or_more if isinstance(one_or_more, tuple) else (one_or_more,)


LAST = turn(Say("Done."))
"""What is said when a script has no further turn."""


@dataclass(frozen=True)
class Script:
    """The turns of one session."""

    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, *turns: Turn | Step | tuple[Step, ...]) -> Script:
        """Return a script; a step, or a tuple of steps, is a turn of its own."""
        return cls(tuple(t if isinstance(t, Turn) else turn(*_tuple(t)) for t in turns))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Script:
        """Return what a JSON document says.

        Raises:
            KeyError: A step's word is unknown.
            TypeError: A step has other fields.
        """
        return cls(tuple(_turn(entry) for entry in document["turns"]))

    def __add__(self, other: Script) -> Script:
        """Return both, one after the other."""
        return Script(self.turns + other.turns)

    def only(self, *, when: Condition | None = None, unless: Condition | None = None) -> Script:
        """Return this script for the sessions of which a condition holds, or does not."""
        more, less = _tuple(when or ()), _tuple(unless or ())
        return Script(
            tuple(replace(t, when=t.when + more, unless=t.unless + less) for t in self.turns)
        )

    def next_turn(self, conversation: Conversation) -> Turn:
        """Return the turn that a session has reached, with the steps that are played in it."""
        if conversation.unfinished:
            return turn(*(Wait(number) for number in conversation.unfinished))
        found = ((t, t.steps_in(conversation)) for t in self.turns)
        played = [replace(t, steps=steps) for t, steps in found if steps]
        return played[conversation.turn] if conversation.turn < len(played) else LAST


def _is_possible(step: Step, conversation: Conversation) -> bool:
    return not isinstance(step, Skill) or step.anyway or step.name in conversation.skills


def _check_lines(path: str, text: str) -> None:
    if not text.endswith("\n") or "\r" in text:
        raise ValueError(f"{path}: {text!r} is not whole lines, each ended by a newline")


# From JSON.

_STEPS: dict[str, Callable[..., Step]] = {
    "say": Say,
    "think": Think,
    "write": Write,
    "edit": Edit,
    "read": Read,
    "run": Run,
    "slow": slow,
    "skill": Skill,
    "error": Error,
    "quota": Quota,
    "fail": Fail,
    "broken": Broken,
    "hang": Hang,
}
_CONDITIONS: dict[str, Callable[..., Condition]] = {"offers": Offers, "says": Says}


def _turn(entry: Any) -> Turn:
    if isinstance(entry, list):
        return turn(*_made(entry, _STEPS))
    return turn(
        *_made(entry["steps"], _STEPS),
        when=_made(entry.get("when", ()), _CONDITIONS),
        unless=_made(entry.get("unless", ()), _CONDITIONS),
        usage=Usage(**entry.get("usage", {})),
    )


def _made(entries: Iterable[Mapping[str, Any]], makers: Mapping[str, Callable[..., Any]]) -> Any:
    made = []
    for entry in entries:
        ((word, given),) = entry.items()
        make = makers[word]
        made.append(make(**given) if isinstance(given, dict) else make(given))
    return tuple(made)
