"""The example of benchmark.json that the reference publishes, from a plan and ten results."""

from __future__ import annotations

import json
from typing import Any

from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.isolation import TrialIsolation
from pytest_evalarc.model.planned import Execution, Outcome, PlannedTrial
from pytest_evalarc.model.task import Deadlines, TaskRef
from pytest_evalarc.model.transcript import Load, Usage
from pytest_evalarc.model.trial import (
    Expectations,
    ModelRef,
    PlanDoc,
    SkillFacts,
    TrialResult,
    Versioned,
)

PUBLISHED = """
{
  "task": "store-durability",
  "client": "claude",
  "isolation": "enforced",
  "configurations": {
    "without-symposium": {
      "planned": 5, "setup_failures": 0, "cancelled": 0, "started": 5,
      "excluded": { "isolation": 0, "grading": 0 },
      "eligible": 5, "succeeded": 2, "failed": 3, "inconclusive": 0,
      "success_rate": 0.4, "pass_all": false,
      "cost": {
        "eligible": {
          "tokens": { "mean": 38900, "trials": 5 }, "agent_secs": { "mean": 81, "trials": 5 } },
        "succeeded": {
          "tokens": { "mean": 44100, "trials": 2 }, "agent_secs": { "mean": 92, "trials": 2 } }
      }
    },
    "with-symposium": {
      "planned": 5, "setup_failures": 0, "cancelled": 0, "started": 5,
      "excluded": { "isolation": 0, "grading": 0 },
      "eligible": 5, "succeeded": 4, "failed": 1, "inconclusive": 0,
      "success_rate": 0.8, "pass_all": false,
      "observed_load": {
        "fixture-store": { "loaded": 4, "attempted": 0, "not_observed": 1, "unknown": 0 } },
      "cost": {
        "eligible": {
          "tokens": { "mean": 35100, "trials": 5 }, "agent_secs": { "mean": 70, "trials": 5 } },
        "succeeded": {
          "tokens": { "mean": 36000, "trials": 4 }, "agent_secs": { "mean": 72, "trials": 4 } }
      }
    }
  },
  "delta": { "success_rate": 0.4 }
}
"""
"""Key for key as it is published."""

TASK = TaskRef(name="store-durability", kind="capability", content_hash="c" * 64)
TRIALS = {
    "without-symposium": [
        (True, 44_000, 90.0),
        (True, 44_200, 94.0),
        (False, 36_300, 71.0),
        (False, 35_000, 75.0),
        (False, 35_000, 75.0),
    ],
    "with-symposium": [
        (True, 30_000, 72.0),
        (True, 34_000, 72.0),
        (True, 38_000, 72.0),
        (True, 42_000, 72.0),
        (False, 31_500, 62.0),
    ],
}
"""Whether each trial succeeded, its tokens and its seconds."""


def result(entry: PlannedTrial) -> TrialResult:
    succeeded, tokens, secs = TRIALS[entry.configuration][entry.trial - 1]
    load = Load.LOADED if succeeded else Load.NOT_OBSERVED
    skills = {"fixture-store": SkillFacts(observed_load=load)}
    return TrialResult(
        schema_version=SCHEMA_VERSION,
        task=TASK,
        client=Versioned(name="claude"),
        model=ModelRef(),
        mode=entry.configuration,
        trial=entry.trial,
        order=entry.order,
        os="linux x86_64",
        deadlines_secs=Deadlines(),
        elapsed_secs=secs,
        usage=Usage(input_tokens=tokens - 4_000, output_tokens=1_000, cache_read_tokens=3_000),
        execution=Execution.COMPLETED,
        isolation=TrialIsolation(mode="enforced"),
        expectations=Expectations(skills=skills) if "with-" in entry.configuration else None,
        outcome=Outcome.SUCCEEDED if succeeded else Outcome.FAILED,
        cause=None if succeeded else Cause(kind="code"),
    )


def missing(published: Any, ours: Any, path: str = "") -> list[str]:
    """Return where a document does not say what the published one says; it may say more."""
    if isinstance(published, dict) and isinstance(ours, dict):
        return [
            place
            for key, value in published.items()
            for place in missing(value, ours.get(key), f"{path}.{key}")
        ]
    return [] if published == ours and type(published) in (type(ours), int) else [path]


def test_the_published_example_follows_from_ten_results() -> None:
    """Whoever reads the reference must find every key and every number where it says."""
    plan = PlanDoc(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=TASK,
        client="claude",
        client_kind="claude",
        treatment="symposium",
        deadlines_secs=Deadlines(),
        sandbox="bwrap",
        session_sandbox="srt",
        trials=planned_trials(tuple(TRIALS), 5),
    )

    benchmark = count(plan, {entry.folder: result(entry) for entry in plan.trials})

    ours = json.loads(json.dumps(benchmark.to_json()))
    published = json.loads(PUBLISHED)
    assert missing(published, ours) == []
    assert list(ours["configurations"]) == list(published["configurations"])


def test_a_number_that_differs_would_be_noticed() -> None:
    """The comparison above may not pass for want of looking."""
    published = json.loads(PUBLISHED)
    other = json.loads(PUBLISHED.replace("38900", "38901").replace("false", "0", 1))

    assert missing(published, other) == [
        ".configurations.without-symposium.pass_all",
        ".configurations.without-symposium.cost.eligible.tokens.mean",
    ]
    assert missing(published, {"task": "store-durability"})[0] == ".client"
