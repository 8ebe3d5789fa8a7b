"""The corpus below `evals/adversarial`: each attack, what it tries and what must be seen of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[2] / "evals" / "adversarial"
SUBMISSIONS = ("python", "node", "rust")
"""Kinds whose attacks are submissions in that language; the others are agents in a session."""
INERT = ".txt"
"""Ends every name of an attack's files: a conftest.py would be loaded by whoever collects there."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack, as its folder declares it."""

    name: str
    """Its folder below the corpus: `<kind>/<family>/<name>`."""
    tries: str
    """What it tries, as a sentence."""
    stoppable: bool = True
    """Whether a harness can stop it in every form of a check."""
    only_ours: bool = False
    """Whether it aims at how our checks report, and so is nothing to another grader."""
    seen: Mapping[str, str]
    """Of a submission, the status of the check by its form; of an agent nothing."""
    effect: str = ""
    """Of an agent, what happens to the world around it where nothing protects that."""
    assertion: str = ""
    """What the check asserts; empty is what checks of its kind usually do."""
    needs: str = ""
    """What the unprotected run needs of the machine."""
    files: Mapping[str, str]
    """What it submits, by path; of an agent the script alone."""

    @property
    def kind(self) -> str:
        """The language of a submission, or `session`."""
        return self.name.split("/")[0]

    @property
    def family(self) -> str:
        """What attacks of one idea have in common."""
        return self.name.split("/")[1]

    @property
    def script(self) -> str:
        """What an agent runs."""
        return self.files["attack.sh"]


def attacks(*kinds: str) -> list[Attack]:
    """Return the attacks of some kinds, of all where none is named, in the order of their names."""
    found = sorted(CORPUS.glob("*/*/*/attack.toml"))
    read = [attack(path.parent.relative_to(CORPUS).as_posix()) for path in found]
    return [each for each in read if not kinds or each.kind in kinds]


def attack(name: str) -> Attack:
    """Return the attack of a name."""
    folder = CORPUS / name
    declared: dict[str, Any] = tomllib.loads((folder / "attack.toml").read_text("utf-8"))
    files = {
        path.relative_to(folder / "files").as_posix().removesuffix(INERT): path.read_text("utf-8")
        for path in sorted((folder / "files").rglob(f"*{INERT}"))
    }
    return Attack(name=name, files=files, **{"seen": {}, **declared})
