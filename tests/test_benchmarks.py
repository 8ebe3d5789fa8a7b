from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.needs import needs_bwrap

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "performance.md"
FACTS = {"cores": "2", "kernel": "Linux 6.1"}


class Scripts:
    """The modules of the benchmarks, which find each other as beside a script that is run."""

    def __getattr__(self, name: str) -> ModuleType:
        return importlib.import_module(name)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripts]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield Scripts()
    for name in set(sys.modules) - before:
        place = getattr(sys.modules[name], "__file__", None)
        if place and Path(place).parent == BENCHMARKS:
            del sys.modules[name]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def rows(text: str) -> list[list[str]]:
    """Return the cells of each table row of a page, heads and rules included."""
    return [cells(line) for line in text.splitlines() if line.startswith("|")]


# Figures.


@pytest.mark.parametrize(
    ("bar", "value", "verdict"),
    [
        ({"at_most": 10}, 10, "PASS"),
        ({"at_most": 10}, 10.01, "FAIL"),
        ({"at_least": 1.7}, 1.7, "PASS"),
        ({"at_least": 1.7}, 1.69, "FAIL"),
        ({"at_most": 0}, 0, "PASS"),
        ({}, 1e9, "-"),
    ],
)
def test_a_figure_is_judged_by_its_bar(
    scripts: Scripts, bar: dict[str, float], value: float, verdict: str
) -> None:
    """A bar that is met exactly is met, and a figure without one is not judged."""
    known = scripts.figures.Known("speed", "ratio", **bar)

    assert known.of(value).verdict == verdict


def test_a_figure_that_was_left_out_neither_passes_nor_fails(scripts: Scripts) -> None:
    """Nothing is known of it, though its value would read as 0."""
    figure = scripts.figures.Known("speed", "ms", at_most=3).left_out("no such core")

    assert figure.cells == ("speed", "-", "ms", "<= 3", "-", "-", "not measured: no such core")


def test_a_printed_line_stands_below_its_heads(scripts: Scripts) -> None:
    """Who watches a long run reads columns."""
    figures = scripts.figures
    figure = figures.Known("speed", "ms", at_most=3).of(1.5, "of ten", beside="theirs: 4 ms")

    heads, line = figures.line(figures.HEADS), figures.line(figure.cells)

    for head, cell in (("unit", "ms"), ("bar", "<= 3"), ("verdict", "PASS"), ("note", "of ten")):
        assert line.index(cell) == heads.index(head)
    assert line.index("1.50") + 4 == heads.index("value") + 5


# The page.


def test_the_page_is_made_of_its_arguments_alone(scripts: Scripts) -> None:
    """Two runs that measured the same leave the same page, and a diff shows what changed."""
    figures, section = scripts.figures, scripts.page.Section
    fast = figures.Known("fast", "ms", at_most=3).of(1.5, "a | b", beside="theirs: 4 ms")
    slow = figures.Known("  of it slow", "s", at_least=2).of(1)
    gone = figures.Known("gone", "MiB", at_most=1).left_out()

    text = scripts.page.page(
        FACTS,
        [section("Times", [fast, slow]), section("Sizes", [gone], "no such thing is installed")],
        quick=True,
    )

    assert rows(text) == [
        ["fact", "value"],
        ["---", "---"],
        ["cores", "2"],
        ["kernel", "Linux 6.1"],
        list(figures.HEADS),
        ["---"] * len(figures.HEADS),
        ["fast", "1.50", "ms", "<= 3", "PASS", "theirs: 4 ms", "a &#124; b"],
        ["of it slow", "1.00", "s", ">= 2", "FAIL", "-", ""],
        list(figures.HEADS),
        ["---"] * len(figures.HEADS),
        ["gone", "-", "MiB", "<= 1", "-", "-", "not measured"],
    ]
    assert "\nOf 3 bars 1 were reached and 1 not measured. Missed: `of it slow`.\n" in text
    assert "\n## Sizes\n\nLeft out here: no such thing is installed.\n\n|" in text
    assert scripts.page.QUICK in text


