"""One report drops the trials that broke, another counts them as failures, and both show a rate.

With 854 of 861 trials broken a rate was 100 %, elsewhere it was four times too low. The counts are
made once, and everything that is shown is read from them: UKGovernmentBEIS/inspect_ai#4286.

Trials that broke on our side may have ended either way, so some harnesses show the bounds of both
beside the rate. Here they are left out of it by name and number on every surface, and a verdict is
withheld where a planned trial never came to an end: an interval that mixes what was drawn by chance
with what got lost would be neither.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.plugin.benchmark_table import benchmark_lines
from pytest_evalarc.reporting.exports.github import Documents, step_summary
from tests.reporting.page.batches import Batch

TOTALS = "What the trials add up to"
WITHOUT = {"succeeded": 2, "failed": 4, "excluded_grading": 2}
ENDINGS = [
    (WITHOUT, 2 / 6, "2 of 6", "0.33"),
    ({"succeeded": 1, "excluded_grading": 7}, 1.0, "1 of 1", "1.00"),
    ({"failed": 1, "excluded_isolation": 7}, 0.0, "0 of 1", "0.00"),
    ({"excluded_grading": 8}, None, "0 of 0", "-"),
    ({"setup_failure": 6, "cancelled": 1, "succeeded": 1}, 1.0, "1 of 1", "1.00"),
]


@pytest.fixture
def counted(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Batch, Benchmark]:
    """Return eight trials of a configuration that ended as a test wants them, and their counts."""
    batch = Batch(tmp_path, with_={"succeeded": 8}, without=request.param)
    batch.document()
    return batch, read_model(batch.folder / "benchmark.json", Benchmark)


@pytest.mark.parametrize(
    ("counted", "rate", "shown", "rounded"), ENDINGS, indirect=["counted"], ids=str
)
def test_trials_that_broke_are_in_no_rate_and_on_every_surface(
    counted: tuple[Batch, Benchmark],
    rate: float | None,
    shown: str,
    rounded: str,
) -> None:
    """JSON, page, terminal, the summary of a job and the command that computes it again agree."""
    batch, benchmark = counted
    side = benchmark.configurations["without-skills"]
    assert side.success_rate == rate
    assert (side.planned, f"{side.succeeded} of {side.eligible}") == (8, shown)
    broke = side.excluded.grading + side.excluded.isolation
    ended = side.succeeded + side.failed + side.inconclusive
    assert ended + broke + side.setup_failures + side.cancelled == side.planned

    page = batch.page().numbers(TOTALS)
    assert page["success rate"][0] == rate
    assert page["eligible"][0] == side.eligible
    assert page["excluded: grading"][0] == side.excluded.grading

    told = " ".join(" ".join(benchmark_lines(benchmark, verbose=True)).split())
    assert re.search(rf"without-skil\S+ {shown} {rounded} ", told), told
    assert f"without-skills: {side.eligible} of 8 planned trials count" in told

    summary = step_summary(Documents(benchmarks=((benchmark, "benchmark.json"),)))
    assert f"| without-skills | {shown} |" in summary

    written = (batch.folder / "benchmark.json").read_bytes()
    (batch.folder / "benchmark.json").unlink()
    assert main(["benchmark", str(batch.folder)]) == 0
    assert (batch.folder / "benchmark.json").read_bytes() == written
