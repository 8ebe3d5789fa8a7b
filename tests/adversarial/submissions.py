"""Submissions of the corpus, judged by graders as people write them and by ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains import rust
from pytest_evalarc.grading.toolchains.node import MINIMUM_MAJOR, Node
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.grading.toolchains.rust import Rust
from pytest_evalarc.isolation import node
from tests.adversarial.corpus import Attack
from tests.grading.node_bench import STRICT, NodeBench, forms
from tests.grading.rust_bench import CHECK, CHILD_FORM, MAIN, RustBench
from tests.grading.small_task import Bench, make_small_task

TOOLCHAINS = {"python": Python, "node": Node, "rust": Rust}
IN_PROCESS, CHILD = "in_process", "child_form"
FORMS = (IN_PROCESS, CHILD)
"""A check that imports the submission, and one that asks it from a process of its own."""
_FORM_NAMES = {IN_PROCESS: "in process", CHILD: "as a child"}


def staged(kind: str, folder: Path) -> Tools:
    """Return the tools that graders of a language need, laid out in a folder."""
    toolchain = TOOLCHAINS[kind]()
    toolchain.stage(folder)
    return toolchain.tools(folder)


# Graders that trust what they run.


def fools_an_unprotected_grader(attack: Attack, folder: Path) -> bool:
    """Return whether the language's own test command succeeds beside the submission."""
    return _UNPROTECTED[attack.kind](attack, folder)


def _plain_pytest(attack: Attack, folder: Path) -> bool:
    task = make_small_task(folder / "task")
    project = _laid_out(task.folder / "starter", attack.files, folder / "project")
    shutil.copy(task.folder / "checks/in_process.py", project / "test_hidden.py")
    python = staged("python", _made(folder / "tools")).root / "bin" / "python3"
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(project)}
    return _succeeds([python, "-m", "pytest", "-q", "test_hidden.py"], project, env)


def _plain_node(attack: Attack, folder: Path) -> bool:
    bench = NodeBench(root=folder, tools=None)  # type: ignore[arg-type]  # nothing is graded.
    task = bench.task(forms(attack.assertion or STRICT)["in process"])
    project = _laid_out(task.starter, attack.files, folder / "naive")
    shutil.copytree(task.root / "checks", project / "checks")
    program = node.find_node(MINIMUM_MAJOR).program
    return _succeeds([program, "checks/only.test.mjs"], project, dict(os.environ))


def _plain_cargo(attack: Attack, folder: Path) -> bool:
    bench = RustBench(root=folder, tools=None)  # type: ignore[arg-type]
    task = bench.task(attack.assertion or CHECK)
    project = _laid_out(task.starter, attack.files, folder / "naive")
    shutil.copytree(task.root / "checks", project / "tests", dirs_exist_ok=True)
    return plain_cargo(project, "test", "--test", "only") == 0


_UNPROTECTED: Mapping[str, Callable[[Attack, Path], bool]] = {
    "python": _plain_pytest,
    "node": _plain_node,
    "rust": _plain_cargo,
}


def plain_cargo(project: Path, *words: str) -> int:
    """Run cargo as anybody would, in the project's folder, and return its exit status."""
    bins = rust._toolchain().bins
    env = {
        **os.environ,
        # Cargo takes the first rustc that it finds, and a machine may have another one as well.
        "PATH": f"{bins}{os.pathsep}{os.environ['PATH']}",
        "CARGO_HOME": str(project / "home"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    argv = [bins / "cargo", *words, "--offline"]
    return subprocess.run(argv, cwd=project, env=env, capture_output=True, check=False).returncode


def _succeeds(argv: list[str | Path], cwd: Path, env: Mapping[str, str]) -> bool:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return done.returncode == 0


def _laid_out(starter: Path, files: Mapping[str, str], project: Path) -> Path:
    shutil.copytree(starter, project)
    for path, content in files.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    return project


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


# Ours.


def graded(attack: Attack, form: str, folder: Path, tools: Tools) -> str:
    """Return the status of our check in one of its forms, or `build_failed`."""
    return _OURS[attack.kind](attack, form, folder, tools)


def _python(attack: Attack, form: str, folder: Path, tools: Tools) -> str:
    bench = Bench(root=_made(folder / "bench"), tools=tools, task=make_small_task(folder / "task"))
    # Nothing is kept from an attack by where it is.
    editable = dict.fromkeys(path.partition("/")[0] for path in attack.files)
    return bench.check(bench.task.load(editable=editable), attack.files, form).status


def _node(attack: Attack, form: str, folder: Path, tools: Tools) -> str:
    bench = NodeBench(root=folder, tools=tools)
    (core,) = attack.files.values()
    return bench.check(
        bench.task(forms(attack.assertion or STRICT)[_FORM_NAMES[form]]), core
    ).status


def _rust(attack: Attack, form: str, folder: Path, tools: Tools) -> str:
    bench = RustBench(root=folder, tools=tools)
    check = (
        bench.task()
        if form == IN_PROCESS
        else bench.task(CHILD_FORM, starter={"src/main.rs": MAIN})
    )
    with bench.session(check, attack.files) as session:
        if bench.run_step(session, "build").status != "pass":
            return "build_failed"
        return session.run_check(check.checks[0]).status


_OURS: Mapping[str, Callable[[Attack, str, Path, Tools], str]] = {
    "python": _python,
    "node": _node,
    "rust": _rust,
}
