from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_evalarc.model.atif import (
    AtifAgent,
    AtifObservation,
    AtifResult,
    AtifStep,
    AtifSubagentRef,
    AtifToolCall,
    AtifTrajectory,
)
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.transcript import Transcript, Usage
from pytest_evalarc.reporting.atif import trajectory_document
from tests.reporting.sessions import PROMPT, SESSION, TORN, call, finished

AGENT = AtifAgent(name="claude", version="2.1")


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """Return the trajectory of a session with everything in it."""
    written: dict[str, Any] = json.loads(trajectory_document(SESSION, finished(tmp_path), PROMPT))
    return written


def test_steps_are_numbered_and_told_in_the_formats_words(document: dict[str, Any]) -> None:
    """Viewers and trainers read these keys and no others."""
    assert document["schema_version"] == "ATIF-v1.7"
    assert [step["step_id"] for step in document["steps"]] == [1, 2, 3, 4, 5, 6]
    assert document["steps"][0] == {"step_id": 1, "source": "user", "message": PROMPT}
    assert document["steps"][1] == {
        "step_id": 2,
        "timestamp": "2026-05-01T12:30:05+00:00",
        "source": "agent",
        "model_name": "big-1",
        "message": "I look.",
        "reasoning_content": "Where is it?",
        "tool_calls": [
            {
                "tool_call_id": "c1",
                "function_name": "Read",
                "arguments": {"file_path": "a.py", "limit": None},
                "extra": {"kind": "read"},
            },
            {
                "tool_call_id": "c2",
                "function_name": "Bash",
                "arguments": {"target": "false"},
                "extra": {"kind": "command"},
            },
        ],
        "observation": {
            "results": [
                {
                    "source_call_id": "c1",
                    "content": "one\ntwo\n",
                    "extra": {"is_error": False},
                },
                {
                    "source_call_id": "c2",
                    "content": "Exit code 1",
                    "extra": {"is_error": True},
                },
            ]
        },
    }
    assert document["steps"][2] == {"step_id": 3, "source": "system", "message": "A reminder."}
    # A call whose result was never seen has none: an empty text would be one.
    assert "observation" not in document["steps"][5]


def test_a_sub_agent_has_a_trajectory_of_its_own(document: dict[str, Any]) -> None:
    """It is found by the id that the result of its call refers to."""
    (result,) = document["steps"][3]["observation"]["results"]
    (sub,) = document["subagent_trajectories"]

    assert result["subagent_trajectory_ref"] == [{"trajectory_id": sub["trajectory_id"]}]
    assert [step["message"] for step in sub["steps"]] == ["Deep."]
    assert sub["steps"][0]["model_name"] == "small-1"
    assert sub["agent"] == document["agent"]


def test_the_agent_is_the_client_with_the_model_that_answered(document: dict[str, Any]) -> None:
    """What was asked for is not always what answers."""
    assert document["agent"] == {
        "name": "oracle",
        "version": "2.1",
        "model_name": "big-1",
        "extra": {"settings": {"effort": "high"}},
    }
    assert document["session_id"].startswith("tiny/oracle/trial-")


def test_usage_is_told_once_for_the_whole_session(document: dict[str, Any]) -> None:
    """Its prompt tokens hold both caches, which ours do not."""
    assert document["final_metrics"] == {
        "total_prompt_tokens": 440,
        "total_completion_tokens": 20,
        "total_cached_tokens": 300,
        "total_cost_usd": 0.125,
        "total_steps": 6,
        "extra": {"cache_write_tokens": 40},
    }
    assert all("metrics" not in step for step in document["steps"])


def test_the_trials_own_facts_stand_beside(document: dict[str, Any]) -> None:
    """Who trains on sessions must be able to leave out those that failed."""
    extra = document["extra"]

    assert (extra["task"], extra["outcome"], extra["success"]) == ("tiny", "succeeded", "pass")
    assert extra["hooks"][0]["event"] == "SessionStart"
    assert "notes" not in document


