"""Live lines: what they tell of a running trial, how they are drawn, and when they are silent."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from pytest_evalarc.plugin.live import Followed, Live, drawing, live_line
from tests.needs import needs_bwrap
from tests.plugin.project import TASK, Project

ASSISTANT = {
    "type": "assistant",
    "message": {
        "id": "m1",
        "content": [{"type": "text", "text": "…"}, {"type": "tool_use", "id": "1"}],
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 5},
    },
}


def stream(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize(
    ("events", "calls", "tokens"),
    [
        ([{"type": "tool_call"}, {"type": "usage", "input_tokens": 7, "output_tokens": 2}], 1, 9),
        ([ASSISTANT, ASSISTANT], 2, 100),
        ([{"type": "item.started", "item": {"type": "command_execution"}}], 1, 0),
        ([{"type": "item.started", "item": {"type": "reasoning"}}], 0, 0),
        ([{"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 1}}], 0, 10),
        ([7, None, {"type": "assistant", "message": {"id": "x", "content": [3]}}], 0, 0),
    ],
)
def test_calls_and_tokens_are_counted_in_every_known_stream(
    events: list[object], calls: int, tokens: int
) -> None:
    """Each client writes its own; what none of them writes is passed over."""
    followed = Followed()

    for byte in stream(*events):
        followed.take(bytes([byte]))

    assert (followed.calls, followed.tokens) == (calls, tokens)


def test_a_growing_transcript_is_read_once(tmp_path: Path) -> None:
    """A session of an hour must not be read again every second."""
    path, followed = tmp_path / "transcript.jsonl", Followed()
    followed.look(path)
    path.write_bytes(stream({"type": "tool_call"}) + b'{"type": "tool')
    followed.look(path)
    first = followed.calls
    with path.open("ab") as file:
        file.write(b'_call"}\n')

    followed.look(path)
    followed.look(path)

    assert (first, followed.calls) == (1, 2)


def test_each_announced_trial_has_a_line(tmp_path: Path) -> None:
    """A file that is being written, or was damaged, costs its own line alone."""
    (tmp_path / "transcript.jsonl").write_bytes(stream(ASSISTANT))
    facts = {
        "name": "hello claude with-skills 3",
        "began": 100.0,
        "deadline_s": 480.0,
        "transcript": str(tmp_path / "transcript.jsonl"),
    }
    folder = tmp_path / "live"
    folder.mkdir()
    (folder / "a").write_text(json.dumps(facts))
    (folder / "b").write_text("{")
    elsewhere = {"name": "hello claude with-skills 4 on hostA", "transcript": None}
    (folder / "d").write_text(json.dumps(facts | elsewhere))
    (folder / ".c.tmp").write_text(json.dumps(facts))

    live = Live(folder, io.StringIO())

    assert live.lines(now=135.0) == [
        "hello claude with-skills 3: 35 of 480 s, 1 tool call, 100 tokens",
        "hello claude with-skills 4 on hostA: 35 of 480 s",
    ]
    assert live.lines(now=136.0)[0].endswith("36 of 480 s, 1 tool call, 100 tokens")
    assert Live(tmp_path / "none", io.StringIO()).lines(now=1.0) == []


def test_the_cursor_comes_back_and_no_line_is_wider_than_the_terminal() -> None:
    """What pytest writes next must stand where it would stand without."""
    lines = [live_line("t" * 90, elapsed_s=1, deadline_s=2, followed=Followed()) for _ in range(12)]

    drawn = drawing(lines, width=40)

    shown = drawn.partition("\x1b7")[2].removesuffix("\x1b8").split("\x1b[B\r")[1:]
    assert drawn.startswith("\x1bD" * 9 + "\x1b[9A\x1b7")
    assert drawn.endswith("\x1b8")
    assert shown == ["t" * 38 + "…"] * 8 + ["… and 4 more trials"]


def on_a_terminal(project: Project, *arguments: str, **env: str) -> str:
    """Run pytest on a terminal of its own, and return all that was written there."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in project.env.items() if name not in ("CI", "NO_COLOR")}
    process = subprocess.Popen(
        project.argv(*arguments),
        cwd=project.root,
        env={**kept, "TERM": "xterm", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    # The terminal is gone once nobody writes to it any more.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65536):
            written += chunk
    os.close(ours)
    assert process.wait() == 0, written.decode()
    return written.decode()


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_running_trial_is_seen_on_a_terminal(workers: tuple[str, ...], project: Project) -> None:
    """Also when workers run it; and nothing of the lines is left behind."""
    project.add_task("hurried", TASK.replace("agent = 60", "agent = 4"))
    run = ("--evalarc-task=hurried", "--evalarc-client=slow", "-k", "slow", "--evalarc-live")

    written = on_a_terminal(project, *workers, *run)

    assert "hurried slow with-skills 1: " in written
    assert " of 424 s, 0 tool calls" in written
    # Every drawing is taken back before anything else is written.
    assert written.count("\x1bD\x1b[1A") + written.count("\x1bD\x1bD\x1b[2A") <= written.count(
        "\x1b7\x1b[B\r\x1b[J\x1b8"
    )
    assert not project.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("env", [{"CI": "true"}, {"TERM": "dumb"}], ids=["ci", "dumb"])
def test_live_lines_are_silent_where_nobody_looks(env: dict[str, str], project: Project) -> None:
    """In a log they would be thousands of lines."""
    project.add_task("hurried", TASK.replace("agent = 60", "agent = 2"))
    run = ("--evalarc-task=hurried", "--evalarc-client=slow", "-k", "slow and with-skills and run")

    written = on_a_terminal(project, *run, "--evalarc-live", **env)

    assert "tool calls" not in written
    assert "\x1b7" not in written


@needs_bwrap
@pytest.mark.slow
def test_nothing_of_live_lines_breaks_a_run(project: Project) -> None:
    """Where its folder cannot be made, a trial runs all the same."""
    blocked = project.eval_root / "b" / "live"
    blocked.parent.mkdir(parents=True, mode=0o700)
    project.eval_root.chmod(0o700)
    blocked.write_text("in the way")

    session = project.pytest("--evalarc-task=hello", "--evalarc-batch=b", "--evalarc-live")

    assert session.ret == 0
    assert session.counts == {"passed": 16}
