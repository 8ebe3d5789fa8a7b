"""`pytest-evalarc tools install`: the agents' command lines and the sandbox runtime, as pinned."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import InfrastructureError, SetupError, UsageError
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree, write_tree
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Ended, Wrapped
from pytest_evalarc.isolation.node import WHEEL, FoundNpm, find_npm
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.isolation.toolset import (
    FOLDER_VARIABLE,
    PACKAGES,
    Tool,
    in_folder,
    tools_folder,
)

DEADLINE_S = 1800.0
"""Of an installation, which fetches three hundred megabytes."""
LOCK = "package-lock.json"
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
"""Where systems keep the certificates that they believe."""
_MANIFEST = "package.json"
_OPTIONS = (
    # Nothing of a package is run: each brings its program ready-made.
    *("--ignore-scripts", "--include=optional", "--omit=dev", "--global=false"),
    *("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"),
)


def tools_install(*, into: Path | None, environ: Mapping[str, str] = os.environ) -> Status:
    """Install the pinned tools, say which there are now, and return the exit status.

    A folder of tools is there whole or not at all: npm fills one beside it, which then takes its
    place.

    Args:
        into: Where to; None is the folder in which tools are found.
        environ: Leads to that folder and to npm, which gets it as it is.

    Raises:
        UsageError: The folder holds something else.
        SetupError: There is no npm, or it failed.
        InfrastructureError: The folder cannot be written.
    """
    found_in = tools_folder(environ)
    folder = found_in if into is None else Path(os.path.abspath(into))  # noqa: PTH100
    pinned = _pinned()
    if not _is_as_pinned(folder, pinned):
        _require_ours(folder)
        with _alone(folder):
            _install(folder, pinned, environ)
    for tool in _installed(folder).values():
        print(printable(f"{tool.name} {tool.version}  {tool.path}", limit=4000))
    if folder != found_in:
        print(printable(f"to have them found: export {FOLDER_VARIABLE}={folder}", limit=4000))
    return Status.DONE


def _pinned() -> Mapping[str, bytes]:
    """Return the manifest and the lock that this package ships, by their names."""
    source = files("pytest_evalarc") / "tools"
    return {name: (source / name).read_bytes() for name in (_MANIFEST, LOCK)}


def _is_as_pinned(folder: Path, pinned: Mapping[str, bytes]) -> bool:
    """Whether a folder was installed from this very lock."""
    try:
        is_from_it = (folder / LOCK).read_bytes() == pinned[LOCK]
    except OSError:
        return False
    return is_from_it and len(_installed(folder)) == len(PACKAGES)


def _installed(folder: Path) -> dict[str, Tool]:
    tools = {name: in_folder(name, folder) for name in sorted(PACKAGES)}
    return {name: tool for name, tool in tools.items() if tool is not None}


def _require_ours(folder: Path) -> None:
    """Refuse to take away what somebody else has put there."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        problem = f"cannot be a folder of tools: {error.strerror}"
        raise UsageError(printable(str(folder)), problem, "name another with --into") from error
    if names and not {_MANIFEST, LOCK, "node_modules"}.issuperset(names):
        problem = "holds what is no folder of tools"
        raise UsageError(printable(str(folder)), problem, "name another with --into")


def _install(folder: Path, pinned: Mapping[str, bytes], environ: Mapping[str, str]) -> None:
    npm = find_npm(environ)
    if npm is None:
        raise SetupError(
            "program npm", "is not on PATH", f"install Node with npm, or pip install {WHEEL}"
        )
    print(printable(f"installing into {folder}", limit=4000), flush=True)
    with _draft(folder) as draft:
        write_tree(draft, pinned)
        _run_npm(npm, draft, environ)
        _check(draft, pinned)
        _take_place(draft, folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others from installing into a folder, and clear what a killed one has left there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f".{folder.name}.lock")):
            for left in folder.parent.glob(f".{folder.name}-*"):
                remove_tree(left)
            yield
    except OSError as error:
        where, problem = printable(str(error.filename or folder)), f"{error.strerror or error}"
        raise InfrastructureError(where, f"cannot be written: {problem}") from error


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """Give a new folder beside one, which is gone afterwards unless it has been moved away."""
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
    try:
        yield draft
    finally:
        remove_tree(draft)


def _run_npm(npm: FoundNpm, draft: Path, environ: Mapping[str, str]) -> None:
    """Let npm install what the lock of a folder names, and nothing else."""
    path = os.pathsep.join((str(npm.bin), environ.get("PATH", os.defpath)))
    said = Capture(0, 1 << 14)
    wrapped = Wrapped(
        argv=(*npm.argv, "ci", "--prefix", str(draft), *_OPTIONS),
        cwd=draft,
        env={**_trusted(environ), **environ, "PATH": path},
    )
    ended = supervise(
        wrapped, Watch(total_s=DEADLINE_S, polite=True), stdout=Capture(0), stderr=said
    )
    if ended.reason is not Ended.EXITED or ended.status != 0:
        told = " ".join(said.data().decode("utf-8", "replace").split()) or ended.detail
        problem = f"npm failed ({ended.reason}, status {ended.status}): {printable(told)}"
        raise SetupError("tools install", problem, "see that npm reaches its registry")


def _trusted(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what makes npm believe the authorities that this machine believes.

    Node brings its own list, which lacks that of a registry or proxy of one's own.
    """
    bundles = (environ.get("SSL_CERT_FILE", ""), *_BUNDLES)
    found = next((bundle for bundle in bundles if bundle and Path(bundle).is_file()), None)
    return {"NODE_EXTRA_CA_CERTS": found} if found else {}


def _check(draft: Path, pinned: Mapping[str, bytes]) -> None:
    """Refuse an installation that lacks a program, as on a platform that has none."""
    wanted = json.loads(pinned[_MANIFEST])["dependencies"]
    tools = _installed(draft)
    for name, package in PACKAGES.items():
        if name not in tools or tools[name].version != wanted[package]:
            problem = f"npm installed no {name} {wanted[package]} that runs on this platform"
            raise SetupError("tools install", problem, f"see what {package} offers")


def _take_place(draft: Path, folder: Path) -> None:
    """Put a whole folder where another may be, which is taken away."""
    former = folder.with_name(f"{draft.name}-former")
    if folder.exists():
        folder.rename(former)
    draft.rename(folder)
    remove_tree(former)
