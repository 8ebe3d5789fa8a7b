"""Folders made, copied exactly and taken away again, never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError, SubmissionError
from pytest_evalarc.files.folder import CREATE, Folder
from pytest_evalarc.files.manifest import Entry, EntryType, Manifest, changed, open_regular
from pytest_evalarc.files.text import in_line

_FICLONE = 0x40049409
"""The request to share blocks, of which Python has no name."""
_SHARED_BYTES = 1 << 20
"""From this size on it is worth asking."""
_CHUNK = 1 << 20


def copy_tree(
    root: Path,
    manifest: Manifest,
    dest: Path,
    *,
    select: Callable[[str], bool] | None = None,
    replace: bool = False,
) -> None:
    """Copy the folders and regular files of a manifest exactly: content, mode and holes.

    Links and special files are left out; whoever minds them reads the manifest.

    Args:
        root: The folder that the manifest was read from.
        manifest: What is copied; a file that is no longer as listed is an error.
        dest: Where to; made if it is not there, and no link itself.
        select: Says of each relative path whether it is copied; a folder that is not can still
            hold a file that is, and is then made with default permissions.
        replace: Whether a regular file that is there already is replaced.

    Raises:
        SubmissionError: A source changed, vanished or cannot be read.
        InfrastructureError: A destination is in the way, lies behind a link or cannot be
            written, as on a full disk; a part of a file is never left behind.
    """
    chosen = [entry for entry in manifest.entries if select is None or select(entry.path)]
    folders = [entry for entry in chosen if entry.type is EntryType.DIR]
    with _source(root) as source, destination(dest) as target:
        for entry in folders:
            target.make_folder(entry.path)
        for entry in chosen:
            if entry.type is EntryType.FILE:
                _copy_file(source, entry, target, replace=replace)
        # Permissions come last and inside out: nothing can be put into a read-only folder.
        for entry in reversed(folders):
            target.set_mode(entry.path, entry.mode)


def write_tree(dest: Path, files: Mapping[str, bytes], *, replace: bool = False) -> None:
    """Write files by their relative POSIX paths, with the folders they need.

    Args:
        dest: Where to; made if it is not there, and no link itself.
        files: Content by path, none absolute and none with `..`.
        replace: Whether a regular file that is there already is replaced.

    Raises:
        InfrastructureError: A path leads outside, is in the way, or cannot be written.
    """
    with destination(dest) as target:
        for path, content in sorted(files.items()):
            with target.new_file(path, replace=replace) as descriptor:
                write_all(descriptor, content)
                os.fchmod(descriptor, 0o644)


def create_trees(trees: Mapping[Path, Mapping[str, bytes]]) -> None:
    """Make new folders, all of them whole or none at all.

    Args:
        trees: Files of each new folder by their relative POSIX paths, as `write_tree` takes
            them. Nothing stands where a folder is to be, and none lies in another; folders above
            are made where they are missing.

    Raises:
        InfrastructureError: Something is there already, or cannot be written; nothing is left
            behind.
    """
    with contextlib.ExitStack() as undo:
        drafts = {dest: _draft(dest, files, undo) for dest, files in trees.items()}
        for dest, draft in drafts.items():
            with _as_infrastructure(in_line(str(dest), limit=400)):
                # A rename would take the place of an empty folder.
                if os.path.lexists(dest):
                    raise FileExistsError(errno.EEXIST, "File exists")
                draft.rename(dest)
            undo.callback(_quietly, partial(remove_tree, dest))
        undo.pop_all()


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it, however deep and however it is protected.

    A link at the path, or anything else that is no folder, is itself removed. Nothing there is
    no error.

    Raises:
        OSError: Something could not be removed.
    """
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
    except FileNotFoundError:
        return
    _make_accessible(path)
    with Folder.at(path) as root:
        _empty(root)
    path.rmdir()


def _draft(dest: Path, files: Mapping[str, bytes], undo: contextlib.ExitStack) -> Path:
    """Return a folder beside where it is to be, with its files, and have it undone."""
    missing = [folder for folder in dest.parents if not folder.exists()]
    with _as_infrastructure(in_line(str(dest), limit=400)):
        for folder in reversed(missing):
            folder.mkdir()
            undo.callback(_quietly, folder.rmdir)
        draft = dest.with_name(f".{secrets.token_hex(8)}.tmp")
        draft.mkdir()
    undo.callback(_quietly, partial(remove_tree, draft))
    write_tree(draft, files)
    return draft


def _quietly(undo: Callable[[], None]) -> None:
    """Undo what can be: what made it necessary is what has to be told."""
    with contextlib.suppress(OSError):
        undo()


def _empty(root: Folder) -> None:
    # Each folder found is moved up to the root before it is emptied, so that no depth needs a
    # longer path, a deeper stack or more open descriptors than two.
    prefix = secrets.token_hex(8)
    pending = _emptied(root, root, prefix, taken=0)
    moved = 0
    while pending:
        name = pending.pop()
        with root.child(name) as folder:
            found = _emptied(folder, root, prefix, taken=moved)
        moved += len(found)
        pending += found
        root.rmdir(name)


