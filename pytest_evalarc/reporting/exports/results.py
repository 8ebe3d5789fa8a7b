"""What an export is made from: plans, trials and audits wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.reporting.audits import read_audit
from pytest_evalarc.reporting.benchmarks import read_results
from pytest_evalarc.reporting.exports.rows import LongRow, audit_rows, trial_rows
from pytest_evalarc.reporting.exports.skill_creator import Batch
from pytest_evalarc.reporting.measured import is_audit, result_folders


def read_rows(path: Path) -> Iterator[LongRow]:
    """Yield the long table of all that lies in a place, one task and client after another.

    Args:
        path: A folder of trials or of an audit, a file in it, or `results/<batch>`.

    Raises:
        DocumentError: A document cannot be read, or says otherwise than its own rows.
        UsageError: No results lie there.
    """
    for folder in result_folders(path):
        if is_audit(folder):
            yield from audit_rows(read_audit(folder))
        else:
            plan = read_model(folder / "plan.json", PlanDoc)
            yield from trial_rows(plan, read_results(folder, plan))


def read_batches(path: Path) -> tuple[Batch, ...]:
    """Return the trials of one client that lie in a place, for `skill_creator_of`.

    Raises:
        DocumentError: A document cannot be read, or says otherwise than its own rows.
        UsageError: There are none, or they are of several clients or treatments.
    """
    batches = []
    for folder in result_folders(path):
        if not is_audit(folder):
            plan = read_model(folder / "plan.json", PlanDoc)
            results = tuple(result for _, result in read_results(folder, plan))
            batches.append(Batch(plan=plan, results=results))
    if not batches:
        raise UsageError(str(path), "holds no trials", "name results/<batch> with trials in it")
    clients = {(batch.plan.client, batch.plan.treatment) for batch in batches}
    if len(clients) > 1:
        names = ", ".join(sorted({client for client, _ in clients}))
        problem = f"holds trials of several clients or treatments: {names}"
        raise UsageError(str(path), problem, "name the folder of one of them")
    return tuple(batches)


def read_audits(path: Path) -> tuple[Audit, ...]:
    """Return the audits that lie in a place.

    Raises:
        DocumentError: A document cannot be read, or does not belong to its plan.
        UsageError: There are none.
    """
    audits = tuple(read_audit(folder) for folder in result_folders(path) if is_audit(folder))
    if not audits:
        raise UsageError(str(path), "holds no audit", "name results/<batch> with an audit in it")
    return audits
