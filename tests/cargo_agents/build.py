"""Make a program of the stand-in, which can be copied as the real one is: it is one file."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.isolation.host import base_python

SOURCE = Path(__file__).with_name("program.py")


def build(folder: Path) -> Path:
    """Return an executable `cargo-agents` in a folder, run by the interpreter that trials get."""
    program = folder / "cargo-agents"
    folder.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!{base_python()} -IS\n{SOURCE.read_text('utf-8')}", "utf-8")
    program.chmod(0o755)
    return program
