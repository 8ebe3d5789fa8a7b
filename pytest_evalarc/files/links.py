"""Folders that are filled without a copy, and that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.text import in_line
from pytest_evalarc.files.tree import remove_tree

_CHUNK = 1 << 20
_NO_LINK = (
    errno.EXDEV,
    errno.EPERM,
    errno.EACCES,
    errno.EMLINK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
)
"""What says that a file cannot have a second name there, while a copy may well be made."""


@contextlib.contextmanager
def new_folder(dest: Path) -> Iterator[Path]:
    """Give a folder to fill, which takes its place at the end; until then nothing is there.

    Args:
        dest: Where it is to be. Folders above are made where they are missing.

    Raises:
        InfrastructureError: Something is there already, or it cannot be written; whatever goes
            wrong, nothing is left behind.
    """
    draft = dest.with_name(f".{secrets.token_hex(8)}.tmp")
    with _told(dest):
        _require_nothing(dest)
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
    try:
        yield draft
        with _told(dest):
            # A rename would take the place of an empty folder.
            _require_nothing(dest)
            draft.rename(dest)
    except BaseException:
        with contextlib.suppress(OSError):
            remove_tree(draft)
        raise


def link_tree(source: Path, dest: Path, *, leave_out: Collection[str] = ()) -> None:
    """Give every file of a folder a second name below another, or copy it where that cannot be.

    A copy is read again and must have the digest of what was read. Names that begin with a dot are
    marks of whoever was at work there, and stay behind.

    Args:
        source: A folder at rest.
        dest: Where to; made if it is not there, while the folder above is.
        leave_out: Names in the folder itself that stay behind too.

    Raises:
        InfrastructureError: Something there is neither a file nor a folder, as a link that leads
            elsewhere; it cannot be read or written; or a copy is not what was copied.
    """
    with _told(source):
        with contextlib.suppress(FileExistsError):
            dest.mkdir()
        _link_all(str(source), str(dest), usual=_mode(dest), leave_out=leave_out)


def _link_all(
    source: str, dest: str, *, usual: int, leave_out: Collection[str] | None = None
) -> None:
    """Link what is in a folder; paths are texts, as there are hundreds of thousands of them.

    Args:
        source: The folder.
        dest: A new one.
        usual: The permissions that a new folder gets.
        leave_out: What stays behind besides names with a leading dot, which below the first folder
            are part of what was kept; None for a folder below it.
    """
    with os.scandir(source) as entries:
        for entry in entries:
            name, place = entry.name, f"{dest}/{entry.name}"
            if leave_out is not None and (name.startswith(".") or name in leave_out):
                continue
            if entry.is_file(follow_symlinks=False):
                link_file(entry.path, place)
            elif entry.is_dir(follow_symlinks=False):
                os.mkdir(place)  # noqa: PTH102 - a text, as above.
                _link_all(entry.path, place, usual=usual)
            else:
                where = in_line(entry.path, limit=400)
                problem = "is neither a file nor a folder, and no result is anything else"
                raise InfrastructureError(where, problem, "take it away")
    mode = _mode(source)
    if mode != usual:
        # Last of all: nothing can be put into a read-only folder.
        os.chmod(dest, mode)  # noqa: PTH101 - a text, as above.


def _mode(path: Path | str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def link_file(source: Path | str, dest: Path | str) -> None:
    """Give a regular file a second name, or copy it where that cannot be.

    Raises:
        InfrastructureError: The copy is not what was copied.
        OSError: It cannot be read or written.
    """
    try:
        os.link(source, dest, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        _copy(Path(source), Path(dest))


def _copy(source: Path, dest: Path) -> None:
    digest = hashlib.sha256()
    with source.open("rb") as original, dest.open("xb") as copy:
        while chunk := original.read(_CHUNK):
            digest.update(chunk)
            copy.write(chunk)
        os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(original.fileno()).st_mode))
    with dest.open("rb") as written:
        if hashlib.file_digest(written, "sha256").digest() != digest.digest():
            problem = f"is not what was copied from {source}"
            raise InfrastructureError(str(dest), problem, "look after that disk")


def _require_nothing(dest: Path) -> None:
    if os.path.lexists(dest):
        raise FileExistsError(errno.EEXIST, "something is there already")


@contextlib.contextmanager
def _told(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = in_line(str(error.filename or where), limit=400)
        problem = f"cannot be read or written: {error.strerror or error}"
        raise InfrastructureError(place, problem, "see to that folder, or name another") from error
