from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.model.base import Cause
from tests.clients.claude.recorded import init, read, result, say, stream, system, text


def fault(folder: Path, *events: dict[str, Any]) -> Cause | None:
    return read(folder, stream(init(), *events)).fault


def failed(error: str, status: int | None = None, **more: Any) -> tuple[dict[str, Any], ...]:
    words = say(text("API Error"), error=error)
    words["message"]["model"] = "<synthetic>"
    return words, result(is_error=True, api_error_status=status, result="API Error", **more)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ("rate_limit", 429, CauseKind.API_UNAVAILABLE),
        ("server_error", 500, CauseKind.API_UNAVAILABLE),
        ("overloaded", 529, CauseKind.API_UNAVAILABLE),
        ("unknown", 408, CauseKind.API_UNAVAILABLE),
        ("server_error", None, CauseKind.API_UNAVAILABLE),
        ("unknown", None, CauseKind.API_UNAVAILABLE),
        ("unknown", 400, CauseKind.API_REFUSED),
        ("billing_error", 400, CauseKind.API_REFUSED),
        ("authentication_failed", 401, CauseKind.API_REFUSED),
        ("unknown", 403, CauseKind.API_REFUSED),
        ("model_not_found", 404, CauseKind.API_REFUSED),
        ("authentication_failed", None, CauseKind.API_REFUSED),
        ("max_output_tokens", None, CauseKind.CLIENT_ERROR),
    ],
)
def test_a_request_that_failed_says_whose_fault_it_was(
    error: str, status: int | None, kind: CauseKind, tmp_path: Path
) -> None:
    """An agent that nobody answered did not fail the task."""
    found = fault(tmp_path, *failed(error, status))

    assert found == Cause(kind=kind, detail="success: API Error")


def test_a_session_that_outgrew_its_model_is_the_agent_s_own(tmp_path: Path) -> None:
    """The API refuses the request, for what the agent put into it."""
    found = fault(tmp_path, *failed("invalid_request", 400, terminal_reason="prompt_too_long"))

    assert found == Cause(kind=CauseKind.CLIENT_ERROR, detail="prompt_too_long: API Error")


@pytest.mark.parametrize("subtype", ["error_max_turns", "error_during_execution", "error_new"])
def test_any_other_error_is_the_client_s(subtype: str, tmp_path: Path) -> None:
    """What is not known to be the API's is not put down to it."""
    found = fault(tmp_path, result(is_error=True, subtype=subtype, result=None))

    assert found == Cause(kind=CauseKind.CLIENT_ERROR, detail=subtype)


def retry(error: str, status: int | None) -> dict[str, Any]:
    return system("api_retry", attempt=1, error_status=status, error=error)


@pytest.mark.parametrize(
    ("tried", "kind", "detail"),
    [
        (retry("overloaded", 529), CauseKind.API_UNAVAILABLE, "kept answering with status 529"),
        (retry("unknown", None), CauseKind.API_UNAVAILABLE, "could not be reached"),
        (
            retry("authentication_failed", 401),
            CauseKind.API_REFUSED,
            "kept answering with status 401",
        ),
    ],
)
@pytest.mark.parametrize("end", ["killed", "interrupted"])
def test_a_deadline_that_was_used_up_by_retries_is_not_the_agent_s(
    end: str, tried: dict[str, Any], kind: CauseKind, detail: str, tmp_path: Path
) -> None:
    """The client waits minutes for an API that is down, and is then ended by us."""
    aborted = result(is_error=True, subtype="error_during_execution")

    found = fault(
        tmp_path, say(text("I try.")), tried, *((aborted,) if end == "interrupted" else ())
    )

    assert found is not None
    assert found.kind == kind
    assert detail in found.detail


def test_an_answer_mends_what_was_retried_before_it(tmp_path: Path) -> None:
    """A session that went on and was ended later was ended for another reason."""
    found = fault(tmp_path, retry("overloaded", 529), say(text("I go on.")))

    assert found == Cause(kind=CauseKind.CLIENT_ERROR, detail="its stream ends before its result")
    assert fault(tmp_path, retry("overloaded", 529), say(text("Done.")), result()) is None


def test_a_client_that_says_nothing_at_all_is_its_own_fault(tmp_path: Path) -> None:
    """It then ends with any status, 0 included."""
    found = read(tmp_path, b"").fault

    assert found == Cause(kind=CauseKind.CLIENT_ERROR, detail="it printed no event")