def test_the_full_form_is_not_called_quick(scripts: Scripts) -> None:
    """A reader must know which of the two was measured."""
    assert scripts.page.QUICK not in scripts.page.page(FACTS, [], quick=False)


def test_the_page_has_a_row_for_every_figure(scripts: Scripts) -> None:
    """A figure that nobody sees holds nothing; one that was left out says so."""
    known = [
        (figure.name.strip(), figure.unit, figure.bar)
        for each in scripts.sets.SETS
        for figure in each.figures
    ]

    listed = [row for row in rows(PAGE.read_text("utf-8")) if len(row) > 2]

    heads = [tuple(scripts.figures.HEADS), ("---",) * len(scripts.figures.HEADS)]
    assert [
        (name, unit, bar)
        for name, _, unit, bar, *_ in listed
        if name not in {head[0] for head in heads}
    ] == known


def test_no_two_figures_share_a_name(scripts: Scripts) -> None:
    """A row is found by its name."""
    names = [figure.name.strip() for each in scripts.sets.SETS for figure in each.figures]

    assert sorted(set(names)) == sorted(names)


# Sets.


def a_set(scripts: Scripts, measure: object, missing: str | None = None) -> object:
    known = scripts.figures.Known
    figures = (known("one", "s", at_most=1), known("two", "s"))
    return scripts.sets.FigureSet(
        name="made-up",
        title="Made up",
        figures=figures,
        measure=lambda folder, *, quick: measure(figures),
        missing=lambda: missing,
    )


def test_what_a_machine_lacks_leaves_a_set_out(scripts: Scripts, tmp_path: Path) -> None:
    """The other sets are measured all the same, and the page keeps its rows."""
    run = scripts.sets.Run(a_set(scripts, None, missing="there is no such sandbox"))

    shown = list(run.measure(tmp_path, quick=True))

    assert shown == run.figures
    assert [(figure.known.name, figure.value) for figure in shown] == [("one", None), ("two", None)]
    assert (run.left_out, run.failure) == ("there is no such sandbox", None)


def test_what_breaks_keeps_the_figures_before_it(scripts: Scripts, tmp_path: Path) -> None:
    """A long run is not lost, and its end says what went wrong; the page names no path of it."""

    def measure(figures: tuple) -> Iterator[object]:
        yield figures[0].of(0.5)
        raise scripts.figures.BrokenError(f"{tmp_path} is not what was meant")

    run = scripts.sets.Run(a_set(scripts, measure))

    shown = list(run.measure(tmp_path, quick=True))

    assert [(figure.value, figure.note) for figure in shown] == [(0.5, ""), (None, "not measured")]
    assert run.failure == f"{tmp_path} is not what was meant"
    assert run.left_out == "it could not be measured"


def test_every_measured_set_says_what_it_is_about(scripts: Scripts) -> None:
    """A heading of the page has rows below it, and an option of the command a set."""
    sets = scripts.sets.SETS

    assert [each.name for each in sets if not each.extra] == ["foundation", "audit"]
    assert all(each.figures for each in sets)
    assert len({each.name for each in sets}) == len(sets)


# The command.


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        ((), {"growth", "merge", "ssh", "agents"}),
        (("--merge",), {"merge"}),
        (("--merge", "--agents"), {"merge", "agents"}),
        (("--no-extras",), set()),
    ],
)
def test_extra_sets_are_all_measured_unless_some_are_named(
    scripts: Scripts, arguments: tuple[str, ...], extras: set[str]
) -> None:
    """What must be reached is measured always, and the rest by choice."""
    command = scripts.command

    assert command.chosen(command.parsed(arguments)) == {"foundation", "audit"} | extras


