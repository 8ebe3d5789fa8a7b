"""Sessions in memory: one with everything that a client can tell, and trials that had it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.transcript import (
    Completion,
    HookRun,
    Offered,
    Step,
    ToolCall,
    Transcript,
    Usage,
)
from pytest_evalarc.model.trial import ModelRef, TrialResult, Versioned
from tests.documents import result_of, write_trials

PROMPT = "Make total() add."
AT = datetime(2026, 5, 1, 12, 30, 5, tzinfo=UTC)


def call(id: str, **facts: object) -> ToolCall:
    """Return a call that was answered, unless told otherwise."""
    usual = {"kind": "read", "name": "Read", "target": "a.py", "result": "one\ntwo\n"}
    return ToolCall.model_validate({"id": id, **usual, "is_error": False, **facts})


CALLS = (
    call("c1", arguments={"file_path": "a.py", "limit": None}),
    call("c2", kind="command", name="Bash", target="false", result="Exit code 1", is_error=True),
    call("c3", kind="other", name="Task", target="", result="found it"),
    call("c4", target="deep.py", parent="c3"),
    call("c5", kind="skill", name="Skill", target="tidy", result=None, is_error=None),
)
SESSION = Transcript(
    events=20,
    tool_calls=CALLS,
    usage=Usage(
        input_tokens=100,
        output_tokens=20,
        cache_read_tokens=300,
        cache_write_tokens=40,
        cost_usd=0.125,
    ),
    completion=Completion(is_error=False, detail="end_turn"),
    interpreted=True,
    response="Done.",
    offered=Offered(skills=("tidy",), mcp_servers=("docs", "web")),
    hooks=(
        HookRun(event="SessionStart", name="SessionStart:startup", succeeded=True),
        HookRun(event="Stop", succeeded=None),
    ),
    steps=(
        Step(
            source="agent",
            text="I look.",
            reasoning="Where is it?",
            tool_calls=("c1", "c2"),
            model="big-1",
            at=AT,
        ),
        Step(source="system", text="A reminder."),
        Step(source="agent", tool_calls=("c3",), model="big-1"),
        Step(source="agent", text="Deep.", tool_calls=("c4",), model="small-1", parent="c3"),
        Step(source="agent", text="Done."),
    ),
    models=("big-1", "small-1"),
    client_version="2.1",
)


def finished(root: Path, outcome: Outcome = Outcome.SUCCEEDED) -> TrialResult:
    """Return the result of a trial that ended so, of a client with a version and a model."""
    result = read_model(result_of(write_trials(root), outcome), TrialResult)
    model = ModelRef(name="big", settings={"effort": "high"}, served=("big-1",))
    client = Versioned(name=result.client.name, version="2.1")
    return result.model_copy(update={"client": client, "model": model})


TORN = SESSION.model_copy(
    update={
        "interpreted": False,
        "completion": None,
        "usage": None,
        "fault": Cause(kind="api_unavailable", detail="529 overloaded"),
    }
)
