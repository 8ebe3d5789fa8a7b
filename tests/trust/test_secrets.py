"""The key reaches the client alone: it is looked for in all that whole runs leave behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.isolation import host, toolset
from pytest_evalarc.isolation.engine_program import client_environ
from pytest_evalarc.isolation.host import find_bwrap
from pytest_evalarc.runs.redaction import Redaction
from pytest_evalarc.runs.session import STDERR_BYTES, given_env, secrets_of
from tests.needs import needs_bwrap, needs_srt, needs_sshd
from tests.plugin.project import Project
from tests.system.test_ssh import Spread
from tests.test_docs import first_words, rows, section
from tests.trust.canary import KEY, NOT_STRUCK, STRUCK, VARIABLE, found_in, leaks

SECURITY = Path(__file__).parents[2] / "docs" / "security.md"
AGENT = Path(__file__).with_name("hostile_agent.py")

whole_run = [pytest.mark.slow, needs_bwrap, pytest.mark.timeout(300)]

TABLE = """\
[tool.evalarc.clients.hostile]
client = "command"
command = [
    "/bin/sh", "-c", 'exec python3 "$@"', "sh", "{agent}", "{variable}", "{kept}", "{{prompt}}"
]
key_env = ["{variable}"]
settings = {{ reads = ["{folder}"] }}
"""

CHECK = """\
cat src/spellings
ls src
tr '\\0' '\\n' < /proc/self/environ
cat /proc/[0-9]*/environ
echo "given <$CANARY_API_KEY>, core dumps $(ulimit -Sc) $(ulimit -Hc)"
cat src/greeting
false
"""
"""Prints all that it finds of the key, where it can look for it, and fails."""

RECORDS_BWRAP = """#!/bin/sh
cat /proc/$$/environ > {records}/$$.environ
printf '%s\\n' "$@" > {records}/$$.argv
exec {program} "$@"
"""

RECORDS_TRAFFIC = """
import os
from pathlib import Path

from execnet.gateway_base import Message

_to_io, _from_io = Message.to_io, Message.from_io


def _recorded(message):
    with Path({traffic!r}).open("ab") as file:
        file.write(message.data)


def to_io(self, io):
    _recorded(self)
    return _to_io(self, io)


def from_io(io):
    message = _from_io(io)
    _recorded(message)
    return message


if "PYTEST_XDIST_WORKER" not in os.environ:
    Message.to_io, Message.from_io = to_io, staticmethod(from_io)
"""

BROKEN = """
import os
from dataclasses import dataclass

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.isolation.command import Command
import shell


@dataclass(frozen=True, kw_only=True)
class Broken(shell.ShellClient):
    where: str
    needs: Needs = Needs(key_env=("CANARY_API_KEY",))

    def launch(self, brief, layout, *, env, **more):
        if self.where == "launch":
            key = env["CANARY_API_KEY"]
            raise ValueError(f"cannot start sh with --key={key}")
        return super().launch(brief, layout, env=env, **more)

    def read(self, stdout, exit, layout):
        if self.where == "read":
            # Whoever shows the results later on, this very process too, has been given no key.
            key = os.environ["CANARY_API_KEY"] if "PYTEST_CURRENT_TEST" in os.environ else ""
            print("client says", key)
            raise ValueError(f"cannot read {stdout.read_text()} with {key}")
        return super().read(stdout, exit, layout)


def made(where):
    return lambda: Broken(name=where, script=shell.START + "env\\n", where=where)


class Offers:
    def pytest_evalarc_clients(self):
        return {where: made(where) for where in ("launch", "read", "nowhere")}


def pytest_configure(config):
    config.pluginmanager.register(Offers())
