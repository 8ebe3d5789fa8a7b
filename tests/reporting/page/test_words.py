from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.batch import write_document
from pytest_evalarc.reporting.page.gather import Cell
from pytest_evalarc.reporting.page.page import page
from pytest_evalarc.reporting.page.trial import Allowance
from pytest_evalarc.reporting.page.words import amount, answer, percent, points
from tests.reporting.page.batches import Batch


def test_a_treatment_that_does_harm_is_said_to_do_so(tmp_path: Path) -> None:
    """A report that only knows help and no help would hide the worst answer."""
    batch = Batch(
        tmp_path, with_={"succeeded": 1, "failed": 9}, without={"succeeded": 9, "failed": 1}
    )
    benchmark, _ = write_document(batch.folder)

    found = answer(benchmark)

    assert (found.word, found.tone) == ("harmed", "bad")
    assert found.headline == (
        "tiny with oracle: skills harmed, success rate \N{MINUS SIGN}80 points"
    )
    assert "The difference is \N{MINUS SIGN}80 points" in found.sentence
    assert found.sentence.endswith("points: it leaves out 0.")


def test_trials_that_different_models_answered_are_not_compared(tmp_path: Path) -> None:
    """The difference may be the models'."""
    batch = Batch(tmp_path)
    path = batch.folder / "trial-1-with-skills/result.json"
    result = read_model(path, TrialResult)
    served = result.model.model_copy(update={"served": ("other",)})
    path.write_text(result.model_copy(update={"model": served}).model_dump_json(by_alias=True))
    for other in batch.folder.glob("trial-1-without-skills/result.json"):
        told = read_model(other, TrialResult)
        served = told.model.model_copy(update={"served": ("big",)})
        other.write_text(told.model_copy(update={"model": served}).model_dump_json(by_alias=True))
    benchmark, _ = write_document(batch.folder)

    found = answer(benchmark)

    assert found.word == "not compared"
    assert "not all answered by the same models" in found.sentence


def test_a_shard_is_not_compared(tmp_path: Path) -> None:
    """Its rates are those of some rounds, and the others may turn them around."""
    batch = Batch(
        tmp_path, with_={"succeeded": 9, "failed": 1}, without={"succeeded": 1, "failed": 9}
    )
    benchmark, _ = write_document(batch.folder)
    shard = benchmark.model_copy(update={"selection": "partial", "shard": Shard(number=2, of=4)})

    found = answer(shard)

    assert found.word == "not compared"
    assert "this is shard 2/4 of the plan: merge the shards first" in found.sentence


def test_several_comparisons_come_with_a_warning(tmp_path: Path) -> None:
    """Of twenty intervals one misses by chance, and a reader picks just that one."""
    batch = Batch(tmp_path)
    gathered = batch.write_page(tmp_path / "page.html")
    (part,) = gathered.trials

    one = page(gathered, Allowance())
    two = page(type(gathered)(trials=(part, part)), Allowance())

    assert "2 comparisons of single tasks stand here" in two
    assert "stand here" not in one


@pytest.mark.parametrize(
    ("passed", "asked", "unjudged", "word"),
    [(3, 3, 0, "pass"), (2, 3, 0, "fail"), (2, 3, 1, "unknown"), (0, 1, 1, "unknown")],
)
def test_seeds_of_a_case_are_one_cell(passed: int, asked: int, unjudged: int, word: str) -> None:
    """One that fails decides, and one that nobody judged leaves it open."""
    assert Cell(passed=passed, asked=asked, unjudged=unjudged).word == word


@pytest.mark.parametrize(
    ("rate", "told"),
    [(0.0, "0 %"), (1.0, "100 %"), (2 / 3, "66.7 %"), (0.8, "80 %"), (None, "\N{EM DASH}")],
)
def test_rates_are_told_to_a_tenth_of_a_percent(rate: float | None, told: str) -> None:
    """More would promise what few trials cannot hold."""
    assert percent(rate) == told


@pytest.mark.parametrize(
    ("difference", "told"),
    [
        (0.5, "+50 points"),
        (-0.125, "\N{MINUS SIGN}12.5 points"),
        (0.0, "0 points"),
        (-1e-9, "0 points"),
        (None, "\N{EM DASH}"),
    ],
)
def test_differences_carry_their_sign(difference: float | None, told: str) -> None:
    """Points, since a difference of percents is no percentage of anything."""
    assert points(difference) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1234567.4, "1,234,567"),
        (99.96, "99.96"),
        (0.0610412, "0.061"),
        (-0.003022, "\N{MINUS SIGN}0.00302"),
        (0.0, "0"),
    ],
)
def test_amounts_have_the_digits_that_a_reader_can_use(value: float, told: str) -> None:
    """Microseconds of a session hide that it took no time at all."""
    assert amount(value) == told
