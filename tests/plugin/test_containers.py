"""Candidates of packs in containers, through pytest: what is written, and what is left."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pytest_evalarc.isolation.engine  # noqa: F401 - see conftest.py.
from tests.isolation.images import (
    IMAGE,
    NODE_IMAGE,
    containers,
    import_image,
    node_archive,
    podman_environ,
)
from tests.needs import needs, needs_bwrap, needs_podman
from tests.plugin.project import Project, Session

__all__ = ["podman_environ"]

pytestmark = [needs_bwrap, pytest.mark.slow]

FILE = "evals/tasks/support/task.toml"
PACK = 'kind = "capability"\n[pack]\nname = "support-routing"\nseeds = [17]\n'
AUDIT = ("--evalarc-batch=b", "--evalarc-audit=fast", "-v", "-k", "audit")
SOME = (*AUDIT[:-1], "starter or skip-retry")
"""Enough of an audit where nothing of it can run."""
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///nowhere. Is the docker daemon running?"


@pytest.fixture
def packed(project: Project) -> Project:
    """Return a project with one task more, which a pack judges."""
    project.write(FILE, PACK)
    return project


@pytest.fixture
def podman(podman_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Lead every session of a test to the engine that has the images."""
    for name in ("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"):
        monkeypatch.setenv(name, podman_environ[name])
    return podman_environ


def image_id(environ: dict[str, str], image: str) -> str:
    argv = ["podman", "image", "inspect", "--format", "{{.Id}}", image]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    return f"sha256:{done.stdout.strip()}"


def audit_of(project: Project) -> Any:
    return json.loads((project.results / "support/audit/b/audit.json").read_text("utf-8"))


def require_nothing_decided(project: Project, session: Session, sentence: str) -> None:
    """Hold a run whose candidates could not be started to what it may then say."""
    assert session.ret == 1
    assert set(session.words(FILE).values()) == {"FAILED"}
    told = {line for line in session.stdout.splitlines() if line.startswith("sandbox ")}
    assert told == {sentence}
    assert "Traceback" not in session.stdout
    audit = audit_of(project)
    assert (audit["passed"], audit["reason"], audit["selection"]) == (False, "partial", "partial")
    assert (audit["mutation_score"], audit["detection"]["weakest_margin"]) == (None, None)
    assert audit["reference"] is None
    assert {mutant["class"] for mutant in audit["mutants"]} == {"not_run"}
    assert project.documents("*.json").keys() == {
        "support/audit/b/audit.json",
        "support/audit/b/plan.json",
    }


@needs_podman
def test_an_audit_in_containers_finds_what_it_finds_elsewhere(
    packed: Project, podman: dict[str, str], pytester: pytest.Pytester
) -> None:
    """The boundary is the user's choice, and what it shows must be told beside the verdict."""
    options = ("--evalarc-sandbox=podman", f"--evalarc-image={IMAGE}")

    session = packed.inline(pytester, FILE, *AUDIT, *options)

    assert session.ret == 0
    assert set(session.words(FILE).values()) == {"PASSED"}
    assert "mutation score 1.00 (7 of 7 detected), weakest margin 1" in session.stdout
    audit = audit_of(packed)
    assert (audit["passed"], audit["sandbox"], audit["killed"]) == (True, "podman", 7)
    margins = {mutant["name"]: mutant["detection_margin"] for mutant in audit["mutants"]}
    assert margins == {
        "claim-without-actions": 4,
        "wrong-ticket": 4,
        "wrong-queue": 4,
        "duplicate-note": 4,
        "close-unresolved": 2,
        "skip-retry": 1,
        "new-key-on-retry": 1,
    }
    ran_in = (IMAGE, image_id(podman, IMAGE))
    runtime, isolation = audit["reference"]["runtime"], audit["reference"]["isolation"]
    assert (runtime["sandbox"], runtime["toolchain"]) == ("podman", "the python of the image")
    assert (runtime["image"], runtime["image_id"]) == ran_in
    assert (isolation["image"], isolation["image_id"]) == ran_in
    assert containers(podman, os.getpid()) == []


