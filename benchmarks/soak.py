"""Hundreds of trials whose sessions and submissions are hostile, under xdist on two workers.

`python benchmarks/soak.py` runs them, prints what they did to the processes of pytest, and ends
with 1 when a bar is missed. `--trials` makes it shorter.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import psutil
from figures import HEADS, Figure, Known, line, require
from processes import MIB, PYTEST

WORKERS = 2
TRIALS = 500
EVERY_S = 0.1
TASK = """\
kind = "capability"
prompt = "Do it."
toolchain = "python"
editable = ["answer.py", "more"]
[checks.check]
"""
CHECK = "from answer import value\n\n\ndef test_it():\n    assert value == 2\n"
START = {"type": "start", "format": "evalarc.stream.v1", "cwd": "/project"}
DONE = {"type": "completion", "is_error": False}
GOOD = "value = 2\n"


class Bars(NamedTuple):
    """What the processes of pytest may grow by, which a few trials tell less sharply."""

    kept_kib: float
    """Of memory, for each trial: pytest keeps a report of every phase of every item, in the worker
    that ran it and in the controller, and those of one trial are some 30 KiB."""
    descriptors: float


LONG_TRIALS = 100
LONG = Bars(kept_kib=64, descriptors=2)
SHORT = Bars(kept_kib=4096, descriptors=8)
"""Of fewer than `LONG_TRIALS`: every kind of trial is the first of its kind in a worker then."""


class Hostile(NamedTuple):
    """What one kind of trial prints and leaves."""

    stream: bytes
    files: Mapping[str, bytes] = MappingProxyType({})
    links: Mapping[str, str] = MappingProxyType({})


def event(**facts: object) -> bytes:
    """Return one line of a stream."""
    return json.dumps(facts).encode() + b"\n"


def session(*said: bytes) -> bytes:
    """Return a stream that begins and ends as it should, whatever lies between."""
    return event(**START) + b"".join(said) + event(**DONE)


def hostile() -> dict[str, Callable[[], Hostile]]:
    """Return the kinds of trials by name; each is made only when it is written down."""
    text = b'{"type": "text", "text": "'
    noise = bytes(range(256)) * 4096
    return {
        "plain": lambda: Hostile(session()),
        "flood": lambda: Hostile(session(event(type="text", text="x" * 100) * 60_000)),
        "control": lambda: Hostile(session(noise.replace(b"\n", b""), b"\n\x1b]0;owned\x07\n")),
        "not-utf-8": lambda: Hostile(session(text + b"\xff\xfe\xed\xa0\x80" * 50_000 + b'"}\n')),
        "deep": lambda: Hostile(session(b"[" * 200_000 + b"]" * 200_000 + b"\n")),
        "long-line": lambda: Hostile(session(text + b"y" * (8 * MIB) + b'"}\n')),
        "torn": lambda: Hostile(event(**START) + text + b"z" * 1000),
        "many-files": lambda: Hostile(
            session(), {f"more/{n % 40}/{n}.txt": b"%d" % n for n in range(1_000)}
        ),
        "links": lambda: Hostile(
            session(),
            links={"more/loop": "loop", "more/out": "/etc/passwd", "more/gone": "nowhere"},
        ),
        "loud-checks": lambda: Hostile(
            session(),
            {"answer.py": b'import os\nos.write(1, b"\\x1b[2J\\xff" * 400_000)\nvalue = 2\n'},
        ),
    }


def write_recordings(folder: Path, trials: int) -> None:
    """Write a recorded session for each trial; those of a kind are one, by a link."""
    kinds = hostile()
    for name, make in kinds.items():
        kind = make()
        home = folder / "kinds" / name
        for path, content in {"answer.py": GOOD.encode(), **kind.files}.items():
            file = home / "submission" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        (home / "transcript.jsonl").write_bytes(kind.stream)
        if kind.links:
            document = {"entries": [_link(path, to) for path, to in kind.links.items()]}
            (home / "submission.json").write_text(json.dumps(document), "utf-8")
    names = list(kinds)
    for number in range(1, trials + 1):
        name = names[(number - 1) % len(names)]
        (folder / f"trial-{number}-baseline").symlink_to(f"kinds/{name}")


def _link(path: str, target: str) -> dict[str, object]:
    return {"path": path, "type": "symlink", "mode": "0777", "size": 0, "target": target}


def write_project(root: Path) -> None:
    """Write a project with one task of one check."""
    task = root / "evals/tasks/small"
    for path, content in {
        "task.toml": TASK,
        "starter/answer.py": "value = 1\n",
        "checks/check.py": CHECK,
    }.items():
        file = task / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    (root / "pytest.ini").write_text("[pytest]\n", "utf-8")


class Look(NamedTuple):
    """One process of pytest at one moment."""

    finished: int
    """Trials with a result by then."""
    peak_bytes: int
    resident_bytes: int
    descriptors: int


class Watched:
    """The controller and its workers, looked at until the controller ends."""

    def __init__(self, process: subprocess.Popen[str], results: Path) -> None:
        self.looks: dict[int, list[Look]] = {}
        self._process = process
        self._results = results

    def watch(self) -> None:
        """Look until the controller has ended."""
        while self._process.poll() is None:
            finished = sum(1 for _ in self._results.glob("small/replay/soak/*/result.json"))
            for pid in self._pids():
                with contextlib.suppress(OSError, ValueError):
                    self.looks.setdefault(pid, []).append(_look(pid, finished))
            time.sleep(EVERY_S)

    def _pids(self) -> Iterator[int]:
        yield self._process.pid
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children():
                # A worker of xdist is started with a line that reads its program from stdin.
                with contextlib.suppress(psutil.Error):
                    if "exec(eval(sys.stdin.readline()))" in " ".join(child.cmdline()):
                        yield child.pid

    def of(self, pid: int, since: int) -> list[Look]:
        """Return the looks at a process from so many finished trials on."""
        return [look for look in self.looks[pid] if look.finished >= since]

    @property
    def controller(self) -> int:
        """The id of the controller."""
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """The ids of the workers that were there from the beginning to the end."""
        return [pid for pid in self.looks if pid != self.controller]


def _look(pid: int, finished: int) -> Look:
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    kib = {key: int(rest.split()[0]) for key, rest in _fields(text) if key in ("VmHWM", "VmRSS")}
    if len(kib) < 2:
        raise ValueError("it is ending and has no memory any more")
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    return Look(finished, kib["VmHWM"] * 1024, kib["VmRSS"] * 1024, descriptors)


def _fields(status: str) -> Iterator[tuple[str, str]]:
    for row in status.splitlines():
        key, _, rest = row.partition(":")
        yield key, rest


def known_figures(bars: Bars) -> dict[str, Known]:
    """Return what is measured, by a word for each."""
    kept, more = bars
    return {
        "controller": Known("soak, controller, peak memory", "MiB", at_most=128),
        "controller-growth": Known("  more for each trial, once warm", "KiB", at_most=kept),
        "adding-up": Known("  more when it adds up at the end", "MiB", at_most=32),
        "worker": Known("soak, largest worker, peak memory", "MiB", at_most=192),
        "worker-growth": Known("  more for each of its trials, once warm", "KiB", at_most=kept),
        "most": Known("soak, open descriptors, most of a process", "count", at_most=128),
        "descriptors": Known("  more at the end than once warm, median", "count", at_most=more),
        "left": Known("soak, processes left", "count", at_most=0),
        "bytes": Known("soak, bytes left of the evaluation root", "count", at_most=0),
        "groups": Known("soak, control groups left", "count", at_most=0),
        "trial": Known("soak, a trial, of the whole session", "s"),
    }


def soak(folder: Path, trials: int) -> Iterator[Figure]:
    """Run so many trials in an empty folder, and yield what that did."""
    known = known_figures(LONG if trials >= LONG_TRIALS else SHORT)
    project, results, root = folder / "project", folder / "results", folder / "root"
    write_project(project)
    write_recordings(folder / "recordings", trials)
    argv = [*PYTEST, "-n", str(WORKERS), "-m", "evalarc_trial", "evals", "--evalarc-client=replay"]
    argv += [f"--evalarc-trials={trials}", "--evalarc-batch=soak", f"--evalarc-root={root}"]
    argv += [f"--evalarc-results={results}", "-p", "no:hypothesispytest"]
    argv += [f"--evalarc-model-setting=recording={folder / 'recordings'}"]
    started_s = time.monotonic()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(argv, cwd=project, stdout=output, stderr=output, text=True)
        watched = Watched(process, results)
        watched.watch()
    spent_s = time.monotonic() - started_s
    _require_whole(results, trials, said=(folder / "output").read_bytes()[-2_000:])
    yield from _memory(watched, known, trials)
    yield from _descriptors(watched, known, trials)
    yield known["left"].of(len(_left(folder)))
    yield known["bytes"].of(_bytes_below(root))
    yield known["groups"].of(len(_groups({*watched.looks})))
    yield known["trial"].of(spent_s / trials, f"{trials} trials in {spent_s:.0f} s")


def warm(trials: int) -> int:
    """Return the trial from which on nothing may grow: each kind was seen by then."""
    return max(trials // 5, len(hostile()))


def _require_whole(results: Path, trials: int, *, said: bytes) -> None:
    """See that all trials are counted, and that each kind came out as it must."""
    path = results / "small/replay/soak/benchmark.json"
    require(path.exists(), f"there is no benchmark: {said.decode('utf-8', 'replace')}")
    counted = json.loads(path.read_bytes())["configurations"]["baseline"]
    require(counted["planned"] == trials, f"the counts are {counted}")
    outcomes: dict[str, set[str]] = {}
    names = list(hostile())
    for result in results.glob("small/replay/soak/*/result.json"):
        document = json.loads(result.read_bytes())
        name = names[(document["trial"] - 1) % len(names)]
        outcomes.setdefault(name, set()).add(document["outcome"])
    require(all(len(found) == 1 for found in outcomes.values()), f"by kind: {outcomes}")
    require(outcomes["plain"] == {"succeeded"}, f"by kind: {outcomes}")


def _memory(watched: Watched, known: dict[str, Known], trials: int) -> Iterator[Figure]:
    since = warm(trials)

    def kept_kib(pid: int, ran: float) -> float:
        looks = [look for look in watched.of(pid, since) if look.finished < trials]
        resident = [look.resident_bytes / 1024 for look in looks]
        # Many looks meet a line of many MiB; what stays is in the least of them.
        fifth = max(1, len(resident) // 5)
        grown = min(resident[-fifth:]) - min(resident[:fifth])
        # Between the middles of the first and the last fifth lie four fifths of those trials.
        return grown / (0.8 * ran)

    def at_the_end(pid: int) -> float:
        looks = watched.looks[pid]
        before = [look.peak_bytes for look in looks if look.finished < trials]
        return (looks[-1].peak_bytes - max(before)) / MIB

    def peak(pid: int) -> float:
        return watched.looks[pid][-1].peak_bytes / MIB

    note = f"from trial {since} to {trials}"
    yield known["controller"].of(peak(watched.controller))
    yield known["controller-growth"].of(kept_kib(watched.controller, trials - since), note)
    # What adds up is imported then, and all results are read.
    yield known["adding-up"].of(at_the_end(watched.controller))
    workers = watched.workers
    require(len(workers) == WORKERS, f"there were {len(workers)} workers, so one has died")
    yield known["worker"].of(max(peak(pid) for pid in workers))
    ran = (trials - since) / WORKERS
    yield known["worker-growth"].of(max(kept_kib(pid, ran) for pid in workers), note)


def _descriptors(watched: Watched, known: dict[str, Known], trials: int) -> Iterator[Figure]:
    most = {pid: max(look.descriptors for look in looks) for pid, looks in watched.looks.items()}
    yield known["most"].of(max(most.values()))
    since = warm(trials)
    more, at_end = [], []
    for pid in watched.looks:
        looks = [look.descriptors for look in watched.of(pid, since)]
        # In the midst of a trial a process has some that it closes again, and at its end hardly
        # any is left: neither the most nor the least is what it keeps.
        third = max(1, len(looks) // 3)
        at_end.append(statistics.median(looks[-third:]))
        more.append(at_end[-1] - statistics.median(looks[:third]))
    yield known["descriptors"].of(max(more), f"median at the end: {max(at_end):g}")


def _left(folder: Path) -> list[int]:
    """Return the processes whose command line names the folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.cmdline()):
                found.append(process.pid)
    return found


def _bytes_below(root: Path) -> int:
    return sum(path.lstat().st_size for path in root.rglob("*")) + int(root.exists())


def _groups(pids: set[int]) -> list[Path]:
    from pytest_evalarc.isolation.limits import GROUP_PREFIX, hierarchy

    place = hierarchy()
    parents = set(place.parents.values()) if place else set()
    found = [folder for parent in parents for folder in parent.glob(f"{GROUP_PREFIX}*")]
    return [path for path in found if int(path.name.split("-")[2]) in pids]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print a line for each figure, and return 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="python benchmarks/soak.py", description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"default: {TRIALS}")
    given = parser.parse_args(arguments)
    print(line(HEADS), flush=True)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="evalarc-soak-") as name:
        for figure in soak(Path(name).resolve(), given.trials):
            print(line(figure.cells), flush=True)
            missed += figure.verdict == "FAIL"
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
