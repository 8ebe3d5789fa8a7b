from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.runs.commandline import called, paths_in, simple_commands

PROGRAM = "cargo-agents"

CALLS = [
    "cargo-agents init",
    "/opt/bin/cargo-agents --version",
    "cargo agents init --add-agent claude",
    "cargo +nightly -q agents sync",
    "cd x && cargo-agents",
    "true | cargo-agents hook claude stop",
    "A=1 B=2 cargo-agents",
    "timeout -k 2 5 cargo-agents",
    "env -i cargo-agents",
    "exec nohup cargo-agents &",
    "if cargo-agents; then true; fi",
    "2>/dev/null cargo-agents",
    "echo $(cargo-agents --version)",
    'echo "it is $(cargo-agents --version)"',
    "echo `cargo-agents`",
    "bash -lc 'cargo-agents init'",
    """sh -c "bash -c 'cargo-agents init'" """,
    "eval 'cargo-agents'",
    "ls\ncargo-agents",
    "cargo-agents 'torn",
]
NO_CALLS = [
    "grep cargo-agents README.md",
    "which cargo-agents",
    "cat cargo-agents/src/main.rs",
    "cargo test agents",
    "cargo build",
    "echo cargo-agents",
    "git commit -m 'Add cargo-agents to the docs'",
    "my-cargo-agents",
    "",
]


@pytest.mark.parametrize("command", CALLS)
def test_a_call_of_a_program_is_seen(command: str) -> None:
    """Clients wrap what they run in shells of their own, and agents in all that shells have."""
    assert list(called(simple_commands(command), (PROGRAM,))) == [PROGRAM]


@pytest.mark.parametrize("command", NO_CALLS)
def test_a_word_that_only_names_a_program_is_no_call(command: str) -> None:
    """An agent may read about what it does not have."""
    assert list(called(simple_commands(command), (PROGRAM,))) == []


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cat /a/b 'c d' \"/e f\"", ["/a/b", "/e f"]),
        ("x --y=/a -I/b", ["/a"]),
        ("PATH=/a:/b x", ["/a", "/b"]),
        ("x </a >/b 2>>/c", ["/a", "/b", "/c"]),
        ("cat ../../a ..", ["../../a", ".."]),
        ("cd a; cat ../b", []),
        ("bash -c 'cat /a /b'", ["/a", "/b"]),
        ("ls https://a/b file:///c", []),
        ("python -c 'import x; x(\"/a\")'", ["/a"]),
        ("cat a...b", []),
    ],
)
def test_paths_are_found_as_they_are_named(command: str, paths: list[str]) -> None:
    """Each is looked up then, so one that is not there must not be made up."""
    assert list(paths_in(simple_commands(command))) == paths


@given(st.text())
def test_no_text_breaks_the_look(text: str) -> None:
    """An agent writes it, and a trial must not fail to end over it."""
    commands = simple_commands(text)

    assert all(words for words in commands)
    assert isinstance(list(paths_in(commands)), list)
    assert list(called(commands, ())) == []
