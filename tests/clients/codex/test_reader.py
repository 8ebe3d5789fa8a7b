from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.model.transcript import Completion, Load, Step, Transcript, Usage
from pytest_evalarc.treatments.loads import Known, observe_load
from tests.clients.codex.recorded import (
    END,
    NAMES,
    START,
    TURN,
    command,
    completed,
    data,
    failed,
    failing,
    read,
    session,
    started,
    stream,
)

GREET = Known.at("greet", ".agents/skills/greet")
"""The skill that is there in the recorded sessions with skills."""


class Seen(NamedTuple):
    """What one recorded session shows."""

    ended: str | None
    """`ok`, `error`, or None for a session without its end."""
    fault: str | None = None
    calls: tuple[tuple[str, str, bool | None], ...] = ()
    """Kind, target and `is_error`."""
    tokens: tuple[int, int, int, int] | None = None
    load: Load = Load.NOT_OBSERVED
    """Of the skill `greet`."""


WRITTEN = ("edit", "hello.txt", False)
SHOWN = ("command", "cat hello.txt; echo $HOME $TMPDIR", False)
SOUGHT = ("read", "missing.txt", True)
READ = ("read", ".agents/skills/greet/SKILL.md", False)
GREETED = ("edit", "greet.txt", False)
SLEEP = "python3 -c 'import time; time.sleep(45)'; echo late > late.txt"
CUT = Seen(
    None, "client_error", (("edit", "a.txt", False), ("command", SLEEP, None)), load=Load.UNKNOWN
)
EDIT = (WRITTEN, SHOWN, SOUGHT, WRITTEN)

SCENARIOS = {
    "api-400": Seen("error", "api_refused"),
    "api-401": Seen("error", "api_refused"),
    "api-429": Seen("error", "api_unavailable"),
    "api-529": Seen("error", "api_unavailable"),
    "api-error-midrun": Seen("error", "api_refused"),
    "api-quota": Seen("error", "api_refused"),
    "background": Seen(
        "ok",
        calls=(
            ("command", "sleep 20; echo late", None),
            ("edit", "a.txt", False),
            ("edit", "c.txt", False),
        ),
        tokens=(2119, 150, 900, 0),
    ),
    "code-mode": Seen(
        "ok",
        calls=(
            READ,
            ("command", "sleep 1; cat nosuch", True),
            WRITTEN,
            ("command", "cat .agents/skills/greet/SKILL.md | head -3", False),
            ("command", "echo b", False),
        ),
        tokens=(2121, 150, 900, 0),
        load=Load.LOADED,
    ),
    "connection-refused": Seen("error", "api_unavailable"),
    "connection-refused-reconnect-loop": Seen(None, "api_unavailable", load=Load.UNKNOWN),
    "edit": Seen("ok", calls=EDIT, tokens=(4259, 300, 1800, 0)),
    "hook-fails": Seen("ok", calls=EDIT, tokens=(4265, 300, 1800, 0)),
    "hooks": Seen("ok", calls=EDIT, tokens=(4265, 300, 1800, 0)),
    "killed-sigint": CUT,
    "killed-sigkill": CUT,
    "killed-sigterm": CUT,
    "mcp": Seen(
        "ok",
        calls=(
            ("other", 'symposium/hello {"a": "b"}', False),
            ("other", 'symposium/hello {"a": "bad"}', True),
        ),
        tokens=(2118, 150, 900, 0),
    ),
    "moved-folder": Seen(
        "ok",
        calls=(("command", "cat SKILL.md", False),),
        tokens=(1410, 100, 600, 0),
        load=Load.UNKNOWN,
    ),
    "moved-folder-glob": Seen(
        "ok",
        calls=(("command", "head -4 *", False),),
        tokens=(1410, 100, 600, 0),
        load=Load.UNKNOWN,
    ),
    "response-failed": Seen("error", "api_unavailable"),
    "skill-loaded": Seen("ok", calls=(READ, GREETED), tokens=(2118, 150, 900, 0), load=Load.LOADED),
    "skill-missing": Seen(
        "ok",
        calls=(("read", ".agents/skills/no-such-skill/SKILL.md", True),),
        tokens=(1410, 100, 600, 0),
    ),
    "srt-deadline-timeout-term": CUT,
    "srt-killed-srt-sigterm": CUT,
    "srt-skill-hooks": Seen(
        "ok", calls=(READ, GREETED), tokens=(2121, 150, 900, 0), load=Load.LOADED
    ),
    "sub-agent": Seen(
        "ok",
        calls=(("other", "spawn_agent", False), ("command", "sleep 2", False)),
        load=Load.UNKNOWN,
    ),
    "unknown-model": Seen("ok", calls=(SHOWN, SOUGHT), tokens=(4259, 300, 1800, 0)),
    "web-search": Seen(
        "ok", calls=(("command", "true", False),), tokens=(1411, 100, 600, 0), load=Load.UNKNOWN
    ),
}