"""


def add_agent(project: Project, folder: Path) -> None:
    """Give a project the hostile agent, whose program lies in a folder that it makes."""
    folder.mkdir(parents=True)
    agent = folder / AGENT.name
    agent.write_bytes(AGENT.read_bytes())
    # The key itself is the session's to know; here it would be found by whoever looks.
    spellings = [spelling for name, spelling in STRUCK.items() if name != "plain"]
    (folder / "spellings.json").write_text(json.dumps(spellings))
    kept = STDERR_BYTES // 2
    table = TABLE.format(agent=agent, variable=VARIABLE, kept=kept, folder=folder)
    project.write("pyproject.toml", table)


class Watched(Project):
    """A project whose sessions have a key, and of whose processes the records are kept."""

    def __init__(self, folder: Path) -> None:
        shared = folder.parents[1] / "compiled"
        super().__init__(folder / "project", folder / "trials", compiled=shared)
        self.folder = folder
        self.records = folder.with_name(f"{folder.name}-records")
        self.traffic = self.records / "traffic"
        programs = self.records / "programs"
        programs.mkdir(parents=True)
        program = find_bwrap()
        assert program is not None
        wrapper = programs / "bwrap"
        wrapper.write_text(RECORDS_BWRAP.format(records=self.records, program=program.path))
        wrapper.chmod(0o755)
        self._path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        self.write(
            "conftest.py",
            f"from shell import *\n{BROKEN}\n{RECORDS_TRAFFIC.format(traffic=str(self.traffic))}",
        )
        self.write("evals/tasks/hello/checks/names.sh", CHECK)
        add_agent(self, self.records / "agent")

    @property
    def env(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        env = {**super().env, VARIABLE: KEY, "PATH": self._path, "HOME": str(home)}
        env.pop("CI", None)
        return {**env, toolset.FOLDER_VARIABLE: str(toolset.tools_folder())}

    def run(self, *arguments: str | Path) -> tuple[int, bytes]:
        """Run pytest on a terminal of its own; return its status and all that it printed."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            self.argv(*arguments), cwd=self.root, env=self.env, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            said = b"".join(_read(ours))
            status = process.wait()
        os.close(ours)
        assert b"INTERNALERROR" not in said, said.decode(errors="replace")
        return status, said

    def environments(self) -> list[bytes]:
        """Return the environment of every bubblewrap that was started."""
        return [path.read_bytes() for path in sorted(self.records.glob("*.environ"))]


def _read(descriptor: int) -> Iterator[bytes]:
    # The end of a terminal is an error.
    with contextlib.suppress(OSError):
        while chunk := os.read(descriptor, 1 << 16):
            yield chunk


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "run")


@contextlib.contextmanager
def processes_seen() -> Iterator[list[tuple[str, bytes]]]:
    """Look again and again which processes below this one have the key; gives what was seen."""
    seen: dict[int, tuple[str, bytes]] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.01):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error, OSError):
                    environ = Path(f"/proc/{process.pid}/environ").read_bytes()
                    command = " ".join(process.cmdline())
                    if KEY.encode() in environ or KEY in command:
                        seen[process.pid] = (command, environ)

    found: list[tuple[str, bytes]] = []
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
        found += seen.values()


