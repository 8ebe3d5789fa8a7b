"""`pytest-evalarc report`: a folder of results as one page for people."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.cli.output import require_other_files
from pytest_evalarc.cli.project import DEFAULT_TASKS, evaluated_task
from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.text import printable
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.reporting.page.gather import batch_folders
from pytest_evalarc.reporting.page.page import write_page
from pytest_evalarc.reporting.page.trial import Sources

DEFAULT_FILE = Path("evalarc.html")


def run_report(
    results: Path, *, batch: str | None, output: Path | None, tasks: Path | None
) -> Status:
    """Write the report page of a folder of results, and say where it is and what it lacks.

    Args:
        results: The folder of results.
        batch: The batch's name; None takes the newest one of each task and client.
        output: The page; None is `evalarc.html` in the current folder.
        tasks: Where the tasks are, of which prompts and starters are taken; None is `evals/tasks`
            below the current folder.

    Raises:
        DocumentError: There is no such batch, or the page cannot be written.
    """
    file = output or DEFAULT_FILE
    require_other_files([results], {"-o": file})
    folders = batch_folders(results, batch)
    if not folders:
        found = "holds no results" if batch is None else f"holds no batch {batch!r}"
        raise DocumentError(str(results), found, "name the folder that --evalarc-results names")
    registry = installed()
    folder = tasks or Path(DEFAULT_TASKS)
    sources = Sources(
        clients=registry.clients.get,
        task_of=lambda ref: evaluated_task(ref, registry, folder),
        packs=registry.packs.get,
        page_folder=file.parent,
    )
    gathered = write_page(folders, file, sources)
    print(printable(str(file)))
    for problem in gathered.problems:
        print(f"left out: {printable(str(problem))}")
    return Status.DONE
