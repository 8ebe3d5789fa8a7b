from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.clients.codex import session_file
from pytest_evalarc.clients.codex.session_file import session_usage
from pytest_evalarc.model.transcript import Usage
from tests.clients.codex.recorded import FOLDER, THREAD

DAY = ".codex/sessions/2026/11/30"
COUNTS = {
    "input_tokens": 1000,
    "cached_input_tokens": 300,
    "cache_write_input_tokens": 200,
    "output_tokens": 50,
}
USAGE = Usage(input_tokens=500, output_tokens=50, cache_read_tokens=300, cache_write_tokens=200)


def kept(home: Path, content: bytes, *, day: str = DAY, thread: str = THREAD) -> Path:
    """Keep a session's file where the client does."""
    path = home / day / f"rollout-2026-11-30T10-31-22-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def entry(counts: Any = COUNTS, **facts: Any) -> bytes:
    info = {"total_token_usage": counts, "last_token_usage": counts}
    payload = {"type": "token_count", "info": info, "rate_limits": None}
    told = {"timestamp": "2026-11-30T10:31:22.459Z", "type": "event_msg", "payload": payload}
    return json.dumps({**told, **facts}, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "thread", "usage"),
    [
        (
            "edit",
            "01a22c02-5d2f-7df3-871e-ed88e9f734c9",
            Usage(
                input_tokens=4259, output_tokens=300, cache_read_tokens=1800, cache_write_tokens=0
            ),
        ),
        (
            "killed-sigterm",
            "01a22c02-93f3-7de3-95ad-a3442d6e7715",
            Usage(input_tokens=704, output_tokens=50, cache_read_tokens=300, cache_write_tokens=0),
        ),
    ],
)
def test_the_file_of_a_recorded_session_tells_its_tokens(
    tmp_path: Path, name: str, thread: str, usage: Usage
) -> None:
    """They are those that the stream tells of a session that came to its end."""
    kept(tmp_path, (FOLDER / f"{name}.rollout.jsonl").read_bytes(), thread=thread)

    assert session_usage(tmp_path, thread) == usage


def test_the_last_tokens_count(tmp_path: Path) -> None:
    """Each entry tells of the whole session so far; one without tokens tells of none."""
    first = entry({**COUNTS, "input_tokens": 600})
    empty = entry(payload={"type": "token_count", "info": None, "rate_limits": {}})
    kept(tmp_path, first + entry() + empty + b'{"type":"event_msg"}\n' + entry()[:-20])

    assert session_usage(tmp_path, THREAD) == USAGE


def test_only_the_session_s_own_file_is_looked_at(tmp_path: Path) -> None:
    """Sub-agents, and sessions that the agent started itself, have files beside it."""
    other = "01a22c02-0000-7000-8000-000000000000"
    kept(tmp_path, entry({**COUNTS, "output_tokens": 9}), thread=other)
    kept(tmp_path, entry({**COUNTS, "output_tokens": 9}), day=".codex/sessions")
    kept(tmp_path, entry({**COUNTS, "output_tokens": 9}), day=".codex/sessions/2026/11/30/01")
    kept(tmp_path, entry({**COUNTS, "output_tokens": 9}), day=".codex/sessions/2026/x/30")

    assert session_usage(tmp_path, THREAD) is None
    kept(tmp_path, entry())
    assert session_usage(tmp_path, THREAD) == USAGE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"token_count",
        b'"token_count"\n' * 3,
        entry({**COUNTS, "input_tokens": -1}),
        entry({**COUNTS, "input_tokens": "7"}),
        entry(None),
        entry([]),
        entry(type="response_item"),
        entry(payload={"type": "token_count"}),
        b'{"type":"event_msg","type":"event_msg"}' + entry(),
        b"[" * 5000 + b'"token_count"',
    ],
)
def test_what_is_no_entry_leaves_the_tokens_unknown(tmp_path: Path, content: bytes) -> None:
    """The agent can write the file, and an unknown number is not 0."""
    kept(tmp_path, content)

    assert session_usage(tmp_path, THREAD) is None


@pytest.mark.parametrize("thread", ["", "../../x", "*", THREAD.upper(), f"{THREAD}\n", "a" * 36])
def test_an_id_that_is_none_of_the_client_s_names_no_file(tmp_path: Path, thread: str) -> None:
    """It comes from the stream, and becomes part of a name."""
    kept(tmp_path, entry(), thread=THREAD)

    assert session_usage(tmp_path, thread) is None


def test_no_link_is_followed(tmp_path: Path) -> None:
    """The agent could lead the harness to a file of its own choice."""
    real, home = tmp_path / "real", tmp_path / "home"
    path = kept(real, entry())

    for part in (".codex", ".codex/sessions", DAY, path.relative_to(real)):
        link = home / part
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(real / part)
        assert session_usage(home, THREAD) is None, part
        link.unlink()

    link = tmp_path / "link"
    link.symlink_to(real)
    assert session_usage(link, THREAD) is None
    assert session_usage(real, THREAD) == USAGE


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """A FIFO would hold the harness for ever."""
    path = kept(tmp_path, b"")
    path.unlink()
    os.mkfifo(path)
    assert session_usage(tmp_path, THREAD) is None

    path.unlink()
    path.mkdir()
    assert session_usage(tmp_path, THREAD) is None


def test_a_file_without_bounds_is_looked_at_from_its_end_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent can write more than memory holds."""
    monkeypatch.setattr(session_file, "TAIL_BYTES", 1000)
    path = kept(tmp_path, entry() + b"x" * 2000)
    assert session_usage(tmp_path, THREAD) is None

    with path.open("ab") as file:
        file.truncate(1 << 40)
    assert session_usage(tmp_path, THREAD) is None

    path.write_bytes(b"x" * 2000 + b"\n" + entry())
    assert session_usage(tmp_path, THREAD) == USAGE


def test_folders_without_bounds_are_not_searched_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent can make as many as it likes."""
    monkeypatch.setattr(session_file, "MOST_NAMES", 3)
    for number in range(10):
        (tmp_path / DAY / f"{number}").mkdir(parents=True)
    looked_at: list[str] = []
    monkeypatch.setattr(session_file, "_tail", lambda _, name: looked_at.append(name) or b"")
    for number in range(10):
        kept(tmp_path, b"", thread=THREAD, day=f".codex/sessions/20{number}0/11/30")

    assert session_usage(tmp_path, THREAD) is None
    assert len(looked_at) <= 3


def test_a_home_without_any_of_it_has_no_tokens(tmp_path: Path) -> None:
    """A run folder is removed as a rule, and sessions are read again later."""
    assert session_usage(tmp_path / "gone", THREAD) is None
    assert session_usage(tmp_path, THREAD) is None


@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_content_raises(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int
) -> None:
    """Whatever the agent left there, the trial has its result."""
    home, whole = tmp_path_factory.getbasetemp() / "home", entry()
    kept(home, whole[:place] + noise + whole[place:])

    found = session_usage(home, THREAD)

    assert found is None or Usage.model_validate_json(found.model_dump_json()) == found
