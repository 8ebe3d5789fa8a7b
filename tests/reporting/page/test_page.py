from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.reporting.page.gather import Gathered
from pytest_evalarc.reporting.page.page import page
from pytest_evalarc.reporting.page.trial import Allowance
from tests.documents import evaluation
from tests.reporting.page.batches import Batch, Element, Page, graded, stream

TOTALS = "What the trials add up to"
REASONS = "Causes, exclusions and what was seen of skills, in trials"
HOSTILE = "</script><script>window.ran=1</script><!--<script><img src=x onerror=window.ran=1>"
STEERING = "\x00\x1b[31m\x9b\u202e\u2066\ud800\ufffe"


def answer_of(found: Page) -> str:
    return next(each.text for each in found.all("section", id="answer"))


def flat(number: Any) -> list[float | None]:
    """Return the two bounds of an interval, or None twice."""
    return [None, None] if number is None else [number["low"], number["high"]]


def test_every_number_of_a_benchmark_is_that_of_its_json(tmp_path: Path) -> None:
    """A page that rounds where it should tell, or mixes up columns, would mislead silently."""
    batch = Batch(
        tmp_path,
        with_={"succeeded": 7, "failed": 2, "inconclusive": 1},
        without={"succeeded": 2, "failed": 6, "excluded_isolation": 1, "setup_failure": 1},
    )
    document = batch.document()

    found = batch.page()

    numbers = found.numbers(TOTALS)
    sides = list(document["configurations"].values())
    assert list(document["configurations"]) == ["without-skills", "with-skills"]
    delta = document["delta"]
    assert numbers["success rate"] == [each["success_rate"] for each in sides] + [
        delta["success_rate"]
    ]
    bounds = [flat(each["ci95"]) for each in sides] + [flat(delta["success_rate_ci95"])]
    assert numbers["95 % interval from"] == [low for low, _ in bounds]
    assert numbers["95 % interval to"] == [high for _, high in bounds]
    assert numbers["code alone passed"] == [each["code"]["rate"] for each in sides] + [
        delta["code_rate"]
    ]
    for label, key in {
        "eligible": "eligible",
        "succeeded": "succeeded",
        "failed": "failed",
        "inconclusive": "inconclusive",
        "planned": "planned",
        "setup failures": "setup_failures",
        "cancelled": "cancelled",
    }.items():
        assert numbers[label][:2] == [each[key] for each in sides], label
    for label, key in {"excluded: isolation": "isolation", "excluded: grading": "grading"}.items():
        assert numbers[label][:2] == [each["excluded"][key] for each in sides], label
    for label, key in {
        "mean tokens": "tokens",
        "mean session seconds": "agent_secs",
        "mean cost in US dollars": "cost_usd",
    }.items():
        means = [each["cost"]["eligible"][key]["mean"] for each in sides]
        assert numbers[label] == [*means, delta["cost"]["eligible"][key]], label


def test_causes_and_loads_are_counted_where_they_can_be_seen(tmp_path: Path) -> None:
    """Nothing looks for a skill without the treatment, and a 0 there would claim otherwise."""
    batch = Batch(
        tmp_path,
        with_={"succeeded": 2, "inconclusive": 1},
        without={"failed": 2, "excluded_grading": 1},
    )

    numbers = batch.page().numbers(REASONS)

    assert numbers["failed: code"] == [2, 0]
    assert numbers["excluded: grading"] == [1, 0]
    assert numbers["load of use-numbers: loaded"] == [None, 3]
    assert numbers["expectation used-use-numbers: inconclusive"] == [None, 1]


def test_the_answer_says_that_a_treatment_helped_and_how_sure_that_is(tmp_path: Path) -> None:
    """It is what a reader came for, so it stands first, in words and with its interval."""
    batch = Batch(tmp_path)
    batch.write_audit()

    answer = answer_of(batch.page())

    assert "helped tiny with oracle: skills helped, success rate +60 points" in answer
    assert "8 of 10 succeeded (80 %) with it, 2 of 10 succeeded (20 %) without" in answer
    assert "+60 points, 95 % interval from +16.2 points to +80.3 points: it leaves out 0" in answer
    assert "Checks that differ most: adds (8 of 10 with, 2 of 10 without)." in answer
    assert (
        "the checks caught 2 of 2 declared faults, 2 of them by a single case "
        "(faults: first-only, empty-is-one; cases: adds, empty)."
    ) in answer


def test_trials_that_no_effect_can_be_told_from_are_said_to_be_such(tmp_path: Path) -> None:
    """Two more successes of five are no evidence, however large their difference looks."""
    batch = Batch(
        tmp_path, with_={"succeeded": 4, "failed": 1}, without={"succeeded": 2, "failed": 3}
    )

    answer = answer_of(batch.page())

    assert "no difference shown tiny with oracle: no difference is shown for skills" in answer
    assert "it includes 0, so these trials cannot tell an effect from chance" in answer


