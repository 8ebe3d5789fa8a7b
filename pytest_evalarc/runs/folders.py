"""Where everything of a batch is: the working side below the evaluation root, the kept results."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.atomic import sweep, write_atomic
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.planned import PlannedTrial

SUMMARY_SUFFIX = ".summary.json"
"""After a batch's name; no task's folder can have such a name."""


def summary_path(results: Path, batch: str) -> Path:
    """Return where it is said what a batch shows over all of its tasks and clients."""
    return results / f"{batch}{SUMMARY_SUFFIX}"


SHARD_SUFFIX = ".shard.json"
"""After a batch's name, like that of a summary."""


def shard_path(results: Path, batch: str) -> Path:
    """Return where it is said which shard of a split batch lies in a folder of results."""
    return results / f"{batch}{SHARD_SUFFIX}"


def default_eval_root() -> Path:
    """Return the evaluation root that is used unless another is named: this user's own."""
    # Windows gives each user a temporary folder, and has no user ids.
    owner = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    return Path(tempfile.gettempdir()) / f"pytest-evalarc{owner}"


def gradings_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where gradings are kept for later sessions: in this user's folder for caches.

    Source: XDG Base Directory Specification 0.8, which has a relative path ignored.
    """
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    caches = named if named.is_absolute() else _own_caches()
    return caches / "pytest-evalarc" / "gradings"


def _own_caches() -> Path:
    try:
        home = Path.home()
    except RuntimeError:
        # A user that no list of users knows, as in a container, has no home.
        root = default_eval_root()
        return root.with_name(f"{root.name}-cache")
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def open_gradings(folder: Path) -> None:
    """Make the folder of kept gradings, private to this user.

    Raises:
        UsageError: It is no folder of this user's own, or cannot be made.
    """
    hint = "name another place with XDG_CACHE_HOME"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        problem = f"cannot be made or written: {error.strerror or error}"
        raise UsageError(str(folder), problem, hint) from error
    require_own(folder, hint=hint)


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The folders of one batch."""

    eval_root: Path
    results: Path
    batch: str

    @property
    def work(self) -> Path:
        """The batch's folder below the evaluation root."""
        return self.eval_root / self.batch

    @property
    def tools(self) -> Path:
        """Staged tools that every trial may read."""
        return self.work / "tools" / "common"

    def run(self, task: str, client: str, entry: PlannedTrial) -> RunLayout:
        """Return the run folder of a trial."""
        return RunLayout(root=self.work / task / client / entry.folder)

    def trials(self, task: str, client: str) -> Path:
        """Return the folder of plan.json, benchmark.json and the trials of a task and client."""
        return self.results / task / client / self.batch

    def audit(self, task: str) -> Path:
        """Return the folder of a task's audit."""
        return self.results / task / "audit" / self.batch

    def candidate(self, task: str) -> Path:
        """Return the folder of the candidate that a batch judges."""
        return self.results / task / "submission" / self.batch

    def open_work(self) -> None:
        """Make the batch's working folder, private to this user, and say that it is in use.

        Raises:
            UsageError: The evaluation root is no folder of this user's own.
        """
        is_open = False
        while not is_open:
            self._open_root()
            # Whoever closes the root's last batch just now takes the root away as well.
            with contextlib.suppress(FileNotFoundError), locked(self._lock):
                self.work.mkdir(exist_ok=True, mode=0o700)
                self._users.mkdir(exist_ok=True)
                (self._users / str(os.getpid())).touch()
                is_open = True

    def _open_root(self) -> None:
        with _told(self.eval_root, "--evalarc-root"):
            self.eval_root.mkdir(parents=True, exist_ok=True, mode=0o700)
        require_own(self.eval_root)

    def close_work(self) -> None:
        """Remove the batch's working folder, unless another live process still uses it.

        A second call does nothing.

        Raises:
            OSError: Something there cannot be removed.
        """
        # A process that died over this may have left any part of it.
        if self.work.exists() or self._lock.exists():
            # Whoever closes the root's last batch just now takes the root away as well.
            with contextlib.suppress(FileNotFoundError), locked(self._lock):
                # First, so that of two that close at once the second removes what the first
                # could not.
                (self._users / str(os.getpid())).unlink(missing_ok=True)
                if self.is_in_use:
                    return
                self._remove_work()
                self._lock.unlink(missing_ok=True)
        # Another batch, or a folder that the user made for more than this, keeps the root.
        with contextlib.suppress(OSError):
            self.eval_root.rmdir()

    def _remove_work(self) -> None:
        """Remove the working folder, and what says that it is one at the very end."""
        if self.work.is_dir():
            for path in self.work.iterdir():
                if path != self._users:
                    remove_tree(path)
        remove_tree(self.work)

    @property
    def _users(self) -> Path:
        return self.work / "users"

    @property
    def _lock(self) -> Path:
        # Beside the working folder, so that nobody starts to use one that is being removed.
        return self.eval_root / f".{self.batch}.lock"

    @property
    def is_in_use(self) -> bool:
        """Whether a live process other than this one works in the batch's working folder."""
        try:
            names = os.listdir(self._users)
        except OSError:
            return False
        others = [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]
        return any(_is_alive(pid) for pid in others)

    def make_results(self) -> None:
        """Make the folder of results where there is none, and keep it out of version control.

        A folder that held something before is the user's, and is not hidden from git.

        Raises:
            UsageError: It cannot be made.
        """
        with _told(self.results, "--evalarc-results"):
            is_new = not self.results.exists() or not any(self.results.iterdir())
            self.results.mkdir(parents=True, exist_ok=True)
            ignore = self.results / ".gitignore"
            if is_new and not ignore.exists():
                write_atomic(ignore, b"*\n")

    def open_results(self, folder: Path) -> None:
        """Make a folder in the results, and point `latest` at it.

        Raises:
            UsageError: The folder of results cannot be made.
        """
        self.make_results()
        with _told(self.results, "--evalarc-results"):
            folder.mkdir(parents=True, exist_ok=True)
        _point(folder.parent / "latest", folder.name)

    def sweep_results(self) -> None:
        """Remove what processes died over while they wrote results of this batch.

        What others write just now stays. A kept submission is never looked into: such names are
        its author's there.
        """
        sweep(self.results)
        for folder in self.results.glob(f"*/*/{self.batch}"):
            for below in (folder, *folder.glob("*/")):
                sweep(below)
            for link in folder.parent.glob(f"{_BEGUN_LINK}*"):
                pid = link.name.removeprefix(_BEGUN_LINK)
                if pid.isdigit() and not _is_alive(int(pid)):
                    link.unlink(missing_ok=True)


