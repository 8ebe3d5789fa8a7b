from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation.command import Command, Policy


@pytest.mark.parametrize("field", ["read", "deny_read", "write"])
def test_a_mount_point_below_a_writable_folder_is_refused(tmp_path: Path, field: str) -> None:
    """Whoever can write there can put a symbolic link in its way."""
    inner = tmp_path / "box" / "inner"
    paths = {"write": (tmp_path / "box",)}
    paths[field] = (*paths.get(field, ()), inner)

    with pytest.raises(InfrastructureError, match="no mount point may lie below the writable"):
        Policy(**paths)


@pytest.mark.parametrize("field", ["read", "deny_read", "write"])
def test_a_symbolic_link_does_not_hide_that_a_path_is_below(tmp_path: Path, field: str) -> None:
    """Mounts are set up where a path resolves to, whatever it is called."""
    box = tmp_path / "box"
    (box / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(box / "inner")
    paths = {"write": (box,)}
    paths[field] = (*paths.get(field, ()), tmp_path / "link")

    with pytest.raises(InfrastructureError, match="no mount point"):
        Policy(**paths)


def test_a_writable_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    """The folder behind it is the one that can be filled."""
    (tmp_path / "box" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "box")

    with pytest.raises(InfrastructureError, match="no mount point"):
        Policy(write=(tmp_path / "link",), read=(tmp_path / "box" / "inner",))


def test_dots_do_not_hide_that_a_path_is_below(tmp_path: Path) -> None:
    """A path is where it leads, not how it is spelt."""
    (tmp_path / "box" / "inner").mkdir(parents=True)

    with pytest.raises(InfrastructureError, match="no mount point"):
        Policy(write=(tmp_path / "box",), read=(tmp_path / "x" / ".." / "box" / "inner",))


@pytest.mark.parametrize("field", ["read", "deny_read", "write"])
def test_a_relative_path_is_refused(field: str) -> None:
    """Relative to what would depend on who reads it."""
    with pytest.raises(InfrastructureError, match=r"box: a policy takes absolute paths"):
        Policy(**{field: (Path("box"),)})


def test_a_writable_folder_below_a_readable_one_is_fine(tmp_path: Path) -> None:
    """That is what a run folder looks like: only the other way round is dangerous."""
    policy = Policy(read=(tmp_path,), write=(tmp_path / "a", tmp_path / "b"), deny_read=(tmp_path,))

    assert policy.write == (tmp_path / "a", tmp_path / "b")


def test_the_same_folder_may_be_denied_and_writable(tmp_path: Path) -> None:
    """A user's denial of a folder that a trial needs must be heard, not crash."""
    assert Policy(write=(tmp_path,), deny_read=(tmp_path,)).deny_read == (tmp_path,)


def test_a_command_with_nothing_to_do_before_it_needs_no_shell() -> None:
    """Every program that is started on the way costs each of thousands of starts a millisecond."""
    command = Command(argv=("program", "its argument"), cwd=Path("/"), env={})

    assert command.by_shell() == ("program", "its argument")


def said_by_shell(command: Command, first: str = "") -> list[str]:
    done = subprocess.run(
        command.by_shell(first), stdout=subprocess.PIPE, text=True, env=command.env, check=False
    )
    return [*done.stdout.splitlines(), f"status {done.returncode}"]


def test_one_shell_sets_limits_announces_the_program_and_becomes_it() -> None:
    """What the announcement promises is that all that is ours to do has been done."""
    shows = ("/bin/sh", "-c", 'ulimit -c; echo "$0 $*"; exit 3', "a name", "with spaces", "$HOME")
    command = Command(argv=shows, cwd=Path("/"), env={}, ready="ready 'now'")

    said = said_by_shell(command, "ulimit -c 0; ")

    assert said == ["ready 'now'", "0", "a name with spaces $HOME", "status 3"]


def test_a_program_that_is_not_there_is_never_announced() -> None:
    """Otherwise its absence would be taken for something that the candidate did."""
    command = Command(argv=("no-such-program",), cwd=Path("/"), env={}, ready="ready")

    assert said_by_shell(command) == ["status 127"]
