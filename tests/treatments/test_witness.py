from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_evalarc.errors import SetupError
from pytest_evalarc.treatments.witness import FILE, SCRIPT, Wrapper

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash") if shutil.which(shell)]


@pytest.fixture
def wrapper(tmp_path: Path) -> Wrapper:
    script = tmp_path / "a run's" / "witness.sh"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    return Wrapper(plugin="house", script=script)


def hooks(*commands: dict[str, Any], event: str = "Stop") -> dict[str, Any]:
    return {event: [{"matcher": "*", "hooks": list(commands)}]}


def shell_hook(command: str, **more: object) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


def wrapped(wrapper: Wrapper, hook: dict[str, Any]) -> dict[str, Any]:
    (group,) = wrapper.wrapped(hooks(hook), where="hooks.json")["Stop"]
    (found,) = group["hooks"]
    assert isinstance(found, dict)
    return found


def run(
    folder: Path, hook: dict[str, Any], *, shell: str = "/bin/sh"
) -> subprocess.CompletedProcess[bytes]:
    """Run a hook as a client does."""
    argv = [hook["command"], *hook["args"]] if "args" in hook else [shell, "-c", hook["command"]]
    env = {"PATH": "/usr/bin:/bin", "EVAL_EVIDENCE_DIR": str(folder), "CLAUDE_PLUGIN_ROOT": "/p l"}
    return subprocess.run(argv, input=b"line\nrest", capture_output=True, env=env, check=False)


def witnessed(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()]


COMMANDS = [
    "cat",
    "read first; echo got $first",
    "echo it\\'s \"quoted\" '$HOME' `echo run`",
    'echo "${CLAUDE_PLUGIN_ROOT}/x"; echo error >&2; exit 3',
    "exit 0; echo never",
    "exec cat",
    "kill -9 $$",
    "cat <<EOF\nheredoc $((1+1))\nEOF",
    "no-such-program",
    "if then",
    "# a comment",
    "",
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrapped_hook_does_what_the_bare_one_does_and_leaves_a_witness(
    wrapper: Wrapper, tmp_path: Path, shell: str, command: str
) -> None:
    """The treatment is the plugin as its author wrote it; we only watch."""
    bare = run(tmp_path, shell_hook(command), shell=shell)
    assert not (tmp_path / FILE).exists()

    found = run(tmp_path, wrapped(wrapper, shell_hook(command)), shell=shell)

    # The shell between tells a signal by its status.
    status = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
    assert (found.returncode, found.stdout) == (status, bare.stdout)
    assert bare.returncode < 0 or bool(found.stderr) == bool(bare.stderr)
    assert witnessed(tmp_path) == [
        {"plugin": "house", "event": "Stop", "command": 0, "status": status}
    ]


@pytest.mark.skipif("/bin/bash" not in SHELLS, reason="there is no bash")
def test_a_hook_runs_in_the_shell_that_its_client_chose(wrapper: Wrapper, tmp_path: Path) -> None:
    """A command in bash's own words would fail in another."""
    hook = wrapped(wrapper, shell_hook("a=(1 2); echo ${a[1]}", shell="bash"))

    assert run(tmp_path, hook, shell="/bin/bash").stdout == b"2\n"
    assert hook["shell"] == "bash"


def test_a_hook_without_a_shell_keeps_its_arguments(wrapper: Wrapper, tmp_path: Path) -> None:
    """A client hands them over as they are, so nothing may split or expand them."""
    hook = wrapped(wrapper, shell_hook("/bin/echo", args=["a b", "$HOME", "it's"], timeout=5))

    assert run(tmp_path, hook).stdout == b"a b $HOME it's\n"
    assert hook["timeout"] == 5
    assert [record["status"] for record in witnessed(tmp_path)] == [0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    text=st.text(
        alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30
    )
)
def test_no_text_escapes_from_its_quotes(wrapper: Wrapper, text: str) -> None:
    """A command is foreign text; what is run must be that text and nothing around it."""
    import shlex

    hook = wrapped(wrapper, shell_hook(text))

    assert shlex.split(hook["command"])[-1] == text


def test_commands_are_counted_by_event_over_all_files(wrapper: Wrapper) -> None:
    """A record of a command that there is not is nobody's."""
    wrapper.wrapped(hooks(shell_hook("a"), shell_hook("b")), where="x")
    prompt = {"type": "prompt", "prompt": "ok?"}
    found = wrapper.wrapped(hooks(prompt, event="Start"), where="y")
    (again,) = wrapper.wrapped(hooks(shell_hook("c")), where="z")["Stop"]

    assert wrapper.commands == {"Stop": 3, "Start": 0}
    assert found["Start"][0]["hooks"] == [prompt]
    assert again["matcher"] == "*"
    assert " house Stop 2 " in again["hooks"][0]["command"]


def test_without_a_place_for_evidence_the_hook_still_runs(wrapper: Wrapper, tmp_path: Path) -> None:
    """What watches must not break what it watches."""
    found = run(tmp_path / "gone", wrapped(wrapper, shell_hook("echo on; exit 4")))

    assert (found.returncode, found.stdout) == (4, b"on\n")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "holds no hooks that can be read"),
        ({"Stop": {}}, "holds no hooks that can be read"),
        ({"Stop": [{}]}, "holds no hooks that can be read"),
        ({"Stop": [{"hooks": [{"command": "x"}]}]}, "holds no hooks that can be read"),
        ({"Stop": [{"hooks": ["x"]}]}, "holds no hooks that can be read"),
        ({"St op": []}, "names an event that is none: St op"),
        (hooks(shell_hook("dir", shell="powershell")), "runs in powershell, where none is wrapped"),
    ],
)
def test_hooks_that_cannot_be_wrapped_are_refused(
    wrapper: Wrapper, value: object, problem: str
) -> None:
    """A hook that runs unwatched would be told as one that did not."""
    with pytest.raises(SetupError) as caught:
        wrapper.wrapped(value, where="hooks.json")

    assert caught.value.problem == problem