@contextlib.contextmanager
def _told(folder: Path, option: str) -> Iterator[None]:
    """Tell as a sentence that a folder the user can name elsewhere cannot be made."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be made or written: {error.strerror or error}"
        raise UsageError(str(folder), problem, f"name another folder with {option}") from error


def require_own(folder: Path, *, hint: str = "name another folder with --evalarc-root") -> None:
    """Refuse a folder, as an evaluation root, that others could fill.

    Raises:
        UsageError: It is a link, or not this user's own.
    """
    found = folder.lstat()
    is_own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not stat.S_ISDIR(found.st_mode) or not is_own:
        problem = "is a link, or belongs to another user"
    elif hasattr(os, "getuid") and found.st_mode & stat.S_IWOTH:
        problem = "can be written by every user of this machine"
    else:
        return
    raise UsageError(str(folder), problem, hint)


_BEGUN_LINK = ".latest-"
"""Before the id of the process that is about to let `latest` lead elsewhere."""


def _is_alive(pid: int) -> bool:
    import psutil

    return psutil.pid_exists(pid)


def _point(link: Path, target: str) -> None:
    """Make a relative link, replacing an older one in a single step."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    temporary = link.with_name(f"{_BEGUN_LINK}{os.getpid()}")
    # A file system without links does without this convenience, and so does a batch of that name.
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(link)
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