def test_less_than_all_does_not_take_the_place_of_the_page(scripts: Scripts) -> None:
    """A quick look after a change would throw away what took half an hour to measure."""

    def page_of(*arguments: str) -> Path | None:
        return scripts.command.page_of(scripts.command.parsed(arguments))

    assert page_of() == PAGE
    assert page_of("--quick") is page_of("--merge") is page_of("--no-extras") is None
    assert page_of("--quick", "--page", "here.md") == Path("here.md")


# What is really measured.


def test_the_memory_of_a_process_is_not_that_of_its_starter(
    scripts: Scripts, tmp_path: Path
) -> None:
    """The system begins with the size of whoever starts it, which hides what a small one takes."""
    ballast = bytearray(256 << 20)
    ballast[::4096] = b"x" * len(ballast[::4096])

    spent = scripts.processes.cost([sys.executable, "-I", "-S", "-c", "pass"], tmp_path)

    assert 1 < spent.peak_mib < 128


@pytest.mark.slow
@needs_bwrap
def test_the_flood_of_the_benchmarks_really_flows() -> None:
    """A figure of memory says nothing unless every byte went by, and nobody runs it daily."""
    size = 4 << 20

    done = subprocess.run(
        [sys.executable, BENCHMARKS / "flood.py", str(size)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout)["stdout_bytes"] == size


# Trust.

ROWS = [
    {"stoppable": True, "caught": True, "as_declared": True, "margin": 2, "wins_unprotected": True},
    {"stoppable": True, "caught": True, "as_declared": True, "margin": 1, "wins_unprotected": True},
    {"stoppable": False, "caught": False, "as_declared": True, "margin": 1},
]
FAULTS = {"injected": 7, "broken": [], "by_fault": {"EIO at write": 7}}
FUZZED = {"seconds": 600.0, "rounds": 3, "examples": 12345, "findings": []}
SUITE = '<testsuites><testsuite tests="40" failures="0" errors="0" skipped="2"/></testsuites>'


@pytest.mark.parametrize(
    ("changed", "came_through"),
    [
        ({}, [0, 0, 0, 0, 0]),
        ({"attacks.json": {"rows": [ROWS[0] | {"caught": False}, *ROWS[1:]]}}, [1, 0, 0, 0, 0]),
        (
            {"attacks.json": {"rows": [*ROWS[:2], ROWS[2] | {"as_declared": False}]}},
            [0, 1, 0, 0, 0],
        ),
        ({"faults.json": FAULTS | {"broken": [{"fault": "EIO at write"}]}}, [0, 0, 0, 1, 0]),
        ({"fuzz.json": FUZZED | {"findings": ["seed 1"]}}, [0, 0, 0, 0, 1]),
        ({"hazards.xml": SUITE.replace('failures="0"', 'failures="1"')}, [0, 0, 1, 0, 0]),
    ],
)
def test_whatever_comes_through_is_told_and_ends_with_1(
    changed: dict[str, Any],
    came_through: list[int],
    tmp_path: Path,
    scripts: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each part what was tried and what came of it, on the page that promises it."""
    documents = {
        "attacks.json": {"rows": ROWS},
        "hazards.xml": SUITE,
        "faults.json": FAULTS,
        "fuzz.json": FUZZED,
        **changed,
    }
    for name, document in documents.items():
        text = document if isinstance(document, str) else json.dumps(document)
        (tmp_path / name).write_text(text, "utf-8")
    page = tmp_path / "security.md"
    page.write_text(f"a\n{scripts.trust.BEGIN}\nold\n{scripts.trust.END}\nb\n", "utf-8")
    monkeypatch.setattr(scripts.trust, "PAGE", page)

    status = scripts.trust.main(["--folder", str(tmp_path)])

    told = rows(page.read_text("utf-8"))[2:]
    assert [int(row[1].replace(",", "")) for row in told] == [2, 1, 38, 7, 12345]
    assert [int(row[2]) for row in told] == came_through
    assert status == int(any(came_through))
    assert page.read_text("utf-8").startswith("a\n") and page.read_text("utf-8").endswith("\nb\n")
    assert "old" not in page.read_text("utf-8")
