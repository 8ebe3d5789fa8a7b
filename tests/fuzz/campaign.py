"""Fuzz for some minutes: rounds of all tests here with new examples, and what they found.

```console
$ python tests/fuzz/campaign.py --minutes 60 --output fuzz.json
```

Prints a line for each round, and writes the sums as JSON: how many examples were tried, for how
long, and which tests failed. A failure ends the rounds, for what comes after a fix counts alone.
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
OWN_TESTS = FOLDER / "test_campaign.py"
FAILED, CUT_OFF = 1, 2
"""How pytest ends when a test failed, and when it was interrupted at the end of the time."""


@dataclass
class Campaign:
    """What was tried so far."""

    schema_version: str = "1.0"
    seconds: float = 0.0
    rounds: int = 0
    """Those that came to their end."""
    examples: int = 0
    """Of these rounds, and of the tests of the last one that ended in time."""
    by_test: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    """What pytest said of each test that failed, with the seed to try it again."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz until the time is over; return 1 if anything was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=ROOT / "fuzz.json")
    asked, more = parser.parse_known_args(arguments)
    began = time.monotonic()
    end = began + 60 * asked.minutes
    campaign = Campaign()
    while time.monotonic() < end and not campaign.findings:
        play_round(campaign, end - time.monotonic(), more)
        campaign.seconds = round(time.monotonic() - began, 1)
        asked.output.write_text(json.dumps(asdict(campaign), indent=2) + "\n", encoding="utf-8")
        found = len(campaign.findings)
        print(f"{campaign.seconds:.0f} s: {campaign.examples:,} examples tried, {found} findings")
    print("\n".join(campaign.findings), end="\n" if campaign.findings else "")
    return FAILED if campaign.findings else 0


def play_round(campaign: Campaign, left_s: float, more: Sequence[str]) -> None:
    """Run all tests once with a new seed, for no longer than the time that is left."""
    seed = secrets.randbelow(1 << 32)
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "counts.json")
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(FOLDER),
            "-q",
            "--tb=short",
            f"--ignore={OWN_TESTS}",
        ]
        command += ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}"]
        command += [f"--fuzz-counts={counts}", "-p", "no:cacheprovider", "--timeout=900", *more]
        status, said = run(command, left_s)
        told = json.loads(counts.read_text("utf-8")) if counts.exists() else {"failed": ()}
        if "tried" in told:
            tried = Counter(told["tried"])
            campaign.by_test = dict(tried + Counter(campaign.by_test))
            campaign.examples += tried.total()
    if status == 0:
        campaign.rounds += 1
    elif status != CUT_OFF or told["failed"]:
        campaign.findings.append(f"seed {seed}: pytest ended with {status}\n{said}")


def run(command: Sequence[str], left_s: float) -> tuple[int, str]:
    """Return how a program ended and what it said; at the end of the time it is interrupted."""
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said) as process:
            try:
                status = process.wait(timeout=max(left_s, 1))
            except subprocess.TimeoutExpired:
                # Pytest still tells what it had tried by then.
                process.terminate()
                process.wait()
                status = CUT_OFF
        said.seek(0)
        return status, said.read().decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
