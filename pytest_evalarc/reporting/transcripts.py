"""The session of a kept trial, read again from its folder and told on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.recount import require_agreement
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.transcript import Offered, Transcript, Usage
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.turns import Call, Turn, turns_of
from pytest_evalarc.runs.plan import planned_client
from pytest_evalarc.runs.session import TRANSCRIPT

RESULT_LINES = 8
RESULT_CHARACTERS = 800
"""How much of a tool's result is shown unless all of it is asked for."""
ALL = 1 << 30
MOST_BY_WORDS = 10_000
"""Characters of a line that is wrapped between its words; a longer one is not made of words."""
LEAST_WIDTH = 40
INDENT = "  "

Style = Callable[[str, str], str]
"""Returns a text in the style of a word: `title`, `quiet` or `bad`."""


@dataclass(frozen=True, kw_only=True)
class KeptTrial:
    """What lies in the folder of a trial."""

    plan: PlanDoc
    entry: PlannedTrial
    result: TrialResult | None
    """None for one that cannot be read, or is not there."""
    transcript: Transcript
    warnings: tuple[str, ...] = ()
    """A sentence for each thing that is not there, or not as it was written."""


def read_kept_trial(folder: Path, clients: Callable[[str], Client]) -> KeptTrial:
    """Return the session of a trial, read again from its kept stream.

    Args:
        folder: The trial's result folder, beside plan.json.
        clients: Returns a client by its kind.

    Raises:
        DocumentError: The folder is none of a trial, or holds no stream: its session never
            started.
        UsageError: Nobody offers the client that was planned.
    """
    plan, entry = _planned(folder)
    result, warnings = _result(folder)
    transcript = read_session(folder, plan, result, clients)
    if not transcript.interpreted:
        warnings += ("parts of the client's stream were not understood, and are not shown",)
    return KeptTrial(
        plan=plan, entry=entry, result=result, transcript=transcript, warnings=warnings
    )


def read_session(
    folder: Path, plan: PlanDoc, result: TrialResult | None, clients: Callable[[str], Client]
) -> Transcript:
    """Return the session of a trial whose documents were read before.

    Args:
        folder: The trial's result folder.
        plan: What planned it.
        result: Its result; None for one that cannot be read.
        clients: Returns a client by its kind.

    Raises:
        DocumentError: The folder holds no stream: the session never started.
        UsageError: Nobody offers the client that was planned.
    """
    stream = folder / TRANSCRIPT
    try:
        size = stream.stat().st_size
        client = planned_client(plan, clients)
        exit = Exit(
            reason=Ended.EXITED, status=None, stdout_bytes=size, stderr_bytes=0, wall_time_s=0.0
        )
        return client.read(stream, exit, _layout(result, folder))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(stream), problem, "a trial without a session has none") from error


def _planned(folder: Path) -> tuple[PlanDoc, PlannedTrial]:
    hint = "name a folder like results/<task>/<client>/<batch>/trial-1-baseline"
    # As it really is, since a user may name the folder that they are in.
    place = folder.resolve()
    plan_path = place.parent / "plan.json"
    if not place.is_dir() or not plan_path.exists():
        raise DocumentError(str(folder), "is no folder of a trial", hint)
    plan = read_model(plan_path, PlanDoc)
    entry = next((entry for entry in plan.trials if entry.folder == place.name), None)
    if entry is None:
        raise DocumentError(str(folder), "is no trial of the plan beside it", hint)
    return plan, entry


def _result(folder: Path) -> tuple[TrialResult | None, tuple[str, ...]]:
    path = folder / "result.json"
    try:
        result = read_model(path, TrialResult)
        require_agreement(result, where=str(path))
    except DocumentError as error:
        return None, (f"{error}; the session is shown without it",)
    return result, ()


def _layout(result: TrialResult | None, folder: Path) -> RunLayout:
    """Return where the trial ran, which paths in its stream start from.

    The policy of its session says so: its project is one of the folders that could be written.
    """
    policy = result.isolation.policy if result is not None else None
    files = policy.get("filesystem") if isinstance(policy, dict) else None
    written = files.get("allowWrite") if isinstance(files, dict) else None
    for path in written if isinstance(written, list) else ():
        if isinstance(path, str) and Path(path).name == RunLayout(root=Path()).project.name:
            return RunLayout(root=Path(path).parent)
    return RunLayout(root=folder)


def session_lines(
    kept: KeptTrial,
    *,
    prompt: str | None,
    width: int,
    full: bool = False,
    style: Style = lambda text, _: text,
) -> Iterator[str]:
    """Yield a session as lines for a terminal; what a client said cannot steer that.

    Args:
        kept: The trial.
        prompt: What the agent was asked; None where nobody knows any more.
        width: Columns of the terminal; lines are wrapped to it, and to no fewer than 40.
        full: Whether results of tools are shown whole.
        style: Gives a text a style, as of `title`.
    """
    page = _Page(max(width, LEAST_WIDTH), full=full, style=style)
    yield from page.head(kept)
    for turn in turns_of(kept.transcript, prompt=prompt):
        yield ""
        yield from page.turn(turn, level=0)
    yield ""
    yield from page.end(kept)


