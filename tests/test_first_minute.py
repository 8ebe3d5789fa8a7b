"""From nothing to a first report: what a stranger types, each command as the last printed it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from release.build import ROOT, build
from tests.needs import needs, needs_bwrap
from tests.wheels import EPOCH, checkout, lay_dependencies

pytestmark = [pytest.mark.slow, needs("git")]


class Stranger:
    """Somebody with an empty folder, an empty environment, and nothing else of ours."""

    def __init__(self, root: Path, wheels: Path) -> None:
        self.folder, self.home, environment = root / "empty", root / "home", root / "venv"
        for folder in (self.folder, self.home):
            folder.mkdir()
        venv.create(environment, with_pip=True)
        # What an index would send, so that no network is needed.
        lay_dependencies(environment)
        self._env = {
            "HOME": str(self.home),
            "PATH": f"{environment / 'bin'}{os.pathsep}{os.defpath}",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
        }

    def types(self, command: str) -> str:
        """Run a line in a shell, and return what it prints; it succeeds."""
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def document(self, path: str) -> Any:
        return json.loads((self.folder / path).read_text("utf-8"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a wheel of the files at hand."""
    folder = tmp_path_factory.mktemp("wheels")
    source = checkout(folder / "source", mode=0o644, time=1_600_000_000)
    wheel, _ = build(source, folder / "dist", epoch=EPOCH)
    return wheel.parent


def shown_in_the_readme() -> list[str]:
    """Return the commands of the section that a stranger reads first."""
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"^## The first minute\n.*?```bash\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].splitlines()


@pytest.fixture(scope="module")
def stranger(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """Return somebody who has typed the first command."""
    somebody = Stranger(tmp_path_factory.mktemp("stranger"), wheels)
    somebody.types(shown_in_the_readme()[0])
    return somebody


def printed_next(said: str) -> str:
    """Return the command that stands below the first line with which a command asks for one."""
    found = re.search(r"^run \w+, .*:\n  (\S.*)$", said, re.MULTILINE)
    assert found is not None, said
    return found[1]


@needs_bwrap
def test_three_commands_lead_from_nothing_to_a_report(stranger: Stranger) -> None:
    """Whoever has to guess a fourth has gone by then."""
    install, init = shown_in_the_readme()

    made = stranger.types(init)
    said = stranger.types(printed_next(made))

    assert install == "pip install pytest-evalarc"
    audit, benchmark = (stranger.document(path) for path in re.findall(r"results/\S+\.json", said))
    assert (audit["passed"], audit["mutation_score"], audit["killed"]) == (True, 1.0, 2)
    assert benchmark["configurations"]["baseline"]["success_rate"] == 1.0
    (trial,) = stranger.folder.glob("results/first-task/oracle/2*/trial-*/result.json")
    assert stranger.document(str(trial))["outcome"] == "succeeded"
    (page,) = re.findall(r"^report page: (.+)$", said, re.MULTILINE)
    assert Path(page) == stranger.folder / "report.html"
    text = " ".join(re.sub(r"<[^>]+>", " ", Path(page).read_text("utf-8")).split())
    assert "the checks caught 2 of 2 declared faults" in text
    assert "baseline: 1 of 1 succeeded (100 %)" in text
    assert list(stranger.home.iterdir()) == []


def test_no_printed_line_is_wider_than_a_terminal(stranger: Stranger, tmp_path: Path) -> None:
    """A line that a terminal breaks is pasted with a hole in it; a path alone cannot be helped."""
    commands = ("--help", "doctor", "init")

    said = [stranger.types(f"cd {tmp_path} && pytest-evalarc {words}") for words in commands]

    wide = [line for line in "".join(said).splitlines() if len(line) > 80]
    assert [line for line in wide if len(line.split()) > 1] == []
