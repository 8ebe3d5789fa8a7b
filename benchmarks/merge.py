"""How long it takes to merge the shards of a large batch, told beside its bar.

`python benchmarks/merge.py` needs the package installed, and a working bubblewrap. It exits with 0
whatever the figure is: a loaded machine is no defect. `--quick` merges a tenth of the trials.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TASK = "settings-durability"
BATCH = "large"
SHARDS = 4
TRIALS = 10_000
MIB = 1 << 20
BAR_S = 5.0


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
    results = {
        name: json.loads((first / f"trial-1-{name}" / "result.json").read_bytes())
        for name in plan.configurations
    }
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
            text = json.dumps(model, indent=2, ensure_ascii=False) + "\n"
            (trial / "result.json").write_text(text, "utf-8")
        parts.append(part)
    return parts


def run_round(results: Path, root: Path) -> Path:
    """Run one round with the oracle, and return the folder of its plan."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    argv += ["--evalarc-task", TASK, "-m", "evalarc_trial", "--evalarc-batch", BATCH]
    argv += [f"--evalarc-results={results}", f"--evalarc-root={root}"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the round did not run:\n{done.stdout}{done.stderr}")
    return results / TASK / "oracle" / BATCH


def merge_here(output: Path, parts: list[Path]) -> None:
    """Merge in a process that does nothing else, and print what that took."""
    from pytest_evalarc.reporting.merge import merge

    started_s, cpu_s = time.monotonic(), time.process_time()
    merged = merge(parts, output)
    took = {"wall_s": time.monotonic() - started_s, "cpu_s": time.process_time() - cpu_s}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(took | {"trials": merged.trials, "peak_mib": peak / MIB}))


def measured(folder: Path, first: Path, trials: int, *, evidence: bool) -> dict[str, float]:
    """Return what it took to merge a batch, with the number of its files."""
    parts = write_shards(folder, first, trials, evidence=evidence)
    files = sum(len(names) for part in parts for _, _, names in os.walk(part))
    # Or the disk would still be busy with what was just written.
    os.sync()
    argv = [sys.executable, __file__, "--merge-here", str(folder / "merged"), *map(str, parts)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    took: dict[str, float] = json.loads(done.stdout)
    if took["trials"] != trials:
        raise SystemExit(f"only {took['trials']} of {trials} trials were merged")
    return took | {"files": files}


def told(took: dict[str, float], *, bar_s: float | None) -> str:
    """Return a figure as text, with its bar and verdict where there is one."""
    verdict = ""
    if bar_s is not None:
        verdict = f" (bar {bar_s:g} s, {'PASS' if took['wall_s'] <= bar_s else 'FAIL'})"
    size = f"{took['trials']:.0f} trials, {took['files']:.0f} files"
    return (
        f"{size}: {took['wall_s']:.2f} s{verdict}, {took['cpu_s']:.2f} s CPU, "
        f"peak {took['peak_mib']:.0f} MiB"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="merge a tenth of the trials")
    parser.add_argument("--merge-here", type=Path, nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.merge_here:
        output, *parts = given.merge_here
        merge_here(output, parts)
        return
    trials = TRIALS // 10 if given.quick else TRIALS
    print(f"{platform.python_implementation()} {platform.python_version()}", end=", ")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="evalarc-benchmark-") as name:
        folder = Path(name).resolve()
        first = run_round(folder / "first", folder / "root")
        alone = measured(folder / "alone", first, trials, evidence=False)
        print("results alone:", told(alone, bar_s=BAR_S * trials / TRIALS), flush=True)
        whole = measured(folder / "whole", first, trials, evidence=True)
        print("with all evidence:", told(whole, bar_s=None))
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
