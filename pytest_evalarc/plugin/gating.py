"""The gates of a session: read before anything runs, decided once everything has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.counting.gate import Answer, Decision, Status, parse_gate
from pytest_evalarc.errors import UsageError
from pytest_evalarc.plugin.options import Options
from pytest_evalarc.reporting.batch import Documents
from pytest_evalarc.reporting.gates import decide_gates

MOST_ANSWERS = 20
"""Of a gate, those that were not held first."""
_COLOURS: dict[Status, str] = {"held": "green", "failed": "red", "not decidable": "red"}
_ORDER: tuple[Status, ...] = ("failed", "not decidable", "held")


class Gating:
    """What `--evalarc-gate` or its ini twin asks for, and what became of it."""

    def __init__(self, options: Options) -> None:
        """Read the gates.

        Raises:
            UsageError: One of them is no gate, or names what no document has.
        """
        self.decisions: tuple[Decision, ...] = ()
        self._gates = tuple(parse_gate(text) for text in options.texts("gate"))
        self._are_standing = options.on_command_line("gate") is None

    @classmethod
    def of(cls, options: Options) -> Gating | None:
        """Return the gates of a session; None where there are none.

        Raises:
            pytest.UsageError: One of them is no gate, or names what no document has.
        """
        if not options.was_given("gate"):
            return None
        try:
            return cls(options)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error

    def decide(self, documents: Documents, *, root: Path) -> None:
        """Ask the documents of the session, whoever wrote them."""
        found = decide_gates(self._gates, documents, root=root)
        if self._are_standing:
            # What a project has written down is about the documents that are made: a bare
            # `pytest`, which starts no agent, is not held to a rate of successes.
            found = tuple(decision for decision in found if _is_answered(decision))
        self.decisions = found

    @property
    def is_broken(self) -> bool:
        """Whether a gate does not hold, or cannot be decided."""
        return any(decision.status != "held" for decision in self.decisions)


def _is_answered(decision: Decision) -> bool:
    return any(answer.subject for answer in decision.answers)


def show_gates(reporter: pytest.TerminalReporter, decisions: tuple[Decision, ...]) -> None:
    """Write the section of the gates; with `-q`, of their answers only those that were not held."""
    if not decisions:
        return
    reporter.write_sep("=", "evalarc gates")
    is_quiet = reporter.config.get_verbosity() < 0
    for decision in decisions:
        head, *lines = gate_lines(decision, quiet=is_quiet)
        reporter.write_line(head, **{_COLOURS[decision.status]: True})
        for line in lines:
            reporter.write_line(f"  {line}")


def gate_lines(decision: Decision, *, quiet: bool = False) -> list[str]:
    """Return a gate: what became of it, and what each document answered.

    Args:
        decision: The gate, decided.
        quiet: Whether the answers that were held are left out.
    """
    answers = sorted(decision.answers, key=lambda answer: _ORDER.index(answer.status))
    told = [answer for answer in answers if not quiet or answer.status != "held"]
    lines = [f"{decision.status}: {decision.gate}", *map(answer_line, told[:MOST_ANSWERS])]
    if len(told) > MOST_ANSWERS:
        lines.append(f"… and {len(told) - MOST_ANSWERS} more answers")
    return lines


def answer_line(answer: Answer) -> str:
    """Return what one document answered to one condition, and where that stands."""
    return f"{answer.condition}: " + ", ".join(_parts(answer))


def _parts(answer: Answer) -> Iterator[str]:
    if answer.value is None:
        yield f"not decidable, {answer.reason}"
    else:
        word = "held" if answer.status == "held" else "failed"
        yield f"{word}, found {shown_value(answer.value)}"
    if answer.subject:
        yield answer.subject
        yield answer.where


def shown_value(value: float | bool) -> str:
    """Return a value as a gate would write it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:.8g}"
