"""What is around an agent's session and must not be touched, and what is looked at afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.isolation.host import base_python
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.runs.session import TRANSCRIPT_BYTES
from tests.adversarial.corpus import Attack
from tests.evals import DONE, FILES, START, TASK, Evals, shell

UNPROTECTED = Path(__file__).with_name("unprotected.py")
MOST_KEPT_BYTES = 128 * 2**20
MOST_LOG_BYTES = TRANSCRIPT_BYTES + 2**20
"""No trial keeps more of what was said than a transcript may be long."""
MOST_PROCESSES = 1000
LIMITS = "[limits]\ndisk_mib = 64\nprocesses = 128\n"
BEGUN = "app/begun"
CHECK = "evals/tasks/tiny/checks/adds.py"
ANSWERS = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n"
"""What somebody else's process does for as long as it lives."""


class Left(NamedTuple):
    """Where a session's remains are, and what its harness made of them."""

    project: Path
    """Where it worked; gone when its harness removed it."""
    kept: Path
    log: Path
    """A file, or a folder with all that was printed."""
    has_ended: bool
    """Whether the harness came to a verdict."""
    is_believed: bool
    """Whether that verdict is a success, of which nothing was ever earned."""
    told: Mapping[str, str]
    """What the verdict says, in the words of a result."""


