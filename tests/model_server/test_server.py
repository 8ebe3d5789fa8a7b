"""The server as any HTTP client sees it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import (
    KEY,
    Broken,
    Error,
    Fail,
    Hang,
    ModelServer,
    Run,
    Say,
    Script,
    Think,
    turn,
)

TOOLS = [{"name": "Bash"}, {"name": "exec_command"}]
CLAUDE = {"model": "m", "stream": True, "tools": TOOLS, "messages": []}
CODEX = {"model": "m", "stream": True, "tools": TOOLS, "input": []}


def ask(
    server: ModelServer,
    path: str,
    body: Any = None,
    *,
    method: str = "POST",
    key: str = KEY,
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        sent = {"x-api-key": key, **headers}
        connection.request(method, path, body and json.dumps(body), sent)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def events(stream: bytes) -> list[dict[str, Any]]:
    blocks = stream.decode().strip().split("\n\n")
    pairs = [block.split("\n") for block in blocks]
    found = [json.loads(data.removeprefix("data: ")) for _, data in pairs]
    assert [name for name, _ in pairs] == [f"event: {event['type']}" for event in found]
    return found


def test_a_turn_is_streamed_as_messages() -> None:
    """Claude Code puts a message together from pieces, so the pieces must make it up."""
    command = "echo " + "x" * 200
    script = Script.of((Think("hm"), Say("hello " * 20), Run(command)))
    with ModelServer({"s": script}) as server:
        status, _, stream = ask(server, "/s/s/v1/messages?beta=true", CLAUDE)

    found = events(stream)
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    given = "".join(delta.get("partial_json", "") for delta in deltas)
    assert status == 200
    assert [found[0]["type"], found[-1]["type"]] == ["message_start", "message_stop"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == "hm"
    assert "".join(delta.get("text", "") for delta in deltas) == "hello " * 20
    assert json.loads(given)["command"] == command
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    assert found[-2]["usage"]["output_tokens"] == 50


def test_a_turn_is_streamed_as_a_response() -> None:
    """Codex takes the finished items, and the usage of the last event."""
    script = Script.of((Think("hm"), Say("hello"), Run("true")))
    with ModelServer({"s": script}) as server:
        status, _, stream = ask(server, "/s/s/v1/responses", CODEX)

    found = events(stream)
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert status == 200
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]
    assert json.loads(done[-1]["arguments"])["cmd"] == "true"
    assert found[-1]["type"] == "response.completed"
    assert found[-1]["response"]["usage"]["input_tokens"] == 1500
    assert found[-1]["response"]["output"] == done


def test_a_request_without_tools_is_no_turn() -> None:
    """A client also asks for titles, and must not use up the script with that."""
    with ModelServer({"s": Script.of(Error(400))}) as server:
        side = {name: value for name, value in CLAUDE.items() if name not in ("tools", "stream")}
        status, _, body = ask(server, "/s/s/v1/messages", side)
        asked = server.turns("s")

    assert status == 200
    assert json.loads(body)["content"] == [{"type": "text", "text": "ok"}]
    assert asked == []


def test_a_passing_error_is_counted_by_session() -> None:
    """Sessions at the same time share the server, and one must not use up another's error."""
    script = Script.of(turn(Error(529, times=1), Say("hello")))
    header = "x-claude-code-session-id"
    with ModelServer({"s": script}) as server:
        statuses = [
            ask(server, "/s/s/v1/messages", CLAUDE, **{header: session})[0]
            for session in ("a", "b", "a", "b")
        ]

    assert statuses == [529, 529, 200, 200]


@pytest.mark.parametrize(("path", "body"), [("messages", CLAUDE), ("responses", CODEX)])
def test_the_key_is_checked_and_never_kept(path: str, body: dict[str, Any]) -> None:
    """Only a request with the key proves that it arrived, and what is kept may be printed."""
    with ModelServer({"s": Script.of(Say("hello"))}) as server:
        refused, _, _ = ask(server, f"/s/s/v1/{path}", body, key="another")
        passed, _, _ = ask(server, f"/s/s/v1/{path}", body, key="", authorization=f"Bearer {KEY}")
        first, second = server.requests

    assert (refused, passed) == (401, 200)
    assert (first.has_key, second.has_key) == (False, True)
    assert KEY not in repr(server.requests)


