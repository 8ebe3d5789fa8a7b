"""A project whose tasks are graded by the shell, so that a whole audit takes a moment.

Its conftest brings a toolchain and a few clients through the extension points, as a third party's
would. Everything around them is the real thing: sandbox, supervision, grading and documents.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

TASK = """\
kind = "capability"
prompt = "Make the greeting say hello to the world."
toolchain = "shell"
editable = ["src"]
plugins = ["guide"]
tags = ["greetings"]

[expected]
installed = ["greet"]
used = ["greet"]

[deadlines]
agent = 60

[checks.greets]
[checks.names]

[[mutants]]
name = "silent"
target = "greets"
edits = [{ file = "src/greeting", find = "hello", replace = "" }]

[[mutants]]
name = "nameless"
target = "names"
edits = [{ file = "src/greeting", find = "world", replace = "" }]
"""

FILES = {
    "starter/src/greeting": "world\n",
    "solution/src/greeting": "hello world\n",
    "checks/greets.sh": "grep -q hello src/greeting || { echo 'nobody says hello'; false; }\n",
    "checks/names.sh": "grep -q world src/greeting || { echo 'nobody is greeted'; false; }\n",
}

SKILL = "---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n"

SHELL = Path(__file__).with_name("shell.py").read_text("utf-8")

TASK_ID = "evals/tasks/hello/task.toml"


class Session(NamedTuple):
    """A pytest that was run in the project, as a process of its own."""

    ret: int
    stdout: str
    stderr: str

    def words(self, file: str = TASK_ID) -> dict[str, str]:
        """Return each item's word by the part of its id below a task file, with `-v`."""
        line = re.compile(rf"{re.escape(file)}::(\S+) +([A-Z]+)\b")
        return dict(line.findall(self.stdout))

    def ids(self) -> list[str]:
        """Return the ids of `--collect-only -q`."""
        return [line for line in self.stdout.splitlines() if "::" in line and " " not in line]

    @property
    def last_line(self) -> str:
        """The line of counts, without its rulers."""
        return self.stdout.rstrip().splitlines()[-1].strip("= ")

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the last line, by their words."""
        found = re.findall(r"(\d+) ([a-z]+)", self.last_line.partition(" in ")[0])
        return {word.removesuffix("s") if word != "pass" else word: int(n) for n, word in found}


class Project:
    """A project root with `evals/`, and its task `hello`.

    Args:
        root: The project's folder.
        eval_root: Working folders of its trials; what lies beside them is the project's own.
        compiled: Compiled modules of its sessions. All tests should share them, as compiling what
            a session imports takes longer than most; None is beside the folder of this test.
    """

    def __init__(self, root: Path, eval_root: Path, *, compiled: Path | None = None) -> None:
        self.root = root
        self.eval_root = eval_root
        self.compiled = compiled or eval_root.parents[1] / "compiled"
        self.starts_file = eval_root.with_name("starts")
        self.cache_home = eval_root.with_name("cache")
        self.write("shell.py", SHELL)
        self.write("conftest.py", "from shell import *\n")
        self.write("evals/plugins/guide/skills/greet/SKILL.md", SKILL)
        self.add_task("hello")

    def write(self, path: str, content: str) -> Path:
        """Write a file below the project root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
        return file

    def add_task(self, name: str, text: str = TASK) -> Path:
        """Add a task of the same files."""
        for path, content in FILES.items():
            self.write(f"evals/tasks/{name}/{path}", content)
        return self.write(f"evals/tasks/{name}/task.toml", text)

    def edit(self, old: str, new: str) -> None:
        """Replace the one place where hello's task.toml says something."""
        path = self.root / TASK_ID
        text = path.read_text("utf-8")
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new), "utf-8")

    def options(self, *arguments: str | Path) -> list[str]:
        """Return pytest's arguments with those that keep the session to its own folders."""
        own = (f"--evalarc-root={self.eval_root}",)
        # It takes a while to import; a session that is about it names it.
        if "hypothesispytest" not in arguments:
            own = (*own, "-p", "no:hypothesispytest")
        # An installed pytest-randomly shuffles unasked; with a seed it is asked.
        if not any(str(word).startswith("--randomly-seed") for word in arguments):
            own = (*own, "-p", "no:randomly")
        own = (*own, "--basetemp", self.eval_root.with_name("basetemp"))
        return [str(word) for word in (*own, *arguments)]

    def argv(self, *arguments: str | Path) -> list[str]:
        """Return a command line of pytest."""
        return [sys.executable, "-m", "pytest", *self.options(*arguments)]

    @property
    def env(self) -> dict[str, str]:
        """The environment of the sessions, whose compiled modules are shared and kept apart."""
        env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = str(self.compiled)
        own = {"SHELL_STARTS": str(self.starts_file), "XDG_CACHE_HOME": str(self.cache_home)}
        return {**env, **own, "COLUMNS": "200"}

    def pytest(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        plugins: Sequence[str] | None = None,
    ) -> Session:
        """Run pytest in the project and return what it said; it never shows an internal error.

        Args:
            arguments: Of pytest.
            cwd: Where it is started; None is the project's root.
            plugins: By entry point; these, ours and those it needs are loaded, and none else that
                happens to be installed. None loads all.
        """
        env = self.env
        if plugins is not None:
            env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            named = dict.fromkeys(("evalarc", "xdist", "timeout", *plugins))
            arguments = (*(word for name in named for word in ("-p", name)), *arguments)
        done = subprocess.run(
            self.argv(*arguments),
            cwd=cwd or self.root,
            env=env,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            # What hangs is found, and a busy machine is no reason to fail.
            timeout=200,
            check=False,
        )
        assert "INTERNALERROR" not in done.stdout + done.stderr, done.stdout + done.stderr
        return Session(done.returncode, done.stdout, done.stderr)

    def inline(self, pytester: pytest.Pytester, *arguments: str | Path) -> Session:
        """Run pytest in the project and in this process, which is quicker."""
        pytester.chdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.root)
            patch.setenv("SHELL_STARTS", str(self.starts_file))
            patch.setenv("XDG_CACHE_HOME", str(self.cache_home))
            patch.setenv("COLUMNS", "200")
            done = pytester.runpytest_inprocess(*self.options(*arguments))
        stdout, stderr = done.stdout.str(), done.stderr.str()
        assert "INTERNALERROR" not in stdout + stderr, stdout + stderr
        return Session(int(done.ret), stdout, stderr)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start pytest in a session of its own, to be signalled."""
        return subprocess.Popen(
            self.argv(*arguments),
            cwd=self.root,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        )

    @property
    def results(self) -> Path:
        """The results folder."""
        return self.root / "results"

    def starts(self) -> list[str]:
        """Return the run folder of every client session that was started, in order."""
        return self.starts_file.read_text().splitlines() if self.starts_file.exists() else []

    def documents(self, name: str) -> dict[str, Any]:
        """Return the documents of that file name, by path below the results."""
        return {
            str(path.relative_to(self.results)): json.loads(path.read_bytes())
            for path in sorted(self.results.rglob(name))
            if "latest" not in path.parts
        }

    def document(self, name: str) -> Any:
        """Return the only document of that file name."""
        (document,) = self.documents(name).values()
        return document

    def trial_results(self) -> dict[str, Any]:
        """Return every result.json by the name of its trial's folder."""
        return {Path(path).parent.name: doc for path, doc in self.documents("result.json").items()}

    def wait_for_starts(self, count: int) -> None:
        """Wait until that many client sessions were started."""
        until = time.monotonic() + 60
        while len(self.starts()) < count:
            assert time.monotonic() < until, "no client was started"
            time.sleep(0.02)

    def survivors(self) -> list[int]:
        """Return the processes that carry this project's mark, once they had a moment to end."""
        until = time.monotonic() + 20
        while (found := self._marked()) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def _marked(self) -> list[int]:
        found: list[int] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if str(self.eval_root) in " ".join(process.cmdline()):
                    found.append(process.pid)
        return found