def test_every_recorded_session_is_looked_at() -> None:
    """A scenario that no test reads would go on to be understood wrongly."""
    assert tuple(SCENARIOS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_session_shows_what_happened_in_it(tmp_path: Path, name: str) -> None:
    """These are the very streams that the client prints, not what we take them to be."""
    expected = SCENARIOS[name]

    found = read(tmp_path, data(name))

    end = found.completion and ("error" if found.completion.is_error else "ok")
    assert (end, found.fault and found.fault.kind) == (expected.ended, expected.fault)
    assert [(it.kind, it.target, it.is_error) for it in found.tool_calls] == list(expected.calls)
    assert (found.usage and _counts(found.usage)) == expected.tokens
    assert observe_load(found, GREET).load is expected.load
    assert found.interpreted == (expected.load is not Load.UNKNOWN)
    assert found.events == data(name).count(b"\n") - 2 * (name == "web-search")


def _counts(usage: Usage) -> tuple[int | None, ...]:
    assert usage.cost_usd is None
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    )


def test_a_recorded_session_is_told_step_by_step(tmp_path: Path) -> None:
    """A reader follows a trial by these, and warnings of the client's are not the agent's words."""
    found = read(tmp_path, data("background"))

    said = [(step.source, step.text, step.reasoning, step.tool_calls) for step in found.steps]
    warning = "`--dangerously-bypass-hook-trust` is enabled. Enabled hooks may run without review"
    assert said == [
        *[("system", f"{warning} for this invocation.", "", ())] * 2,
        ("agent", "", "", ("item_2",)),
        ("agent", "", "It takes long.", ()),
        ("agent", "", "", ("item_4", "item_4.1")),
        ("agent", "Not waiting.", "", ()),
    ]
    assert found.response == "Not waiting."


def test_what_the_stream_does_not_tell_is_left_open(tmp_path: Path) -> None:
    """An empty list would say that there were none."""
    found = read(tmp_path, data("hooks"))

    assert (found.offered, found.hooks) == (None, None)
    assert (found.models, found.client_version) == ((), None)


def test_a_call_tells_what_it_was_given_and_what_came_back(tmp_path: Path) -> None:
    """Grading by eye, and expectations of one's own, look at both."""
    found = read(tmp_path, data("mcp"))
    reading = read(tmp_path, data("skill-loaded")).tool_calls[0]

    assert [(it.name, it.arguments, it.result) for it in found.tool_calls] == [
        ("mcp_tool_call", {"a": "b"}, "hi there"),
        ("mcp_tool_call", {"a": "bad"}, "hi there"),
    ]
    assert reading.name == "command_execution"
    assert reading.arguments == {"command": "/bin/bash -lc 'cat .agents/skills/greet/SKILL.md'"}
    assert (reading.result or "").startswith("---\nname: greet\n")


