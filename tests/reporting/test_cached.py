"""Counting what was not graded for its result."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.model.grading import CachedFrom
from pytest_evalarc.reporting.cached import (
    Cached,
    cached_of_batch,
    cached_of_regrades,
    cached_sentence,
)
from pytest_evalarc.runs.folders import Folders

NEW: dict[str, Any] = {"cached": None}
OLD: dict[str, Any] = {"cached": {"key": "0" * 64, "graded_at": "2026-11-30T12:00:00Z"}}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(eval_root=tmp_path / "root", results=tmp_path / "results", batch="b")


def write(folders: Folders, path: str, document: Any) -> None:
    file = folders.results / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def test_every_kind_of_result_of_a_batch_is_counted(folders: Folders) -> None:
    """One line is said of a session, whatever it graded."""
    write(folders, "t/audit/b/rows/reference.json", {"grading": OLD})
    write(folders, "t/audit/b/rows/starter.json", {"grading": NEW})
    write(folders, "t/submission/b/grading.json", {"grading": OLD})
    write(folders, "t/oracle/b/trial-1-baseline/result.json", {"gradings": [OLD]})
    write(folders, "t/oracle/b/trial-2-baseline/result.json", {"gradings": [NEW]})
    write(folders, "t/audit/other/rows/reference.json", {"grading": OLD})

    assert cached_of_batch(folders) == Cached(3, 5)
    assert str(cached_of_batch(folders)) == "3 of 5 gradings from the cache"


def test_what_was_not_graded_or_cannot_be_read_is_not_counted(folders: Folders) -> None:
    """A trial that was never started has no grading, and a torn file is told of elsewhere."""
    write(folders, "t/oracle/b/trial-1-baseline/result.json", {"gradings": []})
    write(folders, "t/oracle/b/trial-2-baseline/result.json", ["gradings"])
    write(folders, "t/audit/b/rows/starter.json", {"grading": OLD})
    (folders.results / "t/audit/b/rows/reference.json").write_text('{"grading"')

    assert cached_of_batch(folders) == Cached(1, 1)


def test_a_re_grading_is_counted_by_its_number(folders: Folders) -> None:
    """Those before it lie beside it."""
    write(folders, "t/oracle/b/trial-1-baseline/regrade-1.json", {"grading": NEW})
    write(folders, "t/oracle/b/trial-1-baseline/regrade-2.json", {"grading": OLD})

    folder = folders.trials("t", "oracle")

    assert cached_of_regrades([folder], 2) == Cached(1, 1)
    assert cached_of_regrades([folder], 1) == Cached(0, 1)


def test_a_grading_tells_when_it_was_made_only_where_that_was_before() -> None:
    """A sentence on every other grading would say nothing."""
    at = datetime(2026, 11, 30, 12, 5, 1, 250_000, tzinfo=UTC)

    assert cached_sentence(None) == ""
    assert cached_sentence(CachedFrom(key="0" * 64, graded_at=at)) == (
        "From the cache of gradings, made 2026-11-30T12:05:01+00:00; its seconds are of then."
    )
