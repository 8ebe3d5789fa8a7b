"""The controls of a pack: whole candidates that lie beside its code, and edits of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.model.pack import Language
from pytest_evalarc.model.task import Mutant

WHOLE = ("reference", "starter")
ENTRIES = {"python": "main.py", "javascript": "main.js"}
"""The file that a candidate is started with, by language."""


def two_languages(
    *, python: tuple[str, ...] = (), javascript: tuple[str, ...] = ()
) -> dict[str, Language]:
    """Return Python and JavaScript, each with the further arguments of its candidates."""
    bare = ("{python}", "-I", "-S", "-B")
    return {
        "python": Language(toolchain="python", command=(*bare, "{workspace}/main.py", *python)),
        "javascript": Language(
            toolchain="node", command=("{node}", "{workspace}/main.js", *javascript)
        ),
    }


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A declared fault, and how the reference in each language gets it."""

    name: str
    target: str
    """The dimension in which the cases must notice it."""
    description: str
    edits: Mapping[str, Sequence[tuple[str, str]]]
    """By language: each text of the entry file that is replaced, and what takes its place."""

    @property
    def mutant(self) -> Mutant:
        """The fault as a task declares it."""
        return Mutant(name=self.name, target=self.target, description=self.description)


@dataclass(frozen=True, kw_only=True)
class Controls:
    """The candidates that ship with a pack."""

    folder: Path
    """Has `<language>/reference` and `<language>/starter`."""
    faults: Sequence[Fault]
    entry: Mapping[str, str] = field(default_factory=lambda: ENTRIES)
    """The file that the faults edit, by language."""

    def files(self, name: str, language: str) -> dict[str, bytes]:
        """Return the files of a control by their POSIX paths.

        Args:
            name: `reference`, `starter` or a fault's name.
            language: One of the pack's.

        Raises:
            UsageError: There is no such control, or none in that language.
        """
        if language not in self.entry:
            problem = f"there is no candidate in {language!r}"
            hint = nearest(language, tuple(self.entry))
            raise UsageError("language of the pack", problem, hint)
        if name in WHOLE:
            return _files(self.folder / language / name)
        faults = {fault.name: fault for fault in self.faults}
        if name not in faults:
            known = (*WHOLE, *faults)
            raise UsageError("control of the pack", f"there is no {name!r}", nearest(name, known))
        files = _files(self.folder / language / "reference")
        entry = self.entry[language]
        return files | {entry: _edited(files[entry].decode(), faults[name], language)}


def _files(folder: Path) -> dict[str, bytes]:
    manifest = read_manifest(folder, skip=is_cache)
    return {entry.path: (folder / entry.path).read_bytes() for entry in manifest.files}


def _edited(text: str, fault: Fault, language: str) -> bytes:
    for find, replacement in fault.edits[language]:
        if text.count(find) != 1:
            raise ValueError(f"fault {fault.name}: {find!r} is not there exactly once")
        text = text.replace(find, replacement)
    return text.encode()