def test_the_project_is_known_by_either_of_its_names(tmp_path: Path) -> None:
    """The client says where a link leads, while the trial goes by the name of the link."""
    from pytest_evalarc.clients.codex.reader import Reader
    from pytest_evalarc.clients.lines import read_into
    from pytest_evalarc.isolation.layout import RunLayout

    real, link, path = tmp_path / "real", tmp_path / "link", tmp_path / "stream"
    (real / "project").mkdir(parents=True)
    link.symlink_to(real)
    changes = [{"path": f"{real}/project/a.py", "kind": "update"}]
    events = [
        started("file_change", changes=changes, status="in_progress"),
        *command(f"cat {link}/project/b.py", id="item_1"),
        *command(f"cat {real}/c.py", id="item_2"),
    ]
    path.write_bytes(session(*events))

    found = read_into(Reader(), path, true_bytes=path.stat().st_size).transcript(
        RunLayout(root=link)
    )

    assert [call.target for call in found.tool_calls] == ["a.py", "b.py", f"{real}/c.py"]


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ((1000, 300, 200, 50), Usage(input_tokens=500, output_tokens=50)),
        ((500, 300, 200, 50), Usage(input_tokens=0, output_tokens=50)),
        ((400, 300, 200, 50), Usage(output_tokens=50)),
        ((1000, 300, None, 50), Usage(output_tokens=50)),
        ((None, 300, 200, None), Usage()),
    ],
)
def test_no_token_is_counted_twice_and_none_is_made_up(
    tmp_path: Path, told: tuple[int | None, ...], usage: Usage
) -> None:
    """The client counts what came from a cache, or went there, as input too."""
    keys = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    known = {key: count for key, count in zip(keys, told, strict=True) if count is not None}

    found = read(tmp_path, stream(START, TURN, {**END, "usage": known}))

    assert found.usage == usage.model_copy(
        update={"cache_read_tokens": told[1], "cache_write_tokens": told[2]}
    )


def test_the_tokens_of_sub_agents_make_the_sum_unknown(tmp_path: Path) -> None:
    """The client's sum leaves them out, and a session with helpers would look cheap."""
    facts = {"tool": "spawn_agent", "prompt": "Help.", "status": "in_progress"}

    assert read(tmp_path, session()).usage is not None
    assert read(tmp_path, session(started("collab_tool_call", **facts))).usage is None


# What is not understood.

CALL = command("cat README.md")
WORDS = completed("agent_message", text="Done.")


@pytest.mark.parametrize(
    "events",
    [
        [b"{"],
        [b"\xff"],
        [b'{"type":"turn.started","type":"turn.started"}'],
        [{"type": "surprise"}],
        [{"type": "item.completed"}],
        [completed("surprise", text="x")],
        [completed("agent_message")],
        [{**WORDS, "item": {**WORDS["item"], "text": 1}}],
        [START],
        [TURN],
        [END],
        [failed("late")],
        [*CALL, *CALL],
        [*CALL, CALL[1]],
        [CALL[1]],
        [CALL[0], *command("cat other", id="item_0")[1:]],
        [CALL[0], completed("file_change", changes=[], status="completed")],
        [CALL[0], {**CALL[0], "type": "item.completed"}],
        [*command("true")[:1], *command("true", exit_code=7, id="item_1")[1:]],
        [
            CALL[0],
            {**CALL[1], "item": {**CALL[1]["item"], "exit_code": 1}},
        ],
        [
            CALL[0],
            {**CALL[1], "item": {**CALL[1]["item"], "status": "failed"}},
        ],
        [CALL[0], {**CALL[0], "type": "item.updated", "item": {**CALL[0]["item"], "id": "x"}}],
    ],
)
def test_what_was_not_understood_makes_absences_prove_nothing(
    tmp_path: Path, events: list[dict[str, Any] | bytes]
) -> None:
    """The lost line may have been the very one that loads a skill."""
    found = read(tmp_path, session(*events))

    assert not found.interpreted
    assert found.completion == Completion(is_error=False) or events == [failed("late")]
    assert observe_load(found, GREET).load is Load.UNKNOWN


