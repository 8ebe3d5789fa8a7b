"""The release workflow: what it may do, what it runs, and in which order."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_evalarc
from release import changelog, tag
from release.changelog import ROOT, Fragment, section, with_release

TEXT = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
# YAML 1.1 takes the key `on` for a truth value.
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
BUILD, PUBLISH = WORKFLOW["jobs"]["build"], WORKFLOW["jobs"]["publish"]


def test_only_a_tag_of_a_version_starts_a_release() -> None:
    """A pull request or a branch that could start it would publish what nobody released."""
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}


def test_what_builds_may_write_nothing_and_what_publishes_builds_nothing() -> None:
    """Code of dependencies runs while it builds, and must not hold what publishes."""
    assert WORKFLOW["permissions"] == {}
    assert BUILD["permissions"] == {"contents": "read"}
    assert PUBLISH["permissions"] == {
        "id-token": "write",
        "attestations": "write",
        "contents": "write",
    }
    assert (PUBLISH["needs"], PUBLISH["environment"]) == ("build", "pypi")
    assert not re.search(r"pip install|python", str(PUBLISH["steps"]))
    assert "secrets." not in TEXT


def test_every_action_is_named_by_its_commit() -> None:
    """A tag can be moved to other code after it was looked at."""
    used = [step["uses"] for job in (BUILD, PUBLISH) for step in job["steps"] if "uses" in step]

    assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []


def test_it_is_built_twice_described_and_attested_before_it_is_published() -> None:
    """Once it is published nothing of it can be taken back."""
    runs = [step["run"] for step in BUILD["steps"] if "run" in step]
    modules = [name for text in runs for name in re.findall(r"python -m (release\.\w+)", text)]

    assert modules == ["release.tag", "release.advisories", "release.build", "release.sbom"]
    assert all(callable(importlib.import_module(name).main) for name in modules)
    uses = [step.get("uses", "").partition("@")[0] for step in PUBLISH["steps"]]
    assert uses.index("actions/attest-build-provenance") < uses.index("pypa/gh-action-pypi-publish")


def test_tools_are_installed_from_their_lock() -> None:
    """A tool that was exchanged on its way here would write the release."""
    (text,) = [step["run"] for step in BUILD["steps"] if "pip install" in step.get("run", "")]

    assert "--require-hashes --only-binary :all: -r requirements/release.txt" in text


def released(root: Path, changes: list[Fragment]) -> None:
    """Lay out a checkout whose changelog tells of the version at hand."""
    (root / "pytest_evalarc").mkdir()
    told = f'__version__ = "{pytest_evalarc.__version__}"\n'
    (root / "pytest_evalarc" / "__init__.py").write_text(told, "utf-8")
    (root / "changelog").mkdir()
    release = section(pytest_evalarc.__version__, "2026-12-01", changes)
    text = with_release(f"# Changelog\n\n{changelog.UNRELEASED}", release)
    (root / "CHANGELOG.md").write_text(text, "utf-8")


def test_a_tag_gives_the_changes_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tag beside the version, or changes that were not collected, stop the release with why."""
    released(tmp_path, [Fragment("a", "feature", "Packs can be listed.")])
    monkeypatch.setattr(tag, "ROOT", tmp_path)
    notes = tmp_path / "notes.md"
    right = f"v{pytest_evalarc.__version__}"

    assert tag.main([right, str(notes)]) == 0
    assert notes.read_text("utf-8") == "### Added\n\n- Packs can be listed.\n"
    assert tag.main(["v9.9.9", str(notes)]) == 1
    assert "the tag v9.9.9 is not that of version" in capsys.readouterr().err
    (tmp_path / "changelog" / "b.bugfix.md").write_text("No more.\n", "utf-8")
    assert tag.main([right, str(notes)]) == 1
    assert "changelog/ still holds 1 fragments; collect them first" in capsys.readouterr().err
