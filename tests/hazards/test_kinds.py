"""The list of kinds names tests that are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tests.hazards.kinds import DIFFERENCES, KINDS, main, proofs

ROOT = Path(__file__).parents[2]


@lru_cache
def names_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file, behind those of their classes; nothing is run."""
    return frozenset(_names(ast.parse((ROOT / file).read_text("utf-8"))))


def _names(within: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}::{name}" for name in _names(node))
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name


def test_there_are_as_many_kinds_as_were_found() -> None:
    """One that falls out of the list would be proven by nobody, and missed by nobody."""
    assert len(KINDS) == 32


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_proven_by_tests_that_are_there(kind: str) -> None:
    """A test that was renamed or removed proves nothing any more."""
    nodes = proofs()[kind]

    assert nodes
    assert len(set(nodes)) == len(nodes)
    gone = [
        node for node in nodes if node.partition("::")[2] not in names_in(node.partition("::")[0])
    ]
    assert gone == []


def test_every_test_of_this_folder_proves_a_kind() -> None:
    """What is tried here is tried for a kind, and would not be counted without one."""
    listed = {node for nodes in proofs().values() for node in nodes}
    here = {
        f"tests/hazards/{path.name}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__)
        for name in names_in(f"tests/hazards/{path.name}")
    }

    assert here - listed == set()


def test_a_difference_is_of_a_kind_and_says_why() -> None:
    """A reader who misses a behaviour finds the reason where its kind is proven."""
    assert DIFFERENCES.keys() <= KINDS.keys()
    assert all(reason.endswith(".") for reason in DIFFERENCES.values())


def test_the_list_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A report counts from it what was tried."""
    main()

    told = capsys.readouterr().out
    assert told.startswith("1. absence is read as success\n   tests/hazards/")
    assert told.count("\n") == 32 + sum(map(len, proofs().values()))
