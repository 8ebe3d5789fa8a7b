from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.codex.client import CodexClient
from pytest_evalarc.clients.codex.options import KEY, exec_words
from pytest_evalarc.clients.codex.settings import CodexSettings
from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.errors import SetupError, UsageError
from pytest_evalarc.isolation import toolset
from pytest_evalarc.isolation.command import Command, Ended, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Load, Usage
from pytest_evalarc.registry import builtin
from pytest_evalarc.treatments.loads import Known, observe_load
from tests.clients.codex.recorded import (
    END,
    FOLDER,
    LAYOUT,
    START,
    TURN,
    command,
    data,
    failed,
    read,
    session,
    stream,
)
from tests.clients.installed import install


def client(
    *command: str, key_env: tuple[str, ...] = (), model: str | None = "m-1", **settings: Any
) -> CodexClient:
    return CodexClient().configured(
        "mine", command=command, key_env=key_env, model=model, settings=settings
    )


def staged(folder: Path) -> Path:
    program = folder / "bin" / "codex"
    program.parent.mkdir()
    program.touch()
    return folder


def launch(made: Client, program_dir: Path, prompt: str = "Fix it.", **facts: Any) -> Command:
    return made.launch(
        TaskBrief(name="fix", prompt=prompt, agent_deadline_s=90.0),
        LAYOUT,
        python=Path("/python"),
        program_dir=program_dir,
        env={
            "HOME": "/eval/run/home",
            "CODEX_API_KEY": "key-0123456789",
            "MORE": "more-0123456789",
        },
        settings={},
        script=None,
        **{"model": "m-1", **facts},
    )


def test_it_is_a_client_that_comes_with_the_package() -> None:
    """Whoever names it needs no table."""
    made = builtin.pytest_evalarc_clients()["codex"]()

    assert isinstance(made, CodexClient)
    assert (made.name, made.embedded, made.start_watcher()) == ("codex", False, None)


def test_it_says_what_the_trial_must_provide() -> None:
    """The sandbox lets it reach what stands here, and nothing else."""
    needs = client().needs

    assert (needs.domains, needs.key_env, needs.env) == (("api.openai.com",), (KEY,), ())
    assert (needs.skill_folder, needs.agent) == (".agents/skills", "codex")
    assert (needs.reports_cost, needs.takes_plugins, needs.reads) == (False, False, ())
    assert needs.places.watched


@pytest.mark.parametrize(
    ("settings", "domains"),
    [
        ({"base_url": "https://gateway.example.com/v1"}, ("gateway.example.com",)),
        ({"base_url": "http://127.0.0.1:8080/v1"}, ("127.0.0.1:8080",)),
        ({"base_url": "https://a.example", "domains": ["b.example"]}, ("a.example", "b.example")),
        ({"base_url": "https://a.example", "domains": ["a.example"]}, ("a.example",)),
        ({"domains": ["b.example", "c.example"]}, ("b.example", "c.example")),
    ],
)
def test_a_table_says_where_the_models_are(
    settings: dict[str, Any], domains: tuple[str, ...]
) -> None:
    """A gateway takes the place of the API, which is then out of reach."""
    assert client(**settings).needs.domains == domains


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"base_ulr": "https://x"}, "takes no setting 'base_ulr'; nearest: base_url"),
        ({"base_url": "x"}, "setting base_url: is 'x'; write a URL as"),
        ({"reasoning_effort": "huge"}, "setting reasoning_effort: is 'huge'; .*'high'"),
        ({"max_retries": -1}, "setting max_retries: is -1"),
        ({"env": ["A=1"]}, r"setting env: is \['A=1'\]"),
        ({"domains": [""]}, "setting domains: "),
    ],
)
def test_a_setting_that_cannot_be_meant_is_told_in_one_sentence(
    settings: dict[str, Any], sentence: str
) -> None:
    """A setting that never arrives would be paid for and compared."""
    with pytest.raises(UsageError, match=sentence):
        client(**settings)


