from __future__ import annotations

import pytest

from pytest_evalarc.clients.codex.faults import fault_of

BODY = '{"error": {"message": "x", "type": "invalid_request_error", "code": %s}}'
LOST = "stream disconnected before completion: "
RETRIED = "Reconnecting... 2/5 (%s)"


def status(number: int, name: str = "Some Name") -> str:
    return f"unexpected status {number} {name}: said, url: https://api.example.com/v1/responses"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        *((status(number), "api_refused") for number in (400, 401, 402, 403, 404, 413, 422)),
        *((status(number), "api_unavailable") for number in (408, 429, 500, 502, 503, 504)),
        (status(529, "<unknown status code>"), "api_unavailable"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "api_unavailable"),
        ("exceeded retry limit, last status: 503 Service Unavailable", "api_unavailable"),
        (BODY % "null", "api_refused"),
        ('{\n  "error": {\n    "message": "The model does not exist."}}', "api_refused"),
        ("The model `a` does not exist or you do not have access to it.", "api_refused"),
        (BODY % '"context_length_exceeded"', "client_error"),
        ("Quota exceeded. Check your plan and billing details.", "api_refused"),
        ("You\u2019ve hit your usage limit. Try again later.", "api_refused"),
        ("To use Codex with your ChatGPT plan, upgrade to Plus: https://x", "api_refused"),
        (
            "We\u2019re currently experiencing high demand, which may cause errors.",
            "api_unavailable",
        ),
        ("rate limit exceeded: slow down", "api_unavailable"),
        ("Selected model is at capacity. Please try a different model.", "api_unavailable"),
        (f"{LOST}stream closed before response.completed", "api_unavailable"),
        (f"{LOST}error sending request", "api_unavailable"),
        (f"{LOST}the server had an error", "api_unavailable"),
        (f"{LOST}Incomplete response returned, reason: content_filter", "api_refused"),
        ("Connection failed: error sending request", "api_unavailable"),
        (RETRIED % "Connection failed: error sending request", "api_unavailable"),
        (RETRIED % status(401), "api_refused"),
        (RETRIED % "what nobody knows", "api_unavailable"),
        ("Reconnecting... waiting for network (Connection failed: x)", "api_unavailable"),
        ("Codex ran out of room in the model's context window. Start a new one.", "client_error"),
        ("Incomplete response returned, reason: max_output_tokens", "client_error"),
        ("it says: unexpected status 401", "client_error"),
        ("unexpected status 4011", "client_error"),
        ("", "client_error"),
    ],
)
def test_a_message_tells_whose_fault_it_was(message: str, kind: str) -> None:
    """The stream has no status, and an agent is not to blame for a model that is out of reach."""
    fault = fault_of(message)

    assert (fault.kind, fault.detail) == (kind, message)


def test_a_message_is_made_safe_and_short() -> None:
    """It comes from a server, and stands in reports."""
    nested = "Reconnecting... (" * 10_000

    assert fault_of("a\x1b[2Jb").detail == "a\\x1b[2Jb"
    assert len(fault_of("x" * 10_000).detail) < 500
    assert fault_of(nested).kind == "client_error"
    assert fault_of(nested + ")" * 10_000).kind == "api_unavailable"
