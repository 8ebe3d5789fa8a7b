"""How many trials of a client may run at once: what `--evalarc-max-parallel` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.files.text import printable

OPTION = "--evalarc-max-parallel"
MOST = 100_000
"""As many as a configuration may have trials."""


@dataclass(frozen=True, kw_only=True)
class MaxParallel:
    """How many trials of each client may run at once; no bound unless one is given."""

    each: int | None = None
    """Of every client that has no number of its own; at least 1, None is without bound."""
    named: Mapping[str, int] = field(default_factory=dict)
    """By the client's label; at least 1."""

    def of(self, label: str) -> int | None:
        """Return how many trials of a client may run at once; None is without bound."""
        return self.named.get(label, self.each)


def max_parallel(text: str, *, known: tuple[str, ...]) -> MaxParallel:
    """Return what the option asks for: `4`, `claude=4,codex=2`, or `4,codex=2`.

    Args:
        text: The option's value; a number alone is for each client that is not named.
        known: Labels of clients that there are.

    Raises:
        UsageError: It is neither a number nor LABEL=NUMBER, a number is below 1, there is no such
            client, or something is told twice.
    """
    given: dict[str, int] = {}
    for label, number in _words(text):
        if label and label not in known:
            problem = f"no client {printable(label, limit=200)!r}"
            raise UsageError(_where(text), problem, nearest(label, known))
        if label in given:
            told = f"tells {label} twice" if label else "tells two numbers for all other clients"
            raise UsageError(_where(text), told, "tell each once")
        given[label] = number
    each = given.pop("", None)
    return MaxParallel(each=each, named=given)


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Yield each label, empty where none is named, with its number."""
    for word in text.split(","):
        label, equals, number = (part.strip() for part in word.rpartition("="))
        is_number = number.isascii() and number.isdigit()
        if not is_number or (equals and not label):
            problem = f"{printable(word.strip(), limit=200)!r} is neither a number nor LABEL=NUMBER"
            raise UsageError(_where(text), problem, "give 4, or claude=4,codex=2")
        if not 1 <= int(number[:9]) <= MOST:
            problem = f"{printable(number, limit=20)} is not a number of trials"
            raise UsageError(_where(text), problem, f"give 1 to {MOST}")
        yield label, int(number)


def _where(text: str) -> str:
    return f"{OPTION} {printable(text, limit=200)!r}"
