from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.transcript import HookRun, ToolCall, Transcript
from pytest_evalarc.treatments.hooks import decide_hook, first_touch
from pytest_evalarc.treatments.protocol import Evidence
from pytest_evalarc.treatments.records import Records
from tests.treatments.bench import call, ran, session

LAYOUT = RunLayout(root=Path("/run/t1"))


def evidence(
    recorded: tuple[bool, ...],
    reported: tuple[HookRun, ...] | None,
    *,
    event: str = "SessionStart",
    **facts: object,
) -> Evidence:
    runs = {event: recorded} if recorded else {}
    return Evidence(
        **{  # type: ignore[arg-type]
            "transcript": session(hooks=reported),
            "records": Records(runs=runs),
            **facts,
        }
    )


@pytest.mark.parametrize(
    ("recorded", "reported", "verdict"),
    [
        ((True,), None, "pass"),
        ((True,), (ran("SessionStart"),), "pass"),
        ((False, True), (ran("SessionStart", False), ran("SessionStart")), "pass"),
        # Its end was not seen, which contradicts nothing.
        ((True,), (ran("SessionStart", None),), "pass"),
        # The client says that it failed, or that it never ran.
        ((True,), (ran("SessionStart", False),), "inconclusive"),
        ((True,), (), "inconclusive"),
        ((True,), (ran("Stop"),), "inconclusive"),
        # The client says that it succeeded, or was not heard to fail, and nothing is recorded.
        ((), (ran("SessionStart"),), "inconclusive"),
        ((), (ran("SessionStart", None),), "inconclusive"),
        ((), (ran("SessionStart", False), ran("SessionStart")), "inconclusive"),
        # Both say that it did not run, or failed.
        ((), (), "fail"),
        ((), None, "fail"),
        ((), (ran("Stop"),), "fail"),
        ((), (ran("SessionStart", False),), "fail"),
        ((False,), (ran("SessionStart", False),), "fail"),
        ((False,), None, "fail"),
    ],
)
def test_a_record_counts_as_far_as_the_client_does_not_contradict_it(
    recorded: tuple[bool, ...], reported: tuple[HookRun, ...] | None, verdict: str
) -> None:
    """The agent can write records; what the client reports of its hooks, it cannot."""
    decision = decide_hook("hook-x", "SessionStart", evidence(recorded, reported))

    assert (decision.name, decision.verdict) == ("hook-x", verdict)
    assert len(decision.rests_on) == 2


@pytest.mark.parametrize(
    ("recorded", "verdict"), [((True, False), "pass"), ((False, True), "fail")]
)
def test_of_stop_the_first_record_is_the_one_checked(
    recorded: tuple[bool, ...], verdict: str
) -> None:
    """It comes again when a hook sends the agent back to work."""
    seen = evidence(recorded, (ran("Stop", recorded[0]), ran("Stop", recorded[1])), event="Stop")

    assert decide_hook("hook-Stop", "Stop", seen).verdict == verdict


@pytest.mark.parametrize("recorded", [(True,), ()])
@pytest.mark.parametrize(
    ("facts", "doubt"),
    [
        ({"records": Records(flaw="it is torn")}, "it is torn"),
        ({"touched": "tool call 1 wrote there"}, "tool call 1 wrote there"),
        ({"config": ("home/.claude/settings.json was altered",)}, "settings.json was altered"),
        ({"config": ("home/.symposium/config.toml was altered",)}, "config.toml was altered"),
        ({"transcript": session(interpreted=False)}, "not interpreted whole"),
    ],
)
def test_what_may_not_be_the_hook_s_own_decides_nothing(
    recorded: tuple[bool, ...], facts: dict[str, object], doubt: str
) -> None:
    """A record that could be forged is no pass, and one that could be deleted no fail."""
    decision = decide_hook("hook-x", "SessionStart", evidence(recorded, None, **facts))

    assert decision.verdict == "inconclusive"
    assert any(doubt in sentence for sentence in decision.rests_on)


def test_a_server_that_a_sync_registers_casts_no_doubt_on_hooks() -> None:
    """Symposium writes the servers of plugins itself, during the session."""
    seen = evidence((True,), None, config=("home/.claude.json: mcpServers was added",))

    assert decide_hook("hook-x", "SessionStart", seen).verdict == "pass"


@pytest.mark.parametrize(
    "touching",
    [
        call("edit", "/run/t1/evidence/hook-trace.jsonl"),
        call("edit", "../evidence/hook-trace.jsonl"),
        call("edit", "/run/t1/home/.claude/settings.json"),
        call("edit", "/run/t1/home/.symposium/config.toml", is_error=None),
        call("command", "echo '{}' >> $EVAL_EVIDENCE_DIR/hook-trace.jsonl"),
        call("command", 'tee -a "$SYMPOSIUM_HOOK_TRACE"', is_error=True),
        call("command", "rm -r /run/t1/evidence"),
        call("command", "rm ../evidence/*"),
        call("command", "cd .. && rm -r evidence"),
        call("command", "rm ~/.claude/settings.json"),
        call("command", "ls ~"),
        call("command", "cp x ${HOME}/.symposium/config.toml"),
        call("command", 'python3 -c \'open("/run/t1/home/x", "w")\''),
        call("other", '{"path": "/run/t1/home/.codex/hooks.json"}'),
    ],
)
def test_a_call_that_reaches_evidence_or_configuration_is_found(touching: ToolCall) -> None:
    """From there on nobody can tell whose the records are."""
    transcript = session(call("command", "ls"), touching)

    assert first_touch(transcript, LAYOUT).startswith("tool call 2 (")


@pytest.mark.parametrize(
    "innocent",
    [
        call("edit", "src/lib.rs"),
        call("edit", "evidence/report.md"),
        call("edit", "/run/t1/home/.claude/settings.json", is_error=True),
        call("edit", "/run/t1/project/home/x"),
        call("read", "/run/t1/evidence/hook-trace.jsonl"),
        call("command", "cargo test"),
        call("command", "git diff HEAD~1 -- src/evidence.rs"),
        call("command", "cat ../fixtures/store/src/lib.rs"),
        call("command", "python -m evidence.review home"),
        call("command", "echo a~b && ls a/~/b"),
        call("command", "git log main..evidence"),
        call("other", "look for evidence ... and come home"),
        call("skill", "tidy"),
    ],
)
def test_ordinary_work_is_no_reason_for_doubt(innocent: ToolCall) -> None:
    """Otherwise no trial of an agent that works would ever be decided."""
    assert first_touch(session(innocent), LAYOUT) == ""


def test_a_hostile_command_is_told_safely() -> None:
    """Its text is the agent's, and sentences reach terminals."""
    seen = first_touch(session(call("command", "~/\x1b]0;x\x07" + "a" * 9000)), LAYOUT)

    assert "\x1b" not in seen
    assert len(seen) < 400


def test_a_session_without_calls_touched_nothing() -> None:
    """There is nothing to tell."""
    assert first_touch(Transcript(events=0, interpreted=True), LAYOUT) == ""