def test_a_session_is_started_from_its_copy_with_the_prompt_on_its_stdin(tmp_path: Path) -> None:
    """No bound, no quotes and no option: the prompt arrives as it is."""
    prompt = '--help "it\'s" $HOME `id`\n\\ é' * 20_000
    made = client(key_env=(KEY, "MORE"), reasoning_effort="low")

    found = launch(made, staged(tmp_path), prompt)

    assert found.argv == (
        str(tmp_path / "bin/codex"),
        *exec_words(
            model="m-1",
            settings=CodexSettings(reasoning_effort="low"),
            key_env=(KEY, "MORE"),
            confined=None,
        ),
    )
    assert (found.stdin, found.cwd) == (prompt.encode(), LAYOUT.project)
    assert (found.deadline_s, found.stop_signal) == (90.0, "TERM")
    assert found.secrets == ("key-0123456789", "more-0123456789")


def test_no_variable_is_added_to_the_environment(tmp_path: Path) -> None:
    """What is said by options is equal in all configurations, and stands in no other file."""
    given = {"HOME": "/eval/run/home", "CODEX_API_KEY": "key-0123456789", "MORE": "more-0123456789"}

    assert launch(client(), staged(tmp_path)).env == given


def test_without_a_sandbox_of_ours_its_own_is_on(tmp_path: Path) -> None:
    """Nothing else would be between the agent and the machine."""
    argv = launch(client(), staged(tmp_path), confinement=Policy()).argv

    assert argv[argv.index("--sandbox") + 1] == "workspace-write"


def test_a_session_without_model_or_program_does_not_start(tmp_path: Path) -> None:
    """The client would choose a model by itself."""
    with pytest.raises(SetupError, match="client mine: names no model"):
        launch(client(), staged(tmp_path), model=None)
    with pytest.raises(SetupError, match="does not hold the program of codex"):
        launch(client(), tmp_path / "empty")


