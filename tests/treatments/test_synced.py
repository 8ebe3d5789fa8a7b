from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.synced import sync_record
from tests.treatments.bench import make_layout, write


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    layout = make_layout(tmp_path / "run")
    write(layout.home, ".symposium/config.toml", "")
    return layout


def put(layout: RunLayout, **changes: object) -> Path:
    """Write the record as Symposium does after a sync."""
    root = os.path.realpath(layout.project)
    digest = hashlib.sha256(root.encode()).hexdigest()[:8]
    state = {
        "last-sync-lock-mtime": 1767225600,
        "last-sync-battery-pack-mtime": None,
        "workspace-root": root,
        **changes,
    }
    path = f".symposium/cache/workspaces/project-{digest}/state.json"
    return write(layout.home, path, json.dumps(state))


@pytest.mark.parametrize("changes", [{}, {"last-sync-lock-mtime": None}, {"later-key": 1}])
def test_a_record_of_the_project_s_workspace_passes(
    layout: RunLayout, changes: dict[str, object]
) -> None:
    """Its time is null without a Cargo.lock, and a later version may say more."""
    put(layout, **changes)

    assert sync_record(layout).verdict == "pass"


def test_a_project_is_meant_by_its_real_path(tmp_path: Path) -> None:
    """A workspace is recorded as cargo sees it, with every link followed."""
    layout = make_layout(tmp_path / "real/run")
    write(layout.home, ".symposium/config.toml", "")
    (tmp_path / "linked").symlink_to("real")
    put(layout)

    assert sync_record(RunLayout(root=tmp_path / "linked/run")).verdict == "pass"


def test_no_record_is_a_sync_that_did_not_happen(layout: RunLayout) -> None:
    """It is written after every success, so its absence tells of none."""
    put(layout).rename(layout.home / ".symposium/cache/workspaces/elsewhere.json")

    assert sync_record(layout).verdict == "fail"


@pytest.mark.parametrize(
    "changes",
    [
        {"workspace-root": "/elsewhere"},
        {"workspace-root": None},
        {"last-sync-lock-mtime": -1},
        {"last-sync-lock-mtime": True},
        {"last-sync-lock-mtime": "now"},
    ],
)
def test_a_record_that_symposium_would_not_write_decides_nothing(
    layout: RunLayout, changes: dict[str, object]
) -> None:
    """Whoever wrote it, whether a sync completed cannot be told from it."""
    put(layout, **changes)

    assert sync_record(layout).verdict == "inconclusive"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"workspace-root": "/"}', "{}\n{}"])
def test_a_torn_record_decides_nothing(layout: RunLayout, text: str) -> None:
    """A session may have been cut off while it was written."""
    put(layout).write_text(text)

    assert sync_record(layout).verdict == "inconclusive"


def test_a_pipe_for_a_record_does_not_block(layout: RunLayout) -> None:
    """The harness must end whatever the agent planted."""
    file = put(layout)
    file.unlink()
    os.mkfifo(file)

    assert sync_record(layout).verdict == "inconclusive"


def test_a_home_without_symposium_is_no_proof_that_nothing_was_synced(tmp_path: Path) -> None:
    """It was there when the client started, so somebody took it away."""
    assert sync_record(make_layout(tmp_path / "run")).verdict == "inconclusive"
