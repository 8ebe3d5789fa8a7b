from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.transcript import Step, Transcript
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.reporting.transcripts import KeptTrial, read_kept_trial, session_lines
from tests.documents import result_of, write_trials
from tests.evals import registry
from tests.reporting.sessions import PROMPT, SESSION, TORN, call, finished

STREAM = """\
{"type": "start", "format": "evalarc.stream.v1", "cwd": "/run/project", "skills": ["tidy"]}
{"type": "tool_call", "id": "1", "kind": "read", "name": "read", "target": "/run/project/a.py"}
{"type": "tool_result", "id": "1", "is_error": false, "content": "x = 1"}
{"type": "response", "text": "Done."}
{"type": "completion", "is_error": false}
"""


@pytest.fixture
def clients() -> Callable[[str], Client]:
    return registry().clients.get


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a succeeded trial with its stream."""
    found = result_of(write_trials(tmp_path), Outcome.SUCCEEDED).parent
    (found / "transcript.jsonl").write_text(STREAM)
    return found


def kept(tmp_path: Path, transcript: Transcript, outcome: Outcome = Outcome.SUCCEEDED) -> KeptTrial:
    result = finished(tmp_path, outcome)
    folder = result_of(tmp_path / "results/tiny/oracle/b1", outcome).parent
    plan = read_model(folder.parent / "plan.json", PlanDoc)
    entry = next(entry for entry in plan.trials if entry.folder == folder.name)
    return KeptTrial(plan=plan, entry=entry, result=result, transcript=transcript)


def text(trial: KeptTrial, *, width: int = 100, full: bool = False) -> str:
    return "\n".join(session_lines(trial, prompt=PROMPT, width=width, full=full))


def test_a_kept_session_is_read_again(folder: Path, clients: Callable[[str], Client]) -> None:
    """Its plan says which client wrote the stream, and so how it is read."""
    trial = read_kept_trial(folder, clients)

    assert trial.entry.folder == folder.name
    assert trial.result is not None
    assert [tool.target for tool in trial.transcript.tool_calls] == ["a.py"]
    assert trial.transcript.response == "Done."
    assert trial.warnings == ()


def test_a_folder_can_be_named_from_within(
    folder: Path, clients: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks around in results is already there."""
    monkeypatch.chdir(folder)

    assert read_kept_trial(Path(), clients).entry.folder == folder.name


def test_a_torn_stream_is_shown_as_far_as_it_can_be(
    folder: Path, clients: Callable[[str], Client]
) -> None:
    """A session that was killed is the one that somebody wants to look at."""
    (folder / "transcript.jsonl").write_text(STREAM[:250])

    trial = read_kept_trial(folder, clients)

    assert len(trial.transcript.tool_calls) == 1
    assert trial.warnings == (
        "parts of the client's stream were not understood, and are not shown",
    )


@pytest.mark.parametrize("damage", [None, "", "{", '{"schema_version": "2.0"}'])
def test_a_damaged_result_leaves_the_session(
    folder: Path, clients: Callable[[str], Client], damage: str | None
) -> None:
    """The stream is another file, and says most of what there is to see."""
    (folder / "result.json").unlink()
    if damage is not None:
        (folder / "result.json").write_text(damage)

    trial = read_kept_trial(folder, clients)

    assert trial.result is None
    assert len(trial.transcript.tool_calls) == 1
    (warning,) = trial.warnings
    assert "result.json" in warning
    assert warning.endswith("the session is shown without it")


def test_an_edited_result_is_not_shown_beside_the_session(
    folder: Path, clients: Callable[[str], Client]
) -> None:
    """It says otherwise than its own rows, here as everywhere."""
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"success": "pass"', '"success": "fail"'))

    trial = read_kept_trial(folder, clients)

    assert trial.result is None
    assert "was edited" in trial.warnings[0]


def test_what_is_no_trial_is_told(folder: Path, clients: Callable[[str], Client]) -> None:
    """One sentence each, which says what a trial's folder looks like."""
    (folder.parent / "trial-9-other").mkdir()

    for wrong in (folder.parent, folder.parent / "gone", folder / "result.json", Path("/")):
        with pytest.raises(DocumentError, match="is no folder of a trial"):
            read_kept_trial(wrong, clients)
    with pytest.raises(DocumentError, match="is no trial of the plan beside it"):
        read_kept_trial(folder.parent / "trial-9-other", clients)