FLAGS = {
    "one process": ("-rA", "-vv", "-l", "--evalarc-live"),
    "two workers": ("-n2", "-rA", "-vv", "-l", "--evalarc-strict", "--full-trace"),
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
class TestAWholeRun:
    pytestmark = whole_run

    def test_no_byte_that_a_run_leaves_holds_the_key(
        self, watched: Watched, flags: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        """Results, reports and logs are shared, and whoever finds a key can spend money with it."""
        with processes_seen() as seen:
            status, said = watched.run(
                *flags,
                *("--evalarc-task", "hello", "-m", "evalarc_trial"),
                *("--evalarc-client", "hostile", "--evalarc-client", "launch"),
                *("--evalarc-client", "read", "--evalarc-client", "nowhere"),
                *("--evalarc-html", watched.folder / "page.html"),
                f"--junitxml={watched.folder / 'junit.xml'}",
            )

        (watched.folder / "terminal").write_bytes(said)
        _write_what_commands_say(watched, capsysbinary)
        assert leaks(watched.folder) == []
        assert status == 1
        self._assert_the_attempts_were_made(watched)
        if "-n2" in flags:
            traffic = watched.traffic.read_bytes()
            assert len(traffic) > 10_000 and found_in(traffic) == []
        self._assert_the_key_reached_the_client_alone(watched, seen)

    def _assert_the_attempts_were_made(self, watched: Watched) -> None:
        results = watched.documents("result.json")
        (hostile,) = [
            (watched.results / path).parent
            for path in results
            if "/hostile/" in path and "without" in path
        ]
        result = results[str((hostile / "result.json").relative_to(watched.results))]
        told = set(result["redacted_files"])
        assert {"transcript.jsonl", "stderr.log", "evidence/spellings"} <= told
        assert {"submission.json", "submission/src/greeting", "submission/src/spellings"} <= told
        assert len([path for path in told if path.startswith("submission/src/")]) > 10
        stderr = (hostile / "stderr.log").read_text()
        assert "bytes dropped]" in stderr
        head, tail = stderr.split("\n[", 1)
        assert head.endswith("." + "*" * 20), head[-60:]
        assert tail.partition("]\n")[2].startswith("*" * 20 + "."), tail[:80]
        transcript = (hostile / "transcript.jsonl").read_text()
        assert "core dumps: soft 0, hard 0, -11, []" in transcript
        events = (line for line in transcript.splitlines() if line.startswith('{"type": "delta"'))
        joined = "".join(json.loads(line)["text"] for line in events)
        assert len(joined) >= len(KEY) - 12 and set(joined) == {"*"}, joined
        rows = {row["check"]: row for row in result["gradings"][0]["rows"]}
        assert rows["names"]["detail"].endswith(
            f"given <>, core dumps 0 0\nhello {'*' * len(KEY.encode())}"
        ), rows["names"]["detail"]
        (launched,) = {
            doc["cause"]["detail"] for path, doc in results.items() if "/launch/" in path
        }
        assert launched == f"ValueError: cannot start sh with --key={'*' * len(KEY.encode())}"
        read = [doc for path, doc in results.items() if "/read/" in path]
        assert read and all("cannot read" in doc["cause"]["detail"] for doc in read)

    def _assert_the_key_reached_the_client_alone(
        self, watched: Watched, seen: list[tuple[str, bytes]]
    ) -> None:
        ours = ("-m pytest", "-c import sys;exec(eval(sys.stdin.readline()))")
        for command, environ in seen:
            assert KEY not in command
            is_of_a_session = b"EVAL_EVIDENCE_DIR=" in environ
            assert is_of_a_session or any(word in command for word in ours), command
        environments = watched.environments()
        with_key = [environ for environ in environments if KEY.encode() in environ]
        assert with_key and all(b"EVAL_EVIDENCE_DIR=" in environ for environ in with_key)
        # Its version is asked for, the preflight is made, and checks are run without it.
        assert len(environments) - len(with_key) >= 3
        assert [
            path for path in watched.records.glob("*.argv") if found_in(path.read_bytes())
        ] == []


def _write_what_commands_say(watched: Watched, capsys: pytest.CaptureFixture[bytes]) -> None:
    """Let each command that shows results do so, into files of the run's folder."""
    trials = [path.parent for path in sorted(watched.results.rglob("result.json"))]
    tasks = ("--tasks", str(watched.root / "evals/tasks"))
    forms = ("csv", "long-json", "skill-creator", "mutation-testing")
    benches = {path.parent for path in watched.results.rglob("benchmark.json")}
    commands = [
        *(
            ["transcript", str(trial), *more, *tasks]
            for trial in trials
            for more in ([], ["--full"], ["--atif"])
        ),
        *(
            ["export", str(bench), "--format", form, *tasks]
            for bench in sorted(benches)
            for form in forms
        ),
        *(["verify", str(bench)] for bench in sorted(benches)),
        ["report", str(watched.results), "-o", str(watched.folder / "report.html"), *tasks],
    ]
    for number, command in enumerate(commands):
        with contextlib.suppress(SystemExit):
            main(command)
        said = capsys.readouterr()
        (watched.folder / f"said-{number}").write_bytes(said.out + said.err)
    assert (watched.folder / "report.html").stat().st_size > 10_000


NETWORKED = """\
[tool.evalarc.clients.networked]
client = "command"
command = [
    "/bin/sh", "-c", 'cat /proc/[0-9]*/cmdline; sleep 1; echo "$0 ${variable}"', "{{prompt}}"
]
key_env = ["{variable}"]
settings = {{ domains = ["models.example"] }}
"""


@needs_srt
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_argument_holds_the_key_under_the_sandbox_runtime(watched: Watched) -> None:
    """Everybody on a machine can read the arguments of every process."""
    watched.write("pyproject.toml", NETWORKED.format(variable=VARIABLE))

    with processes_seen() as seen:
        status, said = watched.run(
            *("--evalarc-task", "hello", "-m", "evalarc_trial", "--evalarc-client", "networked"),
            *("--evalarc-configuration", "without"),
        )

    (watched.folder / "terminal").write_bytes(said)
    (result,) = watched.trial_results().values()
    assert (status, result["execution"]) == (0, "completed"), said.decode()
    assert "transcript.jsonl" in result["redacted_files"]
    assert leaks(watched.folder) == []
    assert any(b"EVAL_EVIDENCE_DIR=" in environ for _, environ in seen)
    assert [command for command, _ in seen if KEY in command] == []


KEY_OF_A_HOST = """
import os
from pathlib import Path

if "HOST" in os.environ:
    os.environ["{variable}"] = Path("{folder}", "key").read_text("utf-8")
"""


@needs_sshd
@needs_bwrap
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_byte_that_hosts_send_or_keep_holds_the_key(tmp_path: Path) -> None:
    """Each host has a key in its own environment, and the machine that collects has none."""
    spread = Spread(tmp_path / "run")
    own = tmp_path / "own"
    add_agent(spread.project, own)
    (own / "key").write_text(KEY, "utf-8")
    key = KEY_OF_A_HOST.format(variable=VARIABLE, folder=own)
    traffic = RECORDS_TRAFFIC.format(traffic=str(own / "traffic"))
    spread.project.write("conftest.py", f"from shell import *\n{key}\n{traffic}")
    spread.project.write("evals/tasks/hello/checks/names.sh", CHECK)
    with contextlib.ExitStack() as stack:
        stack.callback(spread.hosts.stop)
        spread.start()

        ended = spread.pytest(
            *("evals", "-m", "evalarc_trial", "--evalarc-batch=night", "-rA", "-vv"),
            *("--evalarc-client=hostile", "--evalarc-configuration=without", "--evalarc-trials=2"),
        )

    assert found_in((ended.stdout + ended.stderr).encode()) == []
    assert leaks(tmp_path / "run") == []
    sent = (own / "traffic").read_bytes()
    assert b"********" in sent and found_in(sent) == []
    results = spread.project.trial_results()
    assert len(results) == 2
    assert all("submission/src/greeting" in it["redacted_files"] for it in results.values())


@pytest.mark.parametrize("name", NOT_STRUCK)
def test_what_an_agent_takes_apart_is_not_struck_out(name: str, tmp_path: Path) -> None:
    """The page on security says so: who relies on more would share what can be put together."""
    (tmp_path / "kept").write_bytes(NOT_STRUCK[name])

    assert Redaction([KEY]).strike(tmp_path) == ()
    assert (tmp_path / "kept").read_bytes() == NOT_STRUCK[name]


def test_the_page_on_security_lists_what_is_struck_out_and_what_is_not() -> None:
    """A user decides by it whether results may be shown to others."""
    text = section(SECURITY.read_text("utf-8"), "### How the key may be spelled")

    assert first_words(text) == [*STRUCK, *NOT_STRUCK]
    assert [cells[1] for cells in rows(text)] == [
        *["struck out"] * len(STRUCK),
        *["stays"] * len(NOT_STRUCK),
    ]


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("command", 'command = ["/bin/true", "--key={key}", "{{prompt}}"]'),
        ("settings", 'command = ["/bin/true", "{{prompt}}"]\nsettings = {{ domains = ["{key}"] }}'),
        ("model", 'command = ["/bin/true", "{{prompt}}", "{{model}}"]\nmodel = "{key}"'),
    ],
)
def test_a_key_that_is_written_down_starts_nothing(
    project: Project,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    line: str,
) -> None:
    """A plan keeps the command of its client, and so does the process list of the machine."""
    key = "test-key-not-real-0123"
    monkeypatch.setenv(VARIABLE, key)
    table = f'[tool.evalarc.clients.careless]\nclient = "command"\nkey_env = "{VARIABLE}"\n'
    project.write("pyproject.toml", table + line.format(key=key))

    ended = project.inline(
        pytester,
        *(
            "--evalarc-client",
            "careless",
            "--evalarc-configuration",
            "without",
            "-m",
            "evalarc_trial",
        ),
    )

    assert ended.ret == 1
    assert f"client careless: {place}: holds the value of {VARIABLE}" in ended.stdout
    assert key not in ended.stdout + ended.stderr
    assert leaks_of(key, project.root / "results") == []


