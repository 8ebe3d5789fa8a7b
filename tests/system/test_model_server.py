"""The real clients play scripts: what the harness is tested with must do what it is said to do."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_evalarc.isolation.command import Ended
from tests.model_server import (
    Broken,
    Edit,
    Error,
    Hang,
    ModelServer,
    Quota,
    Read,
    Run,
    Say,
    Script,
    Skill,
    Think,
    Usage,
    Write,
    openai,
    slow,
    turn,
)
from tests.model_server.tasks import solve
from tests.needs import needs_claude, needs_codex
from tests.system.bare import BareClient, Session

pytestmark = pytest.mark.slow

TASKS = Path(__file__).parents[2] / "evals" / "tasks"


def completed(bare: BareClient, session: Session) -> bool:
    """Return whether a client says that its session was completed."""
    if bare.name == "claude":
        return session.last.get("is_error") is False
    return session.last.get("type") == "turn.completed"


def results(bare: BareClient, script: str) -> tuple[str, ...]:
    """Return what the tools of a session gave back."""
    last = bare.server.turns(script)[-1].conversation
    assert last is not None
    return last.results


@contextmanager
def cancelled_when(happens: Callable[[], object]) -> Iterator[threading.Event]:
    """Give an event that is set as soon as something happens, so that no clock decides."""
    cancelled, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not happens() and not over.is_set():
            time.sleep(0.02)
        cancelled.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield cancelled
    finally:
        over.set()
        watcher.join()


def test_one_script_drives_each_client(bare: BareClient) -> None:
    """A trial of one client says something about another only if the model did the same."""
    (bare.project / "old.txt").write_text("one\ntwo\n", "utf-8")
    script = Script.of(
        turn(Think("Let me see."), Say("I look first."), Read("old.txt")),
        (Write("old.txt", 'ü "quoted"\n\n$HOME\n'), Write("made/new.txt", "new\n")),
        (Edit("old.txt", "$HOME\n", "$TMPDIR\nlast\n"),),
        turn(Run("cat made/new.txt > copied.txt")),
        Say("That is all."),
    )
    bare.server.add("edit", script)

    session = bare.run("edit")

    assert completed(bare, session)
    assert (bare.project / "old.txt").read_text("utf-8") == 'ü "quoted"\n\n$TMPDIR\nlast\n'
    assert (bare.project / "made/new.txt").read_text("utf-8") == "new\n"
    assert (bare.project / "copied.txt").read_text("utf-8") == "new\n"
    seen = bare.server.turns("edit")
    assert [request.conversation.turn for request in seen] == [0, 1, 2, 3, 4]
    assert {request.conversation.folder for request in seen} == {str(bare.project)}
    assert {request.has_key for request in bare.server.requests} == {True}
    assert len({request.session for request in seen}) == 1
    assert "one" in results(bare, "edit")[0]


def test_usage_reaches_the_clients_report(bare: BareClient) -> None:
    """Costs are read from the report, and the APIs count what came from a cache differently."""
    usage = Usage(
        input_tokens=1001, output_tokens=52, cache_read_tokens=303, cache_write_tokens=204
    )
    bare.server.add("say", Script.of(turn(Say("Hello."), usage=usage)))

    told = bare.run("say").last["usage"]

    if bare.name == "claude":
        caches = told["cache_read_input_tokens"], told["cache_creation_input_tokens"]
        assert (told["input_tokens"], told["output_tokens"], *caches) == (1001, 52, 303, 204)
    else:
        caches = told["cached_input_tokens"], told["cache_write_input_tokens"]
        assert (told["input_tokens"], told["output_tokens"], *caches) == (1508, 52, 303, 204)


@pytest.mark.parametrize("is_offered", [True, False])
def test_a_skill_is_loaded_where_it_is_offered(bare: BareClient, is_offered: bool) -> None:
    """The same script serves both configurations of a task."""
    if is_offered:
        bare.add_skill("greet", "Say GREETINGS to the world.")
    bare.server.add("greet", Script.of(Skill("greet"), Write("greeting.txt", "GREETINGS\n")))

    session = bare.run("greet")

    assert completed(bare, session)
    assert (bare.project / "greeting.txt").read_text("utf-8") == "GREETINGS\n"
    bodies = [json.dumps(request.body) for request in bare.server.turns("greet")]
    assert ["GREETINGS to the world" in body for body in bodies] == (
        [False, True, True] if is_offered else [False, False]
    )


def test_a_tool_that_fails_ends_no_session(bare: BareClient) -> None:
    """An agent may go on after a failure, and what failed must be told to it."""
    script = Script.of(
        Skill("no-such-skill", anyway=True),
        Run("echo about to fail; exit 3"),
        Read("missing.txt"),
        Edit("missing.txt", "a\n", "b\n"),
        Say("Nothing worked."),
    )
    bare.server.add("fail", script)

    session = bare.run("fail")

    assert completed(bare, session)
    skill, command, read, edit = results(bare, "fail")
    assert "no-such-skill" in skill
    assert "about to fail" in command
    assert "code 3" in command
    for told in (read, edit):
        assert re.search("does not exist|No such file", told)
    assert [path.name for path in bare.project.iterdir() if path.is_file()] == []


REFUSALS = {
    "bad-request": (Error(400), 400, "The request is not valid."),
    "no-such-key": (Error(401), 401, "unexpected status 401"),
    "forbidden": (Error(403), 403, "unexpected status 403"),
    "no-such-model": (Error(404), 404, "does not exist or you do not have access"),
    "too-many": (Error(429), 429, "last status: 429"),
    "overloaded": (Error(529), 529, "unexpected status 529"),
    "no-credit": (Quota(), 400, "Quota exceeded"),
    "broken": (Broken(), None, "stream disconnected before completion"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_an_api_that_refuses_ends_the_session_in_an_error(bare: BareClient, kind: str) -> None:
    """Each kind of refusal is told in the client's own words, which outcomes are decided from."""
    step, status, words = REFUSALS[kind]
    bare.server.add(kind, Script.of(Write("begun.txt", "begun\n"), (step,)))

    session = bare.run(kind)

    assert (bare.project / "begun.txt").exists()
    assert session.exit.reason is Ended.EXITED
    assert session.exit.status == 1
    if bare.name == "claude":
        assert session.last["is_error"] is True
        assert session.last["api_error_status"] == status
    else:
        assert session.last["type"] == "turn.failed"
        assert words in session.last["error"]["message"]


