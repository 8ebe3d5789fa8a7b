"""Folders read, sent and put together elsewhere: as they were, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_evalarc.errors import DocumentError, InfrastructureError, SubmissionError
from pytest_evalarc.files.manifest import EntryType, Manifest, read_manifest
from pytest_evalarc.files.parcel import CHUNK_BYTES, Arrival, Closing, Content, Opening, parcel
from pytest_evalarc.files.tree import copy_tree, write_tree
from tests.fuzz.forms import JSON, files_of, fuzzed, refusing

PARTS = st.text(
    st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda part: part not in (".", "..")) | st.sampled_from(
    ("a", "b", "A", "é", "e\u0301", "\udcff", "\n", " ", "-rf", "\u202e", "con", "\\", "x" * 80)
)
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(
    PATHS, st.tuples(st.binary(max_size=40), st.sampled_from((0o644, 0o755))), max_size=6
)


@contextmanager
def made(tree: dict[str, tuple[bytes, int]]) -> Iterator[Path]:
    """Yield a folder that holds those files of a tree that fit beside the ones before."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "it")
        root.mkdir()
        for path, (content, mode) in tree.items():
            file = root / path
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue
            file.chmod(mode)
        yield root


def facts(manifest: Manifest) -> list[tuple[object, ...]]:
    return [(e.path, e.type, e.size, e.sha256, e.is_executable) for e in manifest.entries]


@fuzzed(50)
@given(TREES)
def test_a_manifest_tells_each_path_of_a_folder_and_its_copy(tree: dict[str, Any]) -> None:
    """Any bytes make a file's name but a slash and NUL, and an agent may use them all."""
    with made(tree) as root:
        found = read_manifest(root)

        names = {os.fsencode(p.relative_to(root)) for p in root.rglob("*")}
        assert {os.fsencode(entry.path) for entry in found.entries} == names
        assert [os.fsencode(e.path) for e in found.entries] == sorted(names)
        for entry in found.files:
            if entry.type is EntryType.FILE:
                content = (root / entry.path).read_bytes()
                assert entry.sha256 == hashlib.sha256(content).hexdigest()
        copy_tree(root, found, root.with_name("copy"))
        assert facts(read_manifest(root.with_name("copy"))) == facts(found)


@fuzzed(50)
@given(TREES, st.data())
def test_a_parcel_arrives_whole_in_any_parts(tree: dict[str, Any], data: st.DataObject) -> None:
    """How a stream is cut says nothing of what it holds."""
    with made(tree) as root:
        opening, *contents, closing = parcel(root)
        stream = b"".join(message.data for message in contents)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))

        arrival = Arrival(root.with_name("staging"), opening)
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            arrival.take(Content(stream[start:end]))
        arrival.finish(closing)

        assert facts(read_manifest(root.with_name("staging"))) == facts(read_manifest(root))


@fuzzed(60)
@given(TREES, st.data())
def test_a_parcel_with_other_bytes_does_not_arrive(
    tree: dict[str, Any], data: st.DataObject
) -> None:
    """A network, or a host that was taken over, may send what it likes."""
    with made(tree) as root:
        opening, *contents, closing = parcel(root)
        stream = b"".join(message.data for message in contents)
        at = data.draw(st.integers(0, len(stream)))
        gone = data.draw(st.integers(0, 4))
        other = stream[:at] + data.draw(st.binary(max_size=4)) + stream[at + gone :]
        length = data.draw(st.just(opening.listing_bytes) | st.integers(-1, len(stream) + 2))

        arrived = receive(root.with_name("staging"), Opening(length), other, closing)

        assert not arrived or (other, length) == (stream, opening.listing_bytes)


FORGED = PATHS | st.sampled_from(
    ("..", "../x", "/etc/x", "", ".", "a//b", "a/./b", "a/", "\x00", "a\x00/b", "\ud800", "x" * 300)
)
MODES = st.sampled_from((0o644, 0o755, 0o444, 0, 0o7777))
EMPTY = hashlib.sha256(b"").hexdigest()
ROWS = st.lists(
    st.tuples(FORGED, MODES, st.just(0), st.none() | st.just(EMPTY))
    | st.tuples(FORGED, st.integers(), st.integers() | st.just(1 << 70), st.text(max_size=64))
    | JSON,
    max_size=4,
)


@fuzzed(80)
@example([("\x00", 0o644, 0, EMPTY)], b"")
@example([("\ud800", 0o644, 0, EMPTY)], b"")
@example([("a\x00/b", 0o755, 0, None)], b"")
@given(ROWS | JSON, st.binary(max_size=10))
def test_a_forged_parcel_reaches_nothing_outside(rows: Any, content: bytes) -> None:
    """A listing names paths, and its digests are right where the sender wants them to be."""
    listing = json.dumps(rows).encode()
    stream = listing + content
    closing = Closing(hashlib.sha256(stream).hexdigest())
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "beside").write_bytes(b"kept")

        receive(Path(name, "staging"), Opening(len(listing)), stream, closing)

        outside = {
            path: data for path, data in files_of(Path(name)).items() if path[:7] != "staging"
        }
        assert outside == {"beside": b"kept"}


def receive(staging: Path, opening: Opening, stream: bytes, closing: Closing) -> bool:
    """Return whether a stream arrived; what did not has left nothing behind."""
    arrival = None
    with refusing(DocumentError, InfrastructureError):
        arrival = Arrival(staging, opening)
        for start in range(0, len(stream), CHUNK_BYTES):
            arrival.take(Content(stream[start : start + CHUNK_BYTES]))
        arrival.finish(closing)
        return True
    if arrival is not None:
        arrival.discard()
    assert not staging.exists()
    return False


@fuzzed(50)
@given(
    st.dictionaries(
        PATHS | st.sampled_from(("../x", "/etc/x", "", "a//b")), st.binary(max_size=9), max_size=5
    )
)
def test_files_are_all_written_or_refused(files: dict[str, bytes]) -> None:
    """Names of files come from tasks and packs, and must not lead out of the folder they name."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "it")
        with refusing(InfrastructureError, SubmissionError):
            write_tree(root, files)

            assert {os.fsencode(p): d for p, d in files_of(root).items()} == {
                os.fsencode(path): data for path, data in files.items()
            }
        assert not set(files_of(Path(name))) - {f"it/{path}" for path in files_of(root)}
