"""Whether a hook ran: what it recorded of itself, held against what the client reports."""

from __future__ import annotations

import os
import re

from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.transcript import HookRun, ToolCall, Transcript
from pytest_evalarc.model.trial import Decision, Verdict
from pytest_evalarc.treatments.loads import told
from pytest_evalarc.treatments.protocol import Evidence

FIRST_COUNTS = "Stop"
"""The event that can come more than once, of which the first record is the one checked."""

_MOST_TOLD = 5

_WAYS_THERE = re.compile(
    r"EVAL_EVIDENCE_DIR|SYMPOSIUM_HOOK_TRACE|hook-trace|plugin-hooks\.jsonl"
    r"|\$\{?HOME\b|(?<![\w/.^~@-])~(?=[/\s;|&'\")]|$)"
    r"|\.symposium\b|\.claude\.json|\.claude/settings|\.codex\b|hooks\.json"
)
"""What a command's text calls the folders of evidence and of configuration by."""
_UPWARDS = re.compile(r"(?<![\w.])\.\.(?![\w.])")
_BY_NAME = re.compile(r"(?<![\w-])(evidence|home)(?![\w-])")


def first_touch(transcript: Transcript, layout: RunLayout) -> str:
    """Return the first call that may have written evidence or configuration, as a sentence.

    An edit names its path. A command only may have written what it names, and one that hides
    the name is not found: an empty answer proves nothing, which is why records alone never do.

    Args:
        transcript: The session.
        layout: The trial's folders.

    Returns:
        The sentence, or an empty string.
    """
    for place, call in enumerate(transcript.tool_calls):
        if _edits(call, layout):
            return f"{told(place, call)} wrote to evidence or configuration"
        if call.kind in ("command", "other") and _names(call.target, layout):
            return f"{told(place, call)} may have written to evidence or configuration"
    return ""


def decide_hook(name: str, event: str, evidence: Evidence) -> Decision:
    """Return whether a hook left a successful record that nothing contradicts.

    Args:
        name: What the decision is called.
        event: The hook's event, as `SessionStart`.
        evidence: What was observed of the session.
    """
    verdict, seen = _by_records(event, evidence)
    doubts = doubts_of(evidence)
    if evidence.records.flaw:
        doubts = (evidence.records.flaw, *doubts)
    if doubts:
        return Decision(name=name, verdict="inconclusive", rests_on=(*seen, *doubts))
    return Decision(name=name, verdict=verdict, rests_on=seen)


def doubts_of(evidence: Evidence) -> tuple[str, ...]:
    """Return why what hooks left behind may not be theirs, each as a sentence."""
    gap = "" if evidence.transcript.interpreted else "the transcript was not interpreted whole"
    return tuple(doubt for doubt in (gap, evidence.touched, *_hook_changes(evidence)) if doubt)


def _by_records(event: str, evidence: Evidence) -> tuple[Verdict, tuple[str, ...]]:
    recorded = evidence.records.runs.get(event, ())
    counted = recorded[:1] if event == FIRST_COUNTS else recorded
    reported = _reported(event, evidence.transcript.hooks)
    seen = (_recorded_as(event, recorded), _reported_as(event, reported))
    if any(counted):
        return ("inconclusive" if _denies(reported) else "pass"), seen
    if recorded:
        return "fail", seen
    if reported is None:
        return "fail", seen
    # The client saw it succeed, or not yet end, and it recorded nothing: one of both is wrong.
    is_contradicted = any(run.succeeded is not False for run in reported)
    return ("inconclusive" if is_contradicted else "fail"), seen


def _reported(event: str, hooks: tuple[HookRun, ...] | None) -> tuple[HookRun, ...] | None:
    return None if hooks is None else tuple(run for run in hooks if run.event == event)


def _denies(reported: tuple[HookRun, ...] | None) -> bool:
    """Whether the client's report leaves no run that a successful record could be of."""
    return reported is not None and all(run.succeeded is False for run in reported)


def _recorded_as(event: str, recorded: tuple[bool, ...]) -> str:
    ends = ", ".join("succeeded" if run else "failed" for run in recorded[:_MOST_TOLD])
    more = ", …" if len(recorded) > _MOST_TOLD else ""
    return f"runs of {event} that are recorded: {len(recorded)} ({ends or 'none'}{more})"


def _reported_as(event: str, reported: tuple[HookRun, ...] | None) -> str:
    if reported is None:
        return "the client reports no hooks"
    succeeded = sum(run.succeeded is True for run in reported)
    return f"runs of {event} that the client reports: {len(reported)} ({succeeded} succeeded)"


def _hook_changes(evidence: Evidence) -> tuple[str, ...]:
    """Return the changes of configuration that decide which hooks run, and what they do.

    A server of tools decides neither, and Symposium itself registers some while it syncs.
    """
    return tuple(
        printable(change, limit=400) for change in evidence.config if "mcp" not in change.lower()
    )


def _edits(call: ToolCall, layout: RunLayout) -> bool:
    if call.kind != "edit" or call.is_error is True:
        return False
    path = os.path.normpath(layout.project / call.target)
    return any(f"{path}/".startswith(f"{folder}/") for folder in (layout.evidence, layout.home))


def _names(command: str, layout: RunLayout) -> bool:
    if _WAYS_THERE.search(command) or str(layout.evidence) in command:
        return True
    if str(layout.home) in command:
        return True
    return bool(_UPWARDS.search(command) and _BY_NAME.search(command))
