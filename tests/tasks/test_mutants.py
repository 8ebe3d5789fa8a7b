"""Declared faults, applied to the reference."""

from __future__ import annotations

import pytest

from pytest_evalarc.model.task import Edit
from pytest_evalarc.tasks.mutants import apply_edits, edited_files
from tests.tasks.project import LABEL, Project


def edit(find: str, replace: str) -> Edit:
    return Edit(file="a.py", find=find, replace=replace)


def test_edits_are_looked_up_in_the_reference_in_any_order() -> None:
    """A replacement must not create or destroy the anchor of another edit."""
    edits = [edit("one", "two"), edit("two", "one")]

    assert apply_edits(b"one two\r\n", edits) == b"two one\r\n"
    assert apply_edits(b"one two\r\n", edits[::-1]) == b"two one\r\n"


@pytest.mark.parametrize(
    ("content", "edits", "told"),
    [
        (b"aaa", [edit("aa", "")], "occurs 2 times in a.py, not exactly once"),
        (b"b", [edit("a", "")], "occurs 0 times in a.py, not exactly once"),
        (b"abc", [edit("ab", ""), edit("bc", "")], "overlaps another edit of a.py"),
        (b"abc", [edit("ab", "1"), edit("ab", "2")], "overlaps another edit of a.py"),
    ],
)
def test_an_edit_with_two_meanings_is_refused(content: bytes, edits: list[Edit], told: str) -> None:
    """A mutant must be the same program whoever applies it."""
    with pytest.raises(ValueError, match=told):
        apply_edits(content, edits)


def test_neighbouring_edits_do_not_overlap() -> None:
    """Two faults side by side are two clear places."""
    assert apply_edits("é1".encode(), [edit("é", "e"), edit("1", "2")]) == b"e2"


def test_a_mutant_gives_the_files_it_changes(project: Project) -> None:
    """The solution's file is the one that is changed, the starter's where there is none."""
    project.write("evals/tasks/tiny/starter/src/keep.py", "old\n")
    project.edit(
        'replace = "memory" }]',
        'replace = "memory" }, { file = "./src/keep.py", find = "old", replace = "" }]',
    )
    task = project.load()

    assert edited_files(task, task.mutants[0]) == {
        "src/app.py": b"place = 'memory'\n",
        "src/keep.py": b"\n",
    }
    assert edited_files(task, task.mutants[1]) == {}


def test_an_overlay_that_only_drops_the_exec_bit_is_a_change(project: Project) -> None:
    """A script that cannot be started is a fault, though every byte is the same."""
    script = "evals/tasks/tiny/solution/src/run"
    project.write(script, "#!/bin/sh\n").chmod(0o755)
    project.write("evals/tasks/tiny/faults/slow/src/run", "#!/bin/sh\n")
    (project.task / "faults" / "slow" / "src" / "app.py").unlink()

    assert project.load().mutants[1].overlay == "faults/slow"


def test_an_empty_overlay_is_told(project: Project) -> None:
    """It would be graded as the reference and never be detected."""
    (project.task / "faults" / "slow" / "src" / "app.py").unlink()

    (sentence,) = project.problems()

    where = f"{LABEL}:{project.line('overlay =')} [[mutants]] #2 overlay"
    assert sentence.startswith(f"{where}: evals/tasks/tiny/faults/slow holds no file")


@pytest.mark.parametrize("value", ["false", "0", '""', "{}"])
def test_edits_of_another_type_are_told_as_that_alone(project: Project, value: str) -> None:
    """To say of what is no list that it is empty would send its author to add an edit."""
    project.edit(
        'edits = [{ file = "src/app.py", find = "disk", replace = "memory" }]', f"edits = {value}"
    )

    (sentence,) = project.problems()

    assert "edits: must be a list of tables" in sentence
