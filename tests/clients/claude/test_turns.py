from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_evalarc.clients.claude.client import ClaudeClient
from tests.clients.claude.recorded import (
    NAMES,
    VERSIONS,
    answer,
    data,
    events,
    init,
    result,
    say,
    stream,
    system,
    text,
    use,
)

CHUNK = 100


def seen_at(content: bytes) -> int | None:
    """Return after which line a watcher sees the end; None if it never does."""
    watch = ClaudeClient().watcher()
    for place, line in enumerate(content.splitlines(keepends=True)):
        chunks = [line[start : start + CHUNK] for start in range(0, len(line), CHUNK)]
        if [watch(chunk) for chunk in chunks][-1]:
            return place
    return None


def last_result(name: str) -> int | None:
    found = [place for place, event in enumerate(events(name)) if event["type"] == "result"]
    return found[-1] if found else None


@pytest.mark.parametrize(
    "name", [it for it in NAMES if not it.endswith(("background-sub-agent", "background-killed"))]
)
def test_a_session_is_over_with_its_last_result(name: str) -> None:
    """One that is ended sooner loses work, and one that is not lives until its deadline."""
    assert seen_at(data(name)) == last_result(name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_not_over_while_something_runs_behind_it(version: str) -> None:
    """It takes another turn when that ends."""
    several = [event["type"] for event in events(f"{version}.background")].count("result")

    assert several == 2
    assert seen_at(data(f"{version}.background-killed")) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_results_that_come_together_end_a_session_with_the_first(version: str) -> None:
    """All that was done stands before it."""
    name = f"{version}.background-sub-agent"

    assert [event["type"] for event in events(name)][-2:] == ["result", "result"]
    assert seen_at(data(name)) == len(events(name)) - 2


BACKGROUND = system("task_started", task_id="b", is_backgrounded=True)


@pytest.mark.parametrize("status", ["killed", "stopped"])
def test_a_task_that_is_stopped_brings_no_other_turn(status: str) -> None:
    """The client itself ends what it does not wait for."""
    patched = system("task_updated", task_id="b", patch={"status": status})
    told = system("task_notification", task_id="b", status="stopped")

    assert seen_at(stream(init(), BACKGROUND, result(), patched, told)) == 3
    assert seen_at(stream(init(), BACKGROUND, result(), told)) == 3


def test_a_task_that_ends_by_itself_brings_one() -> None:
    """Between the two nothing tells that the session goes on."""
    patched = system("task_updated", task_id="b", patch={"status": "completed"})
    told = system("task_notification", task_id="b", status="completed")
    ended = (init(), BACKGROUND, result(), patched, told)

    assert seen_at(stream(*ended)) is None
    assert seen_at(stream(*ended, init(), say(text("More.")), result())) == 7


@pytest.mark.parametrize(
    "sent",
    [{"backgroundTaskId": "b"}, {"isAsync": True, "agentId": "b"}],
    ids=["command", "sub-agent"],
)
def test_the_older_client_tells_by_an_answer_what_runs_behind(sent: dict[str, Any]) -> None:
    """Its notice that a task has started does not say where."""
    call, told = say(use("Bash", command="x")), {**answer(), "tool_use_result": sent}
    started = system("task_started", task_id="b")

    assert seen_at(stream(init(), call, started, told, result())) is None
    assert seen_at(stream(init(), call, started, answer(), result())) == 4


def test_what_is_no_event_ends_nothing() -> None:
    """A tool's output may hold any words, and a line may be torn."""
    words = json.dumps(result()).encode()
    told = answer(content=words.decode())

    watch = ClaudeClient().watcher()

    assert not watch(words)
    assert not watch(words + b"\n")
    assert not watch(b'["result"]\n{"type":"result"}\nnonsense\n')
    assert not watch(stream(told))
    assert watch(stream(result()))
    assert watch(b"more\n")


def test_a_start_is_seen_with_the_list_of_what_a_session_has() -> None:
    """Hooks that run at the start are told before it."""
    watch = ClaudeClient().start_watcher()
    *before, start = stream(system("hook_started"), init()).splitlines(keepends=True)

    assert [watch(line) for line in before] == [False]
    assert watch(start)