@needs_podman
@needs("node")
def test_only_candidates_of_packs_are_put_in_containers(
    packed: Project, podman: dict[str, str], pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """All else needs what is staged on the host, and its results must not claim otherwise."""
    import_image(podman, NODE_IMAGE, node_archive(tmp_path / "node"))
    packed.write(FILE, PACK + 'language = "javascript"\n')
    options = ("--evalarc-sandbox=podman", f"--evalarc-image={NODE_IMAGE}", "--evalarc-batch=b")

    session = packed.inline(
        pytester, "evals", *options, "--evalarc-trials=1", "-m", "evalarc_trial"
    )

    assert session.ret == 0
    ran_in = {
        Path(path).parts[0]: (
            result["isolation"]["record"]["sandbox"],
            result["gradings"][0]["isolation"]["sandbox"],
            result["gradings"][0]["isolation"]["image"],
            result["success"],
        )
        for path, result in packed.documents("result.json").items()
    }
    assert ran_in == {
        "hello": ("bwrap", "bwrap", None, "pass"),
        "support": ("bwrap", "podman", NODE_IMAGE, "pass"),
    }
    planned = {
        Path(path).parts[0]: (plan["sandbox"], plan["image"])
        for path, plan in packed.documents("plan.json").items()
    }
    assert planned == {"hello": ("bwrap", None), "support": ("podman", NODE_IMAGE)}
    assert containers(podman, os.getpid()) == []


@needs_podman
def test_an_image_that_is_not_there_decides_nothing(
    packed: Project, podman: dict[str, str], pytester: pytest.Pytester
) -> None:
    """No candidate was started, so none may be blamed, and the user learns how to bring it."""
    options = ("--evalarc-sandbox=podman", "--evalarc-image=localhost/gone:1")

    session = packed.inline(pytester, FILE, *SOME, *options)

    require_nothing_decided(
        packed,
        session,
        "sandbox podman: there is no image localhost/gone:1 on this machine, and none is ever "
        "fetched; bring it with `podman pull localhost/gone:1` or `podman load`",
    )


def test_an_engine_that_does_not_run_is_told_in_one_sentence(
    packed: Project, pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many machines have Docker's client and no engine; this one answers as that client does."""
    docker = tmp_path / "docker"
    docker.write_text(
        f"#!/bin/sh\necho '{{\"ServerVersion\":\"\"}}'\necho '{NO_DAEMON}' >&2\nexit 1\n"
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    session = packed.inline(pytester, FILE, *SOME, "--evalarc-sandbox=docker")

    require_nothing_decided(
        packed,
        session,
        f"sandbox docker: the engine does not answer ({NO_DAEMON}); start it, or use another "
        "sandbox",
    )


def test_an_image_needs_a_sandbox_that_has_one(packed: Project, pytester: pytest.Pytester) -> None:
    """Otherwise the candidates would run among the host's programs, and nobody would notice."""
    session = packed.inline(pytester, FILE, *AUDIT, f"--evalarc-image={IMAGE}")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        f"--evalarc-image: cannot be {IMAGE}, for the sandbox bwrap has no image; "
        "add --evalarc-sandbox podman, or docker"
    ) in session.stderr
    assert not packed.results.exists()


def test_a_batch_stays_with_its_image(
    packed: Project, pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows from two images in one document would be the verdict on neither."""
    monkeypatch.setenv("PATH", str(tmp_path))
    some = (FILE, *SOME, "--evalarc-sandbox=podman")
    packed.inline(pytester, *some, "--evalarc-image=first")

    session = packed.inline(pytester, *some, "--evalarc-image=second")

    assert session.ret == 1
    assert "--evalarc-batch: the batch was planned with another image" in session.stdout
