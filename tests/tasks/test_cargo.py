"""What a Cargo build runs must not be a submission's to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import TaskProblems
from pytest_evalarc.tasks.load import load_task

TASK = 'kind = "capability"\nprompt = "Mend it."\ntoolchain = "rust"\neditable = ["{editable}"]\n'
PACKAGE = '[package]\nname = "a"\nversion = "0.1.0"\n'
FILES = {
    "starter/Cargo.toml": PACKAGE,
    "starter/src/lib.rs": "",
    "checks/a.rs": "#[test]\nfn a() {}\n",
}


def problems(root: Path, editable: str, files: dict[str, str]) -> list[str]:
    folder = root / "evals" / "tasks" / "tiny"
    for path, content in {**FILES, **files, "task.toml": TASK.format(editable=editable)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    try:
        load_task(folder, root=root, toolchains=["rust"])
    except TaskProblems as error:
        return [f"{problem.problem}; {problem.hint}" for problem in error.problems]
    return []


MACROS = "[lib]\nproc-macro = true\n"


@pytest.mark.parametrize(
    ("editable", "files", "runs"),
    [
        ("Cargo.toml", {}, "Cargo.toml"),
        ("Cargo.lock", {}, "Cargo.lock"),
        ("build.rs", {}, "build.rs"),
        (".cargo", {}, ".cargo"),
        (".cargo/config.toml", {}, ".cargo"),
        ("src/generate.rs", {"starter/Cargo.toml": PACKAGE + 'build = "./src/generate.rs"\n'},
         "src/generate.rs"),
        ("src", {"starter/Cargo.toml": PACKAGE + 'build = "src/generate.rs"\n'},
         "src/generate.rs"),
        ("crates", {"starter/crates/b/Cargo.toml": PACKAGE}, "crates/b/Cargo.toml"),
        ("crates/b/build.rs", {"starter/crates/b/Cargo.toml": PACKAGE}, "crates/b/build.rs"),
        ("macros/src", {"starter/macros/Cargo.toml": PACKAGE + MACROS}, "macros"),
        ("macros/src", {"starter/macros/Cargo.toml": PACKAGE + MACROS.replace("-", "_")}, "macros"),
        ("macros/src",
         {"starter/macros/Cargo.toml": PACKAGE + '[lib]\ncrate-type = ["proc-macro"]\n'}, "macros"),
        ("src", {"starter/Cargo.toml": PACKAGE + MACROS}, "."),
    ],
)  # fmt: skip
def test_what_a_build_runs_cannot_be_editable(
    tmp_path: Path, editable: str, files: dict[str, str], runs: str
) -> None:
    """It would run where hidden checks are compiled, and could do with them what it likes."""
    (problem,) = problems(tmp_path, editable, files)

    assert problem.startswith(f'names "{editable}", so it decides what a build runs: {runs};')


@pytest.mark.parametrize(
    ("editable", "files"),
    [
        ("src", {}),
        ("src", {"starter/Cargo.toml": PACKAGE + "build = false\n[lib]\nname = 'b'\n"}),
        ("src", {"starter/Cargo.toml": "package = 1\nlib = 2\n"}),
        ("src", {"starter/Cargo.toml": "not TOML"}),
        ("crates/b/src", {"starter/crates/b/Cargo.toml": PACKAGE}),
        ("src", {"starter/target/src/Cargo.toml": PACKAGE}),
    ],
)
def test_sources_can_be_editable(tmp_path: Path, editable: str, files: dict[str, str]) -> None:
    """They are compiled and nothing more; what is no manifest is for cargo to refuse."""
    assert problems(tmp_path, editable, files) == []
