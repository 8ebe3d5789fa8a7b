"""What may be a candidate of a pack, and how it is started."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_evalarc.errors import SubmissionError, nearest
from pytest_evalarc.files.manifest import EntryType, Manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.grading.kept import spelled
from pytest_evalarc.grading.submission import Submission
from pytest_evalarc.isolation.command import Names
from pytest_evalarc.model.pack import Language

MANIFEST = "evalarc.toml"
"""A candidate's own file that names its command."""
SKIPPED = (".git", ".venv", "__pycache__")
MOST_BYTES = 10 << 20
MOST_FILES = 1000
MOST_WORDS = 64
MOST_CHARACTERS = 8192
"""Of all words of a command together."""

_WORKSPACE = "{workspace}/"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A submission that keeps the rules of candidates."""

    submission: Submission
    """What of it is copied and run."""
    command: tuple[str, ...]
    """Template of its command."""

    def copied(self, folder: Path) -> Candidate:
        """Return this candidate, copied to a folder.

        Raises:
            SubmissionError: It changed while it was copied.
        """
        manifest = self.submission.manifest
        copy_tree(self.submission.root, manifest, folder)
        return replace(self, submission=Submission(root=folder, manifest=manifest))


def is_skipped(path: str) -> bool:
    """Whether a path lies in what is no part of a candidate."""
    return any(part in SKIPPED for part in path.split("/"))


def as_candidate(submission: Submission, language: Language) -> Candidate:
    """Return a submission as a candidate.

    Args:
        submission: A folder at rest.
        language: Of the pack; its command is used where `evalarc.toml` names none.

    Raises:
        SubmissionError: It is empty, holds more than 10 MiB or 1000 files, or a link or special
            file, has no entry point, or its `evalarc.toml` is wrong.
    """
    entries = submission.manifest.entries
    manifest = Manifest(tuple(entry for entry in entries if not is_skipped(entry.path)))
    _check_size(submission.root, manifest)
    _check_kinds(manifest)
    own = Submission(root=submission.root, manifest=manifest)
    return Candidate(submission=own, command=_command(own, language))


def _check_size(root: Path, manifest: Manifest) -> None:
    files = manifest.files
    size = sum(entry.size for entry in files)
    if not files:
        raise SubmissionError(str(root), "holds no file", "name the folder of the candidate")
    if len(files) > MOST_FILES:
        problem = f"holds {len(files)} files, and a candidate may have {MOST_FILES}"
        raise SubmissionError(str(root), problem, "leave out what it does not need to run")
    if size > MOST_BYTES:
        problem = f"holds {size} bytes, and a candidate may have {MOST_BYTES}"
        raise SubmissionError(str(root), problem, "leave out what it does not need to run")


def _check_kinds(manifest: Manifest) -> None:
    for entry in manifest.entries:
        if entry.type in (EntryType.SYMLINK, EntryType.SPECIAL):
            kind = "a symbolic link" if entry.type is EntryType.SYMLINK else "a special file"
            where = printable(spelled(entry.path), limit=400)
            raise SubmissionError(where, f"is {kind}, and a candidate is files and folders alone")


def _command(candidate: Submission, language: Language) -> tuple[str, ...]:
    if MANIFEST in candidate.manifest.by_path:
        command = _named_command((candidate.root / MANIFEST).read_bytes())
    else:
        command = language.command
    for word in command:
        path = word.removeprefix(_WORKSPACE)
        if path != word and path not in candidate.manifest.by_path:
            raise SubmissionError(
                str(candidate.root),
                f"has no {printable(path)}, which its command starts",
                f"add it, or name another command in {MANIFEST}",
            )
    program = command[0].removeprefix(_WORKSPACE)
    if program != command[0] and not candidate.manifest.by_path[program].is_executable:
        hint = f"make it one, or start it by {{{language.toolchain}}}"
        raise SubmissionError(printable(program), "is no executable file", hint)
    return command


def _named_command(content: bytes) -> tuple[str, ...]:
    """Return the command of an `evalarc.toml`.

    Raises:
        SubmissionError: It is no TOML, has other keys, or its command is none.
    """
    try:
        data = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SubmissionError(MANIFEST, f"is no TOML: {printable(str(error))}") from error
    for key in data:
        if key != "command":
            hint = nearest(key, ("command",)) or "its one key is command"
            raise SubmissionError(MANIFEST, f"has the key {printable(repr(key))}", hint)
    command = data.get("command")
    if flaw := _command_flaw(command):
        hint = 'write command = ["{python}", "{workspace}/main.py"], say'
        raise SubmissionError(f"{MANIFEST} command", flaw, hint)
    return tuple(command)  # type: ignore[arg-type]  # what is no list of texts has a flaw


def _command_flaw(command: object) -> str | None:
    if command is None:
        return "is missing"
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return "is no list of texts"
    if not 1 <= len(command) <= MOST_WORDS:
        return f"has {len(command)} words, and may have 1 to {MOST_WORDS}"
    if any(not word or "\0" in word for word in command):
        return "has a word that is empty or holds a null byte"
    if sum(map(len, command)) > MOST_CHARACTERS:
        return f"is longer than {MOST_CHARACTERS} characters"
    return None


def named_command(submission: Submission, language: Language) -> tuple[str, ...]:
    """Return the template of a submission's command, be it a valid candidate or not."""
    try:
        return as_candidate(submission, language).command
    except SubmissionError:
        return language.command


def filled_command(template: tuple[str, ...], names: Names) -> tuple[str, ...]:
    """Return a command with its names filled in; every other brace stays as it is.

    A program that is not there would look as if the sandbox did not start, which is never held
    against the candidate, so it is refused before.

    Args:
        template: Words that may hold `{name}` for each of the names' values.
        names: What the candidate calls each thing where it runs.

    Raises:
        SubmissionError: Its program is neither the interpreter nor in the workspace, and is
            nowhere on the path that is known.
    """
    command = tuple(_filled(word, names.values) for word in template)
    program = command[0]
    is_ours = program == names.program or program.startswith(f"{names.workspace}/")
    if not is_ours and not _is_on_path(program, names.path or ()):
        raise SubmissionError(
            f"{MANIFEST} command",
            f"names the program {printable(program)}, which is not there",
            f"start it by {{{names.word}}}, as the pack's own command does",
        )
    return command


def _is_on_path(program: str, path: tuple[str, ...]) -> bool:
    places = [program] if "/" in program else [f"{folder}/{program}" for folder in path]
    return any(os.access(place, os.X_OK) for place in places if path)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word
