"""An image of this machine's own files, and an engine that is set apart from the machine's.

No registry is asked: a shell, the interpreter of the tests and what they load are packed as they
lie here, and imported under a name. Run as a script, it prints the settings of such an engine.
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
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_evalarc.files.lock import locked
from pytest_evalarc.isolation.host import base_python

IMAGE = "localhost/evalarc-tests:latest"
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


def shared_engine(base: Path) -> dict[str, str]:
    """Return the environment of an engine that has the image; whoever comes first makes it.

    Args:
        base: A folder that all processes of the test session have in common.
    """
    folder = base / "podman"
    with locked(base / "podman.lock"):
        is_new = not folder.exists()
        folder.mkdir(exist_ok=True)
        environ = {**os.environ, **engine_settings(folder)}
        if is_new:
            build_image(environ)
    return environ


def build_image(environ: Mapping[str, str]) -> None:
    """Import the image into the engine that an environment leads to."""
    done = subprocess.run(
        ["podman", "import", "--quiet", "-", IMAGE],
        input=_archive(),
        env=environ,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"podman import: {done.stderr.decode('utf-8', 'replace')}")


def _archive() -> bytes:
    """Return the root file system as an archive, each file where it lies on this machine."""
    archive = io.BytesIO()
    python, library = base_python(), Path(sysconfig.get_path("stdlib"))
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in FOLDERS:
            _add_folder(tar, name, 0o755)
        for name in OPEN_FOLDERS:
            _add_folder(tar, name, 0o1777)
        programs = [Path("/bin/sh"), python, *(library / "lib-dynload").glob("*.so")]
        for path in sorted({*_loaded(programs), Path("/bin/sh"), python}):
            # A library may be found through a link, and is packed under the name it is sought by.
            tar.addfile(_entry(tar, path), io.BytesIO(path.read_bytes()))
        tar.add(library, filter=_wanted)
        link = tarfile.TarInfo("usr/local/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        tar.addfile(link)
    return archive.getvalue()


def _add_folder(tar: tarfile.TarFile, name: str, mode: int) -> None:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, mode
    tar.addfile(folder)


def _entry(tar: tarfile.TarFile, path: Path) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(path).lstrip("/"))
    entry.size, entry.mode = path.stat().st_size, 0o755
    return entry


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
    build_image({**os.environ, **found})
    print("\n".join(f"export {name}={value}" for name, value in found.items()))
