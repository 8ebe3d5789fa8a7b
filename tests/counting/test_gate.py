"""Gates: what an expression names, and what documents answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_evalarc.counting.gate import Decision, Document, Gate, Kind, decide, parse_gate
from pytest_evalarc.counting.gate_names import CAUSE_GROUPS
from pytest_evalarc.errors import UsageError
from tests import documents


def document(kind: Kind, **data: Any) -> Document:
    return Document(kind=kind, subject="hello", where="results/x.json", data=data)


def configuration(rate: float | None = 0.5, **more: Any) -> dict[str, Any]:
    bounds = None if rate is None else {"low": rate - 0.25, "high": rate + 0.25}
    eligible = 0 if rate is None else 4
    causes: dict[str, Any] = {group: {} for group in CAUSE_GROUPS}
    found = {"success_rate": rate, "ci95": bounds, "eligible": eligible, "causes": causes}
    return {**found, **more}


def benchmark(selection: str = "complete", delta: Any = ..., **found: Any) -> Document:
    names = {name.replace("_", "-"): each for name, each in found.items()}
    data: dict[str, Any] = {"selection": selection, "configurations": names}
    return document("benchmark", **data, **({} if delta is ... else {"delta": delta}))


BOTH = benchmark(
    without_skills=configuration(0.25),
    with_skills=configuration(0.75),
    delta={"success_rate": 0.5, "success_rate_ci95": {"low": -0.1, "high": 0.8}, "reason": None},
)
AUDIT = document(
    "audit",
    selection="complete",
    mutation_score=1.0,
    detection={"weakest_margin": 2},
    coverage={"leave_one_out": {"greets": 0.5}},
    mutants=[{"name": "silent", "detection_margin": 3, "killed": True}],
    valid=True,
    reason=None,
)


def answered(text: str, *asked: Document) -> Decision:
    return decide(parse_gate(text), asked)


@pytest.mark.parametrize(
    ("text", "value", "status"),
    [
        ("success_rate>=0.75", 0.75, "held"),
        ("success_rate > 0.75", 0.75, "failed"),
        ("success_rate<=0.75", 0.75, "held"),
        ("success_rate<.75", 0.75, "failed"),
        ("success_rate==7.5e-1", 0.75, "held"),
        ("success_rate!=0.75", 0.75, "failed"),
        ("with.success_rate>=0.75", 0.75, "held"),
        ("without.success_rate<0.5", 0.25, "held"),
        ("without-skills.success_rate<0.5", 0.25, "held"),
        ("configurations.without-skills.success_rate<0.5", 0.25, "held"),
        ("benchmark.success_rate>0.5", 0.75, "held"),
        ("success_rate.ci95.low>=0.6", 0.5, "failed"),
        ("without.success_rate.ci95.high<=0.5", 0.5, "held"),
        ("delta.success_rate>0", 0.5, "held"),
        ("delta.success_rate_ci95.low>0", -0.1, "failed"),
        ("delta.success_rate.ci95.low>-0.2", -0.1, "held"),
        ("causes.failed.timeout==0", 0, "held"),
        ("mutation_score==1", 1.0, "held"),
        ("weakest_margin>=3", 2, "failed"),
        ("detection.weakest_margin>=2", 2, "held"),
        ("leave_one_out.greets>=0.5", 0.5, "held"),
        ("mutants.silent.detection_margin>=3", 3, "held"),
        ("mutants.0.killed", True, "held"),
        ("audit.valid==false", True, "failed"),
    ],
)
def test_a_condition_is_decided_by_the_value_that_it_names(
    text: str, value: float, status: str
) -> None:
    """Which value decides is what a person relies on, so each form of a name is tried."""
    (answer,) = answered(text, BOTH, AUDIT).answers

    assert (answer.value, answer.status) == (value, status)
    assert (answer.subject, answer.where, answer.reason) == ("hello", "results/x.json", "")


def test_a_bare_name_is_of_the_treatment_and_else_of_the_only_configuration() -> None:
    """`success_rate` must mean the same in every project: what is under evaluation."""
    noise = benchmark(without_skills=configuration(0.0), noise=configuration(1.0))
    only = benchmark(baseline=configuration(1.0))
    without = benchmark(without_skills=configuration(1.0))

    assert answered("success_rate==1", noise, only).status == "held"
    (answer,) = answered("success_rate==1", without).answers
    assert answer.status == "not decidable"
    assert answer.reason == "the treatment's configuration was not run, only without-skills"


def test_a_gate_holds_only_where_every_condition_and_every_document_does() -> None:
    """One task that fails is not made up for by another."""
    other = benchmark(with_skills=configuration(0.25))
    text = "success_rate>=0.5 and mutation_score==1"

    assert answered(text, BOTH, AUDIT).status == "held"
    found = answered(text, BOTH, other, AUDIT)
    assert found.status == "failed"
    assert [answer.status for answer in found.answers] == ["held", "failed", "held"]


@pytest.mark.parametrize(
    ("text", "asked", "reason"),
    [
        ("success_rate>=0", [AUDIT], "no document answers it: no trials were run"),
        ("mutation_score>=0", [BOTH], "no document answers it: no audit was made"),
        ("resolved", [BOTH], "no document answers it: no submission was evaluated"),
        (
            "valid",
            [BOTH],
            "no document answers it: no audit was made and no submission was evaluated",
        ),
        (
            "success_rate>=0",
            [benchmark("partial", with_skills=configuration(1.0))],
            "the trials are partial: not every planned one reached its end",
        ),
        (
            "success_rate>=0",
            [document("benchmark", selection="partial", shard={"number": 2, "of": 4})],
            "the trials are those of shard 2/4: merge the shards, and ask then",
        ),
        (
            "mutation_score>=0",
            [document("audit", selection="partial", mutation_score=1.0)],
            "the audit is partial: not every control was graded",
        ),
        (
            "success_rate>=0",
            [benchmark(with_skills=configuration(None))],
            "it is null: no trial is eligible",
        ),
        (
            "success_rate.ci95.low>=0",
            [benchmark(with_skills=configuration(None))],
            "it is null: no trial is eligible",
        ),
        (
            "cost.eligible.tokens.mean>=0",
            [benchmark(with_skills=configuration(cost={"eligible": {"tokens": {"mean": None}}}))],
            "it is null: no trial tells it",
        ),
        (
            "delta.success_rate>0",
            [benchmark(baseline=configuration(1.0))],
            "the task has no treatment, so there is no delta",
        ),
        (
            "delta.success_rate>0",
            [benchmark(delta={"success_rate": None, "reason": "models_differ"})],
            "it is null: models differ",
        ),
        (
            "mutation_score>=0",
            [document("audit", mutation_score=None, reason="reference_failed")],
            "it is null: reference failed",
        ),
        (
            "leave_one_out.greet>=0",
            [AUDIT],
            "there is no 'greet'; nearest: greets",
        ),
        (
            "resolved==false",
            [document("evaluation", valid=False, resolved=False)],
            "the harness broke while it graded",
        ),
        (
            "summary.delta.ci95.low>0",
            [document("summary", delta_ci95=None, reason="too_few_tasks")],
            "it is null: too few tasks",
        ),
        (
            "summary.tasks.p_value_holm<1",
            [document("summary row", selection="partial", p_value_holm=0.01)],
            "the trials are partial: not every planned one reached its end",
        ),
    ],
)
def test_what_cannot_be_decided_does_not_hold_and_says_why(
    text: str, asked: list[Document], reason: str
) -> None:
    """A gate that passes because nothing was measured guards nothing."""
    found = answered(text, *asked)

    assert found.status == "not decidable"
    assert [(answer.value, answer.reason) for answer in found.answers] == [(None, reason)]


def test_a_summary_is_asked_by_its_name_alone() -> None:
    """It has names that a benchmark has too, and a bare one must not mean both."""
    summary = document("summary", delta=0.25, delta_ci95={"low": 0.1, "high": 0.4}, tasks=6)
    row = document("summary row", p_value_holm=0.04, selection="complete")

    assert answered("summary.delta.ci95.low>0 and summary.tasks>=5", summary).status == "held"
    assert answered("summary.tasks.p_value_holm<0.05", row).status == "held"
    assert len(answered("success_rate>=0.5", BOTH, summary, row).answers) == 1


def leaves(value: object, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the dotted path of every number and truth in JSON data."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, str(index)))
    elif isinstance(value, (bool, int, float)):
        yield ".".join(path)


@pytest.mark.parametrize(
    ("kind", "data"),
    [("audit", documents.audit().to_json()), ("evaluation", documents.evaluation().to_json())],
)
def test_every_number_of_a_document_has_a_name(kind: Kind, data: Any) -> None:
    """Whoever reads a number in a document can hold a run to it."""
    found = Document(kind=kind, subject="", where="", data=data)
    names = list(leaves(data, (kind,)))

    assert len(names) > 20
    for name in names:
        (asked,) = parse_gate(f"{name}==true" if _is_true(data, name) else f"{name}>=0").conditions
        assert decide(Gate(text="", conditions=(asked,)), [found]).answers[0].value is not None


def _is_true(data: Any, name: str) -> bool:
    for key in name.split(".")[1:]:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return isinstance(data, bool)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; write a condition, as success_rate>=0.8"),
        ("sucess_rate>=1", "no document has 'sucess_rate'; nearest: success_rate"),
        ("weakest_margn>=1", "no document has 'weakest_margn'; nearest: weakest_margin"),
        ("with.sucess_rate>=1", "there is no 'sucess_rate' in with; nearest: success_rate"),
        ("delta.sucess_rate>0", "there is no 'sucess_rate' in delta; nearest: success_rate"),
        ("causes.failed.timeuot==0", "there is no 'timeuot' in causes.failed; nearest: timeout"),
        ("causes.faild.timeout==0", "there is no 'faild' in causes; nearest: failed"),
        ("audit.success_rate>0", "no document has 'success_rate'"),
        ("zzz>0", "no document has 'zzz'; docs/gates.md tells what there is"),
        ("cost>=1", "'cost' is neither a number nor true or false; known: eligible, succeeded"),
        ("task==1", "'task' is neither a number nor true or false"),
        ("success_rate=>0.8", "there is no operator '=>'; nearest: "),
        ("success_rate=0.8", "there is no operator '='; nearest: "),
        ("success_rate is 1", "there is no operator 'is'"),
        ("success_rate", "is a number and compared with nothing; compare it, as success_rate>=0.8"),
        ("success_rate>=", "success_rate is compared with nothing; join conditions by `and`"),
        ("success_rate>=0.8 or x", "is compared with '0.8 or x', which is no number"),
        ("success_rate>=1e999", "is compared with '1e999', which is no number"),
        ("success_rate>=nan", "is compared with 'nan', which is no number"),
        ("success_rate>=80", "is within 0 and 1, so comparing it with 80 decides nothing"),
        ("failed>=-1", "failed is 0 or more, so comparing it with -1 decides nothing"),
        ("resolved>=true", "is true or false, and neither is more; write resolved==true"),
        ("resolved==1", "resolved is true or false, and is compared with '1'"),
        (">=1", "'>=1' is no condition; begin with a name"),
    ],
)
def test_a_wrong_expression_is_told_in_one_sentence(text: str, sentence: str) -> None:
    """It is found before hours of trials, and the nearest name is what was meant."""
    with pytest.raises(UsageError) as found:
        parse_gate(text)

    assert str(found.value).startswith(f"--evalarc-gate {text!r}: ")
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)
