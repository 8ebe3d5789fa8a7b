from __future__ import annotations

import base64
import html
import json
import os
import stat
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.files.folder import READ, Folder
from pytest_evalarc.files.tree import remove_tree, write_tree
from pytest_evalarc.model.base import Cause, Model
from pytest_evalarc.runs.redaction import SECRET_BYTES, Redaction

KEY = 'sk-"osprey"/key+\\0123é'


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def wrapped(data: bytes, width: int, end: str = "\n") -> str:
    text = b64(data)
    return end.join(text[at : at + width] for at in range(0, len(text), width))


SPELLINGS = {
    "plain": KEY,
    "json": json.dumps(KEY),
    "json, not ASCII": json.dumps(KEY, ensure_ascii=False),
    "json in json": json.dumps(json.dumps(KEY)),
    "json with escaped slashes": json.dumps(KEY).replace("/", "\\/"),
    "json, all escaped": "".join(f"\\u{ord(character):04X}" for character in KEY),
    "base64": b64(KEY.encode()),
    "base64 after one byte": b64(b"x" + KEY.encode() + b"yz"),
    "base64 after two bytes": b64(b"xy" + KEY.encode()),
    "base64 for URLs": b64(KEY.encode()).replace("+", "-").replace("/", "_"),
    "base64, wrapped": wrapped(KEY.encode(), 7),
    "base64, wrapped as in MIME": wrapped(KEY.encode(), 7, "\r\n"),
    "base64, wrapped in json": json.dumps(wrapped(KEY.encode(), 7)),
    "base64 in a URL": urllib.parse.quote(b64(KEY.encode()), safe=""),
    "URL": urllib.parse.quote(KEY),
    "URL, all escaped": "".join(f"%{byte:02x}" for byte in KEY.encode()),
    "URL in a URL": urllib.parse.quote(urllib.parse.quote(KEY, safe=""), safe=""),
    "HTML": html.escape(KEY),
    "HTML, all escaped": "".join(f"&#{ord(character)};" for character in KEY),
    "HTML, all escaped in hexadecimal": "".join(f"&#x{ord(character):X};" for character in KEY),
    "Python": repr(KEY),
    "Python, bytes": repr(KEY.encode()),
    "Python, all escaped": "".join(f"\\x{byte:02x}" for byte in KEY.encode()),
    "hexadecimal": KEY.encode().hex(),
    "hexadecimal, upper case": KEY.encode().hex().upper(),
}


