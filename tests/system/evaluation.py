"""Projects with the shipped tasks, in which pytest evaluates real clients."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_evalarc.isolation.toolset import FOLDER_VARIABLE
from tests.model_server import KEY, ModelServer
from tests.plugin.project import Session

EVALS = Path(__file__).parents[2] / "evals"
MODELS = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.5"}
"""Names that the clients know: to others they offer fewer tools."""
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY"}


SMALL_TASK = """\
kind = "capability"
prompt = "Make double() return twice its number."
toolchain = "python"
editable = ["doubling.py"]

[deadlines]
agent = {agent}

[checks.doubles]
"""
SMALL_STARTER = "def double(number):\n    return number\n"
SMALL_SOLUTION = "def double(number):\n    return 2 * number\n"
SMALL_CHECK = """\
def test_doubles(submission):
    assert submission.call("doubling:double", 21) == 42
"""


class Evaluation(NamedTuple):
    """A pytest that has ended, with the documents that it left."""

    session: Session
    results: Path

    @property
    def ret(self) -> int:
        """Its exit status."""
        return self.session.ret

    @property
    def output(self) -> str:
        """All that it printed, to be shown by an assertion that fails."""
        return self.session.stdout + self.session.stderr

    def benchmark(self, task: str, client: str) -> dict[str, Any]:
        """Return the benchmark.json of a task and a client's label."""
        (path,) = self.results.glob(f"{task}/{client}/latest/benchmark.json")
        return json.loads(path.read_bytes())

    def trials(self, task: str, client: str) -> dict[str, dict[str, Any]]:
        """Return every result.json of a task and a client's label, by the trial's folder."""
        paths = sorted(self.results.glob(f"{task}/{client}/latest/trial-*/result.json"))
        return {path.parent.name: json.loads(path.read_bytes()) for path in paths}

    def folder(self, task: str, client: str, trial: str) -> Path:
        """Return the folder of a trial's results."""
        return self.results / task / client / "latest" / trial


class TasksProject:
    """A project that holds the shipped tasks, and labels for clients that play scripts."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.root = folder / "project"
        self.eval_root = folder / "trials"
        self._home = folder / "home"
        self._server = server
        self._tables: list[str] = []
        self._home.mkdir()
        self.root.mkdir()
        shutil.copytree(
            EVALS, self.root / "evals", ignore=shutil.ignore_patterns("target", "__pycache__")
        )

    def add_small_task(self, name: str, *, agent_s: float = 120) -> None:
        """Add a task that is solved by one file, `doubling.py`, and graded in a moment."""
        task = self.root / "evals" / "tasks" / name
        files = {
            "task.toml": SMALL_TASK.format(agent=agent_s),
            "starter/doubling.py": SMALL_STARTER,
            "checks/doubles.py": SMALL_CHECK,
        }
        for path, content in files.items():
            file = task / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")

    def add_client(
        self,
        client: str,
        script: str,
        *,
        label: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a client that plays a script of the server, and return its label.

        Args:
            client: `claude` or `codex`.
            script: The script's name.
            label: How it is called; None is like the client.
            settings: What its table says beside the base URL; strings and numbers.
        """
        label = label or client
        given = {"base_url": self._server.url(script, client), **(settings or {})}
        self._tables.append(
            f"[tool.evalarc.clients.{label}]\n"
            f'client = "{client}"\n'
            f'model = "{MODELS[client]}"\n'
            f'key_env = "{KEYS[client]}"\n'
            f"settings = {{ {', '.join(f'{k} = {json.dumps(v)}' for k, v in given.items())} }}\n"
        )
        (self.root / "pyproject.toml").write_text("\n".join(self._tables), "utf-8")
        return label

    def pytest(self, *arguments: str | Path, timeout_s: float = 560) -> Evaluation:
        """Run pytest in the project, and return what it left; no internal error is let pass."""
        done = subprocess.run(
            self.argv(*arguments),
            cwd=self.root,
            env=self.env,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout_s,
            check=False,
        )
        assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
        session = Session(done.returncode, done.stdout, done.stderr)
        return Evaluation(session, self.results)

    def argv(self, *arguments: str | Path) -> list[str]:
        """Return a command line of pytest that keeps to the project's own folders."""
        own = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:randomly")
        own = (*own, f"--evalarc-root={self.eval_root}", f"--basetemp={self._home}/basetemp")
        return [sys.executable, "-m", "pytest", *own, *map(str, arguments)]

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.root / "results"

    @property
    def env(self) -> dict[str, str]:
        """A cleared environment: programs, the keys that are none, and an empty home."""
        # Toolchains and tools are the machine's, wherever its user keeps them.
        rustup = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
        kept = {"RUSTUP_HOME": rustup, FOLDER_VARIABLE: os.environ.get(FOLDER_VARIABLE)}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._home),
            "COLUMNS": "200",
            **dict.fromkeys(KEYS.values(), KEY),
            **{name: value for name, value in kept.items() if value},
        }
