"""Each dependency has a reason and a licence, and the page that says so is compared with both."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib

import pytest
from packaging.requirements import Requirement

from release.locks import LOCKS, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text("utf-8")


def told(title: str) -> dict[str, tuple[str, str]]:
    """Return reason and licence by package, from the table below a heading."""
    _, found, rest = PAGE.partition(f"\n## {title}\n")
    assert found
    lines = re.findall(r"^\| `(.+?)` \| (.+) \| (.+) \|$", rest.partition("\n## ")[0], re.MULTILINE)
    return {name: (reason, licence) for name, reason, licence in lines}


def licence(name: str) -> str:
    """Return the licence that a package's own metadata gives."""
    metadata = importlib.metadata.metadata(name)
    classifiers = metadata.get_all("Classifier", [])
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")]
    return metadata["License-Expression"] or metadata["License"] or named[0]


@pytest.mark.parametrize(
    ("title", "declared"),
    [
        ("With the package", PROJECT["dependencies"]),
        ("With the extra `yaml`", PROJECT["optional-dependencies"]["yaml"]),
    ],
)
def test_each_dependency_is_told_with_reason_and_licence(title: str, declared: list[str]) -> None:
    """One that nobody can give a reason for should go, and a new licence should be seen."""
    names = [Requirement(text).name for text in declared]

    assert {name: found for name, (_, found) in told(title).items()} == {
        name: licence(name) for name in names
    }


def test_extras_are_told_or_are_for_developers() -> None:
    """An extra that the page leaves out brings what nobody looked at."""
    assert set(PROJECT["optional-dependencies"]) == {"dev", "yaml"}


def test_each_tool_of_npm_is_told_with_its_licence() -> None:
    """The lock holds what each package says of itself."""
    folder = ROOT / "pytest_evalarc" / "tools"
    wanted = json.loads((folder / "package.json").read_text("utf-8"))["dependencies"]
    locked = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]

    tools = told("With `pytest-evalarc tools install`")

    assert {name: found for name, (_, found) in tools.items()} == {
        name: locked[f"node_modules/{name}"]["license"] for name in wanted
    }


def test_the_page_lists_every_lock() -> None:
    """A lock that is not told is not used."""
    _, _, rest = PAGE.partition("\n## Locks\n")

    assert re.findall(r"^\| `(\w+\.txt)` \|", rest, re.MULTILINE) == [lock.file for lock in LOCKS]
