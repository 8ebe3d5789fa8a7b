"""`pytest-evalarc merge`: join the shards of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.files.text import printable
from pytest_evalarc.reporting.merge import merge


def run_merge(given: Sequence[Path], *, output: Path, batch: str | None) -> Status:
    """Write the whole batch, and print what was counted anew.

    Args:
        given: One folder of results for each shard.
        output: The new folder of results.
        batch: The batch's name; None where the folders hold shards of one batch alone.

    Raises:
        EvalArcError: The shards are not all there, or do not go together; nothing is written then.
    """
    merged = merge(given, output, batch=batch)
    for path in merged.documents:
        print(printable(str(path)))
    shards = "1 shard" if len(given) == 1 else f"{len(given)} shards"
    trials = "1 finished trial" if merged.trials == 1 else f"{merged.trials} finished trials"
    print(f"merged {shards} of batch {merged.batch}: {trials}")
    return Status.DONE
