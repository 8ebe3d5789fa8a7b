"""The recipes of the page on scale: each command is run as a cluster would run it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.needs import needs_bwrap
from tests.test_docs import FIRST_TASK, blocks, page, section

SCALE = page("docs/scale.md")
TRIALS = 3


def recipe(title: str, language: str) -> str:
    """Return the first block of a language below a heading."""
    return blocks(section(SCALE, f"## {title}"), language)[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the task that the recipes name."""
    root = tmp_path / "project"
    shutil.copytree(FIRST_TASK, root)
    (root / "pytest.ini").write_text(f"[pytest]\nevalarc_root = {tmp_path / 'root'}\n", "utf-8")
    return root


def run(script: str, project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command of a recipe, with fewer trials, and return what it said."""
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return subprocess.run(
        ["bash", "-ec", script.replace("--evalarc-trials 20", f"--evalarc-trials {TRIALS}")],
        cwd=project,
        env={**env, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def require_whole(results: Path) -> None:
    """See that all trials are there, none of them twice, and that the batch says so."""
    benchmark = json.loads((results / "url-slugs/oracle/night/benchmark.json").read_bytes())
    counted = benchmark["configurations"]["baseline"]
    assert benchmark["selection"] == "complete"
    assert (counted["planned"], counted["succeeded"]) == (TRIALS, TRIALS)
    audit = json.loads((results / "url-slugs/audit/night/audit.json").read_bytes())
    assert audit["mutation_score"] == 1


@pytest.mark.slow
@needs_bwrap
def test_the_slurm_array_runs_and_is_merged(project: Path) -> None:
    """Each task of the array gets its own number, from 0."""
    script = recipe("Slurm", "bash")
    (low, high) = re.findall(r"#SBATCH --array=(\d+)-(\d+)", script)[0]
    count = int(high) + 1
    assert low == "0"
    assert f'/{count}"' in script
    for number in range(count):
        done = run(script, project, SLURM_ARRAY_TASK_ID=str(number))
        assert done.returncode == 0, done.stdout + done.stderr

    submit = blocks(section(SCALE, "## Slurm"), "bash")[1]
    (merge,) = re.findall("--wrap='(.*)'", submit)
    merged = run(merge, project)

    assert merged.returncode == 0, merged.stderr
    require_whole(project / "results")


@pytest.mark.slow
@needs_bwrap
def test_the_indexed_job_runs_and_is_merged(project: Path) -> None:
    """A pod gets its index from 0; what the container is told is a shell's command."""
    job: dict[str, Any] = yaml.safe_load(recipe("Kubernetes", "yaml"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    shared = str(project.parent / "shared")
    (script,) = container["args"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert container["command"] == ["/bin/bash", "-c"]
    assert f'/{job["spec"]["completions"]}"' in script
    for index in range(job["spec"]["completions"]):
        local = script.replace("/shared", shared)
        done = run(local, project, JOB_COMPLETION_INDEX=str(index))
        assert done.returncode == 0, done.stdout + done.stderr

    merged = run(recipe("Kubernetes", "bash").replace("/shared", shared), project)

    assert merged.returncode == 0, merged.stderr
    require_whole(Path(shared, "results"))


@pytest.mark.slow
@needs_bwrap
def test_the_matrix_runs_and_is_merged_and_decided(project: Path) -> None:
    """What the jobs pack is unpacked elsewhere, and the gate is asked of the whole."""
    workflow: dict[str, Any] = yaml.safe_load(recipe("GitHub Actions", "yaml"))
    steps = {
        step["name"]: step["run"]
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "name" in step
    }
    elsewhere = project.parent / "elsewhere"
    numbers = workflow["jobs"]["shard"]["strategy"]["matrix"]["shard"]
    assert f"$SHARD/{len(numbers)}" in steps["Run a shard"]
    for number in numbers:
        job = project.parent / f"job-{number}"
        shutil.copytree(project, job)
        for name in ("Run a shard", "Pack it"):
            done = run(steps[name], job, SHARD=str(number))
            assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(project, elsewhere)
    for number in numbers:
        shutil.copy(project.parent / f"job-{number}" / f"shard-{number}.tar", elsewhere)

    merged, decided = (run(steps[name], elsewhere) for name in ("Merge", "Decide"))

    assert merged.returncode == 0, merged.stderr
    require_whole(elsewhere / "results")
    assert decided.returncode == 0, decided.stdout + decided.stderr
    assert "held: success_rate>=0.8" in decided.stdout
