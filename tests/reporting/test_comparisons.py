from __future__ import annotations

from typing import Any

from pytest_evalarc.counting.batches_compared import compare_batches
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.measured import Measured, MeasuredConditions, MeasuredRow
from pytest_evalarc.reporting.comparisons import MOST_ROWS, escaped, markdown_of


def measured(passed: dict[str, int], **facts: Any) -> Measured:
    usual = {
        "schema_version": SCHEMA_VERSION,
        "kind": "trials",
        "task": "tiny",
        "client": "claude",
        "batch": "b1",
        "selection": "complete",
        "conditions": MeasuredConditions(isolation="enforced"),
        "rows": tuple(
            MeasuredRow(
                configuration="with-skills", part="check", name=name, passed=count, judged=5
            )
            for name, count in passed.items()
        ),
    }
    return Measured(**{**usual, **facts})


def test_what_got_worse_comes_first_and_what_did_not_change_is_left_out() -> None:
    """A reviewer reads the first lines."""
    before = measured({"fine": 5, "better": 1, "shaky": 5, "lost": 5, "old": 5})
    after = measured({"fine": 5, "better": 5, "shaky": 4, "lost": 0, "new": 5})

    text = markdown_of(compare_batches([before], [after], across=["model"]))

    assert text.splitlines()[:6] == [
        "### Something regressed",
        "",
        "1 regressed, 1 less reliable, 1 removed, 1 newly covered, 1 improved, 1 unchanged.",
        "Allowed to differ: model.",
        "",
        "| change | task | what | before | now | difference (95 %) |",
    ]
    assert text.splitlines()[7:12] == [
        "| **regressed** | tiny / claude | with-skills: check lost | 5 of 5 | 0 of 5 |"
        " -1.00 to -0.39 |",
        "| **less reliable** | tiny / claude | with-skills: check shaky | 5 of 5 | 4 of 5 |"
        " -0.62 to +0.26 |",
        "| **removed** | tiny / claude | with-skills: check old | 5 of 5 | none |  |",
        "| **newly covered** | tiny / claude | with-skills: check new | none | 5 of 5 |  |",
        "| **improved** | tiny / claude | with-skills: check better | 1 of 5 | 5 of 5 |"
        " +0.19 to +0.96 |",
    ]
    assert "fine" not in text


def test_a_comparison_without_changes_has_no_table() -> None:
    """There is nothing to look at."""
    one = measured({"fine": 5})

    text = markdown_of(compare_batches([one], [one]))

    assert text.startswith("### Nothing regressed\n\n1 unchanged.\n")
    assert "|" not in text


def test_a_long_list_is_cut_and_says_so() -> None:
    """A comment of more than 65,536 characters is refused by GitHub."""
    names = [f"{'a-long-name-of-a-check-' * 4}{number}" for number in range(MOST_ROWS + 7)]

    text = markdown_of(
        compare_batches([measured(dict.fromkeys(names, 5))], [measured(dict.fromkeys(names, 0))])
    )

    assert text.count("**regressed**") == MOST_ROWS
    assert "7 more rows changed" in text
    assert len(text) < 65_536


def test_foreign_names_make_no_markup() -> None:
    """An imported test may be called anything, and a comment must not mention anyone for it."""
    assert escaped("a|b\n@team <img src=x> [x](y) `c`\x1b[0m") == (
        r"a\|b \@team \<img src=x\> \[x\]\(y\) \`c\`\\x1b\[0m"
    )


def test_the_reason_of_what_is_incomparable_stands_in_its_row() -> None:
    """A reader must see what to make equal."""
    other = measured({"fine": 5}, conditions=MeasuredConditions(isolation="enforced", model="m2"))

    text = markdown_of(compare_batches([measured({"fine": 5})], [other]))

    assert text.startswith("### Nothing regressed among what can be compared\n")
    assert '| 5 of 5 | 5 of 5 | model: is null in the baseline and "m2" now |' in text
