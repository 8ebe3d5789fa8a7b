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


@pytest.mark.parametrize("kind", ["skill", "other"])
def test_text_that_is_no_path_is_not_judged(kind: str) -> None:
    """The name of a skill, or whatever another tool takes, is no place."""
    assert look("/home/user/.ssh/id", kind=kind) == Findings((), ())


@pytest.mark.parametrize("is_error", [True, False, None])
def test_a_command_that_names_a_denied_path_is_never_proof(is_error: bool | None) -> None:
    """It can name a path without touching it, and its success may be that of something else."""
    found = look("cat /home/user/.ssh/id || true", is_error=is_error, kind="command")

    assert found.escapes == ()
    assert found.attempts == (
        "a denied path was named by a command, /home/user/.ssh/id: cat /home/user/.ssh/id || true",
    )


@pytest.mark.parametrize(
    "command",
    [
        "/bin/bash -lc 'head -1 /home/user/.netrc | wc'",
        "X=$(cat /home/user/.netrc)",
        "tool --config=/home/user/.netrc",
        "echo x >/home/user/.netrc",
        "cat ../../trial-2/project/a",
        "cat /proc/self/root/home/user/.netrc",
        """python3 -c 'import sys; print(open("/home/user/.netrc").read())'""",
    ],
)
def test_a_denied_path_is_found_wherever_a_command_names_it(command: str) -> None:
    """Whoever looks into a result must be led to what is worth a look."""
    assert len(look(command, kind="command").attempts) == 1


@pytest.mark.parametrize(
    "command",
    [
        "cargo test && cat src/lib.rs",
        "ls / /usr/lib ../fixtures/numbers ~/x",
        "cat /roots/b1/tools/common/python/bin/x /tmp/claude/y",
        "cd src/deep && cat ../../../README",
        "curl https://example.com/home/user",
        "",
        "it's torn",
    ],
)
def test_a_command_that_stays_inside_is_no_finding(command: str) -> None:
    """A list of findings full of ordinary work is read by nobody."""
    assert look(command, kind="command") == Findings((), ())


def test_one_attempt_is_told_once() -> None:
    """An agent that tries the same in a loop must not fill the result."""
    call = ToolCall(id="1", kind="command", name="Bash", target="ls /home/user")
    again = call.model_copy(update={"id": "2"})
    transcript = Transcript(events=2, interpreted=True, tool_calls=(call, again))

    assert len(look_outside(transcript, POLICY, PROJECT).attempts) == 1


@pytest.mark.parametrize("command", ["cargo-agents hook", "bash -c 'cargo agents --version'"])
def test_a_forbidden_program_that_is_called_is_told(command: str) -> None:
    """A baseline that calls what its treatment brings was not without it, if the call worked."""
    call = ToolCall(id="1", kind="command", name="Bash", target=command, is_error=False)
    transcript = Transcript(events=1, interpreted=True, tool_calls=(call,))

    found = look_outside(transcript, POLICY, PROJECT, forbidden=("cargo-agents",))

    assert found == Findings((), (f"the program cargo-agents was called: {command}",))
    assert look_outside(transcript, POLICY, PROJECT) == Findings((), ())


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


def masked(*calls: tuple[str, Path | str]) -> Findings:
    """Look at calls that all succeeded, under a sandbox that shows denied folders as empty ones."""
    told = tuple(
        ToolCall(id=str(number), kind=kind, name=kind, target=str(target), is_error=False)  # type: ignore[arg-type]
        for number, (kind, target) in enumerate(calls)
    )
    transcript = Transcript(events=1, interpreted=True, tool_calls=told)
    policy = Policy(deny_read=tuple({Path(target).parent for _, target in calls[-1:]}))
    return look_outside(transcript, policy, PROJECT, masked=True)


def test_a_denied_folder_that_shows_empty_lets_an_edit_prove_nothing(tmp_path: Path) -> None:
    """What is written there vanishes with the sandbox; counting it would sell exclusions."""
    (tmp_path / "host").write_text("")

    found = masked(("edit", tmp_path / "host"))

    assert (len(found.escapes), len(found.attempts)) == (0, 1)


def test_a_denied_file_of_the_host_that_was_read_is_an_escape(tmp_path: Path) -> None:
    """The folder shows empty, so what was read there and not made by the session came through."""
    (tmp_path / "host").write_text("")

    assert len(masked(("read", tmp_path / "host")).escapes) == 1
    assert masked(("read", tmp_path / "gone")).escapes == ()


@pytest.mark.parametrize("before", ["edit", "command"])
def test_what_the_session_may_have_made_there_proves_nothing(tmp_path: Path, before: str) -> None:
    """It can write a file of the host's name into the empty folder, and read that."""
    (tmp_path / "host").write_text("")
    named = tmp_path / "host"

    found = masked((before, f"echo > {named}" if before == "command" else named), ("read", named))

    assert found.escapes == ()


def test_without_a_sandbox_whatever_is_not_of_the_trial_is_told() -> None:
    """Nothing was denied there, so a success voids nothing; the denied stays what it is."""

    def looked(target: str) -> Findings:
        call = ToolCall(id="1", kind="read", name="Read", target=target, is_error=False)
        transcript = Transcript(events=1, interpreted=True, tool_calls=(call,))
        return look_outside(transcript, POLICY, PROJECT, exploratory=True)

    assert looked("/data/answers") == Findings(
        (), ("a path outside of the trial was reached: Read of /data/answers",)
    )
    assert len(looked("/home/user/.ssh/id").escapes) == 1
    for inside in ("src/a", "/usr/lib/x", "/etc/passwd", str(RUN / "tmp/x"), "/"):
        assert looked(inside) == Findings((), ())