def test_a_trial_without_a_session_is_told(folder: Path, clients: Callable[[str], Client]) -> None:
    """It was not prepared, so nobody said anything."""
    (folder / "transcript.jsonl").unlink()

    with pytest.raises(DocumentError, match="a trial without a session has none"):
        read_kept_trial(folder, clients)


def test_a_client_that_nobody_offers_is_told(
    folder: Path, clients: Callable[[str], Client]
) -> None:
    """It may stand in a conftest, which only pytest reads."""
    plan = folder.parent / "plan.json"
    plan.write_text(plan.read_text().replace('"oracle"', '"shell"'))

    with pytest.raises(UsageError, match="'shell'"):
        read_kept_trial(folder, clients)


def test_a_session_is_told_from_its_prompt_to_its_end(tmp_path: Path) -> None:
    """Who said what, what was called with which target, what came back, and how it ended."""
    trial = kept(tmp_path, SESSION)

    assert (
        text(trial)
        == f"""\
tiny with oracle: {trial.entry.folder}
  model big-1; model small-1; client version 2.1
  offered: skills tidy; mcp servers docs, web

user
  {PROMPT}

agent (big-1), 12:30:05
  Where is it?
  I look.
  > Read a.py
    one
    two
  ! Bash false [error]
    Exit code 1

system
  A reminder.

agent (big-1)
  > Task
    agent (small-1)
      Deep.
      > Read deep.py
        one
        two
    found it

agent
  Done.

agent
  ? Skill tidy
    [no result was seen]

hooks: SessionStart (SessionStart:startup) succeeded
hooks: Stop its end was not seen
used: 100 input, 20 output, 300 read from cache, 40 written to cache tokens, 0.1250 US dollars
ended: completed, end_turn
trial: completed after 12.5 s, succeeded"""
    )


def test_a_fault_and_a_cause_are_told(tmp_path: Path) -> None:
    """They are what somebody looks for who opens a session that failed."""
    told = text(kept(tmp_path, TORN, Outcome.FAILED))

    assert "used: unknown\n" in told
    assert "ended: the stream tells of no end; api_unavailable: 529 overloaded\n" in told
    assert "trial: completed after 12.5 s, failed (code: adds)" in told


def test_a_long_result_is_cut_and_says_so(tmp_path: Path) -> None:
    """A file of thousands of lines would hide the session; what is cut can be asked for."""
    lines = "\n".join(f"line {number}" for number in range(100))
    trial = kept(
        tmp_path, Transcript(events=1, interpreted=True, tool_calls=(call("1", result=lines),))
    )

    short, whole = text(trial), text(trial, full=True)

    assert "line 7\n" in short
    assert "line 8\n" not in short
    assert "[734 of 789 characters are left out; --full shows them]" in short
    assert all(f"line {number}\n" in whole for number in range(100))
    assert "left out" not in whole


def test_lines_fit_the_terminal(tmp_path: Path) -> None:
    """A path or a text of any length is wrapped below its own margin."""
    wide = call("1", name="Open", target="x" * 200, result=f"{'words ' * 60}\n{'=' * 20_000}")
    trial = kept(tmp_path, Transcript(events=1, interpreted=True, tool_calls=(wide,)))

    for width in (1, 40, 60, 120):
        lines = text(trial, width=width, full=True).splitlines()
        assert max(map(len, lines[1:])) <= max(width, 40)
        assert sum(line.count("x") for line in lines[1:]) == 200


def test_what_a_client_says_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Titles, colours and cursors are the terminal's owner's."""
    evil = "\x1b]0;owned\x07\x1b[2J\r\u202e\ud800\0"
    transcript = Transcript(
        events=1,
        interpreted=True,
        tool_calls=(call("1", name=f"r{evil}", target=evil, result=evil),),
        steps=(Step(source="agent", text=evil, reasoning=evil, model=evil, tool_calls=("1",)),),
        models=(evil,),
        client_version=evil,
    )

    told = text(kept(tmp_path, transcript), full=True)

    assert not set("\x1b\x07\r\0\u202e\ud800") & set(told)
    assert "\\x1b]0;owned" in told


def test_styles_are_given_by_whoever_shows_the_lines(tmp_path: Path) -> None:
    """A file and a pipe get none, and a terminal sees errors at once."""

    def style(part: str, word: str) -> str:
        return f"<{word}>{part}" if word else part

    lines = list(
        session_lines(kept(tmp_path, SESSION), prompt=None, width=80, full=False, style=style)
    )

    assert "  <bad>! Bash false [error]" in lines
    assert "    <quiet>one" in lines
    assert "<title>system" in lines