@pytest.mark.parametrize(
    ("usage", "metrics"),
    [
        (None, {"total_steps": 1}),
        (Usage(output_tokens=5, cache_read_tokens=7), {"completion": 5, "cached": 7}),
        (Usage(input_tokens=5), {"total_prompt_tokens": 5}),
    ],
)
def test_what_is_not_known_is_left_out(
    tmp_path: Path, usage: Usage | None, metrics: dict[str, int]
) -> None:
    """A part of the input for the whole of it would be a number that nobody can tell is wrong."""
    short = {"completion": "total_completion_tokens", "cached": "total_cached_tokens"}
    transcript = Transcript(events=0, interpreted=True, usage=usage, response="Hi.")

    written = json.loads(trajectory_document(transcript, finished(tmp_path)))

    wanted = {short.get(key, key): value for key, value in metrics.items()}
    assert written["final_metrics"] == {**wanted, "total_steps": 1}


def test_a_session_that_broke_off_is_written_with_what_is_known(tmp_path: Path) -> None:
    """The note says that an absence proves nothing, and the fault what ended it."""
    written = json.loads(trajectory_document(TORN, finished(tmp_path, Outcome.FAILED), PROMPT))

    assert "not understood" in written["notes"]
    assert written["extra"]["fault"] == {"kind": "api_unavailable", "detail": "529 overloaded"}
    assert len(written["steps"]) == 6


def test_a_session_that_said_nothing_has_a_step_all_the_same(tmp_path: Path) -> None:
    """The format takes no document without one."""
    empty = Transcript(events=0, interpreted=False)

    written = json.loads(trajectory_document(empty, finished(tmp_path)))

    assert written["steps"] == [{"step_id": 1, "source": "system", "message": "Nothing was told."}]


def test_hostile_text_does_not_break_the_document(tmp_path: Path) -> None:
    """Whatever a tool gave back, the document is UTF-8 and strict JSON."""
    hostile = call("\ud800", result="\ud800\x1b\0", arguments={"\ud800": "\ud800"})
    transcript = Transcript(events=1, interpreted=True, tool_calls=(hostile,))

    written = json.loads(trajectory_document(transcript, finished(tmp_path)).decode("utf-8"))

    assert written["steps"][0]["observation"]["results"][0]["content"] == "\ufffd\x1b\0"


def step(number: int = 1, **facts: Any) -> dict[str, Any]:
    return {"step_id": number, "source": "agent", "message": "", **facts}


CALL = AtifToolCall(tool_call_id="1", function_name="f", arguments={})
REF = AtifResult(
    source_call_id="1", subagent_trajectory_ref=(AtifSubagentRef(trajectory_id="sub"),)
)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"steps": ()}, "at least 1 item"),
        ({"steps": (step(2),)}, "not numbered from 1"),
        ({"steps": (step(), step(3))}, "not numbered from 1"),
        (
            {"steps": (step(source="user", tool_calls=(CALL,)),)},
            "a step of the user has tool_calls",
        ),
        (
            {"steps": (step(source="system", model_name="m"),)},
            "a step of the system has model_name",
        ),
        (
            {
                "steps": (
                    step(observation=AtifObservation(results=(AtifResult(source_call_id="1"),))),
                )
            },
            "no call of step 1 is '1'",
        ),
        (
            {"steps": (step(tool_calls=(CALL,), observation=AtifObservation(results=(REF,))),)},
            "no sub-agent is 'sub'",
        ),
        (
            {
                "steps": (step(),),
                "subagent_trajectories": (
                    AtifTrajectory(agent=AGENT, steps=(AtifStep(**step()),)),
                ),
            },
            "a sub-agent has no id of its own",
        ),
    ],
)
def test_what_breaks_a_rule_of_the_format_is_no_trajectory(
    facts: dict[str, Any], sentence: str
) -> None:
    """A reader that checks would refuse it, long after the session is gone."""
    with pytest.raises(ValidationError, match=sentence):
        AtifTrajectory.model_validate({"agent": AGENT, **facts})
