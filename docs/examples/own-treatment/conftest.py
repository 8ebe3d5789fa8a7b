"""A treatment of one's own: skills of the same names and lengths that say nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Plugin, Task
from pytest_evalarc.treatments.protocol import Staged, Treatment
from pytest_evalarc.treatments.skills import Skills
from pytest_evalarc.treatments.skillset import digest_of

FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Placebo(Skills):
    """Offers a task's skills with every letter of their text replaced."""

    name: str = "placebo"

    def stage(
        self,
        task: Task,
        needs: Needs,
        layout: RunLayout,
        *,
        env: Mapping[str, str],
        tools: Path | None = None,
        noise: Sequence[Plugin] = (),
    ) -> Staged:
        """Put the skills in place as `skills` does, then take their words away."""
        staged = super().stage(task, needs, layout, env=env, tools=tools, noise=noise)
        planned = {}
        for skill in staged.planned:
            folder = staged.skill_dir / skill
            text = (folder / "SKILL.md").read_text("utf-8")
            # The description decides whether an agent opens the skill, so it stays.
            head = FRONT_MATTER.match(text)
            kept = head[0] if head else ""
            (folder / "SKILL.md").write_text(kept + re.sub(r"\w", "x", text[len(kept) :]), "utf-8")
            planned[skill] = digest_of(folder)
        # What is planned is what `verify` proves before the client starts.
        return replace(staged, planned=planned)


def pytest_evalarc_treatments() -> Mapping[str, Callable[[], Treatment]]:
    """Offer the treatment to `--evalarc-treatment`."""
    return {"placebo": Placebo}
