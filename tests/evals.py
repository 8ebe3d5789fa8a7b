"""A project with one small valid Python task, and what it takes to run its trials and controls.

```python
evals = Evals(tmp_path)
result = evals.run(evals.trial("with-skills"))
```
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc import hookspecs
from pytest_evalarc.clients.embedded.client import Embedded
from pytest_evalarc.clients.protocol import Client, Plays
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.judges import Judges
from pytest_evalarc.grading.records import request
from pytest_evalarc.grading.submission import GradingCopy
from pytest_evalarc.grading.toolchain import Grader, Graders, Step, Tools
from pytest_evalarc.grading.toolchains.python import SCRIPTS
from pytest_evalarc.isolation.command import Command
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Check, Task
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.registry import builtin
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.runs.batch import Batch, Parts
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.plan import make_plan, planned_treatment
from pytest_evalarc.runs.prepare import Trial
from pytest_evalarc.runs.request import ClientLabel, Request
from pytest_evalarc.runs.trial import cancelled, run_trial
from pytest_evalarc.tasks.load import load_task

CANARY = "kestrel-7f3a"
"""Stands in whatever a client must not see: checks, solution, other tasks, results."""

TASK = """\
kind = "capability"
prompt = "Make total() add its arguments."
toolchain = "python"
editable = ["app"]
fixtures = ["numbers"]
plugins = ["guide"]

[expected]
installed = ["use-numbers"]
used = ["use-numbers"]

[deadlines]
agent = 30
grading = 60
check = 20

[limits]
tmp_mib = 16

[checks.adds]
dimension = "sums"

[checks.empty]
dimension = "edges"

[[mutants]]
name = "first-only"
target = "sums"
edits = [{ file = "app/__init__.py", find = "sum(values)", replace = "sum(values[:1])" }]

[[mutants]]
name = "empty-is-one"
target = "edges"
overlay = "faults/empty-is-one"
"""

STARTER = "def total(*values):\n    return -1\n"
SOLUTION = f"# {CANARY}\ndef total(*values):\n    return sum(values)\n"

FILES = {
    "evals/tasks/tiny/task.toml": TASK,
    "evals/tasks/tiny/starter/app/__init__.py": STARTER,
    "evals/tasks/tiny/starter/README.md": "An app.\n",
    "evals/tasks/tiny/solution/app/__init__.py": SOLUTION,
    "evals/tasks/tiny/checks/adds.py": (
        f"# {CANARY}\ndef test_adds(submission):\n"
        '    assert submission.call("app:total", 2, 3) == 5\n'
    ),
    "evals/tasks/tiny/checks/empty.py": (
        f'# {CANARY}\ndef test_empty(submission):\n    assert submission.call("app:total") == 0\n'
    ),
    "evals/tasks/tiny/faults/empty-is-one/app/__init__.py": (
        "def total(*values):\n    return sum(values) or 1\n"
    ),
    "evals/fixtures/numbers/numbers.txt": "1 2 3\n",
    "evals/plugins/guide/skills/use-numbers/SKILL.md": (
        "---\nname: use-numbers\ndescription: Add numbers.\n---\nUse sum().\n"
    ),
    "evals/plugins/other/skills/tune-numbers/SKILL.md": (
        f"---\nname: tune-numbers\ndescription: {CANARY}\n---\n"
    ),
    "CLAUDE.md": f"{CANARY}\n",
}


@dataclass(frozen=True, kw_only=True)
class Shell(Embedded):
    """A client that runs a shell script in the session, and says no more than the script does."""

    name: str = "shell"
    plays: Plays = Plays.NOTHING
    script: str = ":"

    def launch(  # type: ignore[override]
        self,
        brief: object,
        layout: RunLayout,
        *,
        env: Mapping[str, str],
        **_: object,
    ) -> Command:
        return Command(argv=("/bin/sh", "-c", self.script), cwd=layout.project, env=env)


START = """echo '{"type":"start","format":"evalarc.stream.v1","cwd":"'"$PWD"'"}'\n"""
DONE = """echo '{"type":"completion","is_error":false}'\n"""


def shell(script: str, *, says: tuple[str, str] = (START, DONE)) -> Shell:
    """Return a client that runs a script between its first and its last event."""
    return Shell(script=says[0] + script + "\n" + says[1])


_CHECK = """\
import sys
sys.path.insert(0, sys.argv[1])
from channel import Channel
channel = Channel()
asked, send = channel.request, channel.send
send("ready")
send("collected", ids=["it"])
with open(asked["project"] + "/app/__init__.py", "rb") as file:
    right = b"sum(values)" in file.read()
