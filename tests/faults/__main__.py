"""Inject a fault at every call of a session, and write what became of each.

`python -m tests.faults --json faults.json`, from the root of the repository.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.faults.inject import Call, Fault, Faulty, Outcome, build, compiler, inject
from tests.faults.plan import every


def run(calls: list[Call], *, jobs: int, stride: int) -> Iterator[Outcome]:
    """Yield the outcome of each fault injected.

    Args:
        calls: Gets those of an undisturbed session.
        jobs: So many sessions run at once.
        stride: Each so-many-th fault alone is injected.
    """
    with tempfile.TemporaryDirectory(prefix="evalarc-faults-") as name:
        folder = Path(name).resolve()
        library = build(folder)
        undisturbed = Faulty(folder / "undisturbed", library).session()
        if undisturbed.status:
            raise SystemExit(f"the undisturbed session failed:\n{undisturbed.output}")
        calls += undisturbed.calls
        faults = list(every(calls))[::stride]

        def one(numbered: tuple[int, Fault]) -> Outcome:
            number, fault = numbered
            # What a fault has left is looked at below its own folder alone.
            with tempfile.TemporaryDirectory(prefix=f"{number}-", dir=folder) as own:
                return inject(Faulty(Path(own), library), fault)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(one, enumerate(faults))


def document(calls: Sequence[Call], outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return what became of all faults, as JSON."""
    outcomes = list(outcomes)
    injected = [outcome for outcome in outcomes if outcome.fired]
    return {
        "schema_version": "1",
        "calls": dict(sorted(Counter(call.kind for call in calls).items())),
        "injected": len(injected),
        "not_reached": len(outcomes) - len(injected),
        "by_fault": dict(Counter(_name(outcome.fault) for outcome in injected)),
        "held": sum(not outcome.broken for outcome in injected),
        "broken": [
            {"fault": str(outcome.fault), "problems": outcome.broken}
            for outcome in outcomes
            if outcome.broken
        ],
    }


def _name(fault: Fault) -> str:
    """Return the kind of a fault, as `EIO at fsync`."""
    name = str(fault).rpartition(" call ")[0]
    return name if fault.error is not None else "SIGKILL before a call"


def main(arguments: Sequence[str] | None = None) -> int:
    """Inject, print and write; return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--json", type=Path, help="write what became of each fault there")
    parser.add_argument("--jobs", type=int, default=2, help="so many sessions at once (2)")
    parser.add_argument("--stride", type=int, default=1, help="inject each so-many-th fault alone")
    given = parser.parse_args(arguments)
    if compiler() is None:
        parser.error("there is no C compiler `cc`; install one")
    calls: list[Call] = []
    outcomes: list[Outcome] = []
    for outcome in run(calls, jobs=given.jobs, stride=given.stride):
        outcomes.append(outcome)
        word = "BROKEN" if outcome.broken else "held" if outcome.fired else "not reached"
        print(f"{word}: {outcome.fault}, status {outcome.status}", *outcome.broken, sep="\n  ")
        sys.stdout.flush()
    found = document(calls, outcomes)
    print(json.dumps({**found, "broken": len(found["broken"])}))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    return int(bool(found["broken"]))


if __name__ == "__main__":
    sys.exit(main())
