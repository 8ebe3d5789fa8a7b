from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.command import (
    ARGUMENT_BYTES,
    RESPONSE_BYTES,
    CommandClient,
    CommandSettings,
)
from pytest_evalarc.clients.protocol import Client, Needs
from pytest_evalarc.errors import SetupError, UsageError
from pytest_evalarc.isolation.command import Command, Ended, Exit
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Completion

LAYOUT = RunLayout(root=Path("/run"))


def client(*command: str, **facts: Any) -> CommandClient:
    key_env, model = facts.pop("key_env", ()), facts.pop("model", None)
    return CommandClient().configured(
        "mine", command=command, key_env=key_env, model=model, settings=facts
    )


def launch(made: Client, prompt: str = "Fix it.", model: str | None = None) -> Command:
    return made.launch(
        TaskBrief(name="fix", prompt=prompt),
        LAYOUT,
        python=Path("/python"),
        program_dir=Path("/program"),
        env={"HOME": "/run/home", "MY_KEY": "key-0123456789"},
        model=model,
        settings={},
        script=None,
    )


def test_the_prompt_is_one_argument_whatever_is_in_it() -> None:
    """No shell is between: quotes, dollars and newlines arrive as they are."""
    prompt = '-p "it\'s" $HOME `id`\n{model} \\ é\t'
    made = client("sh", "--model", "{model}", "--cwd={project}", "--", "{prompt}", model="m-1")

    command = launch(made, prompt, model="m-1")

    assert Path(command.argv[0]).is_absolute() and Path(command.argv[0]).name == "sh"
    assert command.argv[1:] == ("--model", "m-1", "--cwd=/run/project", "--", prompt)
    assert (command.stdin, command.cwd, command.secrets) == (b"", LAYOUT.project, ())
    assert command.env == {"HOME": "/run/home", "MY_KEY": "key-0123456789"}


def test_the_prompt_can_come_by_standard_input() -> None:
    """There it has no bound, and the program need not tell it from an option."""
    prompt = "-é\n" * ARGUMENT_BYTES

    command = launch(client("sh", "-s", prompt="stdin"), prompt)

    assert command.argv[1:] == ("-s",)
    assert command.stdin == prompt.encode()


