from __future__ import annotations

import json
import random
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evalarc.clients.claude.reader import Reader
from pytest_evalarc.clients.lines import read_into
from pytest_evalarc.model.transcript import HookRun, Offered, Transcript, Usage
from tests.clients.claude.recorded import (
    NAMES,
    VERSIONS,
    answer,
    data,
    init,
    lines,
    read,
    result,
    say,
    stream,
    system,
    tell,
    text,
    use,
)


class Seen(NamedTuple):
    """What one recorded session shows."""

    ended: str | None
    """`ok`, `error`, or None for a session without its end."""
    fault: str | None
    calls: tuple[tuple[str, str, str, bool | None], ...] = ()
    """Kind, name, target and `is_error`."""
    tokens: tuple[int, int, int, int] | None = None
    interpreted: bool = True


WRITTEN = ("edit", "Write", "hello.txt", False)
SHOWN = ("command", "Bash", "cat hello.txt; echo $HOME $TMPDIR", False)
EDITED = ("edit", "Edit", "hello.txt", False)
EDIT = Seen("ok", None, (WRITTEN, SHOWN, EDITED), (4016, 205, 1200, 800))
GREETED = ("edit", "Write", "greet.txt", False)
SKILL = Seen("ok", None, (("skill", "Skill", "greet", False), GREETED), (3009, 153, 900, 600))
NOTHING = Seen(None, "client_error", interpreted=False)
STARTED = ("edit", "Write", "a.txt", False)
SLEEP = "python3 -c 'import time; time.sleep(45)'; echo late > late.txt"
UNFINISHED = Seen(
    None, "client_error", (STARTED, ("command", "Bash", SLEEP, None)), interpreted=False
)
ENDED_EARLY = Seen(
    None, "client_error", (STARTED, ("command", "Bash", SLEEP, True)), interpreted=False
)
WENT_ON = Seen("ok", None, (STARTED, ("command", "Bash", SLEEP, True)), (3009, 154, 900, 600))
INTERRUPTED = Seen(
    "error", "client_error", (STARTED, ("command", "Bash", SLEEP, True)), (2004, 103, 600, 400)
)
UNANSWERED = (0, 0, 0, 0)
TASK = ("other", "Task", "general-purpose", False)


def in_background(seconds: int) -> tuple[str, str, str, bool]:
    return ("command", "Bash", f"python3 -c 'import time; time.sleep({seconds})'", False)


SCENARIOS: dict[str, Seen | dict[str, Seen]] = {
    "api-400": Seen("error", "api_refused", tokens=UNANSWERED),
    "api-401": Seen("error", "api_refused", tokens=UNANSWERED),
    "api-529": Seen("error", "api_unavailable", tokens=UNANSWERED),
    "api-error-midrun": Seen("error", "client_error", (STARTED,), (1001, 51, 300, 200)),
    "background": Seen("ok", None, (in_background(3),), (3009, 153, 900, 600)),
    "background-killed": Seen(
        None, "client_error", (in_background(60),), (2004, 102, 600, 400), interpreted=False
    ),
    "background-sub-agent": Seen(
        "ok",
        None,
        (("other", "Task", "Explore", False), ("other", "Task", "Explore", True)),
        (5013, 255, 1500, 1000),
    ),
    "edit": EDIT,
    "hooks": EDIT,
    "hooks-all-events": EDIT,
    "killed-sigint": INTERRUPTED,
    "killed-sigkill": UNFINISHED,
    "killed-sigterm": {"2.1.197": WENT_ON, "2.1.332": ENDED_EARLY},
    "max-turns": Seen("error", "client_error", (WRITTEN,), (1001, 52, 300, 200)),
    "permission-denied": Seen(
        "ok",
        None,
        ((*WRITTEN[:3], True), (*SHOWN[:3], True), (*EDITED[:3], True)),
        (4016, 205, 1200, 800),
    ),
    "plugin": Seen(
        "ok",
        None,
        (("skill", "Skill", "house:tidy", False), ("command", "Bash", "true", True)),
        (3009, 153, 900, 600),
    ),
    "prompt-mentions-nothing": Seen("ok", None, (), (1001, 51, 300, 200)),
    "prompt-mentions-skill": Seen(
        "ok",
        None,
        (("read", "prompt @", ".claude/skills/greet/SKILL.md", None),),
        (1002, 51, 300, 200),
    ),
    "prompt-skill": Seen(
        "ok", None, (("skill", "prompt /", "greet", False),), (1001, 51, 300, 200)
    ),
    "root-refused": NOTHING,
    "skill-loaded": SKILL,
    "skill-missing-and-tool-errors": Seen(
        "ok",
        None,
        (
            ("skill", "Skill", "no-such-skill", True),
            ("command", "Bash", "exit 3", True),
            ("edit", "Edit", "nope.txt", True),
            ("other", "NoSuchTool", '{"x": 1}', True),
        ),
        (5025, 255, 1500, 1000),
    ),
    "srt-deadline-timeout-int": INTERRUPTED,
    "srt-deadline-timeout-term": {"2.1.197": WENT_ON, "2.1.332": ENDED_EARLY},
    "srt-killed-srt-sigterm": UNFINISHED,
    "srt-network-blocked": Seen("error", "api_unavailable", tokens=UNANSWERED),
    "srt-no-tmpdir": NOTHING,
    "srt-skill-hooks": SKILL,
    "sub-agents": {
        # The older version keeps what sub-agents of sub-agents do to itself.
        "2.1.197": Seen("ok", None, (TASK, TASK), (12024, 612, 3600, 2400), interpreted=False),
        "2.1.332": Seen("ok", None, (TASK, TASK, TASK, (*TASK[:3], True)), (8016, 408, 2400, 1600)),
    },
}


