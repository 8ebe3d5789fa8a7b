"""The soak in its short form: hostile trials take no more memory and leave nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs_bwrap

SOAK = Path(__file__).parent.parent / "benchmarks" / "soak.py"


@needs_bwrap
@pytest.mark.slow
def test_twenty_hostile_trials_stay_within_the_bounds_of_memory_and_descriptors() -> None:
    """What grows by a little with each trial ends a night's batch before it is over."""
    done = subprocess.run(
        [sys.executable, SOAK, "--trials", "20"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = [line.split() for line in done.stdout.splitlines()[1:]]
    assert len(verdicts) == 11
    assert sum("PASS" in words for words in verdicts) == 10


def test_a_missed_bar_fails() -> None:
    """A soak whose figures nobody reads must end with a status that somebody does."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOAK.parent)!r}); import soak; "
        "grown = soak.known_figures(soak.LONG)['worker-growth']; "
        "soak.soak = lambda folder, trials: iter([grown.of(float(trials))]); "
        "sys.exit(10 * soak.main(['--trials', '64']) + soak.main(['--trials', '65']))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stdout + done.stderr
    assert (done.stdout.count("PASS"), done.stdout.count("FAIL")) == (1, 1)
