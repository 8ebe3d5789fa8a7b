"""The controls of a pack: whole candidates that lie beside its code, and edits of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.model.task import Mutant

WHOLE = ("reference", "starter")


def read_control(
    candidates: Path, name: str, language: str, mutants: Sequence[Mutant]
) -> Mapping[str, bytes]:
    """Return the files of a control by their POSIX paths.

    Args:
        candidates: Folder with `<language>/reference` and `<language>/starter`.
        name: `reference`, `starter` or a mutant's name.
        language: One of the folders.
        mutants: The declared faults, as edits of the reference in that language.

    Raises:
        UsageError: There is no such control, or none in that language.
    """
    languages = tuple(sorted(path.name for path in candidates.iterdir() if path.is_dir()))
    if language not in languages:
        problem = f"there is no candidate in {language!r}"
        raise UsageError("language of the pack", problem, nearest(language, languages))
    if name in WHOLE:
        return _files(candidates / language / name)
    by_name = {mutant.name: mutant for mutant in mutants}
    if name not in by_name:
        known = (*WHOLE, *by_name)
        raise UsageError("control of the pack", f"there is no {name!r}", nearest(name, known))
    return _edited(_files(candidates / language / "reference"), by_name[name])


def _files(folder: Path) -> dict[str, bytes]:
    manifest = read_manifest(folder, skip=is_cache)
    return {entry.path: (folder / entry.path).read_bytes() for entry in manifest.files}


def _edited(files: dict[str, bytes], mutant: Mutant) -> dict[str, bytes]:
    for edit in mutant.edits:
        text = files[edit.file].decode()
        if text.count(edit.find) != 1:
            raise ValueError(f"mutant {mutant.name}: {edit.find!r} is not there exactly once")
        files[edit.file] = text.replace(edit.find, edit.replace).encode()
    return files