word = "passed" if right else "failed"
send("outcome", id="it", outcome=word, when="call", answered=True, text="")
send("end", ran=1, exitstatus=0)
"""


class Plain:
    """A toolchain without a test runner: each check reads one file, in some 20 ms."""

    name = "python"
    fmt_step = "fmt_check"
    version = "plain 1"

    def missing(self) -> str | None:
        return None

    def stage(self, folder: Path) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(base_python())
        (folder / "check.py").write_text(_CHECK)
        shutil.copy(SCRIPTS / "channel.py", folder)

    def tools(self, folder: Path) -> Tools:
        judges = Judges(staged=(folder / "check.py", folder / "channel.py"), host=(base_python(),))
        return Tools(root=folder, bins=(folder / "bin",), reads=(python_home(),), judges=judges)

    def steps(self, task: Task, copy: GradingCopy, tools: Tools) -> Sequence[Step]:
        return ()

    def check(self, task: Task, check: Check, copy: GradingCopy, tools: Tools) -> Graders:
        argv = (str(base_python()), "-I", "-S", "-B", str(tools.root / "check.py"), str(tools.root))
        project = str(copy.project)
        return (Grader(argv=argv, request=lambda nonce: request(nonce, project=project)),)


class Offer:
    """A plugin of the registry's, as a third party would write one."""

    def __init__(self, **offers: Mapping[str, Callable[[], Any]]) -> None:
        for kind, makers in offers.items():
            setattr(self, f"pytest_evalarc_{kind}", lambda makers=makers: makers)


def registry(*plugins: object) -> Registry:
    """Return the built-in things with those of further plugins."""
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    manager.register(builtin, "evalarc-builtin")
    for number, plugin in enumerate(plugins, start=1):
        manager.register(plugin, getattr(plugin, "__name__", f"plugin-{number}"))
    return Registry.of(manager)


@dataclass
class Evals:
    """A project below a folder, and one batch over it."""

    root: Path
    client: Client | str = "oracle"
    batch_name: str = "b1"
    eval_root: Path | None = None
    """Shared by tests that want the tools staged only once."""
    is_plain: bool = True
    """Whether checks run under `Plain` rather than under pytest."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Written over those of the small project."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path, content in {**FILES, **self.files}.items():
            file = self.project / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @cached_property
    def task(self) -> Task:
        folder = self.project / "evals/tasks/tiny"
        return load_task(folder, root=self.project, toolchains=("python",))

    @cached_property
    def registry(self) -> Registry:
        return registry()

    @cached_property
    def request(self) -> Request:
        facts: dict[str, Any] = {
            "project": self.project,
            "tasks": self.project / "evals/tasks",
            "batch": self.batch_name,
            "eval_root": self.eval_root or self.root / "eval-root",
            "results": self.results,
            "sandbox": "bwrap",
        }
        return Request(**{**facts, **self.options})

    @cached_property
    def batch(self) -> Batch:
        known = self.registry
        return Batch(
            request=self.request,
            parts=Parts(
                pack=known.packs.get,
                toolchain=(lambda _name: Plain()) if self.is_plain else known.toolchains.get,
                client=known.clients.get,
                treatment=known.treatments.get,
            ),
            boundary=known.sandboxes.get(self.request.sandbox),
        )

    @property
    def known_client(self) -> Client:
        if isinstance(self.client, str):
            return self.registry.clients.get(self.client)
        return self.client

    @property
    def label(self) -> ClientLabel:
        name = self.known_client.name
        return ClientLabel(label=name, kind=name, settings=dict(self.settings))

    @cached_property
    def plan(self) -> PlanDoc:
        return make_plan(self.task, self.request, self.label, sandbox=self.request.sandbox).document

    @property
    def folder(self) -> Path:
        """The result folder of the task and client."""
        return self.batch.folders.trials(self.task.name, self.plan.client)

    def trial(self, configuration: str = "without-skills", number: int = 1) -> Trial:
        """Return one planned trial, its plan kept."""
        once(self.folder / "plan.json", PlanDoc, lambda: self.plan)
        entry = next(
            entry
            for entry in self.plan.trials
            if (entry.configuration, entry.trial) == (configuration, number)
        )
        return Trial(
            plan=self.plan,
            entry=entry,
            task=self.task,
            client=self.known_client,
            treatment=planned_treatment(self.plan, self.registry.treatments.get, program=None),
            batch=self.batch,
            folder=self.folder / entry.folder,
        )

    def run(self, trial: Trial) -> TrialResult:
        """Return a trial's result, run and kept as the plugin does it."""
        path = trial.folder / "result.json"
        once(
            path,
            TrialResult,
            lambda: run_trial(trial),
            lost=lambda error: cancelled(trial.plan, trial.entry, trial.client, error),
        )
        return read_model(path, TrialResult)

    def other(self, **changes: Any) -> Evals:
        """Return a further batch over the same project."""
        return replace(self, **{"batch_name": "b2", **changes})
