"""Where everything of a batch is: the working side below the evaluation root, the kept results."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.trial import PlannedTrial


def default_eval_root() -> Path:
    """Return the evaluation root that is used unless another is named: this user's own."""
    return Path(tempfile.gettempdir()) / f"pytest-evalarc-{os.getuid()}"


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

    def open_work(self) -> None:
        """Make the batch's working folder, private to this user, and say that it is in use.

        Raises:
            UsageError: The evaluation root is a link, or someone else's.
        """
        self.eval_root.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self.eval_root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise UsageError(
                str(self.eval_root),
                "is a link, or belongs to another user",
                "remove it, or name another folder with --evalarc-root",
            )
        users = self.work / "users"
        users.mkdir(parents=True, exist_ok=True)
        (users / str(os.getpid())).touch()

    def close_work(self) -> None:
        """Remove the batch's working folder, unless another live process still uses it."""
        users = self.work / "users"
        if not users.is_dir():
            return
        others = [int(path.name) for path in users.iterdir() if path.name.isdigit()]
        if any(pid != os.getpid() and psutil.pid_exists(pid) for pid in others):
            return
        remove_tree(self.work)
        with contextlib.suppress(OSError):
            self.eval_root.rmdir()

    def open_results(self, folder: Path) -> None:
        """Make a folder of results, keep it out of version control, and point `latest` at it."""
        folder.mkdir(parents=True, exist_ok=True)
        ignore = self.results / ".gitignore"
        if not ignore.exists():
            write_atomic(ignore, b"*\n")
        _point(folder.parent / "latest", folder.name)


def _point(link: Path, target: str) -> None:
    """Make a relative link, replacing an older one in a single step."""
    if link.is_symlink() and str(link.readlink()) == target:
        return
    temporary = link.with_name(f".latest-{os.getpid()}")
    # A file system without links does without this convenience.
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(link)
