from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.clients.codex.program import stage, staged_in
from pytest_evalarc.errors import SetupError

PACKAGE = {
    "codex-package.json": b'{"layoutVersion":1}',
    "bin/codex": b"\x7fELF codex",
    "bin/codex-code-mode-host": b"\x7fELF host",
    "codex-path/rg": b"\x7fELF rg",
    "codex-resources/bwrap": b"\x7fELF bwrap",
    "codex-resources/voice/lib/libvoice.so": b"large",
}


def write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755)


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def test_a_package_is_copied_in_its_order_without_its_voice(tmp_path: Path) -> None:
    """The program finds what it starts by where it lies itself."""
    write(tmp_path / "package", PACKAGE)

    stage(tmp_path / "package/bin/codex", tmp_path / "staged")

    kept = {name: content for name, content in PACKAGE.items() if "voice" not in name}
    assert files(tmp_path / "staged") == kept
    program = staged_in(tmp_path / "staged")
    assert program == tmp_path / "staged/bin/codex"
    assert program.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["codex", "codex-next"])
def test_a_program_alone_is_copied_alone(tmp_path: Path, name: str) -> None:
    """What lies beside it may be anybody's, and a trial could read it."""
    write(tmp_path / "bin", {name: b"\x7fELF", "other": b"secret"})

    stage(tmp_path / "bin" / name, tmp_path / "staged")

    assert files(tmp_path / "staged") == {f"bin/{name}": b"\x7fELF"}
    assert staged_in(tmp_path / "staged") == tmp_path / "staged/bin" / name


def test_a_folder_that_was_not_staged_is_told(tmp_path: Path) -> None:
    """Somebody emptied it, or it is another client's."""
    with pytest.raises(SetupError, match="does not hold the program of codex; start a new batch"):
        staged_in(tmp_path)
    write(tmp_path, {"bin/a": b"", "bin/b": b""})
    with pytest.raises(SetupError, match="does not hold the program"):
        staged_in(tmp_path)
