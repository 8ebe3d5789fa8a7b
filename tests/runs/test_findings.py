from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.model.transcript import ToolCall, Transcript
from pytest_evalarc.runs.findings import Findings, look_outside

RUN = Path("/roots/b1/t/nop/trial-1")
PROJECT = RUN / "project"
POLICY = Policy(
    read=(RUN, Path("/roots/b1/tools"), Path("/home/user/python")),
    deny_read=(Path("/roots"), Path("/home"), Path("/srv/project")),
    write=(PROJECT, RUN / "tmp"),
)


def look(target: str, *, is_error: bool | None = False, kind: str = "read") -> Findings:
    call = ToolCall(id="1", kind=kind, name="tool", target=target, is_error=is_error)  # type: ignore[arg-type]
    return look_outside(Transcript(events=1, interpreted=True, tool_calls=(call,)), POLICY, PROJECT)


OUTSIDE = [
    "/roots/b1/t/nop/trial-2/project/a",
    "/roots/b1/t/nop/trial-1x/a",
    "/roots",
    "/home/user/.ssh/id",
    "/home/user/python/../.netrc",
    "/srv/project/evals/tasks/t/checks/a.py",
    "../../trial-2/project/a",
    "a/../../../trial-2",
    "/roots/b1/t/nop/trial-1/../trial-2/a",
    "//srv/project/a",
    "/usr/../home/other",
]
INSIDE = [
    "a.py",
    "",
    ".",
    "../fixtures/numbers",
    "/roots/b1/t/nop/trial-1/home/x",
    "/roots/b1/tools/common/python/bin",
    "/home/user/python/lib/os.py",
    "/usr/lib/x",
    "/srv/projectile/a",
    "~/x",
    "/",
]


@pytest.mark.parametrize("target", OUTSIDE)
@pytest.mark.parametrize("kind", ["read", "edit"])
def test_a_success_outside_is_an_escape(target: str, kind: str) -> None:
    """The tool itself says that it reached what the sandbox must hide."""
    found = look(target, kind=kind)

    assert [cause.kind for cause in found.escapes] == ["escape"]
    assert found.attempts == ()


@pytest.mark.parametrize("target", OUTSIDE)
@pytest.mark.parametrize("is_error", [True, None])
def test_a_failure_outside_is_an_attempt(target: str, is_error: bool | None) -> None:
    """What the sandbox refused is worth telling, and no reason to leave the trial out."""
    found = look(target, is_error=is_error)

    assert found.escapes == ()
    assert len(found.attempts) == 1


@pytest.mark.parametrize("target", INSIDE)
def test_what_the_policy_leaves_open_is_no_finding(target: str) -> None:
    """A false finding would exclude an honest trial."""
    assert look(target) == Findings((), ())


@pytest.mark.parametrize("kind", ["command", "skill", "other"])
def test_text_that_is_no_path_is_not_judged(kind: str) -> None:
    """A command can name any path without touching it."""
    assert look("/home/user/.ssh/id", kind=kind) == Findings((), ())


def test_a_target_with_a_nul_names_no_file() -> None:
    """No system call takes it, so it reached nothing, and must not break the look either."""
    assert look("/home/user\0/x") == Findings((), ())


def test_a_hostile_target_is_made_safe_to_print() -> None:
    """Findings go to terminals and pages."""
    (told,) = look("/home/\x1b]0;x\x07\ud800", is_error=True).attempts

    assert told == r"a denied path was tried: tool of /home/\x1b]0;x\x07" + "\ufffd"


def test_a_denied_folder_is_known_by_its_real_path_too(tmp_path: Path) -> None:
    """A policy can name a folder by a link, and a client by where it really is."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    call = ToolCall(id="1", kind="read", name="r", target=str(tmp_path / "real/x"), is_error=False)

    found = look_outside(
        Transcript(events=1, interpreted=True, tool_calls=(call,)),
        Policy(deny_read=(tmp_path / "link",)),
        tmp_path / "project",
    )

    assert len(found.escapes) == 1


def test_what_a_session_made_in_its_own_tmp_is_no_escape(tmp_path: Path) -> None:
    """Below a sandbox's private /tmp anybody can make a denied path, and buy an exclusion."""
    (tmp_path / "denied").mkdir()
    (tmp_path / "denied/host").write_text("")
    policy = Policy(deny_read=(tmp_path / "denied",))

    def reached(name: str) -> Findings:
        target = str(tmp_path / "denied" / name)
        call = ToolCall(id="1", kind="edit", name="w", target=target, is_error=False)
        transcript = Transcript(events=1, interpreted=True, tool_calls=(call,))
        return look_outside(transcript, policy, tmp_path / "project", private_tmp=tmp_path)

    assert (len(reached("mine").escapes), len(reached("mine").attempts)) == (0, 1)
    assert len(reached("host").escapes) == 1