def holds(text: str) -> bool:
    """Whether a text gives the key to someone who undoes any spelling of it."""
    text = html.unescape(urllib.parse.unquote(urllib.parse.unquote(text)))
    plain = text.replace("\\/", "/")
    joined = "".join(plain.replace("\\r", "").replace("\\n", "").split())
    for offset in range(3):
        own = b64(b"\0" * offset + KEY.encode() + b"\0\0")[4:-8]
        if own in joined or own.replace("+", "-").replace("/", "_") in joined:
            return True
    return (
        "osprey" in text
        or "\\u006f\\u0073" in text.lower()
        or KEY.encode().hex() in text.lower().replace("\\x", "")
    )


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_each_spelling_is_struck_out_and_its_size_stays(spelling: str) -> None:
    """Sizes are compared later on: what is shorter would pass for a record that was cut."""
    text = f"before {spelling} after {spelling}"

    struck = Redaction([KEY]).text(text)

    assert holds(text)
    assert not holds(struck)
    assert len(struck.encode()) == len(text.encode())
    assert struck.startswith("before ") and " after " in struck


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sk-",
        KEY[: SECRET_BYTES - 1],
        f"{KEY[:-1]} and more",
        KEY[1:],
        f"{KEY[:12]} [… of something]",
        "é\ud800",
        b64(b"another key, as long"),
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Evidence is kept as it was."""
    assert Redaction([KEY]).text(text) == text


CUTS = [
    "[… 12 characters dropped …]",
    "\n[12 bytes dropped]\n",
    r"[\u2026 1 characters dropped \u2026]",
]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", sorted(set(SPELLINGS) - {"base64, wrapped in json"}))
def test_a_piece_at_a_cut_is_struck_out(name: str, cut: str) -> None:
    """What we leave out of a long text can go through a key, and half of one is a key nearly."""
    spelling = SPELLINGS[name].strip('"')
    least = 2 + len(spelling) * (SECRET_BYTES + 2) // len(KEY)
    for at in range(least, len(spelling) - least):
        text = f"before {spelling[:at]}{cut}{spelling[at:]} after"

        struck = Redaction([KEY]).text(text)

        assert struck.startswith("before ") and struck.endswith(" after") and cut in struck
        assert len(struck.encode()) == len(text.encode())
        head, tail = struck[7:-6].split(cut)
        # At either side of base64 what surrounds it decides a character too.
        assert len(head.strip("*")) <= 6 and len(tail.strip("*")) <= 6, (head, tail)


def test_a_piece_at_the_end_of_a_stream_is_struck_out(tmp_path: Path) -> None:
    """A session that is killed ends in the middle of what it was saying."""
    (tmp_path / "transcript").write_text(f"said {KEY[:-1]}")

    Redaction([KEY]).strike(tmp_path)

    assert (tmp_path / "transcript").read_text() == f"said {'*' * len(KEY[:-1].encode())}"


def test_what_a_check_cut_off_before_a_key_s_end_is_struck_out() -> None:
    """The channel keeps the end of a long text, and marks that with a sign at its start."""
    assert Redaction([KEY]).text(f"…{KEY[3:]}.") == f"…{'*' * len(KEY[3:].encode())}."


def test_a_flood_of_cuts_is_searched_in_linear_time() -> None:
    """Whoever has the key can write as many cuts as there is room, and the end of a key at each."""
    flood = f"{KEY[:12]}[… 1 characters dropped …]{KEY[-12:]}\n" * 20_000

    struck = Redaction([KEY]).text(flood)

    assert "osprey" not in struck and "0123" not in struck
    assert len(struck.encode()) == len(flood.encode())


@given(st.binary(min_size=SECRET_BYTES, max_size=40), st.binary(max_size=7), st.binary(max_size=7))
def test_the_base64_of_any_secret_in_any_surroundings_is_struck_out(
    secret: bytes, before: bytes, after: bytes
) -> None:
    """Where the secret begins in a group of three decides its characters."""
    if len(os.fsdecode(secret).strip()) != len(os.fsdecode(secret)) or b"\0" in secret:
        return
    text = b64(before + secret + after)

    struck = Redaction([os.fsdecode(secret)]).text(text)

    assert len(struck) == len(text)
    # At either side up to five bits of the secret share a character with what surrounds it.
    assert struck.count("*") >= len(secret) * 8 // 6 - 1


def test_space_around_a_secret_is_not_part_of_it() -> None:
    """Who uses it takes the newline off that came from a file."""
    assert Redaction([" secret-123\n"]).text("secret-123") == "**********"


def test_a_run_of_backslashes_is_searched_in_linear_time() -> None:
    """A submission may hold anything, and its trial must still come to its end."""
    flood = "\\" * 1_000_000

    assert Redaction(['"\\"\\"\\"\\"secret']).text(flood) == flood


def test_without_secrets_nothing_is_read(tmp_path: Path) -> None:
    """The embedded clients have none, and their trials cost no look at their files."""
    nothing = Redaction()

    assert not nothing
    assert nothing.strike(tmp_path / "absent") == ()
    cause = Cause(kind="x", detail=KEY)
    assert nothing.document(cause) is cause


def test_files_and_names_are_struck_in_place_with_their_modes(tmp_path: Path) -> None:
    """A session may protect what it leaves, nest it deeply, and put the key into a name."""
    deep = "/".join(["d" * 200] * 25)
    files = {
        "plain.txt": f"a {KEY} b",
        "clean.txt": "nothing",
        f"{deep}/hidden": KEY,
        "sub/read-only/key.txt": KEY,
        "names/my-secret-123.txt": "",
        "names/my-**********.txt": "taken",
        "empty": "",
    }
    write_tree(tmp_path / "kept", {path: text.encode() for path, text in files.items()})
    protected = tmp_path / "kept/sub/read-only"
    (protected / "key.txt").chmod(0o400)
    protected.chmod(0o555)
    (tmp_path / "kept/link").symlink_to("/etc/passwd")

    struck = Redaction([KEY, "secret-123"]).strike(tmp_path)

    assert struck[0].startswith("kept/ddd") and struck[0].endswith("/hidden")
    with Folder.at(tmp_path / "kept") as kept, kept.descend(tuple(deep.split("/"))) as folder:
        assert os.read(folder.open("hidden", READ), 99) == b"*" * len(KEY.encode())
    assert struck[1:] == (
        "kept/names/my-**********.txt*",
        "kept/plain.txt",
        "kept/sub/read-only/key.txt",
    )
    assert (tmp_path / "kept/plain.txt").read_text() == f"a {'*' * len(KEY.encode())} b"
    assert (tmp_path / "kept/clean.txt").read_text() == "nothing"
    assert (protected / "key.txt").read_text() == "*" * len(KEY.encode())
    assert stat.S_IMODE((protected / "key.txt").stat().st_mode) == 0o400
    assert stat.S_IMODE(protected.stat().st_mode) == 0o555
    assert (tmp_path / "kept/names/my-**********.txt").read_text() == "taken"
    assert (tmp_path / "kept/names/my-**********.txt*").read_text() == ""
    assert Redaction([KEY, "secret-123"]).strike(tmp_path) == ()
    remove_tree(tmp_path / "kept")


def test_a_document_is_struck_value_by_value() -> None:
    """Causes repeat what a submission or a client said."""
    cause = Cause(kind="code", detail=f"saw {KEY} in \x00")

    assert Redaction([KEY]).document(cause).detail == f"saw {'*' * len(KEY.encode())} in \x00"


def test_names_of_values_are_struck_too() -> None:
    """A path that an agent has named may stand on the left of what a document says of it."""

    class Named(Model):
        by_path: dict[str, int]

    struck = Redaction(["secret-12"]).document(
        Named(by_path={"secret-12": 1, "*********": 2, "a": 3})
    )

    assert struck.by_path == {"*********": 1, "**********": 2, "a": 3}


def test_a_file_that_cannot_be_written_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that is left must not pass for one that was struck out."""
    (tmp_path / "a").write_text(KEY)

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("pytest_evalarc.files.folder.Folder.open", refuse)

    with pytest.raises(OSError, match="Read-only"):
        Redaction([KEY]).strike(tmp_path)
