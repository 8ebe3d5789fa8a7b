"""What others may lean on is listed, is there, and is all that our own examples lean on."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc import hookspecs

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "public-api.md").read_text("utf-8")
LISTED = {
    name: re.findall(r"`(\w+)`", members)
    for name, members in re.findall(r"^\| `(pytest_evalarc\.[\w.]+)` \|(.*)\|$", PAGE, re.MULTILINE)
}

NOT_TOLD = {"model_config", "to_json"}
"""What every schema has, from the library or from our base of all of them."""


def value(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def members(found: type) -> set[str]:
    """Return the public names that a class has from us, its annotated fields included."""
    ours = [base for base in found.__mro__ if base.__module__.startswith("pytest_evalarc")]
    names = {name for base in ours for name in (*vars(base), *inspect.get_annotations(base))}
    return {name for name in names if not name.startswith("_")} - NOT_TOLD


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_name_is_there_with_the_members_that_are_told(name: str) -> None:
    """A member that goes away breaks a plugin, and one that comes is a duty or a promise."""
    found = value(name)

    assert LISTED[name] == (sorted(members(found)) if inspect.isclass(found) else [])
    assert inspect.getdoc(found)


def imported(source: str) -> Iterator[str]:
    """Yield each of our names that a module imports, typing-only ones included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest_evalarc"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def shown() -> Iterator[str]:
    """Yield every piece of Python that a reader may take as an example."""
    for path in (ROOT / "docs" / "examples").rglob("*.py"):
        yield path.read_text("utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        yield from re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_examples_import_listed_names_alone() -> None:
    """Who starts from an example must not find that it leaned on what may change any day."""
    assert {name for source in shown() for name in imported(source)} - set(LISTED) == set()


def test_all_that_hooks_hand_over_and_take_is_listed() -> None:
    """A hook is as stable as the types that it speaks of."""
    source = inspect.getsource(hookspecs)

    assert set(imported(source)) - set(LISTED) == set()