def expected(name: str) -> Seen:
    version = next(version for version in VERSIONS if name.startswith(version))
    found = SCENARIOS[name.removeprefix(f"{version}.")]
    return found if isinstance(found, Seen) else found[version]


@cache
def whole(name: str) -> Transcript:
    with tempfile.TemporaryDirectory() as folder:
        return read(Path(folder), data(name))


recorded = pytest.mark.parametrize("name", NAMES)


@recorded
def test_every_recorded_session_is_read_as_what_it_was(name: str) -> None:
    """Both versions write other keys in another order, and mean the same."""
    found = whole(name)

    completion = found.completion
    ended = None if completion is None else "error" if completion.is_error else "ok"
    calls = tuple((call.kind, call.name, call.target, call.is_error) for call in found.tool_calls)
    used = found.usage
    tokens = used and (
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
    )
    fault = found.fault.kind if found.fault else None
    assert Seen(ended, fault, calls, tokens, found.interpreted) == expected(name)
    assert found.events == len(lines(name))
    assert found.client_version == (None if not found.events else name[: len("2.1.332")])


def test_every_scenario_is_recorded_of_both_versions() -> None:
    """Only the older one never met a mode that denies."""
    names = {f"{version}.{scenario}" for version in VERSIONS for scenario in SCENARIOS}

    assert set(NAMES) == names - {"2.1.197.permission-denied"}


# A stream that is not whole.


@recorded
def test_a_stream_cut_between_lines_never_looks_whole(name: str, tmp_path: Path) -> None:
    """The lines that are gone may have loaded the skill, or failed."""
    all_lines, full = lines(name), whole(name)

    for kept in range(len(all_lines)):
        cut = read(tmp_path, b"".join(all_lines[:kept]))
        if cut.interpreted or (cut.completion and not cut.completion.is_error):
            assert cut.completion == full.completion
            assert cut.tool_calls == full.tool_calls
        else:
            assert not cut.interpreted


@recorded
def test_a_stream_cut_within_a_line_is_not_interpreted(name: str, tmp_path: Path) -> None:
    """A session may be killed while it writes."""
    content, chance = data(name), random.Random(name)
    ends = {place for place, byte in enumerate(content) if byte == ord("\n")}
    within = [place for place in range(1, len(content)) if not {place, place - 1} & ends]

    for place in chance.sample(within, min(12, len(within))):
        cut = read(tmp_path, content[:place])
        assert not cut.interpreted
        if cut.completion is not None and not cut.completion.is_error:
            assert cut.tool_calls == whole(name).tool_calls


@recorded
def test_a_stream_with_a_changed_byte_never_turns_a_failure_into_a_success(
    name: str, tmp_path: Path
) -> None:
    """Nothing that is read may raise, and nothing may be made up."""
    content, chance = bytearray(data(name)), random.Random(name)
    has_result = b'"type":"result"' in content

    for place in chance.sample(range(len(content)), min(15, len(content))):
        before, content[place] = content[place], content[place] ^ chance.choice((1, 2, 32, 128))
        flipped = read(tmp_path, bytes(content))
        content[place] = before
        if not has_result or expected(name).ended == "error":
            assert flipped.completion is None or flipped.completion.is_error


def test_a_lost_byte_that_breaks_a_line_leaves_the_stream_uninterpreted(tmp_path: Path) -> None:
    """The line may have been the load."""
    all_lines = lines("2.1.332.skill-loaded")
    for place in range(len(all_lines)):
        broken = [*all_lines[:place], all_lines[place][:-2] + b"\n", *all_lines[place + 1 :]]

        assert not read(tmp_path, b"".join(broken)).interpreted