def test_an_argument_that_the_system_does_not_take_is_refused() -> None:
    """The start would fail with a word that nobody understands."""
    made = client("sh", "x", "p={prompt}")
    longest = "é" * (ARGUMENT_BYTES // 2 - 2) + "a"

    assert len(launch(made, longest).argv[2].encode()) == ARGUMENT_BYTES - 1
    with pytest.raises(SetupError, match=r'argument 2: is 131072 bytes long.*prompt = "stdin"'):
        launch(made, longest + "a")
    with pytest.raises(SetupError, match="would hold a NUL"):
        launch(made, "a\0b")


def test_what_a_table_asks_for_is_what_the_trial_provides() -> None:
    """The key is the only secret; further variables are settings of the program's."""
    made = client(
        "sh",
        "{prompt}",
        key_env=("MY_KEY",),
        env=["MY_URL", "MY_MODE"],
        reads=["/opt/my-agent"],
        domains=["api.example.com"],
        skill_folder=".claude/skills",
    )

    assert made.needs == Needs(
        key_env=("MY_KEY",),
        env=("MY_URL", "MY_MODE"),
        reads=(Path("/opt/my-agent"),),
        domains=("api.example.com",),
        skill_folder=".claude/skills",
    )
    assert launch(made).secrets == ("key-0123456789",)
    assert (made.name, made.version, made.embedded, made.watcher()) == (
        "command",
        None,
        False,
        None,
    )


@pytest.mark.parametrize(
    ("command", "facts", "sentence"),
    [
        ((), {}, "client mine: has no command; write command = "),
        (("",), {}, "client mine: has no command"),
        (("a\0b", "{prompt}"), {}, "client mine: has no command"),
        (("agent",), {}, "client mine: command: never names {prompt}; add"),
        (("agent", "{{prompt}}"), {}, "never names {prompt}"),
        (("{prompt}",), {}, "never names {prompt}"),
        (("agent", "{prompt}"), {"prompt": "stdin"}, "names {prompt}, which comes by standard"),
        (("agent", "{promt}"), {}, "client mine: command: names {promt}.*nearest: prompt"),
        (("agent", "{model}", "{prompt}"), {}, "names {model}, and no model is given"),
        (("agent", "{prompt}"), {"model": "m-1"}, "'m-1' would not reach it; add"),
        (("agent", "{prompt}"), {"key_env": ("MY KEY",)}, "key_env: 'MY KEY' is no variable"),
        (("agent", "{prompt}"), {"promt": "stdin"}, "no setting 'promt'; nearest: prompt"),
        (("agent", "{prompt}"), {"prompt": "file"}, "setting prompt: is 'file'; .*'stdin'"),
        (("agent", "{prompt}"), {"env": "A"}, "setting env: is 'A'"),
        (("agent", "{prompt}"), {"env": ["A=1"]}, r"setting env: is \['A=1'\]"),
        (("agent", "{prompt}"), {"reads": ["opt"]}, "setting reads: .*absolute paths"),
        (("agent", "{prompt}"), {"reads": ["/"]}, "setting reads: .*not the root"),
        (("agent", "{prompt}"), {"reads": ["/usr/.."]}, "setting reads: .*not the root"),
        (("agent", "{prompt}"), {"domains": [""]}, "setting domains: "),
        (("agent", "{prompt}"), {"skill_folder": "/x"}, "setting skill_folder: .*below"),
        (("agent", "{prompt}"), {"skill_folder": "a/../.."}, "setting skill_folder: .*below"),
        (("agent", "{prompt}"), {"skill_folder": "."}, "setting skill_folder: .*below"),
    ],
)
def test_a_table_that_cannot_be_meant_is_told_in_one_sentence(
    command: tuple[str, ...], facts: dict[str, Any], sentence: str
) -> None:
    """A model, a prompt or a setting that never arrives would be paid for and compared."""
    with pytest.raises(UsageError, match=sentence):
        client(*command, **facts)


def test_a_program_or_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    """Before the first trial: a setup failure is final."""
    absent = str(tmp_path / "absent")

    assert client("sh", "{prompt}", reads=[str(tmp_path)]).missing() is None
    told = client("no-such-agent", "{prompt}").missing()
    assert told is not None and told.startswith("program no-such-agent: is not on PATH")
    assert client("sh", "{prompt}", reads=[absent]).missing() == (
        f"setting reads: {absent} is not there"
    )


def test_results_name_the_program_by_its_digest_alone(tmp_path: Path) -> None:
    """No process is started only to ask for a version, and a missing program has no digest."""
    agent = tmp_path / "agent"
    agent.write_bytes(b"#!/bin/sh\n")
    agent.chmod(0o755)

    assert client(str(agent), "{prompt}").sha256() == hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    assert client("no-such-agent", "{prompt}").sha256() is None
    assert CommandClient().sha256() is None


@pytest.mark.parametrize(
    ("reason", "status", "completion"),
    [
        (Ended.EXITED, 0, Completion(is_error=False, detail="it ended with status 0")),
        (Ended.EXITED, 3, Completion(is_error=True, detail="it ended with status 3")),
        (Ended.EXITED, -9, Completion(is_error=True, detail="it ended with status -9")),
        (Ended.DEADLINE, 0, None),
        (Ended.OUTPUT, 0, None),
        (Ended.EXITED, None, None),
    ],
)
def test_a_session_is_complete_by_its_own_status_0_alone(
    tmp_path: Path, reason: Ended, status: int | None, completion: Completion | None
) -> None:
    """A status that follows our signal says nothing, and a kept stream has none."""
    stdout = tmp_path / "stdout"
    stdout.write_text('{"type":"completion","is_error":false}\n')

    found = client("sh", "{prompt}").read(stdout, ended(reason, status), LAYOUT)

    assert found.completion == completion
    assert (found.interpreted, found.tool_calls, found.usage) == (False, (), None)


def ended(reason: Ended = Ended.EXITED, status: int | None = 0) -> Exit:
    return Exit(reason=reason, status=status, stdout_bytes=0, stderr_bytes=0, wall_time_s=0.1)


def test_the_last_words_are_the_end_of_the_output_made_safe(tmp_path: Path) -> None:
    """Output is bytes of any kind and any length, and no report may be spoilt by it."""
    stdout = tmp_path / "stdout"
    stdout.write_bytes(b"start" + b"x" * RESPONSE_BYTES + b"\x1b]0;t\x07\x00\xff end\n")

    response = client("sh", "{prompt}").read(stdout, ended(), LAYOUT).response

    assert response.endswith("\\x1b]0;t\\x07\\x00\ufffd end\n")
    assert "start" not in response


# The page on it.

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")


def test_the_tables_that_the_page_shows_are_accepted() -> None:
    """What is copied from it must work at the first try."""
    shown = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    tables = {
        label: table
        for document in shown
        for label, table in document["tool"]["evalarc"]["clients"].items()
    }

    assert {table["client"] for table in tables.values()} == {"command"}
    for label, table in tables.items():
        CommandClient().configured(
            label,
            command=tuple(table["command"]),
            key_env=(table["key_env"],) if "key_env" in table else (),
            model=table.get("model"),
            settings=table["settings"],
        )


def test_the_page_lists_every_setting() -> None:
    """A setting that no page names is found by nobody."""
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Settings")[2], re.MULTILINE)

    assert listed == list(CommandSettings.model_fields)
