"""What a case of another program says, as far as a task has a word for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.plain import is_name

CASE, CASE_YAML, EVALS, HARBOR = "prompt.md", "case.yaml", "evals.json", "instruction.md"
"""The files that the forms are known by."""

KNOWN_FORMS = (
    f"name a `claude plugin eval` case with {CASE} or {CASE_YAML}, an {EVALS} of the "
    f"skill-creator, or a Harbor task with {HARBOR}"
)


@dataclass(kw_only=True)
class Parts:
    """What becomes of a source, gathered while it is read."""

    prompt: str
    plugin: str | None = None
    """Its folder, from the project root."""
    used: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    agent_s: float | None = None
    grading_s: float | None = None
    memory_mib: int | None = None
    cpus: float | None = None
    starter: dict[str, bytes] = field(default_factory=dict)
    """Files by path below the starter."""
    left_out: list[str] = field(default_factory=list)
    """A sentence for each thing that a task has no word for."""

    def take_tags(self, found: object) -> None:
        """Take the tags of a list over that a task can have, and tell the others."""
        for tag in strings(found):
            if is_name(tag):
                self.tags = tuple(dict.fromkeys((*self.tags, tag)))
            else:
                self.left_out.append(f"tag {shown(tag)}: a tag here is letters, digits, _, + and -")

    def take_folder(self, folder: Path, name: str) -> None:
        """Put the files of a folder into the starter, under a name; links are not followed."""
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                self.starter[f"{name}/{path.relative_to(folder).as_posix()}"] = read_bytes(path)


def strings(value: object) -> tuple[str, ...]:
    """Return the strings of a list; none of what is no list."""
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def positive(value: object) -> float | None:
    """Return a number above 0; None for anything else, as `true` or NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < math.inf else None


def below(folder: Path, root: Path) -> str | None:
    """Return a folder's path from the project root; None for one that does not lie in it."""
    whole = folder.absolute()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else None


def shown(name: str) -> str:
    """Return a foreign name, short and safe to print."""
    return printable(name, limit=200)


def read_text(path: Path) -> str:
    """Return a file of a source as text.

    Raises:
        DocumentError: It cannot be read, or is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(str(path), "is not UTF-8", "save it as plain UTF-8") from error


def read_bytes(path: Path) -> bytes:
    """Return a file of a source.

    Raises:
        DocumentError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, KNOWN_FORMS) from error
