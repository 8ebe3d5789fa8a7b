from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.devices import NAMES, DevicePool, Devices, make_devices
from tests.isolation.programs import run, shell
from tests.needs import needs_bwrap

NOBODY = 2**22 + 1
"""No process has this id."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root owns the host's devices")


@as_root
def test_root_gets_nodes_of_its_own_that_are_the_same_devices() -> None:
    """They replace the host's, so they must be what programs expect."""
    pool = DevicePool()
    devices = pool.take()
    assert devices.folder is not None

    nodes = {name: (devices.folder / name).stat() for name in NAMES}
    pool.give_back(devices)
    pool.close()

    assert all(stat.S_ISCHR(node.st_mode) for node in nodes.values())
    assert {stat.S_IMODE(node.st_mode) for node in nodes.values()} == {0o666}
    assert {name: node.st_rdev for name, node in nodes.items()} == {
        name: Path("/dev", name).stat().st_rdev for name in NAMES
    }
    assert not devices.folder.exists()


@as_root
def test_nodes_are_used_again_unless_a_sandbox_has_changed_them() -> None:
    """Making them is most of a start, and a right that is gone would be missed by the next one."""
    pool = DevicePool()
    first = pool.take()
    assert first.folder is not None
    assert pool.take() != first

    pool.give_back(first)
    assert pool.take() == first

    (first.folder / "null").chmod(0o600)
    pool.give_back(first)
    assert not first.folder.exists()
    pool.close()


@as_root
def test_nodes_with_something_attached_are_not_used_again() -> None:
    """An attribute could carry a message from one sandbox to the next."""
    pool = DevicePool()
    devices = pool.take()
    assert devices.folder is not None
    try:
        os.setxattr(devices.folder / "null", "trusted.message", b"1")
    except OSError:
        pytest.skip("the file system of temporary files has no such attributes")

    pool.give_back(devices)

    assert not devices.folder.exists()
    pool.close()


@pytest.mark.slow
@needs_bwrap
@as_root
def test_a_sandbox_leaves_no_message_on_its_nodes() -> None:
    """Nodes are used again, and their owner inside may set when they were last changed."""
    leave = "for node in null zero full; do touch -d @123456 /dev/$node; done; "
    look = "stat -c %Y /dev/null /dev/zero /dev/full"

    left = run(Bwrap(), shell(leave + look))
    found = run(Bwrap(), shell(look))

    assert left.lines == ["123456"] * 3
    assert found.lines == ["0"] * 3


@as_root
def test_nodes_that_a_killed_harness_left_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It could not do so itself."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"pytest-evalarc-dev-{NOBODY}-a").mkdir()

    DevicePool()

    assert list(tmp_path.iterdir()) == []


def test_nobody_else_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses to change what another user owns."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert make_devices() == Devices(folder=None)


@as_root
def test_without_the_right_to_make_nodes_the_hosts_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A container's root may lack it; the preflight then says which barrier is missing."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "mknod", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert make_devices() == Devices(folder=None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@needs_bwrap
@as_root
def test_a_submission_cannot_take_a_device_from_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every process of the host writes to `/dev/null`; its mode is nobody's to change."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = Path("/dev/full").stat()

    ran = run(
        Bwrap(), shell("chmod 600 /dev/full && echo word > /dev/null && stat -c %a /dev/full")
    )

    assert ran.stdout == b"600\n"
    assert Path("/dev/full").stat().st_mode == before.st_mode
    assert Path("/dev/full").stat().st_ctime_ns == before.st_ctime_ns
    assert list(tmp_path.glob("pytest-evalarc-dev-*")) == []
