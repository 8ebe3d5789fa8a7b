"""What JUnit's XML tells of evals."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]


def properties(path: Path) -> dict[str, dict[str, str]]:
    """Return the properties of each test case by its dotted name."""
    return {
        f"{case.get('classname')}.{case.get('name')}": {
            str(each.get("name")): str(each.get("value")) for each in case.iter("property")
        }
        for case in ElementTree.parse(path).iter("testcase")
    }


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_every_item_of_a_trial_says_what_it_is_of(
    workers: tuple[str, ...], project: Project
) -> None:
    """Tools that show JUnit group and filter by properties, and know nothing of node ids."""
    project.write(
        "evals/test_own.py",
        "def test_own(evalarc_trial):\n    assert evalarc_trial.result.outcome == 'failed'\n",
    )
    options = ("--evalarc-client=nop", "--evalarc-model=big-1", "--junitxml=junit.xml")

    session = project.pytest(*workers, "evals", *options)

    assert session.ret == 0
    found = properties(project.root / "junit.xml")
    task = "evals.tasks.hello.task.toml"
    assert found[f"{task}.validate"] == {"task": "hello"}
    assert found[f"{task}.audit.silent"] == {"task": "hello"}
    trial = {
        "task": "hello",
        "client": "nop",
        "model": "big-1",
        "configuration": "with-skills",
        "trial": "1",
        "outcome": "failed",
        "cause": "code",
    }
    for name in ("run", "greets", "names", "used-greet", "success"):
        assert found[f"{task}.nop.with-skills.trial-001.{name}"] == trial
    own = [each for name, each in found.items() if "test_own" in name]
    assert {each["configuration"] for each in own} == {"with-skills", "without-skills"}
    assert trial in own
