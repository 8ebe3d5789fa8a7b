"""What counting a batch of many results takes.

`python benchmarks/counting.py BATCH` counts one in this very process, and prints what that took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from figures import Figure, Known, require
from flood import peak_bytes
from processes import MIB, answer

WALL = Known("benchmark.json, wall time", "s", at_most=3)
PEAK = Known("benchmark.json, peak memory", "MiB", at_most=300)
RESUME = Known("resume, which trials are finished", "s", at_most=1)
FIGURES = (WALL, PEAK, RESUME)


def counting_figures(folder: Path, ran: Path, results: int) -> Iterator[Figure]:
    """Yield what counting a large batch takes, each result a copy of one that a trial left."""
    copy_batch(ran, folder, results)
    seen = answer("counting.py", folder)
    note = f"{results} results"
    yield WALL.of(seen["count_s"], note)
    yield PEAK.of(seen["peak_mib"], note)
    yield RESUME.of(seen["finished_s"], note)


def copy_batch(ran: Path, batch: Path, results: int) -> None:
    """Write a batch of so many trials from the documents of a small one."""
    from pytest_evalarc.counting.plan import planned_trials
    from pytest_evalarc.files.atomic import write_model
    from pytest_evalarc.files.strict import read_model
    from pytest_evalarc.model.trial import PlanDoc, TrialResult

    plan = read_model(ran / "plan.json", PlanDoc)
    trials = planned_trials(plan.configurations, results // len(plan.configurations))
    batch.mkdir(parents=True)
    write_model(batch / "plan.json", plan.model_copy(update={"trials": trials}))
    models = first_results(ran, plan.configurations)
    for entry in trials:
        (batch / entry.folder).mkdir()
        model = models[entry.configuration] | {"trial": entry.trial, "order": entry.order}
        write_result(batch / entry.folder, model)
    read_model(batch / trials[-1].folder / "result.json", TrialResult)


def first_results(ran: Path, configurations: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the result of each configuration's first trial."""
    paths = {name: ran / f"trial-1-{name}" / "result.json" for name in configurations}
    return {name: json.loads(path.read_bytes()) for name, path in paths.items()}


def write_result(trial: Path, model: dict[str, Any]) -> None:
    """Write the result of a trial as a run leaves it."""
    text = json.dumps(model, indent=2, ensure_ascii=False) + "\n"
    (trial / "result.json").write_text(text, "utf-8")


def count_here(batch: Path) -> None:
    """Count a batch in a process that does nothing else, and print what that took."""
    from pytest_evalarc.files.strict import read_model
    from pytest_evalarc.model.trial import PlanDoc
    from pytest_evalarc.reporting.batch import write_document

    started_s = time.monotonic()
    plan = read_model(batch / "plan.json", PlanDoc)
    finished = sum((batch / entry.folder / "result.json").exists() for entry in plan.trials)
    finished_s = time.monotonic() - started_s
    require(finished == len(plan.trials), f"{finished} of {len(plan.trials)} results are there")
    started_s = time.monotonic()
    write_document(batch)
    count_s = time.monotonic() - started_s
    peak_mib = peak_bytes() / MIB
    print(json.dumps({"finished_s": finished_s, "count_s": count_s, "peak_mib": peak_mib}))


if __name__ == "__main__":
    count_here(Path(sys.argv[1]))
