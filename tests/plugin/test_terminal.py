"""The table of a benchmark: which columns and remarks a reader sees."""

from __future__ import annotations

from typing import Any

from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.plugin.terminal import benchmark_lines


def configuration(*, served: dict[str, int], cost: float | None = None) -> dict[str, Any]:
    """Return two trials of which one succeeded."""
    over = {
        "tokens": {"mean": 1200, "trials": 2},
        "agent_secs": {"mean": 3.0, "trials": 2},
        "cost_usd": {"mean": cost, "trials": 0 if cost is None else 2},
    }
    return {
        "planned": 2,
        "setup_failures": 0,
        "cancelled": 0,
        "started": 2,
        "excluded": {"isolation": 0, "grading": 0},
        "eligible": 2,
        "succeeded": 1,
        "failed": 1,
        "inconclusive": 0,
        "success_rate": 0.5,
        "pass_all": False,
        "code": {"passed": 1, "eligible": 2, "rate": 0.5},
        "causes": {"setup_failures": {}, "cancelled": {}, "excluded": {}, "failed": {}},
        "cost": {"eligible": over, "succeeded": over},
        "served": served,
    }


def benchmark(*, reason: str | None = None, cost: float | None = None, **served: Any) -> Benchmark:
    """Return a benchmark of two configurations, each answered as `served` says."""
    figures = {"tokens": None, "agent_secs": None, "cost_usd": None if cost is None else 0.0}
    return Benchmark.model_validate(
        {
            "schema_version": "1.0",
            "batch": "b1",
            "task": "hello",
            "kind": "capability",
            "content_hash": "c" * 64,
            "client": "claude",
            "treatment": "skills",
            "isolation": "enforced",
            "selection": "complete",
            "configurations": {
                f"{name}-skills": configuration(served=models, cost=cost)
                for name, models in served.items()
            },
            "delta": {
                "success_rate": None,
                "code_rate": None,
                "cost": {"eligible": figures, "succeeded": figures},
                "reason": reason,
            },
        }
    )


def test_models_that_differ_are_told_in_one_sentence() -> None:
    """A dash in place of a delta would leave the reader to guess."""
    lines = benchmark_lines(
        benchmark(
            reason="models_differ",
            without={"big-1": 2},
            **{"with": {"big-1": 1, "big-1 + small\x1b": 1}},
        )
    )

    assert lines[-1] == (
        "models differ, so there is no delta: without-skills was answered by big-1 (2); "
        r"with-skills was answered by big-1 (1), big-1 + small\x1b (1)"
    )


def test_money_has_a_column_only_where_it_is_known() -> None:
    """Most clients tell none, and a column of dashes says nothing."""
    _, heads, *rows, delta = benchmark_lines(benchmark(cost=0.125, without={}, **{"with": {}}))

    assert heads.endswith("agent s   US $")
    assert [row.split()[-1] for row in rows] == ["0.12", "0.12"]
    assert delta.split()[-1] == "+0.00"
    _, heads, row, *_ = benchmark_lines(benchmark(without={}, **{"with": {}}))
    assert heads.endswith("agent s")
    assert row.endswith("3.00")