def test_what_the_capture_dropped_is_missed(tmp_path: Path) -> None:
    """A flood that was cut off may have hidden anything."""
    path = tmp_path / "stream"
    path.write_bytes(data("2.1.332.edit"))

    found = read_into(Reader(), path, true_bytes=path.stat().st_size + 1).transcript()

    assert not found.interpreted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ("message", "content", "task_id", "hook_id", "is_error", "subtype", "patch", "usage", "cwd")
)
KINDS = st.sampled_from(("assistant", "user", "result", "system", "rate_limit_event")) | JSON


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(KINDS, st.dictionaries(KEYS, JSON))))
def test_no_content_raises(events: list[tuple[Any, dict[str, Any]]]) -> None:
    """A client of tomorrow, or an agent that got hold of the stream, may print anything."""
    content = stream(*({"type": kind, **rest} for kind, rest in events))

    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), content)

    assert found.completion is None or found.completion.is_error is False


@pytest.mark.parametrize(
    "event",
    [
        {"type": "surprise"},
        {"type": ["assistant"]},
        {"type": "system", "subtype": None},
        {"no": "type"},
        say({"type": "surprise"}),
        say({"type": "tool_use", "id": "t2", "name": "Skill", "input": "greet"}),
        say(use("Skill", skill="greet")),
        tell([{"type": "surprise"}]),
        tell(None),
        answer(),
        answer(id="never-called"),
        answer(content=[{"type": "surprise"}]),
        answer(is_error="no"),
        system("hook_response", hook_id="h", hook_event="Stop", outcome="success"),
        {**result(), "is_error": 0},
        {**result(), "modelUsage": {"m": {"inputTokens": -1, "outputTokens": 1}}},
        {**result(), "total_cost_usd": -1.0},
    ],
)
def test_what_was_not_understood_makes_absences_prove_nothing(
    event: dict[str, Any], tmp_path: Path
) -> None:
    """The event may have been the very one that loads a skill."""
    before = (init(), say(use("Bash", command="true")), answer())

    found = read(tmp_path, stream(*before, event, result()))

    assert not found.interpreted
    assert found.completion is not None
    assert (found.tool_calls[0].target, found.tool_calls[0].is_error) == ("true", False)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "rate_limit_event", "rate_limit_info": {}},
        {"type": "tool_progress"},
        system("thinking_tokens"),
        system("a_notice_of_tomorrow"),
        {**init(), "a_key_of_tomorrow": 1},
        say({"type": "redacted_thinking", "data": "…"}),
        tell("[Request interrupted by user]"),
        tell([{"type": "image", "source": {}}]),
    ],
)
def test_notices_that_tell_of_no_call_are_passed_over(
    event: dict[str, Any], tmp_path: Path
) -> None:
    """Each version has new ones, and none of them hides anything."""
    found = read(tmp_path, stream(init(), event, result()))

    assert found.interpreted
    assert found.tool_calls == ()


# What is told of a session.


def test_a_session_is_told_step_by_step(tmp_path: Path) -> None:
    """One answer of a model comes as several lines, and is one step."""
    at = "2026-11-30T10:28:47.112Z"
    found = read(
        tmp_path,
        stream(
            init(),
            tell("Fix it.", isReplay=True),
            say({"type": "thinking", "thinking": "Hm."}, timestamp=at),
            say(text("I look.")),
            say(use("Bash", command="ls")),
            answer(),
            tell([text("A reminder.")], isSynthetic=True),
            tell("[Request interrupted by user]"),
            {**say(text("API Error")), "error": "unknown"},
            result(),
        ),
    )

    told = [(step.source, step.text, step.reasoning, step.tool_calls) for step in found.steps]
    assert told == [
        ("user", "Fix it.", "", ()),
        ("agent", "I look.", "Hm.", ("t1",)),
        ("system", "A reminder.", "", ()),
        ("system", "[Request interrupted by user]", "", ()),
        ("agent", "API Error", "", ()),
    ]
    assert found.steps[1].at == datetime(2026, 11, 30, 10, 28, 47, 112000, tzinfo=UTC)
    assert found.steps[1].model == "claude-x"


def test_a_sub_agent_s_steps_and_calls_name_the_call_that_started_it() -> None:
    """Whoever draws the tree of a session needs the edges."""
    found = whole("2.1.332.sub-agents")

    first, second, third, fourth = found.tool_calls
    assert first.parent is None
    assert (second.parent, third.parent, fourth.parent) == (first.id, second.id, third.id)
    prompts = [step for step in found.steps if step.source == "user"]
    assert [step.parent for step in prompts] == [None, first.id, second.id, third.id]
    assert {step.text for step in prompts[1:]} == {"Help."}
    assert [step.parent for step in found.steps][-1] is None


