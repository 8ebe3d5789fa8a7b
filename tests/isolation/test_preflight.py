from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import bwrap
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.devices import Devices
from pytest_evalarc.isolation.host import Program
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.preflight import preflight
from pytest_evalarc.model.isolation import PreflightDoc
from tests.needs import needs_bwrap

pytestmark = pytest.mark.slow

PROMISED = {
    "write_outside",
    "read_secret",
    "network",
    "host_sockets",
    "host_processes",
    "kernel_settings",
    "host_devices",
    "not_root",
}

MERELY_RUNS = """#!/bin/sh
if [ "$1" = --version ]; then echo bubblewrap 0.99.0; exit; fi
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


def broken(proof: PreflightDoc) -> set[str]:
    return {barrier.name for barrier in proof.broken}


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Bwrap:
    path = folder / "bwrap"
    path.write_text(script)
    path.chmod(0o755)
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: Program(path=path, version="0.99.0"))
    return Bwrap()


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@needs_bwrap
def test_every_promised_barrier_holds(empty: Path) -> None:
    """Each is tried from inside, on this very machine, before anything is trusted to it."""
    proof = preflight(Bwrap(), empty)

    assert {barrier.name for barrier in proof.barriers} == PROMISED
    assert broken(proof) == set()


def test_without_a_boundary_every_attempt_wins(empty: Path) -> None:
    """The control: a probe that fails by itself would prove nothing."""
    proof = preflight(Local(), empty)

    needs_root = set() if os.geteuid() == 0 else {"kernel_settings", "not_root"}
    assert broken(proof) == PROMISED - needs_root


def test_a_sandbox_that_merely_runs_the_command_is_unmasked(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the right name, version and exit status, and protects nothing."""
    sandbox = pretend(monkeypatch, tmp_path, MERELY_RUNS)

    proof = preflight(sandbox, empty)

    assert broken(proof) >= {"write_outside", "read_secret", "network", "host_sockets"}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1", "No permissions"),
        ("#!/bin/sh\nexit 0", "status 0"),
        ("#!/bin/sh\necho hello", "status 0"),
        ("#!/bin/sh\necho 7", "status 0"),
        ("#!/bin/sh\necho '[]'", "status 0"),
        ("#!/bin/sh\necho a >&2; echo b >&2; exit 3", "status 3): a b"),
        ("#!/no/such/interpreter\n", "status"),
    ],
)
def test_a_sandbox_that_does_not_start_is_told_in_one_sentence(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    """Many machines have the program and forbid what it does."""
    sandbox = pretend(monkeypatch, tmp_path, script)

    with pytest.raises(InfrastructureError) as caught:
        preflight(sandbox, empty)

    assert str(caught.value).startswith("sandbox bwrap: it did not start")
    assert told in str(caught.value)
    assert "allow unprivileged user namespaces" in caught.value.hint
    assert "\n" not in str(caught.value)


@needs_bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root could write them")
def test_a_barrier_that_is_left_out_is_named(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hole is enough, so each barrier stands for itself."""
    monkeypatch.setattr(bwrap, "_sealed_proc", tuple)

    assert broken(preflight(Bwrap(), empty)) == {"kernel_settings"}


@needs_bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns them")
def test_borrowed_devices_are_named(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nodes of its own, a sandbox started by root can change those of the whole machine."""
    monkeypatch.setattr(bwrap, "make_devices", lambda: Devices(folder=None))

    assert broken(preflight(Bwrap(), empty)) == {"host_devices"}


@needs_bwrap
def test_a_shared_network_is_named(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port and an abstract socket are both reached through it."""
    shared = (*bwrap._NAMESPACES, "--share-net")
    monkeypatch.setattr(bwrap, "_NAMESPACES", shared)

    assert broken(preflight(Bwrap(), empty)) == {"network", "host_sockets"}


@needs_bwrap
def test_the_proof_can_be_kept(empty: Path) -> None:
    """It is made once per batch, and read by every other process of it."""
    proof = preflight(Bwrap(), empty)

    assert PreflightDoc.model_validate_json(proof.model_dump_json()) == proof