def test_an_item_of_each_known_type_is_understood(tmp_path: Path) -> None:
    """Each of them stands in an ordinary session of the client."""
    mcp = {"server": "s", "tool": "t", "arguments": None}
    over = {"result": {"content": [{"type": "image"}]}, "error": None, "status": "completed"}
    broken = {"result": None, "error": {"message": "gone"}, "status": "failed"}
    events = [
        *CALL,
        {**CALL[0], "type": "item.updated", "item": {**CALL[0]["item"], "id": "item_1"}},
        WORDS,
        completed("reasoning", text="Hm."),
        completed("error", message="Careful."),
        started("todo_list", items=[]),
        completed("todo_list", items=[]),
        started("mcp_tool_call", "m1", **mcp, result=None, error=None, status="in_progress"),
        completed("mcp_tool_call", "m1", **mcp, **over),
        started("mcp_tool_call", "m2", **mcp, result=None, error=None, status="in_progress"),
        completed("mcp_tool_call", "m2", **mcp, **broken),
        started("web_search", "w1", query=""),
        completed("web_search", "w1", query="weather"),
    ]
    events.pop(2)

    found = read(tmp_path, session(*events))

    assert found.interpreted
    assert [(it.kind, it.target, it.result) for it in found.tool_calls] == [
        ("read", "README.md", "printed\n"),
        ("other", "s/t null", "[image]"),
        ("other", "s/t null", "gone"),
        ("other", "weather", None),
    ]


@pytest.mark.parametrize(
    ("events", "is_whole"),
    [
        ([START, TURN, END], True),
        ([START, TURN, failed("x")], True),
        ([START, TURN], False),
        ([START, END], False),
        ([TURN, END], False),
        ([TURN, START, END], False),
        ([], False),
    ],
)
def test_only_a_stream_with_its_start_and_its_end_is_whole(
    tmp_path: Path, events: list[dict[str, Any]], is_whole: bool
) -> None:
    """What is missing at either side could have loaded anything."""
    assert read(tmp_path, stream(*events)).interpreted == is_whole


def test_what_the_capture_dropped_is_missed(tmp_path: Path) -> None:
    """A stream that was kept in part may look whole."""
    content = session()

    assert not read(tmp_path, content, true_bytes=len(content) + 1).interpreted


# How a session ended.


def test_a_session_ends_once(tmp_path: Path) -> None:
    """What speaks after the end may be anybody."""
    found = read(tmp_path, stream(START, TURN, failed("no"), END))

    assert found.completion == Completion(is_error=True, detail="no")
    assert (found.usage, found.interpreted) == (None, False)


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([failing("Reconnecting... 1/5 (Connection failed: x)"), WORDS], "client_error"),
        ([WORDS, failing("Reconnecting... 1/5 (Connection failed: x)")], "api_unavailable"),
        ([failing("unexpected status 401 Unauthorized: x")], "api_refused"),
        ([failing("x"), failing("Connection failed: x")], "api_unavailable"),
        ([WORDS], "client_error"),
    ],
)
def test_a_session_without_an_end_has_the_cause_of_what_it_waited_for(
    tmp_path: Path, events: list[dict[str, Any]], kind: str
) -> None:
    """A deadline that passes while the model is out of reach is not the agent's."""
    found = read(tmp_path, stream(START, TURN, *events))

    assert found.completion is None
    assert found.fault is not None and found.fault.kind == kind


def test_a_request_that_was_made_again_leaves_no_fault(tmp_path: Path) -> None:
    """The session came to its end all the same."""
    found = read(tmp_path, session(failing("Reconnecting... 1/5 (x)"), WORDS))

    assert (found.fault, found.interpreted) == (None, True)


