"""A folder that is sent in parts: it arrives as it was, or nothing of it does."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.errors import DocumentError, InfrastructureError
from pytest_evalarc.files.manifest import read_manifest
from pytest_evalarc.files.parcel import (
    CHUNK_BYTES,
    Arrival,
    Closing,
    Content,
    Message,
    Opening,
    parcel,
    place,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with all that a result folder can hold."""
    root = tmp_path / "source"
    files = {
        "result.json": b'{"outcome": "succeeded"}\n',
        "empty": b"",
        "deep/er/large": os.urandom(2 * CHUNK_BYTES + 17),
        "deep/tool": b"#!/bin/sh\n",
        os.fsdecode(b"deep/not-utf8-\xff"): b"x",
        ".result.json.lock": b"",
    }
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (root / "deep/tool").chmod(0o755)
    (root / "bare").mkdir()
    (root / "bare").chmod(0o555)
    (root / "link").symlink_to("/etc/passwd")
    return root


def received(messages: Iterable[Message], staging: Path) -> Arrival:
    """Receive what was sent; what is wrong with it leaves nothing behind."""
    first, *rest = messages
    assert isinstance(first, Opening)
    arrival = Arrival(staging, first)
    try:
        for message in rest:
            match message:
                case Content():
                    arrival.take(message)
                case Closing():
                    arrival.finish(message)
                    return arrival
        raise EOFError
    except BaseException:
        arrival.discard()
        raise


def stream(messages: Iterable[Message]) -> bytes:
    """Return all content of a parcel in one."""
    return b"".join(message.data for message in messages if isinstance(message, Content))


def resealed(content: bytes, listing_bytes: int) -> list[Message]:
    """Return a parcel of that content whose own digest is right."""
    return [
        Opening(listing_bytes),
        Content(content),
        Closing(hashlib.sha256(content).hexdigest()),
    ]


def test_a_folder_arrives_as_it_was(source: Path, tmp_path: Path) -> None:
    """Content, mode, empty folders and names of any bytes; links are no part of it."""
    messages = list(parcel(source, skip=lambda path: path.startswith(".")))

    arrival = received(messages, tmp_path / "there/.arriving")

    assert all(len(m.data) <= CHUNK_BYTES for m in messages if isinstance(m, Content))
    sent = read_manifest(source, skip=lambda path: path == "link" or path.startswith("."))
    assert read_manifest(arrival.staging).entries == sent.entries


def test_what_arrived_is_put_in_place_with_its_document_last(source: Path, tmp_path: Path) -> None:
    """What is there already, as the mark of a trial that has begun, stays beside it."""
    folder = tmp_path / "trial-1"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/remainder").write_text("of a controller that died")
    (folder / ".result.json.begun").touch()
    arrival = received(parcel(source), tmp_path / ".arriving")

    place(arrival.staging, folder, last="result.json")

    assert (folder / "result.json").read_bytes() == (source / "result.json").read_bytes()
    assert (folder / ".result.json.begun").exists()
    assert not (folder / "deep/remainder").exists()
    assert (folder / "deep/er/large").read_bytes() == (source / "deep/er/large").read_bytes()
    assert not arrival.staging.exists()


def test_what_arrived_without_its_document_is_not_put_in_place(tmp_path: Path) -> None:
    """A folder of evidence without a result would look like a trial that was cut off."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source/evidence").touch()
    arrival = received(parcel(tmp_path / "source"), tmp_path / ".arriving")

    with pytest.raises(DocumentError, match=r"result\.json: is not in what arrived"):
        place(arrival.staging, tmp_path / "there", last="result.json")

    assert not (tmp_path / "there").exists()


@given(data=st.data())
def test_no_cut_and_no_other_byte_arrives(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever byte is cut or changed on the way, nothing is left of the parcel."""
    root = tmp_path_factory.mktemp("parcel")
    source = root / "source"
    (source / "folder").mkdir(parents=True)
    (source / "folder/file").write_bytes(b"some content")
    (source / "result.json").write_bytes(b"{}")
    opening, *middle, closing = parcel(source)
    assert isinstance(opening, Opening) and isinstance(closing, Closing)
    content = stream(middle)
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        broken = content[:at]
    else:
        other = bytes([content[at] ^ data.draw(st.integers(1, 255))])
        broken = content[:at] + other + content[at + 1 :]

    with pytest.raises((DocumentError, InfrastructureError)):
        received([opening, Content(broken), closing], root / "staging")

    assert not (root / "staging").exists()


def test_a_channel_cut_between_messages_leaves_nothing(source: Path, tmp_path: Path) -> None:
    """The end of a connection comes at any message."""
    messages = list(parcel(source))

    for count in range(1, len(messages)):
        with pytest.raises(EOFError):
            received(messages[:count], tmp_path / ".arriving")
        assert not (tmp_path / ".arriving").exists()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (["../outside", 0o644, 0, hashlib.sha256().hexdigest()], "not a path inside"),
        (["/outside", 0o644, 0, hashlib.sha256().hexdigest()], "not a path inside"),
        (["nul\0", 0o644, 0, hashlib.sha256().hexdigest()], "not a path inside"),
        (["\ud800", 0o644, 0, hashlib.sha256().hexdigest()], "not a path inside"),
        (["nul\0", 0o755, 0, None], "not a path inside"),
        (["file", 0o644, -1, hashlib.sha256().hexdigest()], "which is nothing"),
        (["file", 0o644, 0, "no digest"], "which is nothing"),
        (["file", 0o644, 0], "which is nothing"),
        ({"path": "file"}, "which is nothing"),
        (["file", 0o644, 0, hashlib.sha256(b"x").hexdigest()], "with another digest"),
        (["file", 0o644, 9, hashlib.sha256().hexdigest()], "ends before"),
    ],
)
def test_a_wrong_listing_is_refused_in_a_sentence(row: object, told: str, tmp_path: Path) -> None:
    """Another host is not trusted with where its files go, nor with what they are."""
    listing = json.dumps([row]).encode()

    with pytest.raises((DocumentError, InfrastructureError), match=told):
        received(resealed(listing, len(listing)), tmp_path / "staging")

    assert [path.name for path in tmp_path.iterdir()] == []


@pytest.mark.parametrize("listing", [b"{}", b"[", b"[NaN]"])
def test_a_listing_that_is_none_is_refused(listing: bytes, tmp_path: Path) -> None:
    """JSON from elsewhere is read strictly."""
    with pytest.raises(DocumentError):
        received(resealed(listing, len(listing)), tmp_path / "staging")


def test_more_than_is_listed_is_refused(tmp_path: Path) -> None:
    """What no digest speaks for is not kept."""
    listing = b"[]"

    with pytest.raises(DocumentError, match="holds more than it lists"):
        received(resealed(listing + b"more", len(listing)), tmp_path / "staging")


@pytest.mark.parametrize("size", [0, -1, 1 << 40])
def test_a_listing_of_no_sensible_length_is_refused(size: int, tmp_path: Path) -> None:
    """Before anything is held in memory for it."""
    with pytest.raises(DocumentError, match=f"a listing of {size} bytes"):
        Arrival(tmp_path / "staging", Opening(size))


def test_a_part_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """So that no host takes the controller's memory."""
    with pytest.raises(DocumentError, match=f"a part of {CHUNK_BYTES + 1} bytes"):
        received([Opening(2), Content(b"x" * (CHUNK_BYTES + 1))], tmp_path / "staging")
