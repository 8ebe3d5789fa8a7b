from __future__ import annotations

import shlex

import pytest

from pytest_evalarc.clients.codex.shell import (
    hides_a_skill,
    printed_files,
    script_of,
    takes_commands,
)
from tests.clients.codex.recorded import shell

TIDY = ".agents/skills/tidy/SKILL.md"


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("cat a.py", ["a.py"]),
        ("cat a.py 'b c.py'", ["a.py", "b c.py"]),
        ("/bin/cat a.py", ["a.py"]),
        ("/usr/bin/cat -n a.py", ["a.py"]),
        ("cat -- -a.py", ["-a.py"]),
        ("cat a.py && cat b.py", ["a.py", "b.py"]),
        ("cat a.py&&cat b.py", ["a.py", "b.py"]),
        ("cd src && cat a.py", ["src/a.py"]),
        ("cd /run/project && cat a.py && nl -ba b.py", ["/run/project/a.py", "/run/project/b.py"]),
        ("cd /run/project && cat /etc/hosts", ["/etc/hosts"]),
        ("head a.py", ["a.py"]),
        ("head -n 20 a.py", ["a.py"]),
        ("head -20 a.py b.py", ["a.py", "b.py"]),
        ("tail --lines=5 a.py", ["a.py"]),
        ("tail -c 100 a.py", ["a.py"]),
        ("nl -b a a.py", ["a.py"]),
        ("less -N a.py", ["a.py"]),
        ("more a.py", ["a.py"]),
        ("sed -n 1,200p a.py", ["a.py"]),
        ("sed -n '201,400p' a.py", ["a.py"]),
        ("sed -n 1p a.py b.py", ["a.py", "b.py"]),
        (f"cat {TIDY}", [TIDY]),
        (f"cat ./{TIDY}", [f"./{TIDY}"]),
        (f"sed -n '1,200p' /run/project/{TIDY}", [f"/run/project/{TIDY}"]),
        ("cat 'a&&b'", ["a&&b"]),
        ("cd .agents/skills/tidy && cat SKILL.md", [TIDY]),
        ("cd .agents/skills && cat tidy/SKILL.md", [TIDY]),
    ],
)
def test_a_command_that_only_prints_files_is_a_read_of_them(script: str, files: list[str]) -> None:
    """An agent without a tool for it reads this way, its skills too."""
    assert printed_files(shell(script)) == tuple(files)


@pytest.mark.parametrize(
    "script",
    [
        "ls",
        "cat",
        "cat -",
        "cat - a.py",
        "./cat a.py",
        "/opt/cat a.py",
        "cat a.py; cat b.py",
        "cat a.py & cat b.py",
        "cat a.py || cat b.py",
        "cat a.py | head",
        "cat a.py > b.py",
        "cat < a.py",
        "cat a.py\ncat b.py",
        "cat *.py",
        "cat a?.py",
        "cat ~/a.py",
        "cat $HOME/a.py",
        "cat {a,b}.py",
        "cat `which a`",
        "cat a\\ b.py",
        "cat a.py # all of it",
        "cat a.py && ls",
        "ls && cat a.py",
        "cat a.py &&",
        "&& cat a.py",
        "cat a.py &&& cat b.py",
        "cd src",
        "cd && cat a.py",
        "cd a b && cat a.py",
        "cat a.py && cd src && cat b.py",
        "X=1 cat a.py",
        "sudo cat a.py",
        "cat --squeeze a.py",
        "head -n 0 a.py",
        "head -n -5 a.py",
        "tail -f a.py",
        "tail -n +9000 a.py",
        "nl -bt a.py",
        "more +9 a.py",
        "sed 1p a.py",
        "sed -n 1d a.py",
        "sed -n '1,$p' a.py",
        "sed -n -i 1p a.py",
        "sed -n 1p -i a.py",
        "sed -n 5,9p a.py b.py",
        "cat a.py && sed -n 5,9p b.py",
        "cat src/",
        "cat ../a.py",
        "cat a/../b.py",
        "cat SKILL.md",
        "cat ./SKILL.md",
        "cat tidy/SKILL.md",
        "cat skills/tidy/SKILL.md",
        "cat .agents/skills/SKILL.md",
        "cat .agents/skills/a/b/SKILL.md",
        "cd skills && cat tidy/SKILL.md",
        "cd .agents/skills/.. && cat tidy/SKILL.md",
        "cat 'unfinished",
        "",
    ],
)
def test_whatever_is_not_certain_is_no_read(script: str) -> None:
    """What is taken for a read decides whether a skill was used."""
    assert printed_files(shell(script)) == ()