def test_its_program_is_the_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results name version and digest, and the batch runs a copy."""
    program = install("codex", tmp_path, "0.171.2-linux-x64", b"\x7fELF")
    (program.parent.parent / "codex-package.json").write_text("{}")
    monkeypatch.setenv(toolset.FOLDER_VARIABLE, str(tmp_path))
    made = client()

    made.stage(tmp_path / "staged")

    assert (made.missing(), made.version) == (None, "0.171.2")
    assert made.sha256() == toolset.require("codex").sha256
    assert (tmp_path / "staged/bin/codex").read_bytes() == b"\x7fELF"
    assert sorted(path.name for path in (tmp_path / "staged").iterdir()) == [
        "bin",
        "codex-package.json",
    ]


# Its stream.


@pytest.mark.parametrize("end", [END, failed("no")])
def test_a_session_is_over_with_the_event_that_says_so(end: dict[str, Any]) -> None:
    """It may stay alive for what it left running."""
    content = stream(START, TURN, end)
    watch = client().watcher()

    seen = [watch(content[place : place + 7]) for place in range(0, len(content), 7)]

    assert seen == [False] * (len(seen) - 1) + [True]


@pytest.mark.parametrize(
    "line",
    [
        {"type": "error", "message": "turn.failed"},
        {"type": "turn.completed"},
        {"type": "turn.failed"},
        {"type": "item.completed", "item": {"id": "x", "type": "error", "message": "x"}},
        b'{"type":"turn.completed","type":"turn.completed","usage":{}}',
        b'{"type":"turn.completed","usage":{}',
    ],
)
def test_what_is_no_such_event_ends_no_session(line: dict[str, Any] | bytes) -> None:
    """A session would be cut off in the middle of its work."""
    assert not client().watcher()(stream(START, TURN, line))


def ended(path: Path) -> Exit:
    return Exit(
        reason=Ended.EXITED,
        status=0,
        stdout_bytes=path.stat().st_size,
        stderr_bytes=0,
        wall_time_s=1.0,
    )


KILLED = "01a22c02-93f3-7de3-95ad-a3442d6e7715"


def keep(layout: RunLayout, thread: str) -> None:
    file = layout.home / ".codex/sessions/2026/11/30" / f"rollout-x-{thread}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes((FOLDER / "killed-sigterm.rollout.jsonl").read_bytes())


def test_the_tokens_of_a_session_that_was_ended_come_from_its_file(tmp_path: Path) -> None:
    """A trial that ran into its deadline has cost something."""
    layout, path = RunLayout(root=tmp_path), tmp_path / "stream"
    path.write_bytes(data("killed-sigterm"))

    assert client().read(path, ended(path), layout).usage is None
    keep(layout, KILLED)
    assert client().read(path, ended(path), layout).usage == Usage(
        input_tokens=704, output_tokens=50, cache_read_tokens=300, cache_write_tokens=0
    )


def test_the_stream_s_own_tokens_are_not_replaced(tmp_path: Path) -> None:
    """The agent can write the file, and not the stream."""
    layout, path = RunLayout(root=tmp_path), tmp_path / "stream"
    path.write_bytes(data("edit"))
    keep(layout, "01a22c02-5d2f-7df3-871e-ed88e9f734c9")

    usage = client().read(path, ended(path), layout).usage

    assert usage is not None and usage.input_tokens == 4259


def test_tokens_that_sub_agents_used_stay_unknown(tmp_path: Path) -> None:
    """The file of the session leaves them out as its stream does."""
    layout, path = RunLayout(root=tmp_path), tmp_path / "stream"
    path.write_bytes(data("sub-agent"))
    thread = re.search(rb'"thread_id":"([^"]+)"', data("sub-agent"))
    assert thread is not None
    keep(layout, thread[1].decode())

    assert client().read(path, ended(path), layout).usage is None


# The page on it.

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "clients.md").read_text("utf-8")
SECTION = re.split(r"^## ", PAGE.partition("\n## codex\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def rows(head: str) -> list[list[str]]:
    """Return the cells of the table that has these heads."""
    _, found, rest = SECTION.partition(f"| {head} |\n")
    assert found, f"there is no table of {head!r}"
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


OUTPUT = {
    "the file": "---\nname: tidy\ndescription: How to tidy.\n---\nTidy.\n",
    "a text": "# Read me\n",
    "paths": "./.agents/skills/tidy/SKILL.md\n",
    "an error": "cat: no such file\n",
    "nothing": "",
    "nothing yet": "",
}

DETECTED = rows("what the agent runs | exit status | what it prints | load of the skill `tidy`")


@pytest.mark.parametrize(("script", "status", "prints", "load"), DETECTED)
def test_the_page_says_what_the_adapter_detects(
    tmp_path: Path, script: str, status: str, prints: str, load: str
) -> None:
    """A reader of a result goes by the page."""
    told = script.strip("`").replace("\\|", "|").replace("<project>", str(LAYOUT.project))
    exit_code = None if status == "none" else int(status)
    events = command(told, exit_code=exit_code, output=OUTPUT[prints])

    found = observe_load(read(tmp_path, session(*events)), Known.at("tidy", ".agents/skills/tidy"))

    assert found.load.value == load


def test_the_page_shows_every_kind_of_load() -> None:
    """What is not in the table is not held to the parser."""
    assert {load for *_, load in DETECTED} == {load.value for load in Load}


def test_the_page_says_what_each_message_means() -> None:
    """A reader tells from it whose fault a failed session was."""
    from pytest_evalarc.clients.codex.faults import fault_of

    listed = [
        (re.findall("`([^`]+)`", cell)[0], kind)
        for cell, kind in rows("the message begins with | cause")
    ]

    assert len(listed) > 9
    assert [fault_of(message).kind for message, _ in listed] == [k.strip("`") for _, k in listed]


def test_the_page_lists_every_setting_and_option() -> None:
    """What no page names is found by nobody."""
    settings = [cells[0].strip("`") for cells in rows("setting | default | meaning")]
    given = exec_words(model="m", settings=CodexSettings(), key_env=(KEY,), confined=None)
    pairs = [" ".join(given[place : place + 2]) for place in range(len(given))]
    options = [cells[0].strip("`") for cells in rows("option | why")]

    assert settings == list(CodexSettings.model_fields)
    assert set(options) <= {*pairs, *given}
    told = {word for option in options for word in option.split(" ", 1)}
    assert set(given) - told == {"exec", "--json", "--model", "m", "-"}


def test_the_tables_that_the_page_shows_are_accepted() -> None:
    """What is copied from it must work at the first try."""
    (shown,) = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)
    ((label, table),) = tomllib.loads(shown)["tool"]["evalarc"]["clients"].items()

    assert table.pop("client") == "codex"
    CodexClient().configured(label, command=(), key_env=(), **table)
