"""What kept a session of `codex` from its end: told by its messages, for there is nothing else."""

from __future__ import annotations

import re

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import Cause

UNAVAILABLE = "api_unavailable"
REFUSED = "api_refused"
CLIENT_ERROR = "client_error"

_RETRIED = re.compile(r"Reconnecting\.\.\.[^(]*\((?P<why>.*)\)", re.DOTALL)
_STATUS = re.compile(
    r"(?:unexpected status|exceeded retry limit, last status:) (?P<status>\d{3})\b"
)
_NO_CAPACITY = frozenset({408, 425, 429})
_KINDS = (
    # A request that is refused as such is told by the answer's body alone.
    (re.compile(r'\{\s*"error".*\bcontext_length_exceeded\b', re.DOTALL), CLIENT_ERROR),
    (re.compile(r'\{\s*"error"'), REFUSED),
    (re.compile(r"The model `[^`]*` does not exist"), REFUSED),
    (re.compile(r"Quota exceeded|You.ve hit your usage limit|To use Codex with your"), REFUSED),
    (re.compile(r"stream disconnected .*reason: content_filter", re.DOTALL), REFUSED),
    (re.compile(r"Connection failed|stream disconnected|rate limit exceeded"), UNAVAILABLE),
    (re.compile(r"Selected model is at capacity|We.re currently experiencing"), UNAVAILABLE),
)
"""How messages begin, and what each of them means."""


def fault_of(message: str) -> Cause:
    """Return what a message of a failed request, or of a failed session, tells."""
    return Cause(kind=_kind(message), detail=printable(message, limit=400))


def _kind(message: str) -> str:
    retried = _RETRIED.match(message)
    if retried is None:
        return _kind_of_end(message)
    # It goes on as soon as the model's API does, unless that would refuse it again.
    return REFUSED if _kind_of_end(retried["why"]) == REFUSED else UNAVAILABLE


def _kind_of_end(message: str) -> str:
    if (found := _STATUS.match(message)) is not None:
        status = int(found["status"])
        return REFUSED if 400 <= status < 500 and status not in _NO_CAPACITY else UNAVAILABLE
    return next((kind for form, kind in _KINDS if form.match(message)), CLIENT_ERROR)