@pytest.mark.parametrize(("path", "body"), [("messages", CLAUDE), ("responses", CODEX)])
def test_a_broken_stream_lacks_its_end(path: str, body: dict[str, Any]) -> None:
    """A stream that merely stopped could be taken for one that is complete."""
    script = Script.of((Say("hello"), Broken()))
    with ModelServer({"s": script}) as server, pytest.raises(http.client.IncompleteRead) as broken:
        ask(server, f"/s/s/v1/{path}", body)

    assert b"hello" in broken.value.partial


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [("messages", CLAUDE, "error"), ("responses", CODEX, "response.failed")],
)
def test_a_stream_can_end_in_an_error(path: str, body: dict[str, Any], last: str) -> None:
    """The status was sent by then, so a client must find the error among the events."""
    with ModelServer({"s": Script.of((Say("hello"), Fail("no luck")))}) as server:
        status, _, stream = ask(server, f"/s/s/v1/{path}", body)

    assert status == 200
    assert events(stream)[-1]["type"] == last
    assert "no luck" in json.dumps(events(stream)[-1])


def test_a_hanging_connection_ends_with_the_server() -> None:
    """A test whose client went away must not wait for its server."""
    with ModelServer({"s": Script.of((Say("hello"), Hang()))}) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        headers = {"x-api-key": KEY}
        connection.request("POST", "/s/s/v1/messages", json.dumps(CLAUDE), headers)
        response = connection.getresponse()
        while b"content_block_stop" not in response.readline():
            pass

    with pytest.raises(http.client.IncompleteRead):
        response.read()
    connection.close()


def test_what_is_not_there_is_told() -> None:
    """A misspelt script would else look like a model with nothing to say."""
    with ModelServer({"s": Script.of(Say("hello"))}) as server:
        status, _, body = ask(server, "/s/other/v1/messages", CLAUDE)
        elsewhere, _, _ = ask(server, "/v1/messages", CLAUDE)
        counted, _, count = ask(server, "/s/s/v1/messages/count_tokens", CLAUDE)

    assert status == 404
    assert "there is no script 'other'" in json.loads(body)["error"]["message"]
    assert elsewhere == 404
    assert (counted, json.loads(count)) == (200, {"input_tokens": 100})


def test_a_client_that_only_looks_is_answered() -> None:
    """Claude Code asks whether anybody is there, and Codex for a WebSocket before plain HTTP."""
    with ModelServer({}) as server:
        there, _, _ = ask(server, "/", method="HEAD")
        socket, _, _ = ask(server, "/s/s/v1/responses", method="GET", upgrade="websocket")

    assert (there, socket) == (200, 426)


def test_what_breaks_in_the_server_fails_its_test() -> None:
    """A client takes a dead server for a bad connection, and a test of those would pass."""
    unlike_any = {**CLAUDE, "messages": [{}]}
    with (
        pytest.raises(KeyError, match="role"),
        ModelServer({"s": Script.of()}) as server,
        pytest.raises(http.client.RemoteDisconnected),
    ):
        ask(server, "/s/s/v1/messages", unlike_any)


@pytest.mark.slow
def test_the_server_runs_on_the_command_line(tmp_path: Path) -> None:
    """So a script can be tried by hand."""
    script = tmp_path / "greet.json"
    script.write_text('{"turns": [[{"say": "hello"}]]}', "utf-8")
    argv = [sys.executable, Path(__file__).parent, f"greet={script}"]

    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            request = urllib.request.Request(
                f"{url}/v1/messages", json.dumps(CLAUDE).encode(), {"x-api-key": KEY}
            )
            with urllib.request.urlopen(request, timeout=30) as response:
                stream = response.read()
        finally:
            process.kill()

    assert b'"hello"' in stream
