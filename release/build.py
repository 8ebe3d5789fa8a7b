"""`python -m release.build DIST`: the same commit gives the same bytes, wherever it is built.

What is built is what git holds of the commit, in a folder of its own, so nothing that lies about
in a checkout gets in. The tools are those of the environment at hand; nothing is downloaded.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


class BuildError(Exception):
    """A commit cannot be built, or two builds of it differ."""


def commit_time(commit: str) -> int:
    """Return when a commit was made, in seconds since 1970: the date of all that is built."""
    return int(_git("show", "--no-patch", "--format=%ct", commit))


def unpack_commit(commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder, with the same modes under every umask."""
    archive = _git("-c", "tar.umask=0022", "archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        unpack(opened, folder)


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write what an archive holds into a folder, and nothing outside where this Python can tell.

    The first releases of Python 3.11 know no filters, and take no argument for one.
    """
    archive.extraction_filter = getattr(tarfile, "tar_filter", lambda member, _: member)
    archive.extractall(folder)


def build(source: Path, dist: Path, *, epoch: int) -> tuple[Path, Path]:
    """Build an sdist, and a wheel from that sdist.

    Args:
        source: A folder with the files of one commit.
        dist: Where both go; made when it is not there.
        epoch: The one time that every file in them gets, in seconds since 1970.

    Returns:
        The wheel and the sdist.

    Raises:
        BuildError: The backend refused.
    """
    _run_backend("--sdist", source, dist, epoch=epoch)
    (sdist,) = dist.glob("*.tar.gz")
    settle_sdist(sdist, epoch=epoch)
    # From what is handed out and not from the folder, so that the two cannot differ.
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as opened:
            unpack(opened, Path(folder))
        (unpacked,) = Path(folder).iterdir()
        _run_backend("--wheel", unpacked, dist, epoch=epoch)
    (wheel,) = dist.glob("*.whl")
    return wheel, sdist


def _run_backend(kind: str, source: Path, dist: Path, *, epoch: int) -> None:
    argv = [
        sys.executable,
        "-m",
        "build",
        kind,
        "--no-isolation",
        "--outdir",
        str(dist),
        str(source),
    ]
    done = subprocess.run(
        argv,
        # The rest of the environment stays: it says where the interpreter finds its tools.
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        encoding="utf-8",
        umask=0o022,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"the backend refused {source}: {done.stdout}{done.stderr}")


def settle_sdist(path: Path, *, epoch: int) -> None:
    """Write an sdist again without what differs from build to build: times, owners and order.

    The backend takes the epoch for wheels alone.
    """
    with tarfile.open(path) as opened:
        members = sorted(opened.getmembers(), key=lambda member: member.name)
        contents = [opened.extractfile(member) if member.isfile() else None for member in members]
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as written:
            for member, content in zip(members, contents, strict=True):
                written.addfile(_settled(member, epoch), content)
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def _settled(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    # Begun anew, since what was read drags the times of its extended headers along.
    settled = tarfile.TarInfo(member.name)
    settled.type, settled.size, settled.mtime = member.type, member.size, epoch
    settled.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return settled


def build_twice(commit: str, dist: Path) -> tuple[Path, Path]:
    """Build a commit in two folders, and keep the result when both gave the same bytes.

    Returns:
        The wheel and the sdist in `dist`.

    Raises:
        BuildError: The backend refused, or the two builds differ; `dist` is left alone.
        subprocess.CalledProcessError: git refused.
    """
    epoch = commit_time(commit)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        built = [_build_in(Path(folder), commit, epoch) for folder in (first, second)]
        for one, other in zip(*built, strict=True):
            if one.read_bytes() != other.read_bytes():
                raise BuildError(f"two builds of {commit} differ in {one.name}; nothing is kept")
        dist.mkdir(parents=True, exist_ok=True)
        kept = [dist / path.name for path in built[0]]
        for path, place in zip(built[0], kept, strict=True):
            place.write_bytes(path.read_bytes())
    return kept[0], kept[1]


def _build_in(folder: Path, commit: str, epoch: int) -> tuple[Path, Path]:
    source = folder / "source"
    source.mkdir()
    unpack_commit(commit, source)
    return build(source, folder / "dist", epoch=epoch)


def _git(*arguments: str) -> bytes:
    # A checkout may belong to another user than the one who builds, as in containers.
    argv = ["git", "-c", f"safe.directory={ROOT}", *arguments]
    return subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def main(arguments: Sequence[str]) -> int:
    """Build the commit that is checked out, twice."""
    (dist,) = arguments
    try:
        for path in build_twice("HEAD", Path(dist)):
            print(path)
    except BuildError as error:
        print(f"release.build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
