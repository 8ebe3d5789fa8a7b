"""Figures of the foundation, each measured in one run and told beside its bar.

`python benchmarks/foundation.py` needs the package installed, and a working bubblewrap. It exits
with 0 whatever the figures are: a loaded machine is no defect. `--quick` measures less of each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TASK = "settings-durability"
MIB = 1 << 20
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""Without a setting that keeps compiled modules from being stored, which no user has."""


class Sizes(NamedTuple):
    """How much is measured of each figure."""

    idle_runs: int
    trials: int
    flood_bytes: int
    bare_runs: int
    items: int
    collections: int
    results: int


FULL = Sizes(
    idle_runs=40,
    trials=5,
    flood_bytes=1 << 30,
    bare_runs=40,
    items=10_000,
    collections=7,
    results=10_000,
)
QUICK = Sizes(
    idle_runs=6,
    trials=1,
    flood_bytes=128 * MIB,
    bare_runs=10,
    items=2_000,
    collections=3,
    results=1_000,
)


class Figure(NamedTuple):
    """One line of the table; a bar of None is told and not judged."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """PASS or FAIL, or a dash when there is no bar."""
        if self.bar is None:
            return "-"
        return "PASS" if self.value <= self.bar else "FAIL"

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        bar = "-" if self.bar is None else f"<= {self.bar:g}"
        return (self.name, f"{self.value:.2f}", self.unit, bar, self.verdict, self.note)


# The plugin in a project without evals.


def idle_figures(folder: Path, runs: int) -> Iterator[Figure]:
    """Yield what the plugin adds to a pytest run that has nothing to evaluate."""
    (folder / "test_one.py").write_text("def test_one():\n    pass\n", "utf-8")
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # Hypothesis costs several times what pytest does, and its noise would drown everything.
    program += ["-p", "no:hypothesispytest"]
    # Both get an option of one form, since reading one costs as well.
    program, without = [*program, "-p", "no:nothing"], [*program, "-p", "no:evalarc"]
    for warm_up in (program, without):
        cpu_time_s(warm_up, folder)
    # Interleaved and compared by pairs, so that a machine that gets busier meets both alike.
    pairs = [(cpu_time_s(program, folder), cpu_time_s(without, folder)) for _ in range(runs)]
    added = statistics.median(there - gone for there, gone in pairs)
    ratio = statistics.median(there / gone for there, gone in pairs)
    note = f"median of {runs} pairs of runs; {median_ms(gone for _, gone in pairs):.0f} ms without"
    yield Figure("idle plugin, added CPU", added * 1000, "ms", 10, note)
    yield Figure("idle plugin, CPU with : without", ratio, "ratio")
    yield Figure("idle plugin, pydantic imported", float(imports_pydantic(folder)), "0 or 1", 0)


def cpu_time_s(argv: Sequence[str], folder: Path) -> float:
    """Return user and system seconds of a process and its children."""
    process = subprocess.Popen(argv, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def imports_pydantic(folder: Path) -> bool:
    """Return whether an idle run imports pydantic."""
    source = "import sys, pytest; pytest.main(['-q']); print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1] == "True"


# The oracle's trials, and their hidden checks.


class OracleTrial(NamedTuple):
    """One finished trial in seconds: the whole item, what is not ours, and our stages."""

    item_s: float
    session_s: float
    commands_s: float
    stages_s: dict[str, float]
    check_times_s: tuple[float, ...]

    @property
    def ours_s(self) -> float:
        """Wall time beyond the client's session and the graded commands."""
        return self.item_s - self.session_s - self.commands_s

    @property
    def split_s(self) -> dict[str, float]:
        """Our own seconds by stage; `other` is what stands in no stage, as writing the result."""
        ours = dict(self.stages_s)
        ours["session"] -= self.session_s
        ours["grade"] -= self.commands_s
        return ours | {"other": self.item_s - sum(self.stages_s.values())}


