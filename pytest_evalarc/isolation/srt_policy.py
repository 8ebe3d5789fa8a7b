"""A policy as the settings of srt, checked by us: srt skips what it does not understand.

To srt everything is readable that is not denied. A policy means the opposite, so the root itself
is denied, and what every process may read is allowed again beside what the policy names. The
settings then say the same as the mounts of our own sandbox.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation import etc
from pytest_evalarc.isolation.bwrap import SYSTEM_FOLDERS
from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.model.base import Model

ROOT = "/"
CERTIFICATES = ("ca-certificates", "ca-certificates.conf", "crypto-policies", "pki/tls", "ssl")
"""Below /etc, beside what programs need without a network: whom to believe who they are."""
KEYS = ("pki/tls/private", "ssl/private")
"""What lies among them for no other reason."""
INVITING = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
"""Variables that srt itself would follow, out of the sandbox."""
LEADING_ASTRAY = ("BASH_ENV", "ENV", "LD_PRELOAD", "NODE_OPTIONS", "SHELLOPTS")
"""Variables that run code in srt's own processes, before anything is confined."""
PATTERN_CHARACTERS = "*?[]"
"""A path that holds one of them is a pattern to srt."""

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PORT = re.compile(r"(.+?):([1-9][0-9]{0,4})", re.DOTALL)
_MOST_PORT = 65535


class _Part(Model):
    model_config = ConfigDict(alias_generator=to_camel)


class Filesystem(_Part):
    """What may be read and written, as absolute paths."""

    deny_read: tuple[str, ...]
    allow_read: tuple[str, ...]
    """Within what is denied; wins over a denial of the same path."""
    allow_write: tuple[str, ...]
    deny_write: tuple[str, ...] = ()


class Network(_Part):
    """Which hosts may be reached, each with an optional port."""

    allowed_domains: tuple[str, ...]
    denied_domains: tuple[str, ...] = ()


class Ripgrep(_Part):
    """What srt looks through its own working folder with."""

    command: str


class Settings(_Part):
    """The whole document that srt is given; it ignores a key that it does not know."""

    filesystem: Filesystem
    network: Network
    bwrap_path: str
    socat_path: str
    ripgrep: Ripgrep


def filesystem_of(policy: Policy, *, needed: Iterable[Path] = ()) -> Filesystem:
    """Return what of the file system a policy leaves.

    Args:
        policy: Its paths are resolved, for srt mounts nothing on a link.
        needed: What srt itself has to see inside.
    """
    denied = _denied(policy)
    writes = _named(policy.write, policy, denied)
    reads = [*_system(), *_named(policy.read, policy, denied), *map(os.path.realpath, needed)]
    shown = {path for read in reads for path in _beside(read, writes)}
    return Filesystem(
        deny_read=(ROOT, *sorted(denied)),
        allow_read=tuple(sorted(shown - set(writes))),
        allow_write=tuple(sorted(set(writes))),
    )


def _system() -> Iterator[str]:
    """Yield what every process may read without being told so."""
    folders = (f"/{name}" for name in SYSTEM_FOLDERS)
    files = (f"/etc/{name}" for name in (*etc.NAMES, *CERTIFICATES))
    for path in map(Path, (*folders, *files)):
        # A link is there by itself where its folder is; elsewhere srt could not show it.
        if path.exists() and not path.is_symlink():
            yield str(path)


def _denied(policy: Policy) -> set[str]:
    """Return the denied paths that are there; where one is not, see `_problems_of_denials`."""
    keys = (f"/etc/{name}" for name in KEYS)
    paths = (*keys, *(policy.resolved[path] for path in policy.deny_read))
    return {path for path in paths if os.path.lexists(path)}


def _named(paths: Iterable[Path], policy: Policy, denied: set[str]) -> list[str]:
    """Return where paths lead; a denial of the very same one wins, as it does not to srt."""
    return [policy.resolved[path] for path in paths if policy.resolved[path] not in denied]


