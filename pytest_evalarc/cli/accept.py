"""`pytest-evalarc accept`: keep in the repository what later results are compared with."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.measured import accepted
from pytest_evalarc.errors import InfrastructureError, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.measured import Measured
from pytest_evalarc.reporting.documents import write_whole
from pytest_evalarc.reporting.measured import DEFAULT_ACCEPTED, accepted_path, read_measured


def accept(results: Path, *, into: Path | None = None) -> Status:
    """Write what was measured into the repository, and print each path.

    Everything is looked at before the first document is written. What was accepted before of the
    same task and client is replaced, and the rest stays.

    Args:
        results: A folder of trials or of an audit, or `results/<batch>`.
        into: Folder of accepted results; made if it is not there. None is `evals/accepted`.

    Raises:
        UsageError: Nothing that was measured is there, or it cannot stand for anything later.
        DocumentError: A document cannot be read or written.
        InfrastructureError: A folder cannot be made.
    """
    measured = read_measured(results)
    for found in measured:
        _require_whole(found)
    folder = into or DEFAULT_ACCEPTED
    for found in measured:
        path = accepted_path(folder, found)
        _make_folder(path.parent)
        print(printable(str(write_whole(path, accepted(found)))))
    return Status.DONE


def _require_whole(measured: Measured) -> None:
    """Refuse what no later result could be compared with."""
    where = f"{measured.task}/{measured.client or 'audit'}/{measured.batch}"
    if measured.kind == "imported":
        hint = "compare it by its own path"
        raise UsageError(where, "is another program's, which is not accepted here", hint)
    if measured.selection == "partial":
        problem = "is partial: a planned trial or control did not reach its end, or is elsewhere"
        raise UsageError(where, problem, "go on with the batch, or merge its shards, first")
    level = measured.conditions.isolation
    if level != "enforced":
        problem = f"ran at the isolation level {level}, and only enforced is compared"
        raise UsageError(where, problem, "run it under an enforced sandbox")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be made: {error.strerror or error}"
        raise InfrastructureError(str(folder), problem, "name a folder with --into") from error