def test_too_few_trials_give_no_verdict_however_they_ended(tmp_path: Path) -> None:
    """The document gives none below five on a side, and its page must not either."""
    batch = Batch(tmp_path, with_={"succeeded": 4}, without={"failed": 4})
    assert batch.document()["delta"]["verdict"] == "too_few_trials_to_tell"

    found = batch.page()

    assert "too few trials to tell whether skills helped" in answer_of(found)
    assert "with fewer than 5 eligible trials on a side no verdict is given" in answer_of(found)
    assert [each.text for each in found.all("span", class_="badge unsure")] == ["too few trials"]
    assert 'class="whisker difference"' not in found.html


def test_without_an_eligible_trial_there_are_dashes_with_the_reason(tmp_path: Path) -> None:
    """A rate of nothing is not 0, and its reader wants to know where the trials went."""
    batch = Batch(tmp_path, with_={"succeeded": 2}, without={"excluded_isolation": 2})

    found = batch.page()

    without, with_, difference = found.table(TOTALS)["success rate"]
    assert without.text.strip() == "\N{EM DASH} no eligible trial (2 excluded)"
    assert with_.text.strip() == "100 %"
    assert difference.text.strip() == "\N{EM DASH}"
    assert "not compared" in answer_of(found)
    assert "No step or check was judged on both sides." in answer_of(found)


def test_a_partial_selection_is_labelled_and_not_compared(tmp_path: Path) -> None:
    """What was left out may be what would have failed."""
    batch = Batch(tmp_path, with_={"succeeded": 8}, without={"failed": 5})

    found = batch.page()

    assert [each.text for each in found.all("span", class_="badge bad")] == ["partial"]
    assert "3 planned trials never reached their end" in answer_of(found)
    assert "no result" in found.html
    assert 'class="whisker difference"' not in found.html
    assert len(found.table(TOTALS)["success rate"]) == 2


def test_exploratory_trials_are_labelled_and_not_compared(tmp_path: Path) -> None:
    """Nothing kept those agents from the checks."""
    batch = Batch(tmp_path, is_enforced=False)

    found = batch.page()

    assert [each.text for each in found.all("span", class_="badge bad")] == ["exploratory"]
    assert "without an enforced boundary" in answer_of(found)
    assert found.numbers(TOTALS)["success rate"] == [0.2, 0.8, None]


def test_the_grid_shows_each_trial_by_each_check_on_both_sides(tmp_path: Path) -> None:
    """A reader looks for the check that decides, and then for a trial that missed it."""
    batch = Batch(tmp_path, with_={"succeeded": 1, "failed": 1}, without={"failed": 2})

    found = batch.page()

    without, with_ = (found.table(name) for name in ("without-skills", "with-skills"))
    words = {head: [cell.text for cell in cells] for head, cells in with_.items()}
    assert words["trial 1"] == ["succeeded", "✓passed", "✓passed", "✓passed"]
    assert words["trial 2"] == ["failed (code)", "✓passed", "✗failed", "✓passed"]
    assert words["passed, eligible trials"] == ["2/2", "1/2", "2/2"]
    assert [cell.text for cell in without["passed, eligible trials"]] == ["2/2", "0/2", "2/2"]


def test_every_link_to_a_trial_leads_to_its_data(tmp_path: Path) -> None:
    """A dead link is found by its reader alone."""
    found = Batch(tmp_path, with_={"succeeded": 2}, without={"failed": 1}).page()

    links = {
        each.attributes["href"][1:]
        for each in found.all("a")
        if each.attributes["href"].startswith("#trial:")
    }

    assert links == set(found.trials)
    assert len(links) == 3


def test_an_audit_is_shown_fault_by_check(tmp_path: Path) -> None:
    """How narrowly each fault was caught is what tells strong checks from lucky ones."""
    batch = Batch(tmp_path)
    batch.write_audit(**{"first-only": graded("adds", "empty", digest="2")})

    found = batch.page()

    rows = found.table("Which check caught which declared fault")
    assert [cell.text.strip() for cell in rows["first-only"]] == [
        *("sums", "detected", "1"),
        *("●caught on target", "○failed in another dimension"),
    ]
    assert [cell.text.strip() for cell in rows["empty-is-one"]] == [
        *("edges", "detected", "1"),
        *("passed: not noticed", "●caught on target"),
    ]
    assert [cell.text for cell in rows["score without this check"]] == ["0.50", "0.50"]
    facts = {
        found.below(row, "dt")[0].text: found.below(row, "dd")[0].text
        for row in found.elements
        if row.name == "div" and found.below(row, "dt") and row.parents[-1].name == "dl"
    }
    assert facts["mutation score"] == "1.00"
    assert facts["sole detectors"] == "adds, empty"


def test_an_audit_whose_reference_fails_has_dashes_with_the_reason(tmp_path: Path) -> None:
    """Nothing can be said of checks that a right solution does not pass."""
    batch = Batch(tmp_path)
    batch.write_audit(reference=graded("adds"), **{"reference-repeat": graded("adds")})

    found = batch.page()

    assert "the audit has no score (reference failed)" in answer_of(found)
    assert "\N{EM DASH} (reference failed)" in found.html


