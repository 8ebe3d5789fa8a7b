"""What a session left, kept in the result folder before anything is made of it."""

from __future__ import annotations

import contextlib
import stat
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.manifest import Skip, TreeLimits, TreeTooLarge, read_manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree, remove_tree
from pytest_evalarc.grading.submission import Submission, keep, read_submission
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.treatments.left import kind_of, names_in, read_left

LEFT_BYTES = 64 * MIB
"""Of one file that a treatment's programs left."""
LISTED = 1000
"""Paths that are named of a submission too large to keep."""


def keep_submission(project: Path, folder: Path, *, skip: Skip | None = None) -> Submission:
    """Keep a project exactly as it was left; too large a one is listed rather than copied.

    Args:
        project: The folder.
        folder: Where to.
        skip: Says of a relative path that it is no part of the submission.

    Raises:
        SubmissionError: It is too large, or cannot be read.
        InfrastructureError: It cannot be written, as on a full disk.
        OSError: The same.
    """
    try:
        return keep(read_submission(project, skip=skip), folder)
    except (EvalArcError, OSError) as error:
        # Half of a submission is no evidence, and on a full disk its space holds the result.
        with contextlib.suppress(OSError):
            remove_tree(folder / "submission")
        if isinstance(error, TreeTooLarge):
            write_atomic(folder / "submission-listing.txt", listing(project))
        raise


def keep_evidence(evidence: Path, folder: Path) -> str | None:
    """Keep what hooks left; return as a sentence why that was not possible, or None.

    The client can write there, so what stands there proves nothing and may be anything.
    """
    try:
        manifest = read_manifest(evidence)
        if manifest.entries:
            copy_tree(evidence, manifest, folder / "evidence")
    except (EvalArcError, OSError) as error:
        with contextlib.suppress(OSError):
            remove_tree(folder / "evidence")
        return f"the evidence was not kept: {told(error)}"
    return None


def keep_left(root: Path, keeps: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Keep files that a treatment's programs left; return what was not possible, as sentences.

    Args:
        root: The run folder.
        keeps: By the name that it gets, the POSIX path of a file below the run folder, or of a
            folder whose own files are joined in the order of their names.
        folder: Where to.
    """
    lost = []
    for name, path in keeps.items():
        try:
            parts = (path, *(f"{path}/{inner}" for inner in names_in(root, path)))
            found = [_file_left(root, part) for part in parts]
            if any(content is not None for content in found):
                write_atomic(folder / name, b"".join(content or b"" for content in found))
        except (EvalArcError, OSError) as error:
            lost.append(f"{name} was not kept: {told(error)}")
    return tuple(lost)


def _file_left(root: Path, path: str) -> bytes | None:
    """Return the content of a file; None where nothing or a folder is."""
    kind = kind_of(root, path)
    return None if kind in (None, stat.S_IFDIR) else read_left(root, path, limit=LEFT_BYTES)


def keep_traceback(error: Exception, folder: Path) -> None:
    """Keep where an error came from, unless it is one that its sentence explains."""
    if isinstance(error, (EvalArcError, OSError)):
        return
    text = "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):
        write_atomic(folder / "traceback.txt", printable(text, limit=100_000).encode())


def told(error: BaseException) -> str:
    """Return an error as a sentence that is safe to print."""
    said = printable(str(error))
    if isinstance(error, (EvalArcError, OSError)):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def listing(project: Path, most: int = LISTED) -> bytes:
    """Return the first paths of a folder too large to keep, one a line, outer ones first."""
    lines = list(islice(_paths(project), most + 1))
    if len(lines) > most:
        lines[most:] = ["… and more"]
    return "".join(f"{line}\n" for line in lines).encode()


def _paths(project: Path) -> Iterator[str]:
    pending: deque[tuple[str, ...]] = deque([()])
    with Folder.at(project) as root:
        while pending:
            parts = pending.popleft()
            # What the session made unreadable is passed over.
            with contextlib.suppress(OSError), root.descend(parts) as folder:
                for name, status in folder.scan():
                    path = (*parts, name)
                    yield printable("/".join(path), limit=400)
                    if stat.S_ISDIR(status.st_mode) and len(path) < TreeLimits().depth:
                        pending.append(path)
