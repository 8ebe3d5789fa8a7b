"""How long it takes to merge the shards of a large batch.

`python benchmarks/merge.py OUTPUT SHARDS...` merges in this very process, and prints what that
took.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from counting import first_results, write_result
from figures import Figure, Known, require
from flood import peak_bytes
from processes import MIB, PYTEST, ROOT, answer, timed

TASK = "settings-durability"
BATCH = "large"
SHARDS = 4

ALONE = Known("merge, results alone", "s", at_most=5)
ALONE_PEAK = Known("  peak memory, results alone", "MiB")
WHOLE = Known("merge, with all evidence", "s")
WHOLE_PEAK = Known("  peak memory, with all evidence", "MiB")
FIGURES = (ALONE, ALONE_PEAK, WHOLE, WHOLE_PEAK)


def write_shards(folder: Path, first: Path, trials: int, *, evidence: bool) -> list[Path]:
    """Write shards whose trials are copies of a real round's; return their folders.

    Args:
        folder: Where to.
        first: The folder of a plan whose first round has run.
        trials: How many in all.
        evidence: Whether each has a copy of everything that lies beside a result: transcript,
            kept submission, logs. It would be looked at and linked file by file.
    """
    from pytest_evalarc.counting.plan import planned_trials
    from pytest_evalarc.counting.shards import own_trials
    from pytest_evalarc.files.atomic import write_model
    from pytest_evalarc.files.strict import read_model
    from pytest_evalarc.model.base import SCHEMA_VERSION
    from pytest_evalarc.model.planned import Shard
    from pytest_evalarc.model.shard import ShardDoc
    from pytest_evalarc.model.trial import PlanDoc
    from pytest_evalarc.runs.folders import shard_path

    plan = read_model(first / "plan.json", PlanDoc)
    entries = planned_trials(plan.configurations, trials // len(plan.configurations))
    plan = plan.model_copy(update={"trials": entries})
    results = first_results(first, plan.configurations)
    parts = []
    for number in range(1, SHARDS + 1):
        shard = Shard(number=number, of=SHARDS)
        document = ShardDoc(schema_version=SCHEMA_VERSION, batch=BATCH, shard=shard)
        part = folder / f"part-{number}"
        batch = part / TASK / "oracle" / BATCH
        batch.mkdir(parents=True)
        write_model(shard_path(part, BATCH), document)
        write_model(batch / "shard.json", document)
        write_model(batch / "plan.json", plan)
        for entry in own_trials(entries, shard, task=TASK, client="oracle"):
            trial = batch / entry.folder
            if evidence:
                shutil.copytree(first / f"trial-1-{entry.configuration}", trial)
            else:
                trial.mkdir()
            model = results[entry.configuration] | {"trial": entry.trial, "order": entry.order}
            write_result(trial, model)
        parts.append(part)
    return parts


def run_round(results: Path, root: Path) -> Path:
    """Run one round with the oracle, and return the folder of its plan."""
    argv = [*PYTEST, "-p", "no:xdist", "-m", "evalarc_trial"]
    argv += ["--evalarc-task", TASK, "--evalarc-batch", BATCH]
    argv += [f"--evalarc-results={results}", f"--evalarc-root={root}"]
    timed(argv, ROOT)
    return results / TASK / "oracle" / BATCH


def merge_here(output: Path, parts: list[Path]) -> None:
    """Merge in a process that does nothing else, and print what that took."""
    from pytest_evalarc.reporting.merge import merge

    started_s, cpu_s = time.monotonic(), time.process_time()
    merged = merge(parts, output)
    took = {"wall_s": time.monotonic() - started_s, "cpu_s": time.process_time() - cpu_s}
    print(json.dumps(took | {"trials": merged.trials, "peak_mib": peak_bytes() / MIB}))


def merged(folder: Path, first: Path, trials: int, *, evidence: bool) -> dict[str, float]:
    """Return what it took to merge a batch, with the number of its files."""
    parts = write_shards(folder, first, trials, evidence=evidence)
    files = sum(len(names) for part in parts for _, _, names in os.walk(part))
    # Or the disk would still be busy with what was just written.
    os.sync()
    took: dict[str, float] = answer("merge.py", folder / "merged", *parts)
    require(took["trials"] == trials, f"{took['trials']} of {trials} trials were merged")
    return took | {"files": files}


def merge_figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Yield what merging takes, of results alone and with all that lies beside them."""
    trials = 1_000 if quick else 10_000
    first = run_round(folder / "first", folder / "root")
    alone = merged(folder / "alone", first, trials, evidence=False)
    yield ALONE.of(alone["wall_s"], told(alone))
    yield ALONE_PEAK.of(alone["peak_mib"])
    whole = merged(folder / "whole", first, trials, evidence=True)
    yield WHOLE.of(whole["wall_s"], told(whole))
    yield WHOLE_PEAK.of(whole["peak_mib"])


def told(took: dict[str, float]) -> str:
    """Return the size of what was merged, and the CPU it took, as text."""
    size = f"{took['trials']:.0f} trials, {took['files']:.0f} files"
    return f"{size}; {took['cpu_s']:.2f} s CPU"


if __name__ == "__main__":
    output, *parts = map(Path, sys.argv[1:])
    merge_here(output, parts)