def test_an_audit_of_which_controls_are_missing_has_not_failed(tmp_path: Path) -> None:
    """Whoever selected some of them would look for a fault that is not there."""
    batch = Batch(tmp_path)
    (batch.write_audit() / "rows/first-only.json").unlink()

    found = batch.page()

    assert "audit partial" in [each.text for each in found.all("span", class_="badge unsure")]
    assert "tiny: not every control was run, so the audit has no score." in answer_of(found)


def test_a_candidate_is_shown_with_its_dimensions() -> None:
    """A session that only judges a folder has a page too."""
    document = evaluation("says.words")

    found = Page(page(Gathered(evaluations=(document,)), Allowance()))

    numbers = found.numbers("Score by dimension")
    for name, scored in document.dimensions.items():
        assert numbers[name] == [scored.passed, scored.total, scored.weight, scored.score]
    assert "not resolved" in found.html


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """An agent writes what it likes, and its reader's browser must not obey."""
    batch = Batch(
        tmp_path,
        with_={"succeeded": 1},
        without={"failed": 1},
        events=stream(said=HOSTILE + STEERING.replace("\ud800", ""), result=HOSTILE),
        solution=f"# {HOSTILE}\n",
        output=HOSTILE,
        evidence=HOSTILE + STEERING.replace("\ud800", ""),
    )

    found = batch.page()

    kinds = [each.attributes.get("type") for each in found.all("script")]
    assert kinds == ["application/json", "application/json", None]
    assert not found.all("img")
    assert "<!--" not in found.html
    (shown,) = (data for name, data in found.trials.items() if "with-skills" in name)
    told = json.dumps(shown)
    assert told.count("window.ran=1</script>") == 5
    assert "\\\\u202e" in told


def test_no_page_holds_what_steers_a_reader(tmp_path: Path) -> None:
    """Marks that turn the direction of writing make a sentence read as its opposite."""
    batch = Batch(tmp_path, with_={"succeeded": 1}, without={"failed": 1}, output=STEERING[:6])

    html = batch.page().html

    assert not {mark for mark in "\x00\x1b\x9b\u202e\u2066" if mark in html}


def test_a_huge_line_is_shown_by_its_ends(tmp_path: Path) -> None:
    """A browser that chokes shows nothing at all; the file is linked."""
    line = "x" * (10 << 20)
    batch = Batch(
        tmp_path, with_={"succeeded": 1}, without={}, events=stream(result=line), output=line
    )

    found = batch.page()

    assert len(found.html) < 1 << 20
    assert "characters dropped" in found.html


def test_the_page_asks_for_nothing_and_allows_its_own_code_alone(tmp_path: Path) -> None:
    """A report is passed on and opened years later, on a machine without a network."""
    found = Batch(tmp_path, with_={"succeeded": 1}, without={"failed": 1}).page()

    (policy,) = found.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy.attributes["content"].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy.attributes["content"]
    for element in found.elements:
        assert not element.attributes.keys() & {"src", "srcset", "style", "onclick", "action"}
        assert "://" not in element.attributes.get("href", "")


def test_tables_and_sections_can_be_used_without_seeing_them(tmp_path: Path) -> None:
    """A head without a scope, or a plot without words, says nothing to who listens."""
    batch = Batch(tmp_path, with_={"succeeded": 1, "failed": 1}, without={"failed": 1})
    batch.write_audit()

    found = batch.page()

    assert all("scope" in head.attributes for head in found.all("th"))
    assert all(found.below(table, "caption") for table in found.all("table"))
    for plot in found.all("svg"):
        title, told = (found.below(plot, name)[0] for name in ("title", "desc"))
        assert plot.attributes["role"] == "img"
        assert plot.attributes["aria-labelledby"].split() == [
            title.attributes["id"],
            told.attributes["id"],
        ]
        assert title.text
        assert told.text
    ids = [each.attributes["id"] for each in found.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    labels = [each.attributes["aria-labelledby"] for each in found.all("section")]
    assert set(labels) <= set(ids)
    levels = [int(each.name[1]) for each in found.elements if is_heading(each)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def is_heading(element: Element) -> bool:
    return element.name in ("h1", "h2", "h3", "h4")


def test_equal_results_give_an_equal_page(tmp_path: Path) -> None:
    """A page that differs has different results, so that two can be compared by a tool."""
    batch = Batch(tmp_path, with_={"succeeded": 1}, without={"failed": 1})

    assert batch.page().html == batch.page().html


@pytest.mark.parametrize("outcome", [each.value for each in Outcome])
def test_a_trial_of_every_outcome_is_shown(tmp_path: Path, outcome: str) -> None:
    """Whatever became of a trial, the page must not be what breaks."""
    found = Batch(tmp_path, with_={outcome: 1}, without={}).page()

    row = found.table("with-skills")["trial 1"]
    assert row[0].text.startswith(outcome.replace("_", " "))
