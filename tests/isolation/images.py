"""Images of this machine's own files, and an engine that is set apart from the machine's.

No registry is asked: a shell, an interpreter and what they load are packed as they lie here, and
imported under a name. Run as a script, it prints the settings of such an engine.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from typing import BinaryIO

import pytest

from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.isolation.engine_program import HARNESS_LABEL
from pytest_evalarc.isolation.host import base_python

IMAGE = "localhost/evalarc-tests:latest"
"""What candidates in Python need."""
NODE_IMAGE = "localhost/evalarc-tests-node:latest"
"""What candidates in JavaScript need."""
LEFT_OUT = {"__pycache__", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tkinter"}
FOLDERS = ("candidate", "dev", "etc", "proc", "run", "state", "sys", "usr/local/bin")
OPEN_FOLDERS = ("tmp", "var/tmp")
"""Everybody may write them, as in every image."""


def engine_settings(folder: Path) -> dict[str, str]:
    """Write settings of podman that keep everything below a folder; return what leads to them."""
    engine = {"cgroup_manager": "cgroupfs", "events_logger": "none", "lock_type": "file"}
    engine["tmp_dir"] = str(folder / "tmp")
    # The other runtime refuses machines that have both versions of control groups.
    if shutil.which("runc"):
        engine["runtime"] = "runc"
    storage = {"driver": "overlay", "graphroot": str(folder / "graph")}
    storage["runroot"] = str(folder / "run")
    # Otherwise a mount stays on the folder, which could then not be removed.
    overlay = {"skip_mount_home": "true"}
    tables = {
        "containers.conf": {"engine": engine},
        "storage.conf": {"storage": storage, "storage.options.overlay": overlay},
    }
    for name, content in tables.items():
        (folder / name).write_text("".join(_table(*table) for table in content.items()), "utf-8")
    return {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }


def _table(name: str, values: dict[str, str]) -> str:
    return f"[{name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())


@pytest.fixture(scope="session")
def podman_environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the environment of a podman that has the image and nothing of the machine's."""
    # A script knows no helpers of tests.
    from tests.sharing import run_folder

    shared = run_folder(tmp_path_factory)
    # What a session that was killed has left lies beside the folder of this one.
    for users in shared.parent.glob("*/podman/users"):
        # One of the names beside it leads to this very folder.
        if users.parent.resolve() != (shared / "podman").resolve():
            remove_unused(users.parent)
    with shared_engine(shared) as environ:
        yield environ


@contextmanager
def shared_engine(base: Path) -> Iterator[dict[str, str]]:
    """Give the environment of an engine that has the image, and remove it with its last user.

    Args:
        base: A folder that all processes of the test session have in common.
    """
    folder = base / "podman"
    try:
        with ExitStack() as in_use:
            with locked(_lock(folder)):
                is_new = not folder.exists()
                folder.mkdir(exist_ok=True)
                # The system lets go of it when its holder dies, however that comes about.
                flock(in_use.enter_context(_users(folder)), LOCK_SH)
                environ = {**os.environ, **engine_settings(folder)}
                if is_new:
                    import_image(environ, IMAGE, python_archive())
            yield environ
    finally:
        remove_unused(folder)


def remove_unused(folder: Path) -> None:
    """Remove an engine with its containers and mounts, unless a process still uses it."""
    with (
        suppress(FileNotFoundError, BlockingIOError),
        # Who comes and who goes does so alone, or one would remove what the other is making.
        locked(_lock(folder)),
        _users(folder) as users,
    ):
        flock(users, LOCK_EX | LOCK_NB)
        environ = {**os.environ, **engine_settings(folder)}
        argv = ["podman", "rm", "--all", "--force", "--time", "0"]
        subprocess.run(argv, env=environ, capture_output=True, check=False)
        # A client that was killed while it started a container has mounted what nobody lists.
        for mount in _mounts_below(folder):
            subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)
        remove_tree(folder)


def _lock(folder: Path) -> Path:
    return folder.with_name("podman.lock")


def _users(folder: Path) -> BinaryIO:
    return (folder / "users").open("ab")


def _mounts_below(folder: Path) -> list[str]:
    """Return what is mounted below a folder, the innermost first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return sorted((at for at in points if at.startswith(f"{folder}/")), reverse=True)


def containers(environ: Mapping[str, str], harness: int) -> list[str]:
    """Return the containers of one harness process, whatever their state."""
    ours = f"label={HARNESS_LABEL}={harness}"
    argv = ["podman", "ps", "--all", "--quiet", "--filter", ours]
    done = subprocess.run(argv, env=dict(environ), capture_output=True, text=True, check=True)
    return done.stdout.split()


def import_image(environ: Mapping[str, str], name: str, archive: bytes) -> None:
    """Import a root file system into the engine that an environment leads to."""
    done = subprocess.run(
        ["podman", "import", "--quiet", "-", name],
        input=archive,
        env=environ,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"podman import: {done.stderr.decode('utf-8', 'replace')}")


def python_archive() -> bytes:
    """Return the root file system of candidates in Python."""
    python, library = base_python(), Path(sysconfig.get_path("stdlib"))

    def fill(tar: tarfile.TarFile) -> None:
        _add_files(tar, [python, *_loaded([python, *(library / "lib-dynload").glob("*.so")])])
        tar.add(library, filter=_wanted)
        link = tarfile.TarInfo("usr/local/bin/python3")
        # It finds its library from where it lies.
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        tar.addfile(link)

    return _archive(fill)


def node_archive(work: Path) -> bytes:
    """Return the root file system of candidates in JavaScript.

    Args:
        work: A folder that is not there yet.
    """
    Node().stage(work)
    node = work / "bin" / "node"

    def fill(tar: tarfile.TarFile) -> None:
        _add_files(tar, _loaded([node]))
        _add_file(tar, "usr/local/bin/node", node)

    return _archive(fill)


def _archive(fill: Callable[[tarfile.TarFile], None]) -> bytes:
    """Return a root file system with a shell and what is filled in, as an archive."""
    archive, shell = io.BytesIO(), Path("/bin/sh")
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in FOLDERS:
            _add_folder(tar, name, 0o755)
        for name in OPEN_FOLDERS:
            _add_folder(tar, name, 0o1777)
        _add_files(tar, [shell, *_loaded([shell])])
        fill(tar)
    return archive.getvalue()


def _add_folder(tar: tarfile.TarFile, name: str, mode: int) -> None:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, mode
    tar.addfile(folder)


def _add_files(tar: tarfile.TarFile, paths: Iterable[Path]) -> None:
    """Add programs and libraries where they lie, or through a link are sought."""
    known = {f"/{name}" for name in tar.getnames()}
    for path in sorted({path for path in paths if str(path) not in known}):
        _add_file(tar, str(path).lstrip("/"), path)


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = path.stat().st_size, 0o755
    with path.open("rb") as content:
        tar.addfile(entry, content)


def _loaded(programs: list[Path]) -> Iterator[Path]:
    """Yield the libraries that programs load, by the paths at which they look for them."""
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, flags=re.MULTILINE):
        yield Path(path)


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return an entry as everybody may read it; None for what no candidate needs."""
    if LEFT_OUT & set(Path(entry.name).parts) or Path(entry.name).name.startswith("config-"):
        return None
    entry.mode |= 0o755 if entry.isdir() else 0o644
    return entry


if __name__ == "__main__":
    here = Path(sys.argv[1]).absolute()
    here.mkdir(parents=True)
    found = engine_settings(here)
    import_image({**os.environ, **found}, IMAGE, python_archive())
    print("\n".join(f"export {name}={value}" for name, value in found.items()))
