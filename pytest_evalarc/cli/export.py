"""`pytest-evalarc export`: results in the forms that other programs read."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_evalarc.cli.output import require_other_files
from pytest_evalarc.cli.project import DEFAULT_TASKS, project_root
from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.task import Task
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.reporting.documents import write_bytes
from pytest_evalarc.reporting.exports.long_table import csv_of, long_json_of
from pytest_evalarc.reporting.exports.mutation_report import mutation_report_of
from pytest_evalarc.reporting.exports.results import read_audits, read_batches, read_rows
from pytest_evalarc.reporting.exports.skill_creator import skill_creator_of
from pytest_evalarc.tasks.load import load_task


def export(
    results: Path, *, kind: str, output: Path | None = None, tasks: Path | None = None
) -> Status:
    """Write or print results in another form.

    Args:
        results: A folder of trials or of an audit, or `results/<batch>`.
        kind: One of `FORMATS`.
        output: Where it goes; None prints it.
        tasks: Folder of tasks, in which a mutation report looks mutants up; None is `evals/tasks`
            below the current folder.

    Raises:
        DocumentError: A document cannot be read or written.
        UsageError: The results are not there, or have no such form.
    """
    require_other_files((results,), {"--output": output})
    data = _exported(results, kind, tasks or Path(DEFAULT_TASKS))
    if output is not None:
        write_bytes(output, data)
    else:
        # As bytes: a document is UTF-8 whatever the terminal is, and CSV has its own line ends.
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    return Status.DONE


def _exported(results: Path, kind: str, tasks: Path) -> bytes:
    match kind:
        case "csv":
            return csv_of(read_rows(results))
        case "long-json":
            return long_json_of(read_rows(results))
        case "skill-creator":
            return skill_creator_of(read_batches(results))
        case _:
            audits = read_audits(results)
            return mutation_report_of(audits, _tasks_of(audits, tasks))


def _tasks_of(audits: tuple[Audit, ...], tasks: Path) -> dict[str, Task]:
    """Return the tasks of audits that are still what was audited."""
    current = Path.cwd()
    root = project_root(current) or current
    toolchains = tuple(installed().toolchains.names)
    found = {}
    for audit in audits:
        folder = current / tasks / audit.task.name
        try:
            task = load_task(folder, root=root, toolchains=toolchains)
        except EvalArcError:
            # One that was removed, changed or is graded by a pack: its mutants are listed.
            continue
        if task.sha256 == audit.task.content_hash:
            found[task.name] = task
    return found
