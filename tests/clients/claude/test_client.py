from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.claude.client import ALWAYS, ClaudeClient
from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.command import Command, Ended, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.toolset import FOLDER_VARIABLE
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Usage
from pytest_evalarc.registry import builtin
from tests.clients.claude.recorded import FOLDER, events
from tests.clients.installed import install

LAYOUT = RunLayout(root=Path("/run"))
ENV = {"HOME": "/run/home", "ANTHROPIC_API_KEY": "test-key-not-real", "OTHER_KEY": "key-0123"}


def client(*command: str, key_env: tuple[str, ...] = (), **settings: Any) -> ClaudeClient:
    return ClaudeClient().configured(
        "mine", command=command, key_env=key_env, model="m-1", settings=settings
    )


@pytest.fixture
def program_dir(tmp_path: Path) -> Path:
    """Return a folder as `stage` fills it."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "claude").write_bytes(b"program")
    return folder


def launch(made: ClaudeClient, program_dir: Path, prompt: str = "Fix it.", **facts: Any) -> Command:
    return made.launch(
        TaskBrief(name="fix", prompt=prompt, agent_deadline_s=77.0),
        LAYOUT,
        python=Path("/python"),
        program_dir=program_dir,
        env=ENV,
        model="m-1",
        settings={},
        script=None,
        **facts,
    )


def values(command: Command, option: str) -> list[str]:
    words = command.argv
    return [words[place + 1] for place, word in enumerate(words) if word == option]


# What a label makes of it.


def test_it_goes_by_its_name() -> None:
    """A label of a table, and `--evalarc-client claude` without one, find the same client."""
    made = builtin.pytest_evalarc_clients()["claude"]()

    assert isinstance(made, ClaudeClient)
    assert (made.name, made.embedded) == ("claude", False)


def test_what_a_table_asks_for_is_what_the_trial_provides() -> None:
    """Credentials may be several variables, and a cloud is chosen by plain ones."""
    made = client(
        key_env=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        env=["CLAUDE_CODE_USE_BEDROCK", "AWS_REGION"],
        domains=["bedrock-runtime.eu-west-1.amazonaws.com"],
    )

    assert made.needs == Needs(
        domains=("bedrock-runtime.eu-west-1.amazonaws.com",),
        key_env=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        env=("CLAUDE_CODE_USE_BEDROCK", "AWS_REGION"),
        skill_folder=".claude/skills",
        reports_cost=True,
        agent="claude",
        takes_plugins=True,
        places=made.needs.places,
    )
    assert client().needs.key_env == ("ANTHROPIC_API_KEY",)


# The command line.


def test_a_session_is_started_as_a_sandbox_of_ours_allows(program_dir: Path) -> None:
    """Everything about it is on the command line, but for the prompt, which has no bound."""
    command = launch(client(), program_dir)

    assert command.argv == (
        str(program_dir / "claude"),
        *("-p", "--verbose", "--include-hook-events", "--replay-user-messages"),
        *("--input-format", "stream-json", "--output-format", "stream-json"),
        *("--model", "m-1", "--disallowed-tools=WebSearch"),
        *("--permission-mode", "bypassPermissions"),
    )
    assert command.env == {**ENV, **ALWAYS, "IS_SANDBOX": "1"}
    assert (command.cwd, command.deadline_s, command.stop_signal) == (LAYOUT.project, 77.0, "INT")
    assert command.secrets == ("test-key-not-real",)


def test_settings_become_options_and_variables(program_dir: Path) -> None:
    """An option that is not asked for is not given: its default is the client's."""
    asked = {
        "effort": "high",
        "max_turns": 7,
        "max_retries": 0,
        "base_url": "http://127.0.0.1:1/x",
    }
    command = launch(client(key_env=("OTHER_KEY", "ANTHROPIC_API_KEY"), **asked), program_dir)

    assert (values(command, "--effort"), values(command, "--max-turns")) == (["high"], ["7"])
    assert command.env["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert command.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1/x"
    assert command.secrets == ("key-0123", "test-key-not-real")


@pytest.mark.parametrize("prompt", ["-h", '"it\'s" $HOME `id`\n\t\\', "é\u2028\0", "x" * 300_000])
def test_the_prompt_is_handed_over_as_it_is(prompt: str, program_dir: Path) -> None:
    """No shell, no option and no limit of the system's is between."""
    command = launch(client(), program_dir, prompt)

    assert command.stdin.count(b"\n") == 1
    assert json.loads(command.stdin) == {
        "type": "user",
        "message": {"role": "user", "content": prompt},
    }
    assert prompt not in command.argv


def test_plugins_are_loaded_from_their_folders(program_dir: Path) -> None:
    """Each has an option of its own."""
    command = launch(client(), program_dir, plugins=(Path("/run/a"), Path("/run/b b")))

    assert values(command, "--plugin-dir") == ["/run/a", "/run/b b"]


def test_without_a_sandbox_of_ours_its_own_is_as_strict_as_it_can_be(
    program_dir: Path, tmp_path: Path
) -> None:
    """Nobody is there to be asked, so what is not allowed is refused."""
    root = tmp_path / "run"
    layout = RunLayout(root=root)
    for made in (*layout.writable, layout.bin, layout.fixtures, tmp_path / "denied"):
        made.mkdir(parents=True)
    policy = Policy(read=(root,), deny_read=(tmp_path / "denied",), write=layout.writable)

    command = client().launch(
        TaskBrief(name="fix", prompt="Fix it."),
        layout,
        python=Path("/python"),
        program_dir=program_dir,
        env=ENV,
        model="m-1",
        settings={},
        script=None,
        confinement=policy,
    )

    assert values(command, "--permission-mode") == ["acceptEdits"]
    assert command.env == {
        **ENV,
        **ALWAYS,
        "TMPDIR": "/tmp",
        "CLAUDE_CODE_TMPDIR": str(layout.tmp),
    }
    (written,) = values(command, "--settings")
    settings = json.loads(written)
    sandbox, filesystem = settings["sandbox"], settings["sandbox"]["filesystem"]
    assert {name: sandbox[name] for name in sorted(sandbox) if name != "filesystem"} == {
        "allowUnsandboxedCommands": False,
        "autoAllowBashIfSandboxed": True,
        "enabled": True,
        "failIfUnavailable": True,
    }
    assert {"/", str(tmp_path / "denied")} <= set(filesystem["denyRead"])
    assert {"/usr", str(layout.bin), str(layout.fixtures)} <= set(filesystem["allowRead"])
    assert filesystem["allowWrite"] == sorted(str(path) for path in layout.writable)
    assert settings["permissions"] == {
        "additionalDirectories": [str(layout.fixtures)],
        "blockReadsOutsideWorkingDirectories": True,
    }


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_a_program_that_was_not_staged_is_not_guessed_at(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    """What runs is what results name by its digest."""
    for name in names:
        (tmp_path / name).touch()

    with pytest.raises(SetupError, match="does not hold the program of claude alone"):
        launch(client(), tmp_path)


# The program.


def test_the_installed_program_is_staged_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file is all it needs, and all that a trial is shown of it."""
    content = b"\x7fELF" + bytes(range(256)) * 5000
    program = install("claude", tmp_path / "tools", "2.1.332", content)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "tools"))
    (program.parent / "more").write_text("more")
    made, folder = client(), tmp_path / "staged"
    folder.mkdir()

    assert made.missing() is None
    made.stage(folder)

    (staged,) = folder.iterdir()
    assert staged.read_bytes() == content
    assert staged.stat().st_mode & 0o777 == 0o755
    assert launch(made, folder).argv[0] == str(staged)
    assert made.version == "2.1.332"
    assert made.sha256() == hashlib.sha256(content).hexdigest()


# The transcript.


def ended(size: int) -> Exit:
    return Exit(reason=Ended.EXITED, status=0, stdout_bytes=size, stderr_bytes=0, wall_time_s=1.0)


def test_a_session_that_told_its_tokens_is_believed(tmp_path: Path) -> None:
    """They come by the stream, which no agent can write to."""
    stream = FOLDER / "2.1.332.edit.jsonl"

    found = client().read(stream, ended(stream.stat().st_size), RunLayout(root=tmp_path))

    assert found.usage is not None
    assert found.usage.total == 4016 + 205 + 1200 + 800
    assert found.usage.cost_usd == pytest.approx(0.018483)


def test_tokens_of_a_session_that_was_killed_come_from_its_own_file(tmp_path: Path) -> None:
    """The cost is unknown then, and so are the tokens once the home is gone."""
    name = "2.1.332.killed-sigterm"
    stream, layout = FOLDER / f"{name}.jsonl", RunLayout(root=tmp_path)
    exit, start = ended(stream.stat().st_size), events(name)[0]

    before = client().read(stream, exit, layout)
    kept = layout.home / ".claude/projects/-eval-run-work" / f"{start['session_id']}.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_bytes((FOLDER / f"{name}.session.jsonl").read_bytes())
    found = client().read(stream, exit, layout)

    assert before.usage is None
    assert found.usage == Usage(
        input_tokens=2004, output_tokens=103, cache_read_tokens=600, cache_write_tokens=400
    )
    assert found.model_copy(update={"usage": None}) == before


def test_a_stream_that_was_cut_off_is_not_interpreted(tmp_path: Path) -> None:
    """What the capture dropped may have been anything."""
    stream = FOLDER / "2.1.332.edit.jsonl"

    found = client().read(stream, ended(stream.stat().st_size + 1), RunLayout(root=tmp_path))

    assert not found.interpreted
