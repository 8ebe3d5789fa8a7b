"""What plain data promises where it becomes a part of documents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_evalarc.model.base import Model, Name, Sha256
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import (
    Check,
    Deadlines,
    Edit,
    Limits,
    Mutant,
    PackRef,
    TaskRef,
)


class Parts(Model):
    """A document of these tests."""

    task: TaskRef
    limits: Limits
    trials: tuple[PlannedTrial, ...]


PARTS = Parts(
    task=TaskRef(name="t", kind="capability", content_hash="a" * 64, pack=PackRef(name="p")),
    limits=Limits(),
    trials=(PlannedTrial(configuration="baseline", trial=1, round=1, order=1),),
)
TEXT = (
    '{"task":{"name":"t","kind":"capability","content_hash":"' + "a" * 64 + '","version":"0.1.0",'
    '"pack":{"name":"p","seeds":[17,41,97],"language":"python","version":"","domain":"",'
    '"split":"public-development"}},"limits":{"memory_mib":2048,"processes":256,"cpus":1.0,'
    '"tmp_mib":512,"output_mib":16,"disk_mib":1024},'
    '"trials":[{"configuration":"baseline","trial":1,"round":1,"order":1}]}'
)


def test_parts_are_written_in_the_order_of_their_fields_and_read_back() -> None:
    """Documents are compared byte for byte, so a part must look the same in all of them."""
    assert PARTS.model_dump_json() == TEXT
    assert json.loads(TEXT) == PARTS.to_json()
    assert Parts.model_validate_json(TEXT, strict=True) == PARTS


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("task", "name", "a b"),
        ("task", "name", ""),
        ("task", "name", "a" * 101),
        ("task", "name", "a\n"),
        ("task", "content_hash", "A" * 64),
        ("task", "kind", "other"),
        ("task", "more", 1),
        ("limits", "memory_mib", 0),
        ("limits", "memory_mib", 1.0),
        ("limits", "cpus", 0.0),
        ("limits", "cpus", float("nan")),
        ("limits", "cpus", float("inf")),
        ("limits", "cpus", "1"),
        ("limits", "more", 1),
    ],
)
def test_a_part_is_as_strict_as_its_document(part: str, key: str, value: object) -> None:
    """A key or a number that means nothing here must not pass for a result."""
    data: Any = json.loads(TEXT)
    data[part][key] = value

    with pytest.raises(ValidationError) as raised:
        Parts.model_validate_json(json.dumps(data), strict=True)

    assert [error["loc"] for error in raised.value.errors()] == [(part, key)]


def test_what_a_dataclass_did_not_check_is_refused_by_the_document() -> None:
    """Such a document could be written and never read."""
    for change in (
        {"task": replace(PARTS.task, content_hash="no digest")},
        {"trials": (replace(PARTS.trials[0], trial=0),)},
    ):
        with pytest.raises(ValidationError):
            Parts(**{**dict(PARTS), **change})


def test_a_whole_number_of_a_fraction_is_written_as_one() -> None:
    """A pack may say `cpus=2`, and what is read back and written again stays the same."""
    document = Parts(**{**dict(PARTS), "limits": Limits(cpus=2)})

    assert '"cpus":2.0' in document.model_dump_json()


@pytest.mark.parametrize("value", ["", "a b", "a/b", "..", "a\n", "a" * 101])
def test_what_no_document_could_hold_is_no_name(value: str) -> None:
    """Names of packs meet no task file that would refuse them, and become folders."""
    assert not is_name(value)
    with pytest.raises(ValueError, match="is not a name"):
        Check(id="c", dimensions=("d", value), deadline_s=1.0)
    with pytest.raises(ValueError, match="is not a name"):
        Mutant(name=value, target="d")


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_bound_that_bounds_nothing_is_refused(value: Any) -> None:
    """A process without end would be waited for."""
    with pytest.raises(ValueError, match="is not a finite number above 0"):
        Limits(memory_mib=value)
    with pytest.raises(ValueError, match="is not a finite number above 0"):
        Deadlines(agent=value)


def test_a_mutant_changes_the_reference_in_one_way() -> None:
    """Which of the two would come first is nobody's guess."""
    edit = Edit(file="a.py", find="1", replace="2")

    with pytest.raises(ValueError, match="either edits or an overlay"):
        Mutant(name="m", target="d", edits=(edit,), overlay="mutants/m")


def test_names_and_digests_are_told_apart_in_keys() -> None:
    """Constraints hold wherever a type stands, in keys of objects too."""

    class Table(Model):
        rows: dict[Name, Sha256]

    assert Table(rows={"a": "0" * 64}).rows == {"a": "0" * 64}
    for rows in ({"a b": "0" * 64}, {"a": "0" * 63}):
        with pytest.raises(ValidationError):
            Table(rows=rows)