class World:
    """A process, sockets, files and results that belong to somebody else, with a secret in each."""

    def __init__(self, folder: Path) -> None:
        self.secret = f"osprey-{secrets.token_hex(12)}"
        self.token = secrets.token_hex(8)
        self.folder = folder
        self.outside = folder / "outside"
        self.outside.mkdir(parents=True)
        (folder / "secret.txt").write_text(self.secret)
        self._heard = threading.Event()
        self._sockets = [self._listener(f"\0{self.token}"), self._listener(str(folder / "s"))]
        self._sockets.append(self._tcp())
        self._victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", ANSWERS, self._mark],
            env={"SECRET": self.secret},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._open = os.open(folder / "secret.txt", os.O_RDONLY)
        os.set_inheritable(self._open, True)
        self.evals = self._evals()
        self._checks = self._digest()

    @classmethod
    @contextlib.contextmanager
    def around(cls, folder: Path) -> Iterator[World]:
        """Make a world in a folder that is not there yet, and end it."""
        world = cls(folder)
        try:
            yield world
        finally:
            world.close()

    @property
    def _mark(self) -> str:
        return f"victim-{self.token}-{self.secret}"

    def _evals(self) -> Evals:
        hidden = f"# {self.secret}\n"
        files = {
            "evals/tasks/tiny/task.toml": TASK.replace("[limits]\n", LIMITS),
            CHECK: FILES[CHECK] + hidden,
        }
        evals = Evals(root=self.folder / "e", files=files)
        evals.results.mkdir()
        (evals.results / "earlier.txt").write_text(self.secret)
        return evals

    @property
    def _checks_folder(self) -> Path:
        return (self.evals.project / CHECK).parent

    def script(self, attack: Attack) -> str:
        """Return what an agent runs; where everything lies it need not even guess."""
        told = {
            "WORLD": self.folder,
            "CHECKS": self._checks_folder,
            "RESULTS": self.evals.results,
            "TOKEN": self.token,
            "PORT": self._sockets[-1].getsockname()[1],
            "PY": base_python(),
        }
        lines = [f"{name}={shlex.quote(str(value))}" for name, value in told.items()]
        # An attack that could not even begin would show nothing.
        return "\n".join([*lines, f'"$PY" -I -S -c pass && : > {BEGUN}', attack.script])

    # The two harnesses.

    def unprotected(self, attack: Attack) -> Left:
        """Run the session under a harness that protects nothing, in a process of its own."""
        place = self.folder / "unprotected"
        project, kept, log, verdict = (place / name for name in ("project", "kept", "log", "ended"))
        shutil.copytree(self.evals.task.starter, project)
        (place / "script").write_text(self.script(attack))
        argv = [sys.executable, UNPROTECTED, place / "script", project, kept, log, verdict]
        # Whatever it mounts is gone with it.
        alone = ["unshare", "--mount"] if attack.needs == "mount" else []
        subprocess.run(
            [*alone, *argv],
            env={"PATH": os.defpath, "HOME": str(place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(self._open,),
            timeout=120,
            check=False,
        )
        told = json.loads(verdict.read_text()) if verdict.exists() else {"success": False}
        return Left(project, kept, log, verdict.exists(), told["success"], {})

    def ours(self, attack: Attack) -> Left:
        """Run the session as a trial."""
        client = shell(self.script(attack), says=(START, DONE))
        evals = self.evals.other(batch_name="b1", client=client)
        trial = evals.trial()
        result = evals.run(trial)
        return Left(
            project=trial.layout.project,
            kept=trial.folder / "submission",
            log=trial.folder,
            has_ended=(trial.folder / "result.json").exists(),
            is_believed=result.outcome is Outcome.SUCCEEDED,
            told={
                "outcome": result.outcome.value,
                "execution": result.execution.value,
                "cause": result.cause.kind if result.cause is not None else "",
            },
        )

    # What is looked at.

    def effects(self, left: Left) -> set[str]:
        """Return what happened to the world, each in the words of the corpus."""
        seen = {
            "leaks": any(self.secret.encode() in path.read_bytes() for path in _files(left)),
            "writes": any(self.outside.iterdir()),
            "shares memory": Path("/dev/shm", self.token).exists(),
            "is heard": self._heard.wait(0.2),
            "kills": self._is_victim_dead(),
            "breaks the harness": not left.has_ended,
            "mounts": (left.kept / "app/mounted").exists(),
            "keeps setuid": any(path.stat().st_mode & stat.S_ISUID for path in _files(left)),
            "makes a device": any(_is_device(path) for path in _below(left.project)),
            "edits checks": self._digest() != self._checks,
            "is believed": left.is_believed,
            "fills the disk": _room(left.kept) > MOST_KEPT_BYTES,
            "floods": _room(left.log) > MOST_LOG_BYTES,
            "starts many": _count(left.kept) > MOST_PROCESSES,
            "survives": any(self._survivors()),
        }
        return {name for name, is_so in seen.items() if is_so}

    def _is_victim_dead(self) -> bool:
        # Whoever was sent a signal answers nothing more, however late the signal arrives.
        assert self._victim.stdin is not None
        assert self._victim.stdout is not None
        try:
            self._victim.stdin.write(b"\n")
            self._victim.stdin.flush()
        except BrokenPipeError:
            return True
        return not self._victim.stdout.readline()

    def _digest(self) -> str:
        content = b"".join(path.read_bytes() for path in sorted(self._checks_folder.iterdir()))
        return hashlib.sha256(content).hexdigest()

    def _survivors(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter(["cmdline", "status"]):
            line = " ".join(process.info["cmdline"] or ())
            is_own = process.pid in (self._victim.pid, os.getpid())
            if self.token in line and not is_own and process.info["status"] != "zombie":
                yield process

    # What listens.

    def _listener(self, address: str) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(address)
        return self._hearing(listening)

    def _tcp(self) -> socket.socket:
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        return self._hearing(listening)

    def _hearing(self, listening: socket.socket) -> socket.socket:
        listening.listen()

        def hear() -> None:
            try:
                connected, _ = listening.accept()
            except OSError:
                return
            with connected:
                if connected.recv(100):
                    self._heard.set()

        threading.Thread(target=hear, daemon=True).start()
        return listening

    def close(self) -> None:
        """End all that it started, and remove what was left."""
        for process in self._survivors():
            process.kill()
        self._victim.kill()
        # Both of its pipes are closed too.
        with contextlib.suppress(BrokenPipeError):
            self._victim.communicate()
        os.close(self._open)
        for listening in self._sockets:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        Path("/dev/shm", self.token).unlink(missing_ok=True)
        # Some of it is too deep for what cleans up after tests.
        remove_tree(self.folder)


def _below(folder: Path) -> Iterator[Path]:
    """Yield all that is below a folder, however deep, and follow no link."""
    folders = [folder]
    while folders:
        with contextlib.suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry))
                yield Path(entry)


def _files(left: Left) -> Iterator[Path]:
    """Yield each regular file that was kept or logged, links not followed."""
    logged = [left.log] if left.log.is_file() else _below(left.log)
    for path in (*_below(left.kept), *logged):
        if stat.S_ISREG(path.lstat().st_mode):
            yield path


def _is_device(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _room(place: Path) -> int:
    """Return how many bytes are taken on the disk."""
    paths = [place] if place.is_file() else list(_below(place))
    return sum(path.lstat().st_blocks * 512 for path in paths)


def _count(kept: Path) -> int:
    found = next((path for path in _below(kept) if path.name == "count"), None)
    return int(found.read_text() or 0) if found is not None else 0
