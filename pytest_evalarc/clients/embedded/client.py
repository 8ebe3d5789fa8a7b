"""What the embedded clients share: one launch through the player, one stream to read."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pytest_evalarc import __version__
from pytest_evalarc.clients.protocol import ClientBase, Needs, Plays, Script, Watcher
from pytest_evalarc.errors import InfrastructureError, UsageError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.isolation.command import Command, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import TaskBrief

if TYPE_CHECKING:
    from pytest_evalarc.model.base import JsonObject
    from pytest_evalarc.model.transcript import Transcript

_PLAYER = "player.py"


def program_files() -> Mapping[str, bytes]:
    """Return the files that an embedded client's program folder holds, by name."""
    return {_PLAYER: Path(__file__).with_name(_PLAYER).read_bytes()}


def client_sha256() -> str:
    """Return the digest of the program that all embedded clients run."""
    digest = hashlib.sha256()
    for name, content in sorted(program_files().items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Embedded(ClientBase):
    """A client that plays a script in the sandbox; it needs no key and no network."""

    name: str
    plays: Plays
    """Whose work its script performs."""
    settings: tuple[str, ...] = ()
    """Settings that it takes; they decide its script, not its command."""
    version: str = __version__
    needs: Needs = field(default_factory=Needs)
    reader: Callable[..., Transcript] | None = None
    """Reads what it prints: `(stream, *, true_bytes)` to a transcript; None: it is our stream."""

    @property
    def embedded(self) -> bool:
        """Always: it is played from a script."""
        return True

    def configured(self, label: str, **of_label: object) -> Self:
        """Return this very client, whose label may bring settings alone.

        Raises:
            UsageError: The label names a command or a key, which nothing would heed.
        """
        for key in ("command", "key_env"):
            if of_label.get(key):
                hint = f"take {key} out of its table"
                raise UsageError(f"client {label}", f"is {self.name}, which takes no {key}", hint)
        return self

    def sha256(self) -> str:
        """Return the digest of the player, which all embedded clients share."""
        return client_sha256()

    def stage(self, folder: Path) -> None:
        """Put the player there."""
        write_tree(folder, program_files())

    def watcher(self) -> Watcher:
        """Return what looks for the completion event of a new session."""
        from pytest_evalarc.clients.stream import CompletionWatch

        return CompletionWatch()

    def launch(
        self,
        brief: TaskBrief,  # noqa: ARG002 - a script leaves nothing to ask.
        layout: RunLayout,
        *,
        python: Path,
        program_dir: Path,
        env: Mapping[str, str],
        model: str | None,  # noqa: ARG002
        settings: JsonObject,  # noqa: ARG002
        script: Script | None,
        plugins: tuple[Path, ...] = (),  # noqa: ARG002
        confinement: Policy | None = None,  # noqa: ARG002
    ) -> Command:
        """Return the player's command, with the script on its stdin.

        Raises:
            InfrastructureError: There is no script: nothing would be played as if by intent.
        """
        if script is None:
            raise InfrastructureError(f"client {self.name}", "was launched without a script")
        return Command(
            argv=(str(python), "-I", "-S", "-B", str(program_dir / _PLAYER)),
            cwd=layout.project,
            env=env,
            stdin=_document(script, skill_folder=self.needs.skill_folder),
        )

    def read(self, stdout: Path, exit: Exit, layout: RunLayout) -> Transcript:  # noqa: ARG002
        """Return what the player, or the session it repeated, reported."""
        from pytest_evalarc.clients.stream import read_stream

        return (self.reader or read_stream)(stdout, true_bytes=exit.stdout_bytes)


def _document(script: Script, *, skill_folder: str) -> bytes:
    """Return the script as the player takes it: one JSON document, contents in base64."""
    writes = {path: (_base64(content), mode) for path, (content, mode) in script.writes.items()}
    document = {
        "skill_folder": skill_folder,
        "reads": script.reads,
        "removes": script.removes,
        "writes": writes,
        "links": dict(script.links),
        "transcript": None if script.transcript is None else _base64(script.transcript),
    }
    return json.dumps(document).encode("ascii")


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")