class _Page:
    """How things look: each method yields the lines of one thing."""

    def __init__(self, width: int, *, full: bool, style: Style) -> None:
        self._width = width
        self._full = full
        self._style = style

    def head(self, kept: KeptTrial) -> Iterator[str]:
        """Yield which trial it is, and what the session had."""
        plan, transcript = kept.plan, kept.transcript
        yield self._title(f"{plan.task.name} with {plan.client}: {kept.entry.folder}")
        models = transcript.models or (plan.model,)
        told = [f"model {model}" for model in models if model]
        if transcript.client_version:
            told.append(f"client version {transcript.client_version}")
        yield from self._text("; ".join(told), level=1)
        if transcript.offered is not None:
            yield from self._text(_offered(transcript.offered), level=1)

    def turn(self, turn: Turn, *, level: int) -> Iterator[str]:
        """Yield what was said and done in a turn, sub-agents below their calls."""
        step = turn.step
        time = f", {step.at:%H:%M:%S}" if step.at is not None else ""
        model = f" ({step.model})" if step.model else ""
        yield INDENT * level + self._title(f"{step.source}{model}{time}")
        if step.reasoning:
            yield from self._text(step.reasoning, level=level + 1, style="quiet")
        yield from self._text(step.text, level=level + 1)
        for call in turn.calls:
            yield from self._call(call, level=level + 1)

    def _call(self, call: Call, *, level: int) -> Iterator[str]:
        tool = call.tool
        named = f"{tool.name} {tool.target}" if tool.target else tool.name
        is_bad = tool.is_error is True
        mark = {True: "! ", False: "> ", None: "? "}[tool.is_error]
        yield from self._text(
            mark + named + (" [error]" if is_bad else ""),
            level=level,
            style="bad" if is_bad else "",
        )
        for turn in call.turns:
            yield from self.turn(turn, level=level + 1)
        if tool.result is None:
            yield from self._text("[no result was seen]", level=level + 1, style="quiet")
        else:
            yield from self._result(
                tool.result, level=level + 1, style="bad" if is_bad else "quiet"
            )

    def _result(self, text: str, *, level: int, style: str) -> Iterator[str]:
        lines = text.rstrip("\n").split("\n")
        shown = text.rstrip("\n")
        if not self._full:
            shown = "\n".join(lines[:RESULT_LINES])[:RESULT_CHARACTERS]
        yield from self._text(shown, level=level, style=style)
        dropped = len(text.rstrip("\n")) - len(shown)
        if dropped > 0:
            more = f"[{dropped:,} of {len(text):,} characters are left out; --full shows them]"
            yield from self._text(more, level=level, style="quiet")

    def end(self, kept: KeptTrial) -> Iterator[str]:
        """Yield the hooks that ran, what was used, and how the session and the trial ended."""
        transcript, result = kept.transcript, kept.result
        facts = [("hooks", hook) for hook in _hooks(transcript)]
        usage = transcript.usage or (result.usage if result is not None else None)
        facts.append(("used", _usage(usage)))
        facts.append(("ended", _ending(transcript)))
        if result is not None:
            facts.append(("trial", _outcome(result)))
            facts += [("audit", finding) for finding in result.isolation.audit_findings]
        for name, fact in facts:
            yield from self._text(f"{name}: {fact}", level=0)
        for warning in kept.warnings:
            yield from self._text(f"warning: {warning}", level=0, style="bad")

    def _title(self, text: str) -> str:
        return self._style(printable(text), "title")

    def _text(self, text: str, *, level: int, style: str = "") -> Iterator[str]:
        """Yield a text as it is divided into lines, those wrapped that are too long."""
        margin = INDENT * level
        room = max(self._width - len(margin), LEAST_WIDTH // 2)
        for line in printable(text, limit=ALL).expandtabs(4).rstrip().split("\n") if text else ():
            for part in _wrapped(line, room):
                yield margin + self._style(part.rstrip(), style) if part.strip() else ""


def _wrapped(line: str, width: int) -> Sequence[str]:
    if len(line) > MOST_BY_WORDS:
        return [line[start : start + width] for start in range(0, len(line), width)]
    first, *others = textwrap.wrap(
        line, width, drop_whitespace=False, replace_whitespace=False, break_on_hyphens=False
    ) or ("",)
    # Only what begins a line is indented on purpose.
    return (first, *(other.lstrip(" ") for other in others))


def _offered(offered: Offered) -> str:
    told = [f"{kind.replace('_', ' ')} {', '.join(names)}" for kind, names in offered if names]
    return f"offered: {'; '.join(told) or 'nothing by name'}"


def _hooks(transcript: Transcript) -> Iterable[str]:
    words = {True: "succeeded", False: "failed", None: "its end was not seen"}
    for hook in transcript.hooks or ():
        name = f" ({hook.name})" if hook.name and hook.name != hook.event else ""
        yield f"{hook.event}{name} {words[hook.succeeded]}"


def _usage(usage: Usage | None) -> str:
    if usage is None:
        return "unknown"
    counts = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "read from cache": usage.cache_read_tokens,
        "written to cache": usage.cache_write_tokens,
    }
    told = [f"{number:,} {what}" for what, number in counts.items() if number is not None]
    tokens = f"{', '.join(told)} tokens" if told else "unknown tokens"
    return tokens if usage.cost_usd is None else f"{tokens}, {usage.cost_usd:.4f} US dollars"


def _ending(transcript: Transcript) -> str:
    completion, fault = transcript.completion, transcript.fault
    if completion is None:
        said = "the stream tells of no end"
    else:
        word = "with an error" if completion.is_error else "completed"
        # A fault says the same, and more.
        is_news = fault is None and completion.detail not in ("", word)
        said = f"{word}, {completion.detail}" if is_news else word
    if fault is None:
        return said
    return f"{said}; {fault.kind}: {fault.detail}" if fault.detail else f"{said}; {fault.kind}"


def _outcome(result: TrialResult) -> str:
    seconds = "" if result.elapsed_secs is None else f" after {result.elapsed_secs:.1f} s"
    told = f"{result.execution.value}{seconds}, {result.outcome.value}".replace("_", " ")
    cause = result.cause
    return told if cause is None else f"{told} ({cause.kind}: {cause.detail})"
