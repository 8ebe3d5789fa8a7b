"""The problems of one task, collected so that they are told together."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.errors import TaskError
from pytest_evalarc.files.text import in_line
from pytest_evalarc.tasks.toml import Key, TomlDocument


class Problems:
    """Every problem found so far in one task.

    Args:
        document: The task's task.toml.
        path: Its path.
        root: The project root, which messages name paths from.
    """

    def __init__(self, document: TomlDocument, *, path: Path, root: Path) -> None:
        self.found: list[TaskError] = []
        self._document = document
        self._where = shown_path(path, root)
        self._root = root

    def at_key(self, key: Key, problem: str, hint: str = "") -> None:
        """Tell a problem of a key of task.toml, there or missing."""
        where = f"{self._where}:{self._document.line(key)} {self._label(key)}"
        self.found.append(TaskError(where.rstrip(), problem, hint))

    def at_path(self, path: Path, problem: str, hint: str = "", *, line: int | None = None) -> None:
        """Tell a problem of a file or folder, or of one of its 1-based lines."""
        where = shown_path(path, self._root)
        self.found.append(TaskError(f"{where}:{line}" if line else where, problem, hint))

    def _label(self, key: Key) -> str:
        table = key if self._is_table(key) else key[:-1]
        name = "" if table == key else str(key[-1])
        return in_line(f"{_table_label(table)} {name}".strip(), limit=200)

    def _is_table(self, key: Key) -> bool:
        value: object = self._document.data
        for part in key:
            if isinstance(value, dict):
                value = value.get(str(part))
            elif isinstance(value, list) and isinstance(part, int):
                value = value[part]
            else:
                return False
        return isinstance(value, dict)


def shown_path(path: Path, root: Path) -> str:
    """Return a path as messages name it: from the project root when it lies there."""
    inside = path.is_relative_to(root)
    return in_line((path.relative_to(root) if inside else path).as_posix(), limit=400)


def _table_label(table: Key) -> str:
    place = next((at for at, part in enumerate(table) if isinstance(part, int)), None)
    if place is None:
        return f"[{'.'.join(map(str, table))}]" if table else ""
    rest = (f"#{part + 1}" if isinstance(part, int) else part for part in table[place:])
    return f"[[{'.'.join(map(str, table[:place]))}]] {' '.join(rest)}"
