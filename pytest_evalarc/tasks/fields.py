"""Values of task.toml, read with exact types; what does not fit is told and left out."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeGuard

from pytest_evalarc.errors import nearest
from pytest_evalarc.files.text import in_line
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.tasks.problems import Problems
from pytest_evalarc.tasks.toml import Key

NAME_HINT = "use letters, digits, `_`, `+` and `-`, 100 at most"


class Table:
    """One table of task.toml; each reader returns its default where the value does not fit.

    Args:
        problems: Where misfits are told.
        data: The table's content.
        key: Where the table is.
    """

    def __init__(self, problems: Problems, data: dict[str, Any], key: Key = ()) -> None:
        self.problems = problems
        self.data = data
        self.key = key

    def __contains__(self, name: str) -> bool:
        return name in self.data

    def tell(self, name: str, problem: str, hint: str = "") -> None:
        """Tell a problem of one key of this table."""
        self.problems.at_key((*self.key, name), problem, hint)

    def refuse_unknown(self, known: Collection[str]) -> None:
        """Tell every key that has no meaning here, with the nearest that has."""
        for name in self.data:
            if name not in known:
                self.tell(name, "is no key that is known here", nearest(name, tuple(known)))

    def require(self, name: str, hint: str) -> bool:
        """Tell when a key is missing; return whether it is there."""
        if name not in self.data:
            self.tell(name, "is missing", hint)
        return name in self.data

    def text(self, name: str, default: str = "", *, empty: bool = False) -> str:
        """Return a string; an empty or blank one does not fit unless allowed."""
        value = self.data.get(name, default)
        if isinstance(value, str) and (value.strip() or empty or name not in self.data):
            return value
        self._misfit(name, "a string" if empty else "a string with something in it")
        return default

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """Return one of some words, or None."""
        value = self.data.get(name)
        if value is None or (isinstance(value, str) and value in choices):
            return value
        hint = nearest(value, tuple(choices)) if isinstance(value, str) else ""
        self._misfit(name, "one of " + ", ".join(f'"{choice}"' for choice in choices), hint)
        return None

    def name(self, name: str, default: str) -> str:
        """Return a string that is a name."""
        value = self.data.get(name, default)
        if isinstance(value, str) and is_name(value):
            return value
        self._misfit(name, "a name", NAME_HINT)
        return default

    def flag(self, name: str) -> bool:
        """Return a boolean, false by default."""
        value = self.data.get(name, False)
        if isinstance(value, bool):
            return value
        self._misfit(name, "true or false")
        return False

    def number(
        self, name: str, default: float, *, least: float = 0.0, most: float = math.inf
    ) -> float:
        """Return a finite number above 0, between two bounds that belong to it."""
        value = self.data.get(name, default)
        if not (is_number(value) and 0 < value < math.inf):
            self._misfit(name, "a finite number above 0")
        elif not least <= value <= most:
            self._misfit(name, f"at least {least:g}" if value < least else f"at most {most:,}")
        else:
            return float(value)
        return default

    def integer(self, name: str, default: int, *, most: int) -> int:
        """Return a whole number above 0, written as one."""
        value = self.data.get(name, default)
        if not (is_integer(value) and value > 0):
            self._misfit(name, "a whole number above 0")
        elif value > most:
            self._misfit(name, f"at most {most:,}")
        else:
            return value
        return default

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return whole numbers, at least one and none twice."""
        value = self.data.get(name, list(default))
        if isinstance(value, list) and value and all(map(is_integer, value)):
            if len(set(value)) == len(value):
                return tuple(value)
            self.tell(name, "names a number twice", "name each once")
            return default
        self._misfit(name, "a list of whole numbers with something in it")
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings, none empty and none twice; an empty one by default."""
        value = self.data.get(name, [])
        if not isinstance(value, list):
            self._misfit(name, "a list of strings")
            return ()
        for item in value:
            if not isinstance(item, str) or not item.strip():
                problem = f"must be a list of strings, found {described(item)} in it"
                self.tell(name, problem)
                return ()
        for twin, item in twins(value):
            self.tell(name, f"names {described(item)} beside {described(twin)}", "keep one of them")
        return tuple(dict.fromkeys(value))

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of names."""
        values = self.texts(name)
        for value in values:
            if not is_name(value):
                self.tell(name, f"has {described(value)} in it, which is no name", NAME_HINT)
        return tuple(value for value in values if is_name(value))

    def table(self, name: str) -> Table:
        """Return a table, an empty one by default."""
        value = self.data.get(name, {})
        if not isinstance(value, dict):
            self._misfit(name, "a table")
            value = {}
        return Table(self.problems, value, (*self.key, name))

    def tables(self, name: str) -> Iterator[Table]:
        """Yield the tables of a list of tables."""
        value = self.data.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self._misfit(name, "a list of tables")
            return
        for place, item in enumerate(value):
            yield Table(self.problems, item, (*self.key, name, place))

    def _misfit(self, name: str, wanted: str, hint: str = "") -> None:
        self.tell(name, f"must be {wanted}, found {described(self.data[name])}", hint)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a TOML value is a float or a 64-bit integer; a boolean is neither."""
    return type(value) is float or is_integer(value)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a TOML value is an integer of 64 bits, which is all that TOML has room for."""
    return type(value) is int and -(2**63) <= value < 2**63


def twins(values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (earlier, later) for each later value that equals an earlier one but for case."""
    seen: dict[str, str] = {}
    for value in values:
        if (folded := value.casefold()) in seen:
            yield seen[folded], value
        else:
            seen[folded] = value


def described(value: object) -> str:
    """Return a TOML value as words of a sentence."""
    if isinstance(value, str):
        return f'"{in_line(value, limit=80)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (datetime.date, datetime.time)):
        return f"the date or time {value}"
    if isinstance(value, (dict, list)):
        kind = "table" if isinstance(value, dict) else "list"
        return f"a {kind}" if value else f"an empty {kind}"
    return str(value) if is_number(value) else "an integer beyond 64 bits"
