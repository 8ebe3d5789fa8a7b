"""The targets of fuzzing that is led by coverage, without what leads it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.fuzz.guided import ROOT, TARGETS, options


@pytest.mark.parametrize("name", list(TARGETS))
def test_each_target_takes_what_it_begins_with_and_refuses_what_is_none(
    name: str, tmp_path: Path
) -> None:
    """Seeds that a reader refuses at once would lead to its first line and no further."""
    target = TARGETS[name](tmp_path)

    assert target.run(target.seeds[0])
    assert not target.run(b"\xff\x00")
    for other in (*target.seeds[1:3], b""):
        assert target.run(other) in (True, False)


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("channel", "tests.fuzz.test_channel.judge"),
        ("document", "pytest_evalarc.files.strict.loads"),
        ("gate", "pytest_evalarc.counting.gate.parse_gate"),
        ("listing", "tests.fuzz.test_folders.Arrival"),
        ("own", "tests.fuzz.test_transcripts.read_stream"),
        ("task", "tests.fuzz.test_tasks.load_task"),
    ],
)
def test_a_reader_that_breaks_is_a_finding(
    name: str, of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that took every error for a refusal could run for hours and find nothing."""

    def broken(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(of, broken)
    target = TARGETS[name](tmp_path)

    with pytest.raises(RecursionError):
        target.run(target.seeds[0])


def test_the_session_fuzzes_every_target() -> None:
    """A target that no session names is never run."""
    named = re.search(r"^GUIDED = (.*)$", (ROOT / "noxfile.py").read_text("utf-8"), re.MULTILINE)

    assert named and ast.literal_eval(named[1]) == tuple(TARGETS)


def test_the_seeds_are_written_down_and_every_input_is_bounded(tmp_path: Path) -> None:
    """Without a bound one input could take all the time there is."""
    told = options(tmp_path, [b"a", b"b"], seconds=7)

    assert [path.read_bytes() for path in sorted((tmp_path / "corpus").iterdir())] == [b"a", b"b"]
    assert told[-2:] == ["-max_total_time=7", str(tmp_path / "corpus")]
    assert "-timeout=60" in told