def test_a_wrong_key_is_refused(bare: BareClient) -> None:
    """What passes with any key would not show that the right one arrived."""
    bare.server.add("say", Script.of(Say("Hello.")))

    session = bare.run("say", key="another-key")

    assert not completed(bare, session)
    assert {request.has_key for request in bare.server.turns("say")} == {False}


def test_a_busy_moment_passes(bare: BareClient) -> None:
    """A client tries again by itself, so one refusal is not yet the end."""
    script = Script.of(turn(Error(529, times=1), Write("made.txt", "made\n")), Say("Done."))
    bare.server.add("busy", script)

    session = bare.run("busy")

    assert completed(bare, session)
    assert (bare.project / "made.txt").exists()
    turns = [request.conversation.turn for request in bare.server.turns("busy")]
    assert turns == [0, 0, 1]


def test_a_connection_that_hangs_is_waited_for(bare: BareClient) -> None:
    """Only a deadline of the harness ends such a session, which then has no end of its own."""
    bare.server.add("hang", Script.of(Hang()))

    with cancelled_when(lambda: bare.server.turns("hang")) as cancelled:
        session = bare.run("hang", cancelled=cancelled)

    assert session.exit.reason is Ended.CANCELLED
    assert not completed(bare, session)
    assert session.exit.survivors == ()


def test_a_slow_tool_outlives_no_session(bare: BareClient) -> None:
    """Clients start commands in sessions of their own, where the end of the client is not heard."""
    begin = "touch begun; exec "
    script = Script.of(Run(begin + slow(600).command), Write("late.txt", "late\n"))
    bare.server.add("slow", script)

    with cancelled_when((bare.project / "begun").exists) as cancelled:
        session = bare.run("slow", cancelled=cancelled)

    assert session.exit.reason is Ended.CANCELLED
    assert session.exit.survivors == ()
    assert not completed(bare, session)
    assert len(bare.server.turns("slow")) == 1


@needs_codex
@pytest.mark.parametrize("client_name", ["codex"])
def test_a_command_that_codex_hands_back_is_waited_for(
    bare: BareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build on a busy machine takes long, and the next turn must find it done."""
    monkeypatch.setattr(openai, "LONGEST_COMMAND_MS", 250)
    script = Script.of(Run(f"{slow(4).command}; touch made"), Run("ls made"), Say("Done."))
    bare.server.add("slow", script)

    session = bare.run("slow")

    assert completed(bare, session)
    waits = [bool(request.conversation.unfinished) for request in bare.server.turns("slow")]
    assert waits[:2] == [False, True]
    assert "code 0" in results(bare, "slow")[-1]


@needs_claude
@needs_codex
def test_sessions_share_one_server(tmp_path: Path, model_server: ModelServer) -> None:
    """Trials run in parallel, each with the script of its own client and task."""
    names = [f"{client}-{number}" for number in range(2) for client in ("claude", "codex")]
    for name in names:
        model_server.add(name, Script.of(Write("made.txt", f"{name}\n"), Read("made.txt")))
        (tmp_path / name).mkdir()
    bares = [BareClient(name.partition("-")[0], tmp_path / name, model_server) for name in names]

    with ThreadPoolExecutor(len(names)) as pool:
        sessions = list(pool.map(lambda pair: pair[0].run(pair[1]), zip(bares, names, strict=True)))

    assert [completed(bare, session) for bare, session in zip(bares, sessions, strict=True)] == [
        True
    ] * len(names)
    assert [(bare.project / "made.txt").read_text("utf-8") for bare in bares] == [
        f"{name}\n" for name in names
    ]


@pytest.mark.parametrize("task", ["store-durability", "settings-durability"])
def test_a_shipped_task_is_solved(bare: BareClient, task: str) -> None:
    """The solution must come out byte by byte, through the tools of either client."""
    shutil.copytree(TASKS / task / "starter", bare.project, dirs_exist_ok=True)
    bare.server.add("solve", solve(TASKS / task))

    session = bare.run("solve")

    assert completed(bare, session)
    solution = TASKS / task / "solution"
    for file in (path for path in solution.rglob("*") if path.is_file()):
        assert (bare.project / file.relative_to(solution)).read_bytes() == file.read_bytes()