def test_models_are_those_that_answered_and_not_the_client_in_their_place() -> None:
    """`<synthetic>` is how the client signs what it says of a failed request."""
    assert whole("2.1.332.api-529").models == ()
    assert whole("2.1.332.edit").models == ("claude-sonnet-4-5",)
    assert whole("2.1.197.background-sub-agent").models == (
        "claude-sonnet-4-5",
        "claude-haiku-4-5-20251001",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_session_offers_is_what_its_first_list_names(version: str) -> None:
    """What a session adds while it runs was not offered at its start."""
    plugin, background = whole(f"{version}.plugin"), whole(f"{version}.background")

    assert plugin.offered is not None and background.offered is not None
    assert plugin.offered.beyond(background.offered) == Offered(
        skills=("house:tidy",), plugins=("house",), agents=("house:rev",), mcp_servers=("pp",)
    )


def test_a_later_list_of_what_a_session_has_is_not_its_start(tmp_path: Path) -> None:
    """It comes again before each turn that nobody asked for."""
    found = read(tmp_path, stream(init(skills=["a"]), init(skills=["a", "b"]), result()))

    assert found.offered == Offered(skills=("a",))
    assert found.interpreted


@pytest.mark.parametrize("version", VERSIONS)
def test_every_hook_that_ran_is_told_with_its_end(version: str) -> None:
    """A hook that fails is a record of its own: the trace file holds successes alone."""
    assert whole(f"{version}.plugin").hooks == (
        HookRun(event="SessionStart", name="SessionStart:startup", succeeded=True),
        HookRun(event="PreToolUse", name="PreToolUse:Bash", succeeded=False),
    )
    ran = [run.event for run in whole(f"{version}.hooks-all-events").hooks or ()]
    assert ran == ["SessionStart", *["PreToolUse", "PostToolUse"] * 3, "Stop"]
    assert whole(f"{version}.edit").hooks == ()


def test_a_hook_whose_end_was_not_seen_neither_succeeded_nor_failed(tmp_path: Path) -> None:
    """It may have been cut off."""
    started = system("hook_started", hook_id="h", hook_event="Stop", hook_name="Stop")

    assert read(tmp_path, stream(init(), started)).hooks == (HookRun(event="Stop", name="Stop"),)


# Tokens.


def test_tokens_are_those_of_all_models_and_the_cost_that_of_the_session(tmp_path: Path) -> None:
    """What a result says beside them leaves sub-agents out, which are paid all the same."""
    models = {
        "large": {
            "inputTokens": 10,
            "outputTokens": 20,
            "cacheReadInputTokens": 30,
            "cacheCreationInputTokens": 40,
        },
        "small": {"inputTokens": 1, "outputTokens": 2},
    }
    turn = {"usage": {"input_tokens": 7, "output_tokens": 7}, "modelUsage": models}

    found = read(tmp_path, stream(init(), result(**turn), result(total_cost_usd=0.5, **turn)))

    assert found.usage == Usage(
        input_tokens=11,
        output_tokens=22,
        cache_read_tokens=30,
        cache_write_tokens=40,
        cost_usd=0.5,
    )


def test_without_models_the_tokens_of_the_turns_are_summed(tmp_path: Path) -> None:
    """Each result has those of its own turn; a count that one lacks is unknown."""
    first = result(usage={"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 2})
    second = result(usage={"input_tokens": 3, "output_tokens": 1})

    found = read(tmp_path, stream(init(), first, second))

    assert found.usage == Usage(input_tokens=8, output_tokens=2)


def test_the_tokens_that_are_repeated_with_each_answer_are_not_counted(tmp_path: Path) -> None:
    """They are a placeholder there, and the same for each part of an answer."""
    said = say(text("a"))
    said["message"]["usage"] = {"input_tokens": 1001, "output_tokens": 1}

    assert read(tmp_path, stream(init(), said, said)).usage is None


# The end.


def test_the_last_words_are_those_of_the_last_result(tmp_path: Path) -> None:
    """Without one, they are the last that the session's own agent said."""
    own, other = say(text("Mine.")), say(text("Theirs."), parent="t1")

    assert read(tmp_path, stream(init(), own, result(result="Last."))).response == "Last."
    assert read(tmp_path, stream(init(), own, other)).response == "Mine."
    assert read(tmp_path, b"").response == ""


def test_the_end_is_told_on_one_line(tmp_path: Path) -> None:
    """It becomes a cause in results and on terminals."""
    ended = result(is_error=True, subtype="error_max_turns", terminal_reason="max_turns")
    ended["errors"] = ["Reached \x1b[31m", "it"]

    found = read(tmp_path, stream(init(), ended))

    assert found.completion is not None
    assert found.completion.detail == r"max_turns: Reached \x1b[31m: it"


def test_a_stream_survives_its_way_through_json() -> None:
    """Results keep transcripts, and a lone surrogate would break them."""
    said = b'{"type":"user","message":{"content":"\\ud800"},"isReplay":true}'
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), stream(init(), said, result()))

    assert json.loads(json.dumps(found.to_json()))["steps"][0]["text"] == "\ufffd"
