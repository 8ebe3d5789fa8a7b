"""A folder held open: what is in it is named from there, so that no link is ever followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_O_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_O_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_O_BINARY = getattr(os, "O_BINARY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.scandir in os.supports_fd

READ = os.O_RDONLY | _O_NONBLOCK | _O_BINARY
"""Open for reading; what is no regular file neither blocks nor waits."""
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _O_BINARY
"""Create for writing; whatever stands there already is an error."""


class Folder:
    """An open folder.

    Every name is one path component, looked up in this very folder: a link that takes the place
    of a folder above it, even while it is used, leads nowhere. Where the platform cannot look
    names up by descriptor (Windows), the path is used after each component was checked.
    """

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def at(cls, path: Path) -> Self:
        """Open a folder by path; its last component must not be a link.

        Raises:
            OSError: It is not there, not a folder, or may not be read.
        """
        return cls._opened(path, path, None)

    @classmethod
    def _opened(cls, path: Path, name: Path | str, parent: int | None) -> Self:
        if not _BY_DESCRIPTOR:
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise NotADirectoryError(20, "Not a directory", str(path))
            return cls(path, None)
        flags = os.O_RDONLY | _O_DIRECTORY | _O_NOFOLLOW
        return cls(path, os.open(name, flags, dir_fd=parent))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def child(self, name: str) -> Folder:
        """Open a folder in this one.

        Raises:
            OSError: It is not there, a link, another kind of file, or may not be read.
        """
        return Folder._opened(self.path / name, self._name(name), self._descriptor)

    def descend(self, parts: tuple[str, ...]) -> Folder:
        """Open the folder below this one that these components lead to; a new one, if none do."""
        folder = Folder(self.path, None if self._descriptor is None else os.dup(self._descriptor))
        for part in parts:
            with folder:
                folder = folder.child(part)
        return folder

    def scan(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield each name here with its own status, links not followed, in no order.

        A name that vanishes meanwhile is left out.
        """
        handle: int | Path = self.path if self._descriptor is None else self._descriptor
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    status = self.lstat(entry.name)
                except FileNotFoundError:
                    continue
                yield entry.name, status

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of a name, links not followed."""
        return os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)

    def readlink(self, name: str) -> str:
        """Return the text of a link."""
        return os.fsdecode(os.readlink(self._name(name), dir_fd=self._descriptor))

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return a descriptor of a file here; a link is an error."""
        return os.open(self._name(name), flags | _O_NOFOLLOW, mode, dir_fd=self._descriptor)

    def mkdir(self, name: str, mode: int = 0o700) -> None:
        """Make a folder here."""
        os.mkdir(self._name(name), mode, dir_fd=self._descriptor)

    def chmod(self, name: str, mode: int) -> None:
        """Set the permissions of a file or folder here that is known to be no link."""
        os.chmod(self._name(name), mode, dir_fd=self._descriptor)

    def unlink(self, name: str) -> None:
        """Remove a file or link here."""
        os.unlink(self._name(name), dir_fd=self._descriptor)

    def rmdir(self, name: str) -> None:
        """Remove an empty folder here."""
        os.rmdir(self._name(name), dir_fd=self._descriptor)

    def move(self, name: str, target: Folder, new_name: str) -> None:
        """Move what is here under that name to another folder."""
        os.rename(
            self._name(name),
            target._name(new_name),
            src_dir_fd=self._descriptor,
            dst_dir_fd=target._descriptor,
        )

    def _name(self, name: str) -> Path | str:
        return name if self._descriptor is not None else self.path / name
