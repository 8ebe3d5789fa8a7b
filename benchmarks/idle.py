"""What the plugin costs a project that has nothing to evaluate."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Known
from processes import PYTEST, cost, median_ms

ADDED = Known("idle plugin, added CPU", "ms", at_most=10)
RATIO = Known("idle plugin, CPU with : without", "ratio")
PYDANTIC = Known("idle plugin, pydantic imported", "0 or 1", at_most=0)
FIGURES = (ADDED, RATIO, PYDANTIC)


def idle_figures(folder: Path, runs: int) -> Iterator[Figure]:
    """Yield what the plugin adds to a pytest run that has nothing to evaluate."""
    folder.mkdir()
    (folder / "test_one.py").write_text("def test_one():\n    pass\n", "utf-8")
    # Hypothesis costs several times what pytest does, and its noise would drown everything.
    program = [*PYTEST, "-p", "no:hypothesispytest"]
    # Both get an option of one form, since reading one costs as well.
    program, without = [*program, "-p", "no:nothing"], [*program, "-p", "no:evalarc"]
    for warm_up in (program, without):
        cost(warm_up, folder)
    # Interleaved and compared by pairs, so that a machine that gets busier meets both alike.
    pairs = [(cost(program, folder).cpu_s, cost(without, folder).cpu_s) for _ in range(runs)]
    added = median_ms(there - gone for there, gone in pairs)
    bare = f"pytest without it: {median_ms(gone for _, gone in pairs):.0f} ms"
    yield ADDED.of(added, f"median of {runs} pairs of runs", beside=bare)
    yield RATIO.of(statistics.median(there / gone for there, gone in pairs))
    yield PYDANTIC.of(float(imports_pydantic(folder)))


def imports_pydantic(folder: Path) -> bool:
    """Return whether an idle run imports pydantic."""
    source = "import sys, pytest; pytest.main(['-q']); print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1] == "True"
