"""The locks are whole: they hold what pyproject.toml asks for, and a digest of every file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.locks import LOCKS, ROOT, Lock, command

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


class Pin(NamedTuple):
    name: str
    version: str
    hashes: list[str]
    is_direct: bool


def pins(lock: Lock) -> Iterator[Pin]:
    """Yield what a lock pins; lines that are neither of a pin nor a comment fail."""
    text = (ROOT / "requirements" / lock.file).read_text("utf-8")
    entries = re.split(r"^(?=[^\s#])", text, flags=re.MULTILINE)[1:]
    for entry in entries:
        first, *rest = entry.splitlines()
        requirement = Requirement(first.removesuffix(" \\"))
        (specifier,) = requirement.specifier
        assert specifier.operator == "=="
        yield Pin(
            canonicalize_name(requirement.name),
            specifier.version,
            re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry),
            any(re.search(r"pyproject\.toml", line) for line in rest),
        )


def declared(lock: Lock) -> list[Requirement]:
    if lock.group:
        return [Requirement(text) for text in PROJECT["dependency-groups"][lock.group]]
    extras = PROJECT["project"]["optional-dependencies"]
    texts = [text for extra in lock.extras for text in extras[extra]]
    return [Requirement(text) for text in (*PROJECT["project"]["dependencies"], *texts)]


every_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.file)


@every_lock
def test_a_lock_pins_what_is_declared_and_names_nothing_else_as_such(lock: Lock) -> None:
    """A dependency that was added or dropped without its lock is not what anyone tried."""
    wanted = {canonicalize_name(requirement.name) for requirement in declared(lock)}

    assert {pin.name for pin in pins(lock) if pin.is_direct} == wanted


@every_lock
def test_every_pin_meets_the_bounds_that_are_declared(lock: Lock) -> None:
    """A bound that was raised above its pin would be met by no locked environment."""
    pinned = {pin.name: pin.version for pin in pins(lock)}

    outside = [
        str(requirement)
        for requirement in declared(lock)
        if not requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])
    ]

    assert outside == []


@every_lock
def test_every_pin_carries_a_digest(lock: Lock) -> None:
    """With one digest missing pip refuses the file, and without any it takes what it is sent."""
    assert [pin.name for pin in pins(lock) if not pin.hashes] == []


def test_every_lock_has_its_file_and_every_file_its_lock() -> None:
    """A file that nothing writes again grows old in silence."""
    files = {path.name for path in (ROOT / "requirements").iterdir()}

    assert files == {lock.file for lock in LOCKS}


def test_a_lock_is_made_for_every_platform_with_digests() -> None:
    """A lock made for the machine at hand refuses to install on another one."""
    made = command(LOCKS[1], ["--upgrade"])

    assert {"--universal", "--generate-hashes", "--upgrade"} <= set(made)
    assert made[made.index("--extra") :][:4] == ["--extra", "dev", "--extra", "yaml"]
    assert made[-1] == "requirements/dev.txt"


def test_what_all_tools_of_npm_are_is_pinned_by_digest_too() -> None:
    """Npm refuses a file that differs from its digest, and takes any file where there is none."""
    path = ROOT / "pytest_evalarc" / "tools" / "package-lock.json"
    packages = re.findall(r'"node_modules/[^"]+": \{(.*?)\n    \}', path.read_text("utf-8"), re.S)

    assert packages
    assert [text for text in packages if '"integrity": "sha512-' not in text] == []
