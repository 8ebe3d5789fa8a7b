"""Expectations of one's own: ordinary tests that look at each trial that was asked for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.evalarc_task("url-slugs")


@pytest.fixture
def counted_trial(evalarc_trial):
    """Return the trial, and skip one that does not count: nothing can be expected of it."""
    outcome = evalarc_trial.result.outcome
    if outcome in ("setup_failure", "cancelled", "excluded_isolation", "excluded_grading"):
        pytest.skip(f"the trial does not count: {outcome}")
    return evalarc_trial


def functions(file: Path) -> dict[str, ast.FunctionDef]:
    """Return the functions of a source file by name."""
    body = ast.parse(file.read_text("utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def test_the_docstring_is_left_as_it_was(counted_trial, evalarc_task):
    """It is the specification, so nobody is to bend it to what was built."""
    before = functions(evalarc_task.root / "starter" / "slugs.py")["slug"]
    after = functions(counted_trial.submission / "slugs.py")["slug"]

    assert ast.get_docstring(after) == ast.get_docstring(before)


def test_an_agent_that_says_it_is_done_is_right(counted_trial):
    """A session that ended well must leave code that passes."""
    completion = counted_trial.transcript.completion
    if completion is None or completion.is_error:
        pytest.skip("the agent does not say that it is done")

    assert counted_trial.grading.code_passed


@pytest.mark.evalarc_configuration("baseline", "without-*")
def test_no_tool_call_reads_a_skill(counted_trial):
    """Where no skill was given, none can be found."""
    transcript = counted_trial.transcript
    if not transcript.interpreted:
        pytest.skip("not every line was understood, so an absence proves nothing")

    assert not [call for call in transcript.tool_calls if call.target.endswith("SKILL.md")]
