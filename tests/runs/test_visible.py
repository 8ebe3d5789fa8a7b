from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.runs.visible import require_visible


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_a_program_of_the_system_is_seen_without_being_named(tmp_path: Path) -> None:
    """System folders are readable everywhere, and no others are."""
    require_visible(Path("/bin/sh"), Policy())

    with pytest.raises(SetupError, match="lies where no session sees it"):
        require_visible(make(tmp_path / "sh"), Policy())


def test_a_program_is_seen_where_its_folder_is_read(tmp_path: Path) -> None:
    """Also when the folder is named by way of a link."""
    program = make(tmp_path / "v2/bin/agent")
    (tmp_path / "current").symlink_to(tmp_path / "v2")

    require_visible(program, Policy(read=(tmp_path / "v2",)))
    require_visible(program, Policy(read=(tmp_path / "current",)))
    require_visible(program, Policy(read=(program,), deny_read=(tmp_path,)))
    with pytest.raises(SetupError, match="lies where no session sees it"):
        require_visible(program, Policy(read=(tmp_path / "v2",), deny_read=(program.parent,)))


@pytest.mark.parametrize(
    ("read", "deny"),
    [((), ()), (("v2/lib",), ()), (("v2",), ("v2/bin",)), (("v2",), ("v2",))],
)
def test_a_program_that_no_session_sees_is_told(
    tmp_path: Path, read: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    """The sandbox would fail to start it, which looks like a client that failed."""
    program = make(tmp_path / "v2/bin/agent")
    policy = Policy(
        read=tuple(tmp_path / path for path in read),
        deny_read=tuple(tmp_path / path for path in deny),
    )

    with pytest.raises(SetupError, match=r"v2/bin/agent: lies where no session sees it; name"):
        require_visible(program, policy)


def test_every_link_on_the_way_must_be_seen(tmp_path: Path) -> None:
    """The kernel follows them inside, where one that is not there leads nowhere."""
    real = make(tmp_path / "store/agent-2")
    (tmp_path / "links").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "links/agent").symlink_to("../store/agent-2")
    (tmp_path / "bin/agent").symlink_to("../links/agent")
    folders = [tmp_path / name for name in ("bin", "links", "store")]

    require_visible(tmp_path / "bin/agent", Policy(read=tuple(folders)))
    for hidden in folders:
        policy = Policy(read=tuple(folder for folder in folders if folder != hidden))
        with pytest.raises(SetupError, match="lies where no session sees it"):
            require_visible(tmp_path / "bin/agent", policy)
    with pytest.raises(SetupError, match=f"a link leads from there to {real}"):
        require_visible(tmp_path / "bin/agent", Policy(read=tuple(folders[:2])))


def test_a_loop_of_links_comes_to_an_end(tmp_path: Path) -> None:
    """Whatever stands there, preparation goes on to its own error."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    require_visible(tmp_path / "a", Policy(read=(tmp_path,)))
    with pytest.raises(SetupError, match="lies where no session sees it"):
        require_visible(tmp_path / "a", Policy())
