"""What the projects of these tests bring through the extension points: a toolchain and clients."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_evalarc import __version__
from pytest_evalarc.clients.protocol import ClientBase, Needs
from pytest_evalarc.clients.stream import read_stream
from pytest_evalarc.errors import SetupError
from pytest_evalarc.grading.judges import Judges
from pytest_evalarc.grading.records import request
from pytest_evalarc.grading.toolchain import Grader, Graders, Step, Tools
from pytest_evalarc.grading.toolchains.python import SCRIPTS as GRADERS
from pytest_evalarc.isolation.command import Command
from pytest_evalarc.isolation.host import base_python, python_home

RUN = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from channel import Channel, short
channel = Channel()
asked, send = channel.request, channel.send
send("ready")
done = subprocess.run(
    ["/bin/sh"], input=asked["source"], cwd=asked["project"], text=True, errors="replace",
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
)
word = "failed" if done.returncode else "passed"
send("outcome", id="it", outcome=word, when="call", answered=True, text=short(done.stdout.strip()))
send("end", ran=1)
"""


class Shell:
    """A language whose checks are shell scripts in the project's folder."""

    name = "shell"
    fmt_step = "fmt_check"
    version = "sh 1"

    def missing(self) -> str | None:
        return None

    def stage(self, folder: Path) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(base_python())
        (folder / "run.py").write_text(RUN)
        shutil.copy(GRADERS / "channel.py", folder)

    def tools(self, folder: Path) -> Tools:
        judges = Judges(staged=(folder / "run.py", folder / "channel.py"), host=(base_python(),))
        return Tools(root=folder, bins=(folder / "bin",), reads=(python_home(),), judges=judges)

    def steps(self, task: Any, copy: Any, tools: Tools) -> Sequence[Step]:
        return [Step(name="build", graders=(), stops=True)]

    def check(self, task: Any, check: Any, copy: Any, tools: Tools) -> Graders:
        source = (task.root / check.file).read_text("utf-8")
        script = str(tools.root / "run.py")
        grader = Grader(
            argv=(str(base_python()), "-I", "-S", "-B", script, str(tools.root)),
            request=lambda nonce: request(nonce, project=str(copy.project), source=source),
        )
        return (grader,)


class Broken(Shell):
    """A language whose tools cannot be staged."""

    name = "broken"

    def stage(self, folder: Path) -> None:
        raise SetupError("toolchain broken", "its tools are gone")


class Missing(Shell):
    """A language that this machine lacks."""

    name = "missing"

    def missing(self) -> str | None:
        return "no such language here"


def pytest_evalarc_toolchains() -> Mapping[str, Callable[[], Any]]:
    return {"shell": Shell, "broken": Broken, "missing": Missing}


@dataclass(frozen=True, kw_only=True)
class ShellClient(ClientBase):
    """An agent that is a few lines of shell, run in the trial's project."""

    name: str
    script: str
    before: Callable[[], None] = lambda: None
    version: str = __version__
    needs: Needs = field(default_factory=Needs)
    embedded: bool = False

    def launch(self, brief: Any, layout: Any, *, env: Mapping[str, str], **_: Any) -> Command:
        descriptor = os.open(os.environ["SHELL_STARTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{layout.root.name}\n".encode())
        os.close(descriptor)
        self.before()
        return Command(argv=("/bin/sh", "-c", self.script), cwd=layout.project, env=env)

    def read(self, stdout: Path, exit: Any, layout: Any) -> Any:
        return read_stream(stdout, true_bytes=exit.stdout_bytes)


def line(**event: Any) -> str:
    """Return the command that prints one event."""
    return f"echo '{json.dumps(event)}'\n"


START = line(type="start", format="evalarc.stream.v1", cwd="/project")
DONE = line(type="completion", is_error=False)
SKILL = (
    line(type="tool_call", id="1", kind="read", name="read", target=".agents/skills/greet/SKILL.md")
    + "test -e .agents && "
    + line(type="tool_result", id="1", is_error=False, content="Say hello.").rstrip()
    + " || "
    + line(type="tool_result", id="1", is_error=True, content="no such file")
)
WORK = "echo hello world > src/greeting\n"
ESCAPE = line(type="tool_call", id="2", kind="read", name="read", target="/root/answers") + line(
    type="tool_result", id="2", is_error=False, content="42"
)


def _die() -> None:
    """Die as a worker does that the kernel killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once() -> None:
    """Die in one session alone, whichever of several workers comes first."""
    mark = Path(os.environ["SHELL_STARTS"]).with_suffix(".died")
    with contextlib.suppress(FileExistsError):
        mark.touch(exist_ok=False)
        _die()


SCRIPTS = {
    "good": START + SKILL + WORK + DONE,
    "slow": START + "sleep 600 & sleep 600\n" + DONE,
    "crashed": START + "exit 3\n",
    "careless": START + WORK + DONE,
    "unclear": START + WORK + "echo this is no event\n" + DONE,
    "outside": START + SKILL + WORK + ESCAPE + DONE,
}


def pytest_evalarc_clients() -> Mapping[str, Callable[[], Any]]:
    made = {name: _maker(name, script) for name, script in SCRIPTS.items()}
    return {
        **made,
        "fatal": lambda: ShellClient(name="fatal", script=SCRIPTS["good"], before=_die),
        "fatal-once": lambda: ShellClient(
            name="fatal-once", script=SCRIPTS["good"], before=_die_once
        ),
    }


def _maker(name: str, script: str) -> Callable[[], ShellClient]:
    return lambda: ShellClient(name=name, script=script)
