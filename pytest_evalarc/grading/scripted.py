"""Grading scripts in Python: how a toolchain stages its own, runs them, and names their judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading import sandboxed
from pytest_evalarc.grading.judges import Judges, python_judges, system_programs
from pytest_evalarc.grading.lab import SYSTEM_PATH
from pytest_evalarc.grading.records import request
from pytest_evalarc.grading.toolchain import Grader, Tools
from pytest_evalarc.isolation.host import base_python, python_home

CHANNEL = Path(sandboxed.__file__).parent / "channel.py"
FOLDER = "grader"
"""Where scripts lie in a staged folder."""
Data: TypeAlias = "str | int | float | Sequence[Data] | Mapping[str, Data] | None"
"""What JSON can say."""


def stage_scripts(folder: Path, *scripts: Path) -> None:
    """Put scripts where `script_grader` runs them, with the module `channel` that they report by.

    Args:
        folder: The folder that a toolchain's `stage` was given.
        scripts: Python files that import the standard library and `channel` alone.
    """
    files = {path.name: path.read_bytes() for path in (CHANNEL, *scripts)}
    write_tree(folder / FOLDER, files)


def script_tools(folder: Path, *programs: str) -> Tools:
    """Return how to use a folder in which scripts were staged, and nothing else.

    Args:
        folder: The folder that a toolchain's `stage` was given.
        programs: Names of the system's programs that the scripts start; verdicts rest on them, so
            a grading is made anew once one of them has changed.
    """
    found = system_programs(*programs, path=SYSTEM_PATH)
    judges = Judges(staged=(folder / FOLDER,), host=(*found, *python_judges()))
    return Tools(root=folder, reads=(python_home(),), judges=judges)


def script_grader(tools: Tools, name: str, **data: Data) -> Grader:
    """Return a process of a fresh interpreter that runs one staged script.

    The interpreter is the host's, isolated: no package, no user's folder and no variable of the
    environment reaches it.

    Args:
        tools: What `tools` of the toolchain gave.
        name: The script's file name.
        data: What the script finds in `Channel().request`.
    """
    script = tools.root / FOLDER / name
    return Grader(
        argv=(str(base_python()), "-I", "-S", "-B", str(script)),
        request=lambda nonce: request(nonce, **data),  # type: ignore[arg-type]
    )