def test_a_client_that_said_nothing_is_told_so(tmp_path: Path) -> None:
    """It may not even have started."""
    found = read(tmp_path, b"")

    assert found.events == 0
    assert found.fault is not None
    assert (found.fault.kind, found.fault.detail) == ("client_error", "it printed no event")


# Nothing raises, and nothing is made up.

WHOLE = {name: data(name) for name in NAMES}


@cache
def _whole(folder: Path, name: str) -> Transcript:
    return read(folder, WHOLE[name])


def _assert_no_more_is_shown(folder: Path, name: str, damaged: bytes) -> None:
    """Hold a damaged stream to the whole one: it may show less, and nothing else."""
    whole, found = _whole(folder, name), read(folder, damaged)
    is_completed = found.completion is not None and not found.completion.is_error
    assert not is_completed or whole.completion == found.completion
    load = observe_load(found, GREET).load
    # What is lost can turn any observation into `unknown`, and an unknown one into nothing else.
    assert load in (Load.UNKNOWN, observe_load(whole, GREET).load)
    assert Transcript.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_cut_at_any_line_never_proves_an_absence(tmp_path: Path, name: str) -> None:
    """A kill falls between two lines as a rule, and what came after is nowhere to be seen."""
    lines = WHOLE[name].splitlines(keepends=True)

    for count in range(len(lines)):
        cut = b"".join(lines[:count])
        _assert_no_more_is_shown(tmp_path, name, cut)
        found = read(tmp_path, cut)
        assert found.completion is None and not found.interpreted
        assert observe_load(found, GREET).load in (Load.LOADED, Load.UNKNOWN)


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_cut_at_any_byte_never_shows_more_than_the_whole(
    tmp_path: Path, name: str
) -> None:
    """Half a line is no event."""
    whole = WHOLE[name]
    lengths = random.Random(name).sample(range(len(whole)), min(60, len(whole)))

    for length in lengths:
        _assert_no_more_is_shown(tmp_path, name, whole[:length])
        # The newline behind the last event is all that may be missing.
        found = read(tmp_path, whole[:length])
        assert found.completion is None or length == len(whole) - 1


# There, what a command printed is all that speaks of a skill, and nothing repeats that.
TOLD_TWICE = tuple(name for name in NAMES if name != "moved-folder-glob")


@pytest.mark.parametrize("name", TOLD_TWICE)
def test_a_stream_with_a_flipped_bit_never_shows_a_success_or_an_absence_of_its_own(
    tmp_path: Path, name: str
) -> None:
    """Whatever happens to a byte on its way, no load and no failure is talked away."""
    whole, chance = WHOLE[name], random.Random(f"bits of {name}")

    for _ in range(60):
        place = chance.randrange(len(whole))
        flipped = bytes([whole[place] ^ (1 << chance.randrange(8))])
        _assert_no_more_is_shown(tmp_path, name, whole[:place] + flipped + whole[place + 1 :])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
EVENTS = st.sampled_from([START, TURN, END, failed("x"), failing("y"), WORDS, *CALL])
HOSTILE = st.builds(
    lambda event, key, value: {**event, key: value},
    EVENTS,
    st.sampled_from(["type", "item", "usage", "message", "error", "thread_id"]),
    VALUES,
)
ITEMS = st.builds(
    lambda event, key, value: {**event, "item": {**event["item"], key: value}},
    st.sampled_from([WORDS, *CALL]),
    st.sampled_from(["id", "type", "command", "status", "exit_code", "changes", "text"]),
    VALUES,
)
BYTES = st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b""))


@given(st.lists(EVENTS | HOSTILE | ITEMS | BYTES, max_size=8))
def test_no_stream_raises_and_every_transcript_can_be_stored(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any] | bytes]
) -> None:
    """Whatever a client prints, its trial ends in an outcome and a whole result file."""
    found = read(tmp_path_factory.getbasetemp(), stream(*events))

    assert Transcript.model_validate_json(found.model_dump_json()) == found
    assert all(isinstance(step, Step) for step in found.steps)
