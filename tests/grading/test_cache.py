"""An entry of the cache is whole and of its key, or it is no entry."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.grading import cache as module
from pytest_evalarc.grading.cache import GradingCache, entry_path
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow, Grading
from pytest_evalarc.model.isolation import IsolationRecord
from tests.grading.small_task import Bench
from tests.needs import needs_bwrap

KEY = "ab" + "1" * 62
GRADING = Grading(
    submission_sha256="0" * 64,
    grader_sha256="1" * 64,
    checks_sha256="2" * 64,
    status="graded",
    steps=(),
    rows=(CheckRow(check="c", verdicts={"d": False}, status="failed", detail="1 != 2"),),
    isolation=IsolationRecord(level="enforced", sandbox="bwrap"),
    wall_time_s=1.5,
)


@pytest.fixture
def cache(tmp_path: Path) -> GradingCache:
    (tmp_path / "cache").mkdir()
    return GradingCache(folder=tmp_path / "cache")


def read(cache: GradingCache, key: str = KEY) -> Grading | None:
    entry = cache.read(key, is_ours=lambda _: True)
    return None if entry is None else entry.grading


def path_of(cache: GradingCache, key: str = KEY) -> Path:
    return entry_path(cache.folder, key)


def test_what_was_stored_is_read_and_says_where_it_is_from(cache: GradingCache) -> None:
    """Its seconds are of another day, so the day stands beside them."""
    cache.store(KEY, GRADING, {"c": "said so\n"})

    entry = cache.read(KEY, is_ours=lambda _: True)

    assert entry is not None
    assert entry.outputs == {"c": "said so\n"}
    assert entry.grading.cached is not None
    assert (entry.grading.cached.key, entry.grading.cached.graded_at) == (KEY, entry.graded_at)
    assert entry.grading.model_copy(update={"cached": None}) == GRADING


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _edited(path: Path) -> None:
    text = path.read_text()
    assert text.count('"d": false') == 1
    path.write_text(text.replace('"d": false', '"d": true').replace('"failed"', '"passed"'))


def _signed_for_another_key(path: Path) -> None:
    other = GradingCache(folder=path.parents[1])
    other.store("ab" + "2" * 62, GRADING, {})
    entry_path(other.folder, "ab" + "2" * 62).rename(path)


def _newer(path: Path) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "schema_version": "2.0"}))


def _folder(path: Path) -> None:
    path.unlink()
    (path / "inner").mkdir(parents=True)


def _link(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to("real")


@pytest.mark.parametrize(
    "spoil", [_torn, _empty, _edited, _signed_for_another_key, _newer, _folder, _link]
)
def test_what_is_no_entry_is_a_miss_and_is_removed(
    cache: GradingCache, spoil: Callable[[Path], None]
) -> None:
    """A wrong verdict would come back for ever; a missing one is only made again."""
    cache.store(KEY, GRADING, {})
    spoil(path_of(cache))

    assert read(cache) is None
    assert not os.path.lexists(path_of(cache))

    cache.store(KEY, GRADING, {})
    assert read(cache) is not None


def test_an_entry_that_tells_other_facts_than_now_is_removed(cache: GradingCache) -> None:
    """Its key should have told them apart, and is not trusted alone."""
    cache.store(KEY, GRADING, {})

    assert cache.read(KEY, is_ours=lambda grading: grading.wall_time_s == 2) is None
    assert not path_of(cache).exists()


def test_an_unsettled_grading_is_not_stored(cache: GradingCache) -> None:
    """A timeout of today may be none tomorrow."""
    late = GRADING.rows[0].model_copy(update={"cause": Cause(kind="timeout")})

    cache.store(KEY, GRADING.model_copy(update={"rows": (late,)}), {})

    assert list(cache.folder.iterdir()) == []


def test_a_cache_that_only_reads_or_only_writes_does_no_more(cache: GradingCache) -> None:
    """One keeps what may hold a secret out of it; the other has a repeat made anew."""
    replace(cache, writes=False).store(KEY, GRADING, {})
    assert read(cache) is None

    replace(cache, reads=False).store(KEY, GRADING, {})
    assert read(replace(cache, reads=False)) is None
    assert read(cache) is not None


def test_a_folder_that_takes_no_more_costs_the_entry_alone(cache: GradingCache) -> None:
    """The grading is there; a full disk is no reason to lose it."""
    shutil.rmtree(cache.folder)
    cache.folder.write_text("a file\n")

    cache.store(KEY, GRADING, {})

    assert cache.folder.read_text() == "a file\n"


def test_many_writers_and_readers_never_see_half_an_entry(
    cache: GradingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers grade the same control at the same time when each audits for itself."""
    removed: list[Path] = []
    monkeypatch.setattr(module, "remove_tree", removed.append)
    text = "x" * 50_000

    def write_and_read(number: int) -> bool:
        cache.store(KEY, GRADING, {"c": text})
        entry = cache.read(KEY, is_ours=lambda _: True)
        return entry is not None and entry.outputs == {"c": text}

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(write_and_read, range(64)))

    assert seen == [True] * 64
    assert removed == []
    assert [path.name for path in path_of(cache).parent.iterdir()] == [f"{KEY}.json"]


NOISY = "import sys\n\nprint('loud', file=sys.stderr)\n\n\ndef value():\n    return 42\n"


@pytest.mark.slow
@needs_bwrap
def test_a_hit_leaves_the_same_files_as_the_grading_did(bench: Bench, tmp_path: Path) -> None:
    """A result names what was printed, and it must be there; also when a control came first."""
    task = bench.task.load()
    submission = bench.submit(task, {"app/core.py": NOISY})
    (tmp_path / "cache").mkdir()
    lab = replace(bench.lab(), cache=GradingCache(folder=tmp_path / "cache"))

    def files(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    plain = grade(task, submission, bench.lab(), outputs=tmp_path / "plain")
    grade(task, submission, lab)
    again = grade(task, submission, lab, outputs=tmp_path / "again")

    assert plain.cached is None
    assert again.cached is not None
    assert files(tmp_path / "again").keys() == files(tmp_path / "plain").keys() != set()
    assert all(b"loud" in said for said in files(tmp_path / "again").values())
    assert list(bench.work.iterdir()) == []


@pytest.mark.slow
@needs_bwrap
def test_a_deadline_that_struck_is_graded_again(bench: Bench, tmp_path: Path) -> None:
    """Nobody knows whether the submission or the machine was slow."""
    bench.task.only_check("import time\n\n\ndef test_late():\n    time.sleep(60)\n")
    task = bench.task.load(check=2)
    submission = bench.reference(task)
    (tmp_path / "cache").mkdir()
    lab = replace(bench.lab(), cache=GradingCache(folder=tmp_path / "cache"))

    first, second = grade(task, submission, lab), grade(task, submission, lab)

    assert [row.cause.kind for row in first.rows if row.cause] == ["timeout"]
    assert (first.cached, second.cached) == (None, None)
