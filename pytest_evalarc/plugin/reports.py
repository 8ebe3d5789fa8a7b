"""How an eval's report is marked, and which word the terminal shows for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from pytest_evalarc.files.text import printable
from pytest_evalarc.plugin.bodies import Errored, Excluded, Inconclusive, Missed
from pytest_evalarc.plugin.nodes import EvalItem
from pytest_evalarc.plugin.session import TrialHandle


class Word(NamedTuple):
    """One status: category in the last line, letter, word, and colour."""

    category: str
    letter: str
    word: str
    colour: str


WORDS = {
    "missed": Word("missed", "m", "MISSED", "yellow"),
    "inconclusive": Word("inconclusive", "i", "INCONCLUSIVE", "yellow"),
    "excluded": Word("excluded", "e", "EXCLUDED", "yellow"),
    # The category keeps its section and its place in the summary.
    "errored": Word("error", "E", "ERROR", "red"),
}

PROPERTY_CHARACTERS = 1 << 16
"""Of a recorded property, far more than anybody reads in a report."""

STATUSES: dict[type[BaseException], str] = {
    Missed: "missed",
    Inconclusive: "inconclusive",
    Excluded: "excluded",
    Errored: "errored",
}


def strike(report: pytest.TestReport, item: pytest.Item) -> None:
    """Strike the keys of a trial's client out of a report, before anything is made of it.

    Whatever a client of a plugin's raises or prints reaches the terminal, the JUnit file and the
    controller by the report alone.
    """
    handle = _trial_of(item)
    if handle is None or not (redaction := handle.redaction):
        return
    match report.longrepr:
        case (path, int(line), str(reason)):
            report.longrepr = (redaction.text(str(path)), line, redaction.text(reason))
        case shown if shown is not None and redaction.text(str(shown)) != str(shown):
            report.longrepr = redaction.text(str(shown))
    report.sections = [(name, redaction.text(said)) for name, said in report.sections]
    report.user_properties = [
        (name, redaction.text(value) if isinstance(value, str) else value)
        for name, value in report.user_properties
    ]


def mark(
    report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None], *, strict: bool
) -> None:
    """Write on an eval's report what it is and how it ended, as plain data.

    A miss is the measurement and not a defect of the run, so it travels as pytest's own xfail does:
    no option that reacts to failures reacts to it. With `strict` it stays a failure.
    """
    if not isinstance(item, EvalItem):
        return
    facts: dict[str, Any] = {"kind": item.leaf.kind, "status": None}
    report.evalarc = facts  # type: ignore[attr-defined]
    if call.excinfo is None or call.when != "call":
        return
    told = call.excinfo.value
    for kind, status_word in STATUSES.items():
        if isinstance(told, kind):
            facts["status"] = status_word
            facts["detail"] = str(report.longrepr)
            if status_word != "errored" and not (strict and status_word == "missed"):
                report.outcome = "skipped"
                report.wasxfail = facts["detail"]
                # Not every plugin asks the report alone: one that reruns what fails looks at the
                # call, where pytest itself leaves a skip for whatever it reports as one.
                call.excinfo = _skipped(facts["detail"])


def _skipped(reason: str) -> pytest.ExceptionInfo[BaseException] | None:
    """Return what a call leaves behind that was skipped."""
    return pytest.CallInfo.from_call(lambda: pytest.skip(reason), "call").excinfo


def describe(report: pytest.TestReport, item: pytest.Item) -> None:
    """Give an eval's report its properties, as plain data that also crosses processes.

    Every report of an item gets them: pytest writes into the XML those of the last one. What a
    test itself has recorded of a trial becomes plain too: xdist has no word for a path, and a
    worker that cannot send a report dies with the trials it was to run.
    """
    if isinstance(item, EvalItem) or _trial_of(item) is not None:
        report.user_properties = [
            (printable(str(name)), plain(value)) for name, value in report.user_properties
        ]
    told = {name for name, _ in report.user_properties}
    report.user_properties += [each for each in _properties(item) if each[0] not in told]


def plain(value: object) -> bool | int | float | str | None:
    """Return a recorded value as something that every reader and every process can take."""
    # A subclass, as an enumeration, is one of the things that do not travel.
    if value is None or type(value) is bool or type(value) is int or type(value) is float:
        return value
    return printable(value if isinstance(value, bytes) else str(value), limit=PROPERTY_CHARACTERS)


def _properties(item: pytest.Item) -> Iterator[tuple[str, str | int]]:
    handle = _trial_of(item)
    if isinstance(item, EvalItem):
        yield "task", item.path.parent.name
    elif handle is not None:
        yield "task", handle.task.name
    if handle is None:
        return
    yield "client", handle.plan.client
    if handle.plan.label.model is not None:
        yield "model", handle.plan.label.model
    yield "configuration", handle.configuration
    yield "trial", handle.number
    result = handle.known_result
    if result is not None:
        yield "outcome", result.outcome.value
        if result.cause is not None:
            yield "cause", result.cause.kind


def _trial_of(item: pytest.Item) -> TrialHandle | None:
    """Return the trial that an item is of, or that an ordinary test looks at."""
    if isinstance(item, EvalItem):
        return item.trial
    taken = getattr(item, "funcargs", {}).get("evalarc_trial")
    return taken if isinstance(taken, TrialHandle) else None


def status(
    report: pytest.CollectReport | pytest.TestReport, facts: dict[str, Any]
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Return the terminal's category, letter and word; None leaves them to pytest."""
    word = WORDS.get(facts.get("status") or "")
    if word is None or report.outcome not in ("failed", "skipped"):
        return None
    category = word.category
    if report.failed and category != "error":
        category = "failed"
    return category, word.letter, (word.word, {word.colour: True})
