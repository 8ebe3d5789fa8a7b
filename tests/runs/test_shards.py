"""Tests of what a folder of results says of the shard that it holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.runs.folders import Folders, shard_path
from pytest_evalarc.runs.shards import NAME, keep_shard, kept_shard, open_shard, refuse_shard


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Return the folders of a batch of which nothing is there yet."""
    return Folders(eval_root=tmp_path / "root", results=tmp_path / "results", batch="night")


def test_a_folder_that_says_nothing_holds_no_shard(tmp_path: Path) -> None:
    """Such are all batches that one machine runs."""
    assert kept_shard(tmp_path) is None


def test_the_same_shard_is_kept_again_and_another_one_refused(tmp_path: Path) -> None:
    """A job that is started again goes on; a job with a wrong number must not."""
    shard = Shard(number=2, of=4)
    keep_shard(tmp_path / NAME, "night", shard)
    keep_shard(tmp_path / NAME, "night", shard)

    assert kept_shard(tmp_path) == shard
    with pytest.raises(UsageError, match=r"holds shard 2/4 of batch night; give each shard"):
        keep_shard(tmp_path / NAME, "night", Shard(number=3, of=4))


def test_a_shard_beyond_the_last_one_is_no_document(tmp_path: Path) -> None:
    """Nothing writes it, so somebody has edited the file."""
    keep_shard(tmp_path / NAME, "night", Shard(number=2, of=4))
    document = json.loads((tmp_path / NAME).read_bytes())
    document["shard"]["number"] = 5
    (tmp_path / NAME).write_text(json.dumps(document))

    with pytest.raises(DocumentError, match="number is more than of"):
        kept_shard(tmp_path)


def test_an_opened_folder_is_hidden_from_git_and_says_its_shard(folders: Folders) -> None:
    """It says so before anything is planned, and even when no trial falls to it."""
    open_shard(folders, Shard(number=1, of=2))

    assert (folders.results / ".gitignore").read_bytes() == b"*\n"
    document = json.loads(shard_path(folders.results, "night").read_bytes())
    assert (document["batch"], document["shard"]) == ("night", {"number": 1, "of": 2})


def test_a_batch_is_not_gone_on_with_as_another_part(folders: Folders) -> None:
    """A whole batch does not become a shard, nor a shard the whole."""
    other = folders.trials("hello", "oracle").with_name("day")
    other.mkdir(parents=True)
    (other / "plan.json").touch()

    refuse_shard(folders)
    open_shard(folders, Shard(number=1, of=2))

    with pytest.raises(UsageError, match=r"holds shard 1/2 of it alone; add --evalarc-shard=1/2"):
        refuse_shard(folders)
    day = Folders(eval_root=folders.eval_root, results=folders.results, batch="day")
    with pytest.raises(UsageError, match=r"holds batch day as a whole"):
        open_shard(day, Shard(number=1, of=2))