def _beside(read: str, writes: Iterable[str]) -> Iterator[str]:
    """Yield a readable path, or all in it but its writable folders.

    What is allowed for reading is mounted last, and would cover them: nothing could be written.
    """
    if not any(_is_below(write, read) for write in writes):
        yield read
        return
    with os.scandir(read) as entries:
        names = [entry.path for entry in entries]
    for path in names:
        if path not in writes:
            yield from _beside(path, writes)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def problems(settings: Settings, policy: Policy) -> tuple[str, ...]:
    """Return all that would make srt do something else than is meant, each as a sentence.

    It drops a path that is not there, reads some characters as a pattern, and refuses a host that
    it cannot match only when it has been started.
    """
    return (
        *_problems_of_paths(settings),
        *_problems_of_denials(settings.filesystem, policy),
        *_problems_of_hosts(settings.network),
    )


def _problems_of_paths(settings: Settings) -> Iterator[str]:
    files = settings.filesystem
    programs = (settings.bwrap_path, settings.socat_path, settings.ripgrep.command)
    for path in (*files.deny_read, *files.allow_read, *files.allow_write, *programs):
        name = printable(path, limit=400)
        if not Path(path).is_absolute():
            yield f"the path {name!r} is not absolute"
        elif set(path) & set(PATTERN_CHARACTERS):
            yield f"the path {name} holds one of {PATTERN_CHARACTERS}, which is a pattern to srt"
    for path in (*files.allow_read, *files.allow_write):
        name = printable(path, limit=400)
        if not os.path.lexists(path):
            yield f"the path {name} is to be seen and is not there"
        elif Path(path).is_symlink():
            yield f"the path {name} is a link beside a writable folder, which srt cannot show"


def _problems_of_denials(files: Filesystem, policy: Policy) -> Iterator[str]:
    """Yield what is denied, is not there, and would be seen as soon as somebody made it."""
    for path in policy.deny_read:
        resolved = policy.resolved[path]
        if os.path.lexists(resolved):
            continue
        around = _around(resolved, files)
        if around is not None:
            name = printable(str(path), limit=400)
            yield f"{name} is denied and not there, and whoever makes it in {around} shows it"


def _around(path: str, files: Filesystem) -> str | None:
    """Return the folder through which a path would be seen, or None where it would be hidden."""
    seen, denied = {*files.allow_read, *files.allow_write}, set(files.deny_read)
    for folder in map(str, Path(path).parents):
        if folder in seen:
            return folder
        if folder in denied:
            return None
    return None


def _problems_of_hosts(network: Network) -> Iterator[str]:
    for entry in network.allowed_domains:
        if not is_host(entry):
            name = printable(entry, limit=400)
            yield (
                f"the domain {name!r} is neither a host, as api.example.com:443, nor an address, "
                "as 127.0.0.1:8080 or [::1]:8080"
            )


def is_host(entry: str) -> bool:
    """Whether an entry names one host, the subdomains of one, or one address; a port may follow."""
    host, _ = _split(entry)
    if host == "localhost" or _address(host) is not None:
        return True
    labels = host.removeprefix("*.").split(".")
    is_name = len(labels) > 1 and all(_LABEL.fullmatch(label) for label in labels)
    # What ends in a number is an address to some and a name to others.
    return is_name and not labels[-1].isdigit()


def is_loopback(entry: str) -> bool:
    """Whether an entry names this very machine."""
    host, _ = _split(entry)
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _split(entry: str) -> tuple[str, int | None]:
    """Return host and port of an entry; one that is no port stays part of the host."""
    found = _PORT.fullmatch(entry)
    if found is None or int(found[2]) > _MOST_PORT:
        return entry, None
    host = found[1]
    # Only in brackets an address of version 6 can be told from one with a port.
    return (entry, None) if ":" in host and not host.startswith("[") else (host, int(found[2]))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        if host.startswith("[") and host.endswith("]"):
            return ipaddress.IPv6Address(host[1:-1])
        return ipaddress.IPv4Address(host)
    except ValueError:
        return None


def problems_of_env(env: Mapping[str, str], policy: Policy) -> Iterator[str]:
    """Yield what in an environment would change what srt does, or be writable by its own rules."""
    for name in (*INVITING, *LEADING_ASTRAY):
        if name in env:
            yield f"the variable {name} is for srt itself as well, and must not be set"
    writable = [policy.resolved[path] for path in policy.write]
    for name in ("HOME", "TMPDIR"):
        path = os.path.realpath(env.get(name, ""))
        if name in env and not any(path == it or _is_below(path, it) for it in writable):
            where = printable(env[name], limit=400)
            yield f"the variable {name} names {where}, which is in no writable folder"
