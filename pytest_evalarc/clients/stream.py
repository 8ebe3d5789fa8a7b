"""The stream `evalarc.stream.v1`: what the embedded clients print, one JSON object a line.

```text
{"type": "start", "format": "evalarc.stream.v1", "cwd": "/…/project", "skills": ["tidy"]}
{"type": "tool_call", "id": "1", "kind": "read", "name": "read", "target": "src/app.py"}
{"type": "tool_result", "id": "1", "is_error": false, "content": "…"}
{"type": "usage", "input_tokens": 10, "output_tokens": 2}
{"type": "response", "text": "…"}
{"type": "completion", "is_error": false}
```

Of several usages and responses the last one stands, for each tells the whole so far; of several
completions the first, for a session ends once.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from posixpath import join, normpath
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pytest_evalarc.clients.lines import LINE_BYTES, decode_event, read_into
from pytest_evalarc.model.base import Count, JsonObject, Model
from pytest_evalarc.model.transcript import Completion, Offered, ToolCall, Transcript, Usage


class _Event(Model):
    """An event; keys that a later writer adds are passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Start(_Event):
    """The session's first event."""

    type: Literal["start"]
    format: Literal["evalarc.stream.v1"]
    cwd: str
    skills: list[str] | None = None


class Call(_Event):
    """A tool is called."""

    type: Literal["tool_call"]
    id: str
    kind: Literal["skill", "read", "edit", "command", "other"]
    name: str
    target: str


class Result(_Event):
    """A tool answered."""

    type: Literal["tool_result"]
    id: str
    is_error: bool
    content: str


class UsageSoFar(_Event):
    """Tokens of the whole session so far; a count that is left out is unknown."""

    type: Literal["usage"]
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class Response(_Event):
    """The client's words to its user."""

    type: Literal["response"]
    text: str


class Completed(_Event):
    """The session came to its end."""

    type: Literal["completion"]
    is_error: bool
    detail: str = ""


Event: TypeAlias = Annotated[
    Start | Call | Result | UsageSoFar | Response | Completed, Field(discriminator="type")
]

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def read_stream(stream: Path, *, true_bytes: int) -> Transcript:
    """Return what a stream shows; content never raises, it only stays uninterpreted.

    Args:
        stream: The captured stream.
        true_bytes: How long the stream really was; more than was kept means a part is lost.

    Raises:
        OSError: The file cannot be read.
    """
    return read_into(_Reader(), stream, true_bytes=true_bytes).transcript()


def relative_target(target: str, cwd: str | None) -> str:
    """Return a path as it is called below a session's folder, POSIX style.

    Args:
        target: A path as a client wrote it.
        cwd: The session's folder; None when it is unknown.

    Returns:
        The path below `cwd` in its shortest form; an absolute one when it lies elsewhere.
    """
    if not target:
        return target
    if cwd is None:
        return normpath(target)
    folder, whole = normpath(cwd), PurePosixPath(normpath(join(cwd, target)))
    return str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole)


class CompletionWatch:
    """Sees a stream as it comes, in any chunks; one for each session.

    It knows a completion event by the plain word alone, which is how the embedded clients write
    it: a stream that spells the word with escapes is read all the same, and is not ended early.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._is_finished = False

    def __call__(self, chunk: bytes) -> bool:
        """Take the next chunk; return whether a completion event has come, now or before."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            self._is_finished = self._is_finished or _is_completion(bytes(self._line))
            self._line.clear()
        self._add(rest)
        return self._is_finished

    def _add(self, part: bytes) -> None:
        # One byte more than is ever decoded keeps a line too long from passing for an event.
        self._line += part[: max(0, LINE_BYTES + 1 - len(self._line))]


def _is_completion(line: bytes) -> bool:
    if b"completion" not in line or len(line) > LINE_BYTES:
        return False
    try:
        return isinstance(_EVENTS.validate_python(decode_event(line)), Completed)
    except ValidationError:
        return False


class _Reader:
    """Folds events into a transcript; an event out of place counts as not understood."""

    def __init__(self) -> None:
        self._events = 0
        self._lost = 0
        self._start: Start | None = None
        self._calls: dict[str, Call] = {}
        self._results: dict[str, Result] = {}
        self._usage: Usage | None = None
        self._response = ""
        self._completion: Completion | None = None

    def take(self, line: JsonObject | None) -> None:
        """Take one line's object, or None for a line that held none."""
        if line is None:
            self._lost += 1
            return
        self._events += 1
        try:
            understood = self._apply(_EVENTS.validate_python(line))
        except ValidationError:
            understood = False
        self._lost += not understood

    def _apply(self, event: Event) -> bool:
        """Take one event; return whether it may stand where it does."""
        match event:
            case Start():
                return self._begin(event)
            case Call():
                return self._calls.setdefault(event.id, event) is event
            case Result():
                known = event.id in self._calls
                return known and self._results.setdefault(event.id, event) is event
            case UsageSoFar():
                self._usage = Usage(**event.model_dump(exclude={"type"}))
                return True
            case Response():
                self._response = event.text
                return True
            case Completed():
                return self._complete(event)

    def _begin(self, event: Start) -> bool:
        if self._start is not None or self._calls:
            return False
        self._start = event
        return True

    def _complete(self, event: Completed) -> bool:
        if self._completion is not None:
            return False
        self._completion = Completion(is_error=event.is_error, detail=event.detail)
        return True

    def transcript(self) -> Transcript:
        """Return all that was taken."""
        skills = self._start.skills if self._start is not None else None
        return Transcript(
            events=self._events,
            tool_calls=tuple(self._tool_call(call) for call in self._calls.values()),
            usage=self._usage,
            completion=self._completion,
            # A stream without its start could be the tail of another: an absence in it is no proof.
            interpreted=self._lost == 0 and self._start is not None,
            response=self._response,
            offered=None if skills is None else Offered(skills=tuple(skills)),
        )

    def _tool_call(self, call: Call) -> ToolCall:
        result = self._results.get(call.id)
        cwd = self._start.cwd if self._start is not None else None
        is_path = call.kind in ("read", "edit")
        return ToolCall(
            id=call.id,
            kind=call.kind,
            name=call.name,
            target=relative_target(call.target, cwd) if is_path else call.target,
            result=None if result is None else result.content,
            is_error=None if result is None else result.is_error,
        )
