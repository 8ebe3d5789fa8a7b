from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from pytest_evalarc.treatments.records import Records, read_records

PATH = "evidence/trace.jsonl"


def as_run(record: dict[str, JsonValue]) -> tuple[str, bool]:
    event = record["event"]
    if not isinstance(event, str):
        raise ValueError("no event")
    return event, record["status"] == 0


def read(root: Path) -> Records:
    return read_records(root, PATH, as_run)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "evidence").mkdir()
    return tmp_path / PATH


def test_runs_are_told_by_event_in_their_order(trace: Path, tmp_path: Path) -> None:
    """Of some events the first record decides."""
    lines = [("Start", 0), ("Stop", 1), ("Stop", 0)]
    trace.write_text("".join(f'{{"event":"{e}","status":{s}}}\n' for e, s in lines))

    assert read(tmp_path) == Records(runs={"Start": (True,), "Stop": (False, True)})


def test_no_file_records_nothing(tmp_path: Path) -> None:
    """No hook wrote one, or somebody took it away: which, other evidence tells."""
    assert read(tmp_path) == Records()


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ('{"event":"Start","status":0}\n{"event":"St', "its last line is torn"),
        ('{"event":"Start","status":0}\nnonsense\n', "line 2 is no record of a hook"),
        ('{"event":"Start","status":0}\n[]\n', "line 2 is no record of a hook"),
        ('{"event":"Start","status":0}\n{"status":0}\n', "line 2 is no record of a hook"),
        ('{"event":"Start","status":0}\n{"event":1,"status":0}\n', "line 2 is no record"),
        ('{"event":"Start","status":0}\n{"event":"a","event":"b"}\n', "line 2 is no record"),
        ('{"event":"Start","status":0}\n\n', "line 2 is no record"),
    ],
)
def test_what_is_no_record_spoils_the_file_and_not_what_came_before(
    trace: Path, tmp_path: Path, text: str, flaw: str
) -> None:
    """Nobody but hooks has reason to write there, so a foreign line is a sign."""
    trace.write_text(text)

    found = read(tmp_path)

    assert found.runs == {"Start": (True,)}
    assert found.flaw.startswith(f"{PATH}: {flaw}")


def pipe(trace: Path) -> None:
    os.mkfifo(trace)


def link(trace: Path) -> None:
    (trace.parent / "real").write_text('{"event":"Start","status":0}\n')
    trace.symlink_to("real")


def huge(trace: Path) -> None:
    with trace.open("wb") as opened:
        opened.truncate(1 << 40)


def folder_link(trace: Path) -> None:
    trace.parent.rename(trace.parent.with_name("real"))
    trace.parent.symlink_to("real")


@pytest.mark.parametrize("plant", [pipe, link, huge, folder_link])
def test_what_was_planted_as_a_trace_is_a_flaw(
    trace: Path, tmp_path: Path, plant: Callable[[Path], None]
) -> None:
    """A pipe must not block the harness, nor a link lead it elsewhere."""
    plant(trace)

    found = read(tmp_path)

    assert found.runs == {}
    assert found.flaw


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.binary(max_size=200))
def test_no_content_ever_raises(trace: Path, tmp_path: Path, content: bytes) -> None:
    """Evidence is the trial's to write, and a result must come of it all the same."""
    trace.write_bytes(content)

    found = read(tmp_path)

    assert found.flaw or not content
