"""The page on security promises what is tested, and leaves no barrier out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from pytest_evalarc.isolation.preflight import BARRIERS
from tests.test_docs import section

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
TEXT = PAGE.read_text("utf-8")
SHOWN = re.compile(r"\[`(?P<path>tests/[\w/]+\.py)::(?P<name>[\w:]+)`\]\((?P<link>[^)]+)\)")
LINKS = sorted({found.groups() for found in SHOWN.finditer(TEXT)})
TABLES = {
    "bwrap": "### What bwrap promises",
    "srt": "### What srt promises",
    "docker and podman": "### What docker and podman promise",
    "local": "### What local promises",
    "a part that is missing": "## Refused or recorded",
    "the key": "## The key",
}
OF_SANDBOXES = ("bwrap", "srt", "docker and podman")


def rows_of(table: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, heads and rule left out."""
    lines = section(TEXT, TABLES[table]).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rest = lines[first:]
    end = next((number for number, line in enumerate(rest) if not line.startswith("|")), len(rest))
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rest[2:end]]


@lru_cache
def names_in(path: Path) -> frozenset[str]:
    return frozenset(_names(ast.parse(path.read_bytes()), ""))


def _names(parent: ast.AST, prefix: str) -> Iterator[str]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield from _names(node, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield f"{prefix}{node.name}"


def test_the_page_links_tests() -> None:
    """What finds no link would find nothing wrong with any."""
    assert len(LINKS) > 60
    assert len(SHOWN.findall(TEXT)) == TEXT.count("[`tests/")


@pytest.mark.parametrize(("path", "name", "link"), LINKS)
def test_every_test_that_the_page_names_is_there(path: str, name: str, link: str) -> None:
    """A promise that names a test which is gone is a promise that nothing holds."""
    file = PAGE.parent / link

    assert file.resolve() == (PAGE.parents[1] / path).resolve()
    assert name in names_in(file.resolve())


@pytest.mark.parametrize("table", TABLES)
def test_every_promise_names_its_test(table: str) -> None:
    """Whoever doubts a row can run what shows it."""
    found = rows_of(table)

    assert found
    assert [row for row in found if len(row) != 3 or not SHOWN.search(row[2])] == []


@pytest.mark.parametrize("sandbox", OF_SANDBOXES)
def test_every_barrier_of_the_preflight_is_promised(sandbox: str) -> None:
    """What is tried before every batch is what a reader may rely on, in the same words."""
    promised = [re.match(r"`(\w+)`", row[0]) for row in rows_of(sandbox)]

    assert [found[1] for found in promised if found] == list(BARRIERS)


def test_there_is_a_place_for_what_was_measured() -> None:
    """A script writes its table between the two marks."""
    figures = section(TEXT, "## Figures")

    assert figures.count("<!-- trust-figures: begin -->") == 1
    assert figures.index("begin -->") < figures.index("<!-- trust-figures: end -->")
