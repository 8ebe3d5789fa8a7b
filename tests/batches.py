"""Whole batches on disk, by their gradings: each trial ended, behind an enforced boundary.

```python
folder = write_batch(tmp_path, {"without-skills": [grading("adds.sums")], "with-skills": [None]})
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.model.audit import ControlDoc
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.grading import CheckRow, Grading
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.task import TaskRef
from pytest_evalarc.model.transcript import Transcript, Usage
from pytest_evalarc.reporting.audits import read_audit
from pytest_evalarc.runs.draft import Draft
from pytest_evalarc.runs.plan import make_audit_plan
from tests.documents import grading
from tests.evals import Evals

ENFORCED = IsolationRecord(level="enforced", sandbox="bwrap", version="0.12.0")


def write_batch(
    root: Path,
    gradings: Mapping[str, Sequence[Grading | None]],
    *,
    batch: str = "b1",
    files: Mapping[str, str] | None = None,
    **facts: Any,
) -> Path:
    """Write the trials of both configurations, and return their folder.

    Args:
        root: Below it lie a project, and `results/`.
        gradings: Of each trial, by configuration; None passes everything.
        batch: Its name.
        files: Written over those of the small project, so that its task is another.
        **facts: Of every draft, in place of what it usually is.
    """
    (length,) = {len(found) for found in gradings.values()}
    evals = Evals(root, batch_name=batch, files=files or {}, options={"trials": length})
    folder = evals.folder
    folder.mkdir(parents=True)
    write_model(folder / "plan.json", evals.plan)
    for entry in evals.plan.trials:
        draft = Draft(
            plan=evals.plan,
            entry=entry,
            client=evals.known_client,
            execution=Execution.COMPLETED,
            elapsed_s=12.5,
            isolation=ENFORCED,
            usage=Usage(input_tokens=100, output_tokens=20, cache_read_tokens=5),
            grading=gradings[entry.configuration][entry.trial - 1] or grading(),
        )
        for name, value in facts.items():
            setattr(draft, name, value)
        (folder / entry.folder).mkdir()
        write_model(folder / entry.folder / "result.json", draft.result())
    return folder


def transcript_of(version: str) -> Transcript:
    """Return what a client of a version said of itself."""
    return Transcript(events=1, interpreted=True, client_version=version, models=("m1",))


def write_audit(root: Path, *, batch: str = "b1", task: TaskRef | None = None) -> Path:
    """Write an audit of the small project, as its controls were graded; return its folder.

    Its first mutant is detected by one check, and the second one is not.
    """
    evals = Evals(root, batch_name=batch)
    plan = make_audit_plan(evals.task, evals.request, sandbox="bwrap")
    if task is not None:
        plan = plan.model_copy(update={"task": task})
    folder = evals.batch.folders.audit(evals.task.name)
    (folder / "rows").mkdir(parents=True)
    write_model(folder / "plan.json", plan)
    fails = {
        "reference": (),
        "reference-repeat": (),
        "starter": ("adds", "empty"),
        "first-only": ("adds",),
        "empty-is-one": (),
    }
    for number, (control, failing) in enumerate(fails.items()):
        rows = tuple(_row(check, passed=check not in failing) for check in ("adds", "empty"))
        graded = grading(rows=rows, digest=f"{number:x}")
        document = ControlDoc(
            schema_version=SCHEMA_VERSION, task=plan.task, control=control, grading=graded
        )
        write_model(folder / "rows" / f"{control}.json", document)
    write_model(folder / "audit.json", read_audit(folder))
    return folder


def _row(check: str, *, passed: bool) -> CheckRow:
    dimension = {"adds": "sums", "empty": "edges"}[check]
    status = "passed" if passed else "failed"
    return CheckRow(check=check, verdicts={dimension: passed}, status=status, answered=True)
