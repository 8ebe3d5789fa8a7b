"""What is released: the same bytes from any folder, what it must hold, and that it works alone."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

import pytest_evalarc
from release.build import build, unpack
from release.sbom import TOOLS, empty_environment, install_wheel, tool_components, write_sbom
from tests.needs import needs, needs_bwrap
from tests.wheels import EPOCH, PROJECT, checkout, closure, lay_dependencies, tracked

pytestmark = [pytest.mark.slow, needs("git")]

NAME = f"pytest_evalarc-{pytest_evalarc.__version__}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a wheel and an sdist of the files at hand."""
    folder = tmp_path_factory.mktemp("one")
    source = checkout(folder / "source", mode=0o644, time=1_600_000_000)
    return build(source, folder / "dist", epoch=EPOCH)


def test_two_builds_give_the_same_bytes(
    built: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever doubts a release builds it again, and no other machine has our clock or umask."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    source = checkout(tmp_path / "elsewhere" / "tree", mode=0o600, time=1_700_000_000)

    again = build(source, tmp_path / "dist", epoch=EPOCH)

    assert [path.name for path in again] == [path.name for path in built]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


@pytest.mark.parametrize("knows_filters", [True, False])
def test_what_is_unpacked_is_the_same_where_python_knows_no_filters(
    built: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    knows_filters: bool,
) -> None:
    """They came with 3.11.4, and systems that are in use have an older one."""
    if not knows_filters:
        monkeypatch.delattr(tarfile, "tar_filter", raising=False)

    with tarfile.open(built[1]) as sdist:
        unpack(sdist, tmp_path)
        modes = {member.name: member.mode for member in sdist if member.isfile()}

    found = {path: (tmp_path / path).stat().st_mode & 0o777 for path in modes}
    assert found == modes


def test_a_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    """A missing data file fails at a user's, and a stray one is theirs to carry for ever."""
    info = f"{NAME}.dist-info"
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()

    assert sorted(names) == sorted(
        [
            *tracked("pytest_evalarc"),
            *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")),
            *(f"{info}/{name}" for name in ("top_level.txt", "licenses/LICENSE")),
        ]
    )
    assert "pytest_evalarc/py.typed" in names


def test_an_sdist_holds_what_the_wheel_is_built_from(built: tuple[Path, Path]) -> None:
    """Half of the tests, which is what the backend takes by itself, would serve nobody."""
    with tarfile.open(built[1]) as sdist:
        names = {member.name.partition("/")[2] for member in sdist if member.isfile()}
    generated = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}

    words = {"LICENSE", "README.md", "CHANGELOG.md", "MANIFEST.in", "pyproject.toml"}
    assert names - generated == words | set(tracked("pytest_evalarc"))


@pytest.fixture(scope="module")
def empty(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment of the wheel and what it declares, no more.

    The dependencies are those of the environment at hand, copied, so no network is needed.
    """
    folder = tmp_path_factory.mktemp("empty")
    python = empty_environment(folder)
    lay_dependencies(folder)
    install_wheel(python, built[0])
    return python


def run(argv: list[str], folder: Path) -> str:
    """Run a program as somebody would who has never seen the checkout."""
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_bwrap
def test_the_shipped_packs_are_audited_from_the_wheel_alone(empty: Path, tmp_path: Path) -> None:
    """Anything that only a checkout has, or that only developers install, is missing here."""
    options = ["--evalarc-seeds=17", "--evalarc-audit=fast", f"--evalarc-root={tmp_path / 'root'}"]
    packs = ["--pyargs", "pytest_evalarc.packs", "-k", "audit"]

    run([str(empty), "-m", "pytest", *packs, *options], tmp_path)

    # Those in JavaScript are skipped where there is no Node.
    names = ("durable-kv", "robot-evidence-review", "support-routing")
    paths = [tmp_path / "results" / name / "audit" / "latest" / "audit.json" for name in names]
    audits = [json.loads(path.read_text("utf-8")) for path in paths]
    assert [audit["passed"] for audit in audits] == [True] * 3
    assert [(audit["mutation_score"], audit["killed"]) for audit in audits] == [
        (1.0, 8),
        (1.0, 6),
        (1.0, 7),
    ]


def test_the_console_command_of_the_wheel_tells_its_version(empty: Path, tmp_path: Path) -> None:
    """It is the one entry point that pytest does not read."""
    said = run([str(empty.with_name("pytest-evalarc")), "--version"], tmp_path)

    assert said == f"pytest-evalarc {pytest_evalarc.__version__}\n"


def test_the_wheel_says_what_it_is(empty: Path, tmp_path: Path) -> None:
    """Indexes sort by classifiers, type checkers look for the marker, pytest for the entry."""
    code = (
        "import importlib.metadata as m, json, pathlib, pytest_evalarc as p;"
        "d = m.distribution('pytest-evalarc');"
        "print(json.dumps([d.version, d.metadata.get_all('Classifier'),"
        " [[e.group, e.name, e.value] for e in d.entry_points],"
        " pathlib.Path(p.__file__).with_name('py.typed').exists()]))"
    )

    version, classifiers, points, is_typed = json.loads(run([str(empty), "-c", code], tmp_path))

    assert version == pytest_evalarc.__version__
    assert {"Framework :: Pytest", "Typing :: Typed"} <= set(classifiers)
    assert sorted(points) == [
        ["console_scripts", "pytest-evalarc", "pytest_evalarc.cli.main:main"],
        ["pytest11", "evalarc", "pytest_evalarc.plugin.entry"],
    ]
    assert is_typed


def test_the_sbom_lists_what_the_wheel_brings(empty: Path, tmp_path: Path) -> None:
    """Who must know what they run gets names and versions, and no path of the builder's machine."""
    write_sbom(empty, tmp_path / "sbom.json")
    write_sbom(empty, tmp_path / "again.json")

    text = (tmp_path / "sbom.json").read_text("utf-8")
    listed = {canonicalize_name(part["name"]): part for part in json.loads(text)["components"]}
    brought = {canonicalize_name(found.name) for found in closure(PROJECT["dependencies"])}
    tools = {found["name"] for found in tool_components(json.loads(TOOLS.read_text("utf-8")))}
    assert set(listed) == {"pytest-evalarc", *brought, *tools}
    assert all(part["version"] and part["purl"] for part in listed.values())
    assert (tmp_path / "again.json").read_text("utf-8") == text
    assert str(empty.parents[1]) not in text
    assert str(Path(sys.prefix)) not in text


def test_the_sbom_pins_the_agents_as_their_lock_does() -> None:
    """They are the larger part of what runs, and come from another registry than the wheel."""
    found = {part["purl"]: part for part in tool_components(json.loads(TOOLS.read_text("utf-8")))}

    locked = json.loads(TOOLS.read_text("utf-8"))["packages"]["node_modules/@openai/codex"]
    codex = found[f"pkg:npm/%40openai/codex@{locked['version']}"]
    (hash_,) = codex["hashes"]
    assert hash_["alg"] == "SHA-512"
    assert base64.b64encode(bytes.fromhex(hash_["content"])).decode() in locked["integrity"]
    assert codex["licenses"] == [{"license": {"name": "Apache-2.0"}}]
    # One package of it for each machine, all of one name.
    assert sum(part["name"] == "@openai/codex" for part in found.values()) > 1
    assert all(part["scope"] == "optional" for part in found.values())
