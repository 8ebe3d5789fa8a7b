"""One trial as data for the page's script: blocks that it shows when a reader opens the trial."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from pydantic import JsonValue

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.controls import STARTER
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Task, TaskRef
from pytest_evalarc.model.transcript import ToolCall, Transcript
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.cached import cached_sentence
from pytest_evalarc.reporting.page.diff import Starter, changes
from pytest_evalarc.reporting.transcripts import read_session
from pytest_evalarc.reporting.turns import Turn, turns_of
from pytest_evalarc.runs.session import TRANSCRIPT

EMBEDDED_BYTES = 20 << 20
"""Transcripts, diffs and outputs of checks that a page holds; what is beyond is linked."""
MOST_OPENED = 1000
"""Trials whose details a page holds; the rows of more are all that it has room for."""
MOST_STREAM_BYTES = 64 << 20
"""A larger stream is linked and not read."""
TEXT_CHARACTERS = 20_000
"""Of one text, as a tool's result; head and tail of a longer one are shown."""
LOG_BYTES = 4 * TEXT_CHARACTERS
MOST_LOGS = 200
UNKNOWN = "\N{EM DASH}"
"""Stands where nobody knows a value."""

Block: TypeAlias = dict[str, JsonValue]


@dataclass
class Allowance:
    """How much may still be embedded in the page."""

    bytes_left: int = EMBEDDED_BYTES
    linked: int = 0
    """Trials of which something is linked, since it was too much."""
    to_open: int = MOST_OPENED
    """Trials whose details may still be embedded; below 0, as many as had to do without."""

    def open_one(self) -> bool:
        """Return whether the details of one more trial may be embedded, and count it."""
        self.to_open -= 1
        return self.to_open >= 0

    @property
    def unopened(self) -> int:
        """Trials of which the page has no more than their row and a link."""
        return max(0, -self.to_open)

    def take(self, block: Block) -> bool:
        """Return whether a block may be embedded, and count it."""
        size = len(embedded(block))
        if size > self.bytes_left:
            return False
        self.bytes_left -= size
        return True


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a page is made from beside the results."""

    clients: Callable[[str], Client]
    """Returns a client by its kind, and raises a UsageError for one that nobody offers."""
    task_of: Callable[[TaskRef], Task | None]
    """Returns a task as it was evaluated; None where it is gone or another by now."""
    packs: Callable[[str], Pack]
    """Returns a pack by its name, and raises a UsageError for one that nobody offers."""
    page_folder: Path
    """Where the page will lie, which links to files start from."""
    allowance: Allowance = field(default_factory=Allowance)
    _tasks: dict[TaskRef, Task | None] = field(default_factory=dict, init=False)

    def task(self, ref: TaskRef) -> Task | None:
        """Return a task as `task_of` does, which is asked once: all trials of a batch want it."""
        if ref not in self._tasks:
            self._tasks[ref] = self.task_of(ref)
        return self._tasks[ref]

    def starter(self, task: Task) -> Starter:
        """Return what a task's trials start from: its folder, or the files of its pack.

        Raises:
            UsageError: Nobody offers the pack, or it has no candidate in the task's language.
        """
        if task.pack is None:
            return task.starter
        return self.packs(task.pack.name).control(STARTER, task.pack.language)

    def link(self, path: Path) -> str:
        """Return a link from the page to a file, which holds while both stay where they are."""
        way = os.path.relpath(path.resolve(), self.page_folder.resolve())
        return quote(os.fsencode(Path(way).as_posix()))


def embedded(data: JsonValue) -> str:
    """Return data as JSON for an element of the page, which no text in it can end."""
    text = json.dumps(_safe(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _safe(data: JsonValue) -> JsonValue:
    if isinstance(data, str):
        return printable(data, limit=len(data))
    if isinstance(data, list):
        return [_safe(value) for value in data]
    if isinstance(data, dict):
        return {key: _safe(value) for key, value in data.items()}
    return data


def trial_data(
    plan: PlanDoc, entry: PlannedTrial, result: TrialResult, folder: Path, sources: Sources
) -> Block:
    """Return all that the page shows of one trial.

    Args:
        plan: What planned it.
        entry: Its place in the plan.
        result: Its result.
        folder: Its result folder.
        sources: Where its client and its task come from, and what may still be embedded.
    """
    blocks: list[JsonValue] = [*_facts(result), *_gradings(result.gradings), *_expectations(result)]
    blocks.append(_isolation(result))
    is_whole = True
    for large in (_session, _changed, _outputs):
        block = large(plan, result, folder, sources)
        if sources.allowance.take(block):
            blocks.append(block)
        else:
            is_whole = False
            blocks.append(
                {**_heading(block), "note": "Too much for this page: open the files below."}
            )
    sources.allowance.linked += not is_whole
    blocks.append(_files(folder, sources))
    title = f"{plan.task.name}, {plan.client}: {entry.configuration}, trial {entry.trial}"
    return {"title": title, "outcome": _spaced(result.outcome.value), "blocks": blocks}


def _heading(block: Block) -> Block:
    return {"heading": block["heading"]}


def _facts(result: TrialResult) -> Iterator[Block]:
    usage = result.usage
    facts = {
        "outcome": _spaced(result.outcome.value),
        "session": _spaced(result.execution.value),
        "session seconds": result.elapsed_secs,
        "tokens": usage.total if usage else None,
        "cost in US dollars": usage.cost_usd if usage else None,
        "client": _versioned(result.client.name, result.client.version),
    }
    # What most trials have nothing of is told where there is something.
    more = {
        "cause": _caused(result.cause),
        "fault": _caused(result.fault),
        "model asked for": result.model.name,
        "models that answered": ", ".join(result.model.served) or None,
        "treatment": result.treatment.name if result.treatment else None,
        "toolchain": result.toolchain,
        "started": result.started_at.isoformat() if result.started_at else None,
        "files with a secret struck out": ", ".join(result.redacted_files) or None,
    }
    known = {name: value for name, value in more.items() if value is not None}
    yield {"heading": "What became of it", "facts": _pairs({**facts, **known})}


def _pairs(facts: Mapping[str, float | str | None]) -> JsonValue:
    return [[name, _text(value)] for name, value in facts.items()]


def _gradings(gradings: tuple[Grading, ...]) -> Iterator[Block]:
    for number, grading in enumerate(gradings, start=1):
        rows: list[JsonValue] = [
            [step.name, "", step.status, _text(step.wall_time_s), _why(step.cause, step.detail)]
            for step in grading.steps
        ]
        for row in grading.rows:
            name = row.check if row.seed is None else f"{row.check} (seed {row.seed})"
            missed = [name for name, held in row.verdicts.items() if held is not True]
            told = (_text(row.wall_time_s), _why(row.cause, row.detail))
            rows.append([name, ", ".join(missed), _spaced(row.status), *told])
        title = "Steps and checks" if len(gradings) == 1 else f"Steps and checks, grading {number}"
        yield {
            "heading": title,
            "note": " ".join(
                note for note in (_caused(grading.cause), cached_sentence(grading.cached)) if note
            ),
            "head": ["step or check", "missed dimensions", "status", "seconds", "detail"],
            "rows": rows,
        }


def _expectations(result: TrialResult) -> Iterator[Block]:
    if result.expectations is None:
        return
    rows: list[JsonValue] = [
        [
            decision.name,
            decision.verdict or "not judged",
            _long("\n".join(decision.rests_on)),
        ]
        for decision in result.expectations.decisions
    ]
    yield {
        "heading": "Expectations and their evidence",
        "head": ["expectation", "verdict", "rests on"],
        "rows": rows,
        "note": "" if rows else "Nothing was expected.",
    }


def _isolation(result: TrialResult) -> Block:
    found = result.isolation
    record = found.record
    limits = record.limits if record else {}
    facts = {
        "level": _spaced(found.mode),
        "sandbox": _versioned(record.sandbox, record.version) if record else None,
        "limits enforced": ", ".join(name for name, by in limits.items() if by) or None,
        "limits not enforced": ", ".join(name for name, by in limits.items() if not by) or "none",
        "attempts to leave": "\n".join(found.audit_findings) or "none seen",
        "what voids it": "\n".join(_caused(cause) or "" for cause in found.findings) or "nothing",
        "changed configuration": ", ".join(found.config_changes) or "nothing",
    }
    if record is not None and record.image is not None:
        facts["image"] = f"{record.image} ({record.image_id})"
    policy = json.dumps(found.policy, indent=2, ensure_ascii=False)
    return {
        "heading": "Isolation",
        "facts": _pairs(facts),
        "texts": [["policy", _long(policy)]],
    }


def _session(plan: PlanDoc, result: TrialResult, folder: Path, sources: Sources) -> Block:
    block: Block = {"heading": "Session"}
    try:
        if (folder / TRANSCRIPT).stat().st_size > MOST_STREAM_BYTES:
            return {**block, "note": "The stream is too large for this page: open the file below."}
        transcript = read_session(folder, plan, result, sources.clients)
    except OSError:
        return {**block, "note": "No stream was kept: the session never started."}
    except EvalArcError as error:
        return {**block, "note": str(error)}
    except Exception as error:
        # A client is a third party's code, and one that fails takes no page away.
        told = f"The client cannot read its stream: {type(error).__name__}: {error}"
        return {**block, "note": told}
    task = sources.task(plan.task)
    turns = turns_of(transcript, prompt=task.brief.prompt if task else None)
    note = "" if transcript.interpreted else "Parts of the stream were not understood. "
    note += "" if task else "The prompt is not at hand: the task is gone or was changed since."
    return {
        **block,
        "note": note.strip(),
        "facts": [[name, value] for name, value in _told(transcript)],
        "turns": [_turn(turn) for turn in turns],
    }


def _told(transcript: Transcript) -> Iterator[tuple[str, str]]:
    offered = transcript.offered
    for kind, names in offered if offered is not None else ():
        if names:
            yield f"{_spaced(kind)} offered", ", ".join(names)
    loads = [call for call in transcript.tool_calls if call.kind == "skill"]
    for call in loads:
        yield "skill load", f"{_short(call.target)}: {_ended(call)}"
    words = {True: "succeeded", False: "failed", None: "its end was not seen"}
    for hook in transcript.hooks or ():
        name = f" ({hook.name})" if hook.name and hook.name != hook.event else ""
        yield "hook", _short(f"{hook.event}{name}: {words[hook.succeeded]}")


def _turn(turn: Turn) -> Block:
    step = turn.step
    return {
        "source": step.source,
        "model": step.model or "",
        "at": step.at.isoformat() if step.at else "",
        "reasoning": _long(step.reasoning),
        "text": _long(step.text),
        "calls": [
            {
                "name": _short(f"{call.tool.name}: {call.tool.target}".rstrip(": ")),
                "kind": call.tool.kind,
                "ended": _ended(call.tool),
                "arguments": _long(
                    json.dumps(call.tool.arguments, indent=2, ensure_ascii=False)
                    if call.tool.arguments
                    else ""
                ),
                "result": _long(call.tool.result or ""),
                "turns": [_turn(below) for below in call.turns],
            }
            for call in turn.calls
        ],
    }


def _ended(call: ToolCall) -> str:
    words = {True: "error", False: "done", None: "no result seen"}
    return words[call.is_error]


def _changed(plan: PlanDoc, _: TrialResult, folder: Path, sources: Sources) -> Block:
    block: Block = {"heading": "What the agent changed"}
    if not (folder / "submission.json").exists():
        return {**block, "note": "No submission was kept."}
    task = sources.task(plan.task)
    if task is None:
        return {**block, "note": "The task is not at hand, or was changed since: no comparison."}
    try:
        found = changes(sources.starter(task), folder)
    except (EvalArcError, OSError) as error:
        return {**block, "note": f"No comparison: {error}"}
    except Exception as error:
        # A pack is a third party's code, and one that fails takes no page away.
        told = f"No comparison: the pack fails: {type(error).__name__}: {error}"
        return {**block, "note": told}
    files: list[JsonValue] = [
        {"path": file.path, "word": file.word, "lines": list(file.lines), "note": file.note}
        for file in found
    ]
    return {**block, "files": files, "note": "" if files else "Nothing differs from the starter."}


def _outputs(_: PlanDoc, __: TrialResult, folder: Path, ___: Sources) -> Block:
    texts: list[JsonValue] = []
    logs = sorted((folder / "grading").glob("*.log"))
    for path in logs[:MOST_LOGS]:
        said = _kept_text(path)
        if said.strip():
            texts.append([path.stem, said])
    note = "" if texts else "No output was kept, or none was printed."
    if len(logs) > MOST_LOGS:
        note = f"The first {MOST_LOGS} of {len(logs)} are shown."
    return {"heading": "Output of steps and checks", "texts": texts, "note": note}


def _kept_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LOG_BYTES + 1)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    more = "\n[… the rest is in the file …]" if len(data) > LOG_BYTES else ""
    return printable(data[:LOG_BYTES], limit=LOG_BYTES) + more


def _files(folder: Path, sources: Sources) -> Block:
    named = ("result.json", TRANSCRIPT, "trajectory.json", "response.txt", "stderr.log")
    paths = [*(folder / name for name in named), folder / "submission", folder / "grading"]
    links: list[JsonValue] = [
        [path.name, sources.link(path)] for path in paths if path.exists() and not path.is_symlink()
    ]
    return {
        "heading": "Files",
        "links": links,
        "note": "These links hold while the page and the results stay where they are.",
    }


def _why(cause: Cause | None, detail: str) -> str:
    return _caused(cause) or _long(detail)


def _caused(cause: Cause | None) -> str | None:
    if cause is None:
        return None
    return _long(f"{cause.kind}: {cause.detail}" if cause.detail else cause.kind)


def _versioned(name: str, version: str | None) -> str:
    return f"{name} {version}" if version else name


def _text(value: float | str | None) -> str:
    """Return a value as it is shown; a dash for one that nobody knows."""
    if value is None:
        return UNKNOWN
    return _long(value) if isinstance(value, str) else f"{value:,.10g}"


def _short(text: str) -> str:
    return printable(text, limit=400)


def _long(text: str) -> str:
    return printable(text, limit=TEXT_CHARACTERS)


def _spaced(word: str) -> str:
    return word.replace("_", " ")
