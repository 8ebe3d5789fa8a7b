"""What a candidate that never stops printing does to the harness.

`python benchmarks/flood.py BYTES` grades one in this very process, and prints what that took.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import Figure, Known, require
from processes import MIB, answer

GROWTH = Known("flood on stdout, growth of peak memory", "MiB", at_most=64)
FIGURES = (GROWTH,)


def flood_figures(size: int) -> Iterator[Figure]:
    """Yield how much the harness grows, in a process that does nothing else."""
    seen = flood(size)
    note = f"{size // MIB} MiB at {size / MIB / seen['wall_time_s']:.0f} MiB/s"
    yield GROWTH.of(seen["growth_mib"], note)


def flood(size: int) -> dict[str, Any]:
    """Return what a flood of so many bytes took: `wall_time_s` and `growth_mib`."""
    seen = answer("flood.py", str(size))
    require(seen["stdout_bytes"] == size, f"the flood was cut: {seen}")
    return seen


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
    """Return the peak resident size of this process since its program began.

    What `getrusage` tells begins with the size of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) * 1024


if __name__ == "__main__":
    flood_here(int(sys.argv[1]))
