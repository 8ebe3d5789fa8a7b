"""What kept a session of `claude` from its end, as far as the client tells."""

from __future__ import annotations

from pytest_evalarc.clients.claude.events import ApiRetry, Assistant, Event, Result
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import Cause

UNAVAILABLE = "api_unavailable"
REFUSED = "api_refused"
CLIENT_ERROR = "client_error"

_REFUSALS = frozenset(
    {
        "account_on_hold",
        "authentication_failed",
        "billing_error",
        "cloud_credential_error",
        "invalid_request",
        "model_not_found",
        "oauth_org_not_allowed",
        "verification_required",
    }
)
_OF_THE_SESSION = frozenset({"max_output_tokens", "prompt_too_long"})
"""What the model's API says of a session that ran into a limit by its own doing."""
_NO_CAPACITY = frozenset({408, 429})


class Faults:
    """Follows what goes wrong; an answer of a model mends what came before it."""

    def __init__(self) -> None:
        self._retry: ApiRetry | None = None
        self._error: str | None = None
        self._last: Result | None = None

    def take(self, event: Event) -> None:
        """Take one event."""
        match event:
            case ApiRetry():
                self._retry = event
            case Assistant():
                self._error = event.error
                self._retry = None if event.error is None else self._retry
            case Result():
                self._last = event

    def fault(self, *, events: int, over: bool) -> Cause | None:
        """Return the fault; None for a session that came to its end.

        Args:
            events: How many events the stream holds.
            over: Whether the session's last turn has its result.
        """
        last = self._last
        if last is not None and last.is_error and self._is_of_the_api(last):
            return Cause(kind=_kind(last.api_error_status, self._error), detail=told_by(last))
        # A session that was ended while it waited for an answer says that it was ended, alone.
        if self._retry is not None:
            kind = _kind(self._retry.error_status, self._retry.error)
            return Cause(kind=kind, detail=f"the model's API {_answered(self._retry)}")
        if last is not None and last.is_error:
            return Cause(kind=CLIENT_ERROR, detail=told_by(last))
        if over:
            return None
        said = "its stream ends before its result" if events else "it printed no event"
        return Cause(kind=CLIENT_ERROR, detail=said)

    def _is_of_the_api(self, result: Result) -> bool:
        """Whether a turn failed of a request: it then ends as `success`, the error beside it."""
        own = result.terminal_reason in _OF_THE_SESSION or self._error in _OF_THE_SESSION
        return result.subtype == "success" and not own


def told_by(result: Result) -> str:
    """Return what a result says of the end, as one line."""
    words = (result.errors or [result.result or ""]) if result.is_error else []
    ended = result.terminal_reason or result.subtype
    return printable(": ".join(word for word in (ended, *words) if word), limit=400)


def _kind(status: int | None, error: str | None) -> str:
    """Return the word for a request that failed; without a status, no server was reached."""
    if status is None:
        return REFUSED if error in _REFUSALS else UNAVAILABLE
    return REFUSED if 400 <= status < 500 and status not in _NO_CAPACITY else UNAVAILABLE


def _answered(retry: ApiRetry) -> str:
    if retry.error_status is None:
        return "could not be reached"
    error = printable(retry.error or "", limit=100)
    return f"kept answering with status {retry.error_status}" + (f" ({error})" if error else "")
