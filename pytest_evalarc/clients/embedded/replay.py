"""A recorded session, played again: its stream is printed and its tree of edits applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.clients.embedded.client import Embedded
from pytest_evalarc.clients.protocol import Plays
from pytest_evalarc.errors import SetupError

if TYPE_CHECKING:
    from pytest_evalarc.model.transcript import Transcript

_TRANSCRIPT = "transcript.jsonl"
_TREE = "submission"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What one session printed, and the project as it left it."""

    transcript: bytes
    tree: Path


def replay(reader: Callable[..., Transcript] | None = None) -> Embedded:
    """Return the client that repeats the session of its setting `recording`.

    Args:
        reader: Reads the recorded stream; another client's recording needs that client's, and None
            reads one of ours.
    """
    return Embedded(name="replay", plays=Plays.RECORDING, settings=("recording",), reader=reader)


def recording(folder: Path, configuration: str, trial: int) -> Recording:
    """Return the recorded session that a trial repeats.

    Args:
        folder: Either holds `transcript.jsonl` and `submission/` itself, or is a kept batch
            with a folder `trial-<n>-<configuration>` for each trial.
        configuration: The trial's configuration.
        trial: The trial's number, from 1.

    Raises:
        SetupError: The folder, or the stream or tree in it, is not there or cannot be read.
    """
    home = folder if (folder / _TRANSCRIPT).exists() else folder / f"trial-{trial}-{configuration}"
    stream, tree = home / _TRANSCRIPT, home / _TREE
    if not stream.is_file() or not tree.is_dir():
        missing = _TREE if stream.is_file() else _TRANSCRIPT
        raise SetupError(
            f"replay's setting recording = {str(folder)!r}",
            f"holds no {missing} for trial {trial} of {configuration} (looked in {home})",
            f"name a folder with {_TRANSCRIPT} and {_TREE}/, or a results folder with that trial",
        )
    try:
        return Recording(transcript=stream.read_bytes(), tree=tree)
    except OSError as error:
        raise SetupError(str(stream), f"cannot be read: {error.strerror or error}") from error