def _emptied(folder: Folder, root: Folder, prefix: str, *, taken: int) -> list[str]:
    """Unlink all files of a folder and return its folders, by their names in the root now."""
    names = []
    for name, status in list(folder.scan()):
        if not stat.S_ISDIR(status.st_mode):
            folder.unlink(name)
            continue
        folder.chmod(name, 0o700)
        if folder is root:
            names.append(name)
            continue
        names.append(f"{prefix}-{taken + len(names)}")
        folder.move(name, root, names[-1])
    return names


def _make_accessible(path: Path) -> None:
    with contextlib.suppress(PermissionError):
        path.chmod(0o700)


@dataclass(frozen=True)
class Destination:
    """A folder of ours that is being filled, by relative POSIX paths that stay inside it."""

    folder: Folder

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it, where it is missing."""
        with self._parent(f"{path}/_"):
            pass

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permission bits of what is there."""
        with self._parent(path) as parent:
            parent.chmod(_name(path), mode & 0o777)

    @contextlib.contextmanager
    def new_file(self, path: str, *, replace: bool) -> Iterator[int]:
        """Give a descriptor of a new file; whatever goes wrong takes the file away again."""
        with self._parent(path) as parent, _as_infrastructure(self._where(path)):
            name = _name(path)
            if replace:
                _clear(parent, name)
            descriptor = parent.open(name, CREATE)
            try:
                yield descriptor
            except BaseException:
                parent.unlink(name)
                raise
            finally:
                os.close(descriptor)

    def _parent(self, path: str) -> Folder:
        """Open the folder that a path lies in, and make it first where it is missing."""
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts) or not _is_spelt(path):
            raise InfrastructureError(self._where(path), "is not a path inside the destination")
        parent = self.folder.descend(())
        with _as_infrastructure(self._where(path)):
            for part in parts[:-1]:
                with parent as upper:
                    with contextlib.suppress(FileExistsError):
                        upper.mkdir(part, 0o755)
                    parent = upper.child(part)
        return parent

    def _where(self, path: str) -> str:
        return in_line(f"{self.folder.path}/{path}", limit=400)


@contextlib.contextmanager
def _source(root: Path) -> Iterator[Folder]:
    try:
        folder = Folder.at(root)
    except OSError as error:
        raise SubmissionError(str(root), f"cannot be read: {error.strerror}") from error
    with folder:
        yield folder


@contextlib.contextmanager
def destination(dest: Path) -> Iterator[Destination]:
    """Hold a folder open to be filled; made if it is not there, and no link itself.

    Raises:
        InfrastructureError: It cannot be made or opened.
    """
    with _as_infrastructure(str(dest)):
        dest.mkdir(parents=True, exist_ok=True)
        folder = Folder.at(dest)
    with folder:
        yield Destination(folder)


@contextlib.contextmanager
def _as_infrastructure(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise InfrastructureError(where, problem, _HINTS.get(error.errno or 0, "")) from error


_HINTS = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some of the quota there",
    errno.ELOOP: "a link stands in its way",
    errno.ENOTDIR: "a link or a file stands where a folder is needed",
    errno.EEXIST: "something is there already",
    errno.EISDIR: "a folder is there already",
}


def _clear(parent: Folder, name: str) -> None:
    """Take away a regular file; anything else stays, and then refuses the new file."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(parent.lstat(name).st_mode):
            parent.unlink(name)


def _copy_file(source: Folder, entry: Entry, target: Destination, *, replace: bool) -> None:
    where = in_line(f"{source.path}/{entry.path}", limit=400)
    try:
        descriptor = open_regular(source, entry)
    except OSError as error:
        raise SubmissionError(where, f"cannot be read: {error.strerror}") from error
    try:
        with target.new_file(entry.path, replace=replace) as copy:
            _copy_content(descriptor, copy, entry)
            os.fchmod(copy, entry.mode & 0o777)
    finally:
        os.close(descriptor)


def _copy_content(source: int, target: int, entry: Entry) -> None:
    if entry.size >= _SHARED_BYTES and _share_content(source, target):
        if os.fstat(target).st_size != entry.size:
            raise changed(entry)
        return
    for start, end in _extents(source, entry.size):
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        left = end - start
        while left > 0:
            chunk = os.read(source, min(_CHUNK, left))
            if not chunk:
                raise changed(entry)
            write_all(target, chunk)
            left -= len(chunk)
    if os.fstat(source).st_size != entry.size:
        raise changed(entry)
    os.ftruncate(target, entry.size)


def _share_content(source: int, target: int) -> bool:
    """Let a copy share the blocks of what it is copied from; whether the file system can."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that hold data; where holes cannot be asked for, all of it."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size
        return
    offset = 0
    while offset < size:
        try:
            start = os.lseek(descriptor, offset, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            start, end = offset, size
        yield start, min(end, size)
        offset = end


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of some bytes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _is_spelt(path: str) -> bool:
    """Whether a path can be one at all; what was sent or declared may be any text."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _name(path: str) -> str:
    return path.rpartition("/")[2]
