"""Gate expressions: any text is a gate or one sentence, and any documents decide it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.counting.gate import OPERATORS, Document, decide, parse_gate
from pytest_evalarc.errors import UsageError
from tests.fuzz.forms import JSON, fuzzed, refusing

NAMES = st.sampled_from(
    (
        *("success_rate", "without.success_rate", "delta.success_rate", "mutation_score"),
        *("weakest_margin", "resolved", "score", "with.code.rate", "configurations.noise.eligible"),
        *("succes_rate", "with-skills.success_rate", "causes.timeout", "tasks.0.difference", "."),
        *(
            "all_tasks.low",
            "pass_at_k.1",
            "delta",
            "without",
            "difference",
            "without.causes.timeout",
        ),
    )
)
OPERATOR = st.sampled_from((*OPERATORS, "=", "=>", "<>", "in", "", "\u2265", "\xa0>="))
VALUES = st.sampled_from(
    (*("0", "1", "0.8", "-1", "true", "false", "True", "80%", "1e999", "nan", "9" * 5000, ""),)
) | st.floats().map(str)
SPACES = st.sampled_from(("", " ", "  ", "\t", "\n", "\xa0", "\u2003", "\x1c", "\x85"))
JOINS = st.sampled_from((" and ", "  and\t", "and", " AND ", " or ", "\x1cand\x1c", ", "))
GRAMMATICAL = st.builds(
    lambda parts, join: join.join("".join(part) for part in parts),
    st.lists(st.tuples(SPACES, NAMES, SPACES, OPERATOR, SPACES, VALUES, SPACES), max_size=3),
    JOINS,
)
KINDS = st.sampled_from(("benchmark", "audit", "evaluation", "summary", "summary row"))
FIGURES = st.dictionaries(
    st.sampled_from(
        (
            *("selection", "configurations", "delta", "shard", "reason", "mutation_score"),
            *("with-skills", "without-skills", "baseline", "noise", "success_rate", "causes"),
            *("weakest_margin", "resolved", "valid", "code", "eligible", "score", "0", "1"),
        )
    ),
    st.recursive(
        JSON | st.sampled_from(("partial", "complete")),
        lambda inner: st.dictionaries(
            st.sampled_from(
                ("with-skills", "without-skills", "success_rate", "of", "name", "code")
            ),
            inner,
            max_size=3,
        ),
        max_leaves=4,
    ),
    max_size=6,
)


@fuzzed(150)
@given(st.text(max_size=40) | GRAMMATICAL)
def test_any_text_is_a_gate_or_one_sentence(text: str) -> None:
    """A gate is typed by hand, into a shell that may have changed it."""
    with refusing(UsageError):
        gate = parse_gate(text)

        assert gate.conditions
        assert parse_gate(gate.text) == gate


@fuzzed(100)
@given(GRAMMATICAL, st.lists(st.tuples(KINDS, FIGURES), max_size=3))
def test_any_documents_decide_any_gate(text: str, found: list[tuple[Any, dict[str, Any]]]) -> None:
    """Whatever documents hold, a gate held, failed, or says why neither can be told."""
    documents = [
        Document(kind=kind, subject="it", where="it.json", data=data) for kind, data in found
    ]
    with refusing(UsageError):
        gate = parse_gate(text)

        decision = decide(gate, documents)

        assert decision.answers
        for answer in decision.answers:
            assert (answer.status == "not decidable") == bool(answer.reason)
            assert (answer.status == "not decidable") == (answer.value is None)
        statuses = {answer.status for answer in decision.answers}
        assert (decision.status == "held") == (statuses == {"held"})
