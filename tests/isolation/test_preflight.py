from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import bwrap, devices, engine
from pytest_evalarc.isolation import preflight as preflight_module
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Names
from pytest_evalarc.isolation.devices import DevicePool, Devices
from pytest_evalarc.isolation.engine import Engine
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.preflight import BARRIERS, preflight
from pytest_evalarc.model.isolation import PreflightDoc
from tests.isolation.pretence import pretend, program
from tests.needs import needs_bwrap, needs_podman

pytestmark = pytest.mark.slow

PROMISED = set(BARRIERS)
NEEDS_ROOT = {"kernel_settings", "not_root", "capabilities"}

MERELY_RUNS = """#!/bin/sh
if [ "$1" = --version ]; then echo bubblewrap 0.99.0; exit; fi
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""

DOES_NOT_RUN = """#!/bin/sh
case $1 in
info) echo '{"ServerVersion": "1.0"}' ;;
image) echo sha256:0123 ;;
run) echo 'docker: no space left on device' >&2; exit 125 ;;
esac
"""


def broken(proof: PreflightDoc) -> set[str]:
    return {barrier.name for barrier in proof.broken}


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@pytest.fixture
def own_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an attempt that wins change a file of the test, which no other test looks at."""
    device = tmp_path / "device"
    device.touch(0o666)
    monkeypatch.setattr(preflight_module, "DEVICE", device)


@needs_bwrap
def test_every_promised_barrier_holds(empty: Path) -> None:
    """Each is tried from inside, on this very machine, before anything is trusted to it."""
    proof = preflight(Bwrap(), empty)

    assert {barrier.name for barrier in proof.barriers} == PROMISED
    assert broken(proof) == set()


def test_without_a_boundary_every_attempt_wins(empty: Path, own_device: None) -> None:
    """The control: a probe that fails by itself would prove nothing."""
    proof = preflight(Local(), empty)

    assert broken(proof) == PROMISED - (set() if os.geteuid() == 0 else NEEDS_ROOT)


def test_a_sandbox_that_merely_runs_the_command_is_unmasked(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_device: None
) -> None:
    """It has the right name, version and exit status, and protects nothing."""
    sandbox = pretend(monkeypatch, program(tmp_path, MERELY_RUNS))

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
    sandbox = pretend(monkeypatch, program(tmp_path, script))

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
    monkeypatch.setattr(bwrap, "sealed_proc", tuple)

    assert broken(preflight(Bwrap(), empty)) == {"kernel_settings"}


@needs_bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns them")
def test_borrowed_devices_are_named(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nodes of its own, a sandbox started by root can change those of the whole machine."""
    monkeypatch.setattr(devices, "make_devices", lambda: Devices(folder=None))
    monkeypatch.setattr(bwrap, "device_pool", lambda _pid: DevicePool())
    # Other tests look at the usual one at the same time.
    monkeypatch.setattr(preflight_module, "DEVICE", Path("/dev/zero"))

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


@needs_podman
def test_every_promised_barrier_of_a_container_holds(empty: Path, podman: Engine) -> None:
    """They are tried by a shell, since an image need not have anything else."""
    proof = preflight(podman, empty)

    assert {barrier.name for barrier in proof.barriers} == PROMISED
    assert broken(proof) == set()


@needs_podman
def test_a_container_in_the_network_of_the_host_is_named(
    empty: Path, podman: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine's own settings may say so, and a port and a socket are then in sight."""
    shared = tuple("host" if word == "none" else word for word in engine._SEALED)
    monkeypatch.setattr(engine, "_SEALED", shared)

    assert broken(preflight(podman, empty)) == {"network", "host_sockets"}


@needs_podman
@pytest.mark.parametrize("user", ["0:0", "65534:65534"])
def test_a_container_that_shows_the_host_is_named(
    empty: Path, podman: Engine, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """A mount too many is a hole, whoever the candidate is."""
    mount = ("--mount", f"type=bind,source={empty.parent},destination={empty.parent}")
    monkeypatch.setattr(engine, "_SEALED", (*engine._SEALED, *mount))
    monkeypatch.setattr(engine, "_user", lambda _: user)
    for folder in (empty.parent, empty):
        folder.chmod(0o777)

    seen = broken(preflight(podman, empty))

    assert seen == {"write_outside", "read_secret", *(["not_root"] if user == "0:0" else [])}


class OnlyNamed(Local):
    """A sandbox that says it shows an image and runs the command as it is."""

    def names(self, host: Names) -> Names:
        return replace(host, path=None)


def test_without_a_container_every_attempt_of_the_shell_wins(empty: Path, own_device: None) -> None:
    """The control: attempts that fail by themselves would prove nothing."""
    proof = preflight(OnlyNamed(), empty)

    assert broken(proof) == PROMISED - (set() if os.geteuid() == 0 else NEEDS_ROOT)


def test_a_container_that_does_not_start_is_told_with_what_to_try(
    empty: Path, tmp_path: Path
) -> None:
    """What is wrong with an engine shows best in its own words."""
    client = tmp_path / "docker"
    client.write_text(DOES_NOT_RUN)
    client.chmod(0o755)
    broken_engine = Engine("docker", "an-image", environ={"PATH": f"{tmp_path}:{os.defpath}"})

    with pytest.raises(InfrastructureError) as caught:
        preflight(broken_engine, empty)

    assert str(caught.value) == (
        "sandbox docker: it did not start (exited, status 125): docker: no space left on device; "
        "see that `docker run --rm an-image true` works, or use another sandbox"
    )
