from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.claude.events import Init
from pytest_evalarc.clients.claude.session_file import MOST_BYTES, session_usage
from pytest_evalarc.model.transcript import Usage
from tests.clients.claude.recorded import data, events

SESSION = "00000000-0000-4000-8000-00000000000a"
START = Init(subtype="init", session_id=SESSION, cwd="/eval/run_1/work")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return where the client keeps its session."""
    folder = tmp_path / "home" / ".claude" / "projects" / "-eval-run-1-work"
    folder.mkdir(parents=True)
    return folder / f"{SESSION}.jsonl"


def usage(tmp_path: Path, start: Init = START) -> Usage | None:
    return session_usage(tmp_path / "home", start)


def answer(id: str, model: str = "m", **tokens: Any) -> str:
    message = {
        "id": id,
        "model": model,
        "usage": {"input_tokens": 10, "output_tokens": 1, **tokens},
    }
    return json.dumps({"type": "assistant", "message": message, "a_key": 1}) + "\n"


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("2.1.332.edit", (4016, 205, 1200, 800)),
        ("2.1.332.killed-sigterm", (2004, 103, 600, 400)),
    ],
)
def test_the_file_has_the_tokens_of_every_answer(
    name: str, tokens: tuple[int, int, int, int], tmp_path: Path
) -> None:
    """A session that was killed used them, whether it could tell or not."""
    start = Init.model_validate(events(name)[0])
    project = start.cwd.replace("/", "-")
    file = tmp_path / "home/.claude/projects" / project / f"{start.session_id}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(data(f"{name}.session"))

    found = usage(tmp_path, start)

    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    assert found == Usage(**dict(zip(names, tokens, strict=True)))


def test_an_answer_of_several_parts_counts_once_and_with_its_last_count(
    tmp_path: Path, kept: Path
) -> None:
    """Each part is a line of its own, with the tokens of the whole."""
    kept.write_text(answer("1", output_tokens=1) + answer("1", output_tokens=9) + answer("2"))

    assert usage(tmp_path) == Usage(input_tokens=20, output_tokens=10)


def test_what_is_no_answer_of_a_model_counts_nothing(tmp_path: Path, kept: Path) -> None:
    """Prompts stand between, the client speaks for itself, and the last line may be torn."""
    prompt = json.dumps({"type": "user", "message": {"content": "x"}}) + "\n"
    kept.write_text(prompt + answer("1") + answer("2", "<synthetic>") + answer("3")[:-20])

    assert usage(tmp_path) == Usage(input_tokens=10, output_tokens=1)


def test_sub_agents_have_files_of_their_own(tmp_path: Path, kept: Path) -> None:
    """They are paid like the rest."""
    agents = kept.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a1.jsonl").write_text(answer("2") + answer("1"))
    (agents / "agent-a1.meta.json").write_text("{}")
    (agents / "notes.jsonl").write_text(answer("3"))
    kept.write_text(answer("1"))

    assert usage(tmp_path) == Usage(input_tokens=20, output_tokens=2)


def test_without_an_answer_the_tokens_are_unknown(tmp_path: Path, kept: Path) -> None:
    """Unknown is not zero."""
    assert usage(tmp_path) is None
    kept.write_text("")
    assert usage(tmp_path) is None


def test_a_count_that_one_answer_lacks_is_unknown(tmp_path: Path, kept: Path) -> None:
    """A sum of the others would look like all of them."""
    kept.write_text(answer("1") + answer("2", output_tokens=None))

    assert usage(tmp_path) == Usage(input_tokens=20)


def linked_file(kept: Path, elsewhere: Path) -> None:
    kept.symlink_to(elsewhere)


def linked_folder(kept: Path, elsewhere: Path) -> None:
    kept.parent.rmdir()
    kept.parent.symlink_to(elsewhere.parent)
    elsewhere.rename(elsewhere.parent / kept.name)


def pipe(kept: Path, elsewhere: Path) -> None:
    os.mkfifo(kept)


def folder(kept: Path, elsewhere: Path) -> None:
    kept.mkdir()


def too_long(kept: Path, elsewhere: Path) -> None:
    kept.write_text(answer("1"))
    os.truncate(kept, MOST_BYTES + 1)


def linked_agents(kept: Path, elsewhere: Path) -> None:
    kept.write_text(answer("1"))
    agents = kept.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a1.jsonl").symlink_to(elsewhere)


@pytest.mark.parametrize(
    "plant", [linked_file, linked_folder, pipe, folder, too_long, linked_agents]
)
def test_what_an_agent_may_have_put_there_leaves_the_tokens_unknown(
    plant: Any, tmp_path: Path, kept: Path
) -> None:
    """It can write to its home: nothing outside may be read, and nothing may hang or fill up."""
    elsewhere = tmp_path / "elsewhere" / "secret.jsonl"
    elsewhere.parent.mkdir()
    elsewhere.write_text(answer("9"))

    plant(kept, elsewhere)

    assert usage(tmp_path) is None


def test_a_line_without_an_end_is_read_in_parts(tmp_path: Path, kept: Path) -> None:
    """Holes read as zeros, in one line as long as the file."""
    kept.write_text(answer("1"))
    os.truncate(kept, MOST_BYTES)

    assert usage(tmp_path) == Usage(input_tokens=10, output_tokens=1)


@pytest.mark.parametrize("session", ["", "../../x", f"{SESSION}/..", SESSION.upper(), "a" * 36])
def test_a_session_that_could_be_a_path_is_none(session: str, tmp_path: Path) -> None:
    """The name comes from the stream."""
    assert usage(tmp_path, START.model_copy(update={"session_id": session})) is None


@pytest.mark.parametrize("cwd", ["", "/" * 5000, "/a\0b", "/../..", "/é\ud800"])
def test_any_folder_that_a_session_names_is_looked_for_below_the_home(
    cwd: str, tmp_path: Path, kept: Path
) -> None:
    """Whatever it is, it becomes one plain name."""
    kept.write_text(answer("1"))

    assert usage(tmp_path, START.model_copy(update={"cwd": cwd})) is None
