"""Where everything of a batch is: the working side below the evaluation root, the kept results."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.planned import PlannedTrial

SUMMARY_SUFFIX = ".summary.json"
"""After a batch's name; no task's folder can have such a name."""


def summary_path(results: Path, batch: str) -> Path:
    """Return where it is said what a batch shows over all of its tasks and clients."""
    return results / f"{batch}{SUMMARY_SUFFIX}"


def default_eval_root() -> Path:
    """Return the evaluation root that is used unless another is named: this user's own."""
    # Windows gives each user a temporary folder, and has no user ids.
    owner = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    return Path(tempfile.gettempdir()) / f"pytest-evalarc{owner}"


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
        if not self._users.is_dir():
            return
        # Whoever closes the root's last batch just now takes the root away as well.
        with contextlib.suppress(FileNotFoundError), locked(self._lock):
            # First, so that of two that close at once the second removes what the first could not.
            (self._users / str(os.getpid())).unlink(missing_ok=True)
            if self.is_in_use:
                return
            remove_tree(self.work)
            self._lock.unlink(missing_ok=True)
        # Another batch, or a folder that the user made for more than this, keeps the root.
        with contextlib.suppress(OSError):
            self.eval_root.rmdir()

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
        import psutil

        found = [int(name) for name in names if name.isdigit()]
        return any(pid != os.getpid() and psutil.pid_exists(pid) for pid in found)

    def open_results(self, folder: Path) -> None:
        """Make a folder of results, keep it out of version control, and point `latest` at it.

        Raises:
            UsageError: The folder of results cannot be made.
        """
        self.open_all_results()
        with _told(self.results, "--evalarc-results"):
            folder.mkdir(parents=True, exist_ok=True)
        _point(folder.parent / "latest", folder.name)

    def open_all_results(self) -> None:
        """Make the folder of all results, and keep it out of version control.

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


@contextlib.contextmanager
def _told(folder: Path, option: str) -> Iterator[None]:
    """Tell as a sentence that a folder the user can name elsewhere cannot be made."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be made or written: {error.strerror or error}"
        raise UsageError(str(folder), problem, f"name another folder with {option}") from error


def require_own(folder: Path) -> None:
    """Refuse an evaluation root that others could fill.

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
    raise UsageError(str(folder), problem, "name another folder with --evalarc-root")


def _point(link: Path, target: str) -> None:
    """Make a relative link, replacing an older one in a single step."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    temporary = link.with_name(f".latest-{os.getpid()}")
    # A file system without links does without this convenience, and so does a batch of that name.
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(link)
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
