"""Batches over a small project, their tools staged once for all tests of a process."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evals import Evals


@pytest.fixture(scope="session")
def eval_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eval-root")


@pytest.fixture
def make(tmp_path: Path, eval_root: Path) -> Callable[..., Evals]:
    """Return what makes a project with a batch of its own results, in a shared working folder."""
    numbers = itertools.count(1)

    def evals(client: Any = "oracle", **facts: Any) -> Evals:
        name = "plain" if facts.get("is_plain", True) else "python"
        defaults = {"root": tmp_path / f"e{next(numbers)}", "eval_root": eval_root}
        return Evals(client=client, **{**defaults, "batch_name": name, **facts})

    return evals
