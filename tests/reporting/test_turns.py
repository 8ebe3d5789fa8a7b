from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.model.transcript import Step, ToolCall, Transcript
from pytest_evalarc.reporting.turns import MOST_LEVELS, Turn, turns_of
from tests.reporting.sessions import PROMPT, SESSION, call


def all_turns(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield every turn, those of sub-agents too."""
    for turn in turns:
        yield turn
        for made in turn.calls:
            yield from all_turns(made.turns)


def session(*steps: Step, calls: Sequence[ToolCall] = (), response: str = "") -> Transcript:
    return Transcript(
        events=1, interpreted=True, steps=steps, tool_calls=tuple(calls), response=response
    )


def test_steps_stand_in_their_order_with_the_calls_that_they_make() -> None:
    """A call that no step makes is behind them all, so that nothing is lost."""
    turns = turns_of(SESSION, prompt=PROMPT)

    assert [(turn.step.source, turn.step.text) for turn in turns] == [
        ("user", PROMPT),
        ("agent", "I look."),
        ("system", "A reminder."),
        ("agent", ""),
        ("agent", "Done."),
        ("agent", ""),
    ]
    assert [[made.tool.id for made in turn.calls] for turn in turns] == [
        [],
        ["c1", "c2"],
        [],
        ["c3"],
        [],
        ["c5"],
    ]


def test_what_a_sub_agent_did_stands_below_its_call() -> None:
    """Between the steps of its parent it would pass for the parent's own work."""
    (task,) = turns_of(SESSION)[2].calls

    (deep,) = task.turns
    assert (deep.step.text, [made.tool.target for made in deep.calls]) == ("Deep.", ["deep.py"])


def test_a_session_without_steps_is_read_by_its_calls() -> None:
    """The embedded clients tell what they did and nothing of what they said meanwhile."""
    turns = turns_of(session(calls=[call("1"), call("2")], response="Played."))

    assert [[made.tool.id for made in turn.calls] for turn in turns] == [["1"], ["2"], []]
    assert turns[-1].step == Step(source="agent", text="Played.")


def test_a_prompt_that_the_session_tells_is_told_once() -> None:
    """Some clients repeat what they were asked, and others begin with their answer."""
    told = session(Step(source="user", text=f"{PROMPT}\n"), Step(source="agent", text="Yes."))

    assert [turn.step.source for turn in turns_of(told, prompt=PROMPT)] == ["user", "agent"]
    assert [turn.step.source for turn in turns_of(session())] == []


def test_a_sub_agent_that_made_its_own_call_is_told_with_the_session() -> None:
    """A stream can say anything, and a circle of sub-agents has no beginning."""
    circle = session(
        Step(source="agent", text="x", tool_calls=("1",), parent="2"),
        Step(source="agent", text="y", tool_calls=("2",), parent="1"),
        Step(source="agent", text="z", parent="nobody"),
        calls=[call("1"), call("2")],
    )

    assert [turn.step.text for turn in turns_of(circle)] == ["x", "y", "z"]


def test_sub_agents_of_any_depth_end_somewhere() -> None:
    """What is told level by level must not grow with what a stream says."""
    calls = [call(str(n), parent=str(n - 1) if n else None) for n in range(200)]

    turns = turns_of(session(calls=calls))

    def depth(turn: Turn) -> int:
        return 1 + max((depth(sub) for made in turn.calls for sub in made.turns), default=0)

    assert max(map(depth, turns)) == MOST_LEVELS
    assert len(list(all_turns(turns))) == 200


IDS = st.sampled_from("abcde")
STEPS = st.builds(
    Step,
    source=st.sampled_from(["user", "agent", "system"]),
    tool_calls=st.lists(IDS, max_size=3).map(tuple),
    parent=st.none() | IDS,
)
TOOL_CALLS = st.builds(lambda id, parent: call(id, parent=parent), IDS, st.none() | IDS)


@given(st.lists(STEPS, max_size=6), st.lists(TOOL_CALLS, max_size=6))
def test_every_step_and_call_is_there_once(steps: list[Step], calls: list[ToolCall]) -> None:
    """However a stream ties them together."""
    transcript = session(*steps, calls=calls)

    turns = list(all_turns(turns_of(transcript)))

    told = [id(turn.step) for turn in turns]
    assert all(told.count(id(step)) == 1 for step in transcript.steps)
    made = [made.tool.id for turn in turns for made in turn.calls]
    assert sorted(made) == sorted({tool.id for tool in calls})