def oracle_trials(folder: Path, trials: int) -> list[OracleTrial]:
    """Run trials with pytest itself and return them in the order they ran."""
    report = folder / "report.xml"
    results = folder / "results"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    argv += ["--evalarc-task", TASK, "--evalarc-trials", str(trials), "-m", "evalarc_trial"]
    argv += ["--evalarc-results", str(results), "--evalarc-root", str(folder / "root")]
    argv += ["--junitxml", str(report), "-o", "junit_duration_report=call"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the trials did not run:\n{done.stdout}{done.stderr}")
    times_s = item_times_s(report)
    paths = results.glob(f"{TASK}/oracle/*/trial-*/result.json")
    documents = sorted(
        (json.loads(path.read_bytes()) for path in paths if path.parent.parent.name != "latest"),
        key=lambda document: document["started_at"],
    )
    return [_trial(document, times_s) for document in documents]


def item_times_s(report: Path) -> dict[tuple[str, int], float]:
    """Return the seconds of each `run` item by configuration and trial."""
    times_s = {}
    for case in ET.parse(report).iter("testcase"):
        if case.get("name") == "run":
            *_, configuration, trial = case.get("classname", "").split(".")
            number = int(trial.removeprefix("trial-"))
            times_s[configuration, number] = float(case.get("time", "nan"))
    return times_s


def _trial(document: dict, times_s: dict[tuple[str, int], float]) -> OracleTrial:
    if document["outcome"] != "succeeded":
        raise SystemExit(f"an oracle trial did not succeed: {document['cause']}")
    grading = document["gradings"][-1]
    return OracleTrial(
        item_s=times_s[document["mode"], document["trial"]],
        session_s=document["elapsed_secs"],
        commands_s=grading["command_time_s"],
        stages_s=document["stages_secs"],
        check_times_s=tuple(row["wall_time_s"] for row in grading["rows"]),
    )


def oracle_figures(trials: Sequence[OracleTrial]) -> Iterator[Figure]:
    """Yield what a trial costs beyond its session and its graded commands."""
    ours = [trial.ours_s * 1000 for trial in trials]
    note = f"{len(trials)} trials; commands {median_ms(t.commands_s for t in trials):.0f} ms"
    yield Figure("oracle trial, own wall time, median", statistics.median(ours), "ms", 150, note)
    note = "the first trial stages the tools and proves the sandbox for all"
    yield Figure("oracle trial, own wall time, first", ours[0], "ms", None, note)
    yield Figure("oracle trial, own wall time, max after it", max(ours[1:]), "ms")
    share = statistics.median(trial.ours_s / trial.commands_s for trial in trials)
    yield Figure("oracle trial, own wall time : commands", share, "ratio")
    for stage in trials[0].split_s:
        spent = median_ms(trial.split_s[stage] for trial in trials)
        yield Figure(f"  of it in {stage}, median", spent, "ms")


def check_figures(trials: Sequence[OracleTrial], runs: int) -> Iterator[Figure]:
    """Yield what a hidden check costs, against an interpreter that does nothing."""
    check = median_ms(spent for trial in trials for spent in trial.check_times_s)
    bare = bare_ms("pass", runs)
    pytest = bare_ms(f"import sys; sys.path.append({site_packages()!r}); import pytest", runs)
    yield Figure("hidden check, wall time, median", check, "ms")
    yield Figure(
        "hidden check : python -I -S -c pass", check / bare, "ratio", None, f"{bare:.0f} ms"
    )
    note = f"{pytest:.0f} ms"
    yield Figure("hidden check : the same with import pytest", check / pytest, "ratio", None, note)


def site_packages() -> str:
    """Return the folder that pytest is installed in."""
    import pytest

    return str(Path(pytest.__file__).parent.parent)


def bare_ms(source: str, runs: int) -> float:
    """Return the median wall milliseconds of an interpreter, as many at once as checks run."""

    def run_one(_: int) -> float:
        started_s = time.monotonic()
        subprocess.run([sys.executable, "-I", "-S", "-c", source], check=True)
        return time.monotonic() - started_s

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return median_ms(pool.map(run_one, range(runs)))


def median_ms(seconds: Iterable[float]) -> float:
    """Return the median in milliseconds."""
    return statistics.median(seconds) * 1000


# A candidate that never stops printing.


def flood_figures(size: int) -> Iterator[Figure]:
    """Yield how much the harness grows, in a process that does nothing else."""
    argv = [sys.executable, __file__, "--flood-here", str(size)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    if seen["stdout_bytes"] != size:
        raise SystemExit(f"the flood was cut: {seen}")
    note = f"{size // MIB} MiB at {size / MIB / seen['wall_time_s']:.0f} MiB/s"
    yield Figure("flood on stdout, growth of peak memory", seen["growth_mib"], "MiB", 64, note)


def flood_here(size: int) -> None:
    """Grade with a process that prints so many bytes, and print what that did to this one."""
    from pytest_evalarc.grading.grade import EXCERPT_BYTES
    from pytest_evalarc.grading.lab import FileLab
    from pytest_evalarc.grading.records import RECORD_BYTES, judge
    from pytest_evalarc.grading.toolchain import Tools
    from pytest_evalarc.grading.toolchains.python import Python
    from pytest_evalarc.isolation.bwrap import Bwrap
    from pytest_evalarc.isolation.capture import Capture
    from pytest_evalarc.model.task import Limits

    with tempfile.TemporaryDirectory() as name:
        work = Path(name).resolve()
        lab = FileLab(sandbox=Bwrap(), toolchain=Python(), tools=Tools(root=work), work=work)
        channel, complaints = Capture(RECORD_BYTES), Capture(EXCERPT_BYTES, EXCERPT_BYTES)
        before = peak_bytes()
        exit = lab.run(
            ["/bin/sh", "-c", f"exec head -c {size} /dev/zero"],
            stdin=b"",
            reads=(),
            # Beyond the flood, so that all of it flows.
            limits=Limits(output_mib=size // MIB + 1),
            deadline_s=120,
            stdout=channel,
            stderr=complaints,
        )
        judge(channel.data(), "nonce", exit)
        growth = peak_bytes() - before
    said = {"stdout_bytes": exit.stdout_bytes, "wall_time_s": exit.wall_time_s}
    print(json.dumps(said | {"growth_mib": growth / MIB}))


def peak_bytes() -> int:
    """Return the peak resident size of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# Many items, and many results.


class Cost(NamedTuple):
    """What a process took: user and system seconds, and its peak resident size."""

    cpu_s: float
    peak_mib: float


def collection_figures(folder: Path, items: int, runs: int) -> Iterator[Figure]:
    """Yield what sessions that collect evals cost, against one module of plain test functions."""
    plain, evals = folder / "plain", folder / "evals"
    trials = items // ITEMS_OF_A_TRIAL
    write_small_task(evals / "evals" / "tasks" / "small")
    plain.mkdir()
    for project in (plain, evals):
        (project / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (plain / "test_one.py").write_text("def test_one():\n    pass\n", "utf-8")
    functions = "".join(f"def test_{number}():\n    pass\n" for number in range(items))
    (plain / "test_many.py").write_text(functions, "utf-8")
    few, many = ("evals", "--evalarc-trials=1"), ("evals", f"--evalarc-trials={trials}")
    # Interleaved and compared by pairs, so that a machine that gets busier meets both alike.
    pairs = []
    for _ in range(runs + 1):
        ours = collection_cost(evals, few), collection_cost(evals, many)
        plains = collection_cost(plain, ("test_one.py",)), collection_cost(plain, ("test_many.py",))
        pairs.append((ours, plains))
    del pairs[0]  # It compiled what the others read.
    whole = [(ours[1], plains[1]) for ours, plains in pairs]
    grown = [(growth(ours), growth(plains)) for ours, plains in pairs]
    note = f"whole sessions of {items} items, median of {runs} pairs"
    yield Figure("collection, CPU, evals : functions", cpu_ratio(whole), "ratio", 0.6, note)
    note = f"{statistics.median(ours.peak_mib for ours, _ in whole):.0f} MiB"
    yield Figure("collection, memory, evals : functions", peak_ratio(whole), "ratio", 1, note)
    note = "beyond a session that collects one trial, or one function"
    yield Figure("  of what grows with the items, CPU", cpu_ratio(grown), "ratio", None, note)
    yield Figure("  of what grows with the items, memory", peak_ratio(grown), "ratio")


def cpu_ratio(pairs: Sequence[tuple[Cost, Cost]]) -> float:
    """Return the median ratio of the seconds of pairs of processes."""
    return statistics.median(ours.cpu_s / theirs.cpu_s for ours, theirs in pairs)


def peak_ratio(pairs: Sequence[tuple[Cost, Cost]]) -> float:
    """Return the median ratio of the peak sizes of pairs of processes."""
    return statistics.median(ours.peak_mib / theirs.peak_mib for ours, theirs in pairs)


ITEMS_OF_A_TRIAL = 10


def write_small_task(task: Path) -> None:
    """Write a valid task whose trials have ten items each: `run`, eight checks and `success`."""
    checks = [f"check_{number}" for number in range(ITEMS_OF_A_TRIAL - 2)]
    (task / "starter").mkdir(parents=True)
    (task / "checks").mkdir()
    (task / "starter" / "answer.py").write_text("value = 1\n", "utf-8")
    for check in checks:
        body = "from answer import value\n\n\ndef test_it():\n    assert value == 2\n"
        (task / "checks" / f"{check}.py").write_text(body, "utf-8")
    head = 'kind = "capability"\nprompt = "Do it."\n'
    head += 'toolchain = "python"\neditable = ["answer.py"]\n'
    tables = "".join(f"[checks.{check}]\n" for check in checks)
    (task / "task.toml").write_text(head + tables, "utf-8")


def growth(costs: tuple[Cost, Cost]) -> Cost:
    """Return what the larger of two sessions took beyond the smaller."""
    small, large = costs
    return Cost(large.cpu_s - small.cpu_s, large.peak_mib - small.peak_mib)


def collection_cost(folder: Path, arguments: Sequence[str]) -> Cost:
    """Return what `pytest --collect-only -q` takes."""
    argv = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider"]
    argv += ["-p", "no:hypothesispytest", "-p", "no:randomly", *arguments]
    process = subprocess.Popen(argv, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def batch_figures(folder: Path, ran: Path, results: int) -> Iterator[Figure]:
    """Yield what counting a large batch takes, each result a copy of one that a trial left."""
    batch = folder / "batch"
    copy_batch(ran, batch, results)
    argv = [sys.executable, __file__, "--count-here", str(batch)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    note = f"{results} results"
    yield Figure("benchmark.json, wall time", seen["count_s"], "s", 3, note)
    yield Figure("benchmark.json, peak memory", seen["peak_mib"], "MiB", 300, note)
    yield Figure("resume, which trials are finished", seen["finished_s"], "s", 1, note)


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
    models = {
        name: json.loads((ran / f"trial-1-{name}" / "result.json").read_bytes())
        for name in plan.configurations
    }
    for entry in trials:
        model = models[entry.configuration] | {"trial": entry.trial, "order": entry.order}
        text = json.dumps(model, indent=2, ensure_ascii=False) + "\n"
        (batch / entry.folder).mkdir()
        (batch / entry.folder / "result.json").write_text(text, "utf-8")
    read_model(batch / trials[-1].folder / "result.json", TrialResult)


def count_here(batch: Path) -> None:
    """Count a batch in a process that does nothing else, and print what that took."""
    from pytest_evalarc.files.strict import read_model
    from pytest_evalarc.model.trial import PlanDoc
    from pytest_evalarc.reporting.batch import write_document

    started_s = time.monotonic()
    plan = read_model(batch / "plan.json", PlanDoc)
    finished = sum((batch / entry.folder / "result.json").exists() for entry in plan.trials)
    finished_s = time.monotonic() - started_s
    if finished != len(plan.trials):
        raise SystemExit(f"only {finished} of {len(plan.trials)} results are there")
    started_s = time.monotonic()
    write_document(batch)
    count_s = time.monotonic() - started_s
    peak_mib = peak_bytes() / MIB
    print(json.dumps({"finished_s": finished_s, "count_s": count_s, "peak_mib": peak_mib}))


# The table.


def measured(sizes: Sizes) -> Iterator[Figure]:
    """Yield every figure, each as soon as it is known."""
    with tempfile.TemporaryDirectory(prefix="evalarc-benchmark-") as name:
        folder = Path(name).resolve()
        idle, trials = folder / "idle", folder / "trials"
        idle.mkdir()
        trials.mkdir()
        yield from idle_figures(idle, sizes.idle_runs)
        ran = oracle_trials(trials, sizes.trials)
        yield from oracle_figures(ran)
        yield from check_figures(ran, sizes.bare_runs)
        yield from flood_figures(sizes.flood_bytes)
        yield from collection_figures(folder / "collection", sizes.items, sizes.collections)
        (batch,) = {path.parent.resolve() for path in trials.glob("results/*/*/*/plan.json")}
        yield from batch_figures(folder, batch, sizes.results)


def show(figures: Iterable[Figure], write: Callable[[str], object]) -> None:
    """Write a table of figures, a line as soon as it is known."""
    widths = (44, 9, 7, 7, 7, 0)
    heads = ("figure", "value", "unit", "bar", "verdict", "")
    write(_line(heads, widths))
    for figure in figures:
        write(_line(figure.cells, widths))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, value, *rest = cells
    words = [name.ljust(widths[0]), value.rjust(widths[1])]
    words += [cell.ljust(width) for cell, width in zip(rest, widths[2:], strict=True)]
    return "  ".join(words).rstrip()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure less of each figure")
    parser.add_argument("--flood-here", type=int, metavar="BYTES", help=argparse.SUPPRESS)
    parser.add_argument("--count-here", type=Path, metavar="BATCH", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count_here is not None:
        count_here(given.count_here)
        return
    if given.flood_here is not None:
        flood_here(given.flood_here)
        return
    print(f"{platform.python_implementation()} {platform.python_version()}", end=", ")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    show(measured(QUICK if given.quick else FULL), lambda line: print(line, flush=True))
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