@pytest.mark.parametrize(
    "command",
    [
        "cat a.py",
        "/bin/bash -lc",
        "/bin/bash -lc 'cat a.py' x",
        "/bin/bash -x 'cat a.py'",
        "/usr/bin/python3 -c 'cat a.py'",
        "/bin/bash -lc 'cat a.py",
        "",
        "/bin/bash -lc " + shlex.quote("cat a.py" + " " * 300_000),
    ],
)
def test_only_what_a_shell_is_told_is_looked_at(command: str) -> None:
    """Whatever else the client runs prints what it likes."""
    assert printed_files(command) == ()
    assert script_of(command) == command


@pytest.mark.parametrize("start", ["/bin/bash -lc", "/bin/bash -c", "/usr/bin/sh -c", "zsh -lc"])
def test_a_script_is_found_behind_any_shell(start: str) -> None:
    """Which one is used is the machine's and the agent's choice."""
    script = """echo "it's" '"' && true"""

    assert script_of(f"{start} {shlex.quote(script)}") == script
    assert printed_files(f"{start} 'cat a.py'") == ("a.py",)


def test_a_script_is_unquoted_as_the_client_quotes_it() -> None:
    """It mixes both kinds of quotes where a script holds one."""
    command = "/usr/bin/sh -lc 'echo $0 `id -u` \"it'\"'s\\\" '\\\"'\""

    assert script_of(command) == """echo $0 `id -u` "it's" '"'"""


@pytest.mark.parametrize(
    ("script", "is_hidden"),
    [
        ("cat SKILL.md", True),
        ("cat 'SKILL.md'", True),
        ("cat ./SKILL.md | head", True),
        ("cat ../SKILL.md", True),
        ("cat < SKILL.md", True),
        ("python3 -c \"print(open('SKILL.md').read())\"", True),
        ("cd .. && cat SKILL.md", True),
        ("cd $DIR && cat SKILL.md", True),
        ("cd .agents/skills/* && cat SKILL.md", True),
        ("cat docs/cd SKILL.md", True),
        ("ls && cat SKILL.md", True),
        # The treatment sees these by the skill's name, or by what may stand for it.
        ("cat tidy/SKILL.md", False),
        ("cd tidy && cat SKILL.md", False),
        ("cd .agents/skills/tidy; cat SKILL.md", False),
        ("(cd '/run/project/.agents/skills/tidy' && cat SKILL.md)", False),
        ("cat */SKILL.md", False),
        ("cat $DIR/SKILL.md", False),
        # These print no file.
        ("find . -name SKILL.md", False),
        ("find . -iname 'SKILL.md'", False),
        ("rg --files -g SKILL.md", False),
        ("rg --files --glob=SKILL.md", False),
        # And these name none.
        ("cat MY-SKILL.md", False),
        ("cat SKILL.mdx", False),
        ("ls", False),
    ],
)
def test_the_file_of_a_skill_without_a_folder_is_that_of_any_skill(
    script: str, is_hidden: bool
) -> None:
    """A command can run in the folder of a skill, and no event says so."""
    assert hides_a_skill(shell(script), "printed\n") == is_hidden


@pytest.mark.parametrize(
    ("output", "is_hidden"),
    [
        ("---\nname: tidy\ndescription: How to.\n---\n", True),
        ("before\n---\r\ndescription: How to.\r\n", True),
        ("--- \nname: tidy", True),
        ("name: tidy\ndescription: How to.\n", False),
        ("---\ntitle: Tidy\nname: tidy\n", False),
        ("----\nname: tidy\n", False),
        ("", False),
    ],
)
def test_a_skill_is_known_by_how_its_file_begins(output: str, is_hidden: bool) -> None:
    """A pattern for names prints it, and its own text does not tell."""
    assert hides_a_skill(shell("head -50 *"), output) == is_hidden
    # Here the treatment looks at the name.
    assert not hides_a_skill(shell(f"head -50 {TIDY} README.md"), output)


@pytest.mark.parametrize(
    ("script", "is_open"),
    [
        ("bash", True),
        ("/bin/sh -i", True),
        ("python3", True),
        ("python3.11 -q -i", True),
        ("node", True),
        ("python3 app.py", False),
        ("bash run.sh", False),
        ("npm start", False),
        ("true", False),
        ("", False),
    ],
)
def test_a_shell_that_stays_open_takes_commands_that_nobody_sees(
    script: str, is_open: bool
) -> None:
    """What the agent types into a running program is in no event."""
    assert takes_commands(shell(script)) == is_open