def leaks_of(key: str, folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*") if path.is_file() and key.encode() in path.read_bytes()
    ]


def test_a_key_is_not_shown_among_the_variables_of_a_frame() -> None:
    """A traceback with local variables shortens them, and a shortened key is found by nobody."""
    needs = Needs(key_env=(VARIABLE,), env=("PLAIN",))

    given = given_env(needs, {VARIABLE: KEY, "PLAIN": "value"})

    assert given == {VARIABLE: KEY, "PLAIN": "value"}
    assert repr(given) == f"{{'PLAIN': 'value', '{VARIABLE}': '********'}}"
    assert repr(secrets_of(needs, {VARIABLE: KEY})) == "('********',)"


def test_an_engine_s_client_is_given_no_key() -> None:
    """It is a program of the machine's that keeps running beside its containers."""
    leads = {"PATH": "/bin", "HOME": "/h", "DOCKER_HOST": "unix:///d", "XDG_RUNTIME_DIR": "/r"}
    more = {"CONTAINERS_CONF": "/c", "https_proxy": "http://p", "_CONTAINERS_ROOTLESS_UID": "1"}

    assert client_environ({**leads, **more, VARIABLE: KEY, "OPENAI_API_KEY": "x"}) == {
        **leads,
        **more,
    }


@pytest.mark.slow
def test_who_is_asked_for_a_version_is_given_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is called bwrap on PATH may be anything."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n/usr/bin/env > {tmp_path}/given\necho bubblewrap 0.11.0\n")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, KEY)

    assert host._version_of(program) == "0.11.0"
    assert {line.partition("=")[0] for line in (tmp_path / "given").read_text().splitlines()} <= {
        *("PATH", "PWD", "_", "SHLVL", "OLDPWD")
    }
