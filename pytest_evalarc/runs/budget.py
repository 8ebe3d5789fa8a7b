"""What a batch may use up: no round of trials starts once that is reached.

A round is a trial of every configuration of a task and client. It is admitted or kept back as a
whole, once, by whichever process asks first, so that all configurations have as many trials when a
batch ends early.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import SCHEMA_VERSION, Count, Model
from pytest_evalarc.model.planned import Execution, Outcome, PlannedTrial
from pytest_evalarc.model.trial import PlanDoc, TrialResult

FOLDER = "budget"
"""Beside the trials: one document for each round that was asked for under a budget."""
UNTOLD = 10
"""As long as no session of a batch tells of any use, so many use a budget up."""


class Admission(Model):
    """budget/round-<n>.json: whether a round of trials was started, under which budget."""

    schema_version: str
    round: Annotated[int, Field(ge=1)]
    admitted: bool
    """True stands for ever; False as long as the budget is the same."""
    max_tokens: Count | None = None
    max_cost_usd: float | None = None
    reason: str = ""
    """What was used up, as a sentence; empty for a round that was started."""


class Figure(NamedTuple):
    """What the sessions of a batch used of one thing."""

    known: tuple[float, ...]
    """Of each session that told."""
    untold: int
    """Sessions that did not."""

    def used(self, limit: float) -> float:
        """Return what counts against a budget.

        A session that was killed tells nothing, and a batch of such sessions must have an end too:
        each counts like the costliest that told, and as long as none told of any use, like a share
        of the budget itself.
        """
        each = self.costliest or limit / UNTOLD
        return math.fsum(self.known) + self.untold * each

    @property
    def costliest(self) -> float:
        """What the session used that told of most; 0 when none told of any use."""
        return max(self.known, default=0.0)


class _Session(NamedTuple):
    tokens: float | None
    cost_usd: float | None


@dataclass(kw_only=True)
class Budget:
    """One process's view of what a batch has used, and of which rounds may start."""

    results: Path
    batch: str
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    """What the batch may use up; None is without end."""
    is_free: Callable[[PlanDoc], bool] = lambda plan: False  # noqa: ARG005
    """Whether the sessions of a plan use nothing, as they ask no model."""
    _sessions: dict[str, _Session | None] = field(default_factory=dict)
    """By the trial's folder; None used nothing. A result never changes, so each is read once."""
    _free: dict[Path, bool] = field(default_factory=dict)

    def admit(self, folder: Path, plan: PlanDoc, entry: PlannedTrial) -> str | None:
        """Return why a trial's round may not start; None when it may, or has.

        Args:
            folder: Holds plan.json and the trials.
            plan: The plan of that task and client.
            entry: The trial that is asked for.

        Raises:
            DocumentError: What was decided before cannot be read, or no decision be written.
        """
        path = folder / FOLDER / f"round-{entry.round}.json"
        if not self._is_limited and not path.exists():
            return None
        try:
            path.parent.mkdir(exist_ok=True)
            with locked(path.with_name(f".{path.name}.lock")):
                kept = read_model(path, Admission) if path.exists() else None
                if kept is None or not self._still_holds(kept):
                    kept = self._decision(folder, plan, entry.round)
                    write_model(path, kept)
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise DocumentError(str(path), problem, "free that folder") from error
        return None if kept.admitted else kept.reason

    @property
    def _is_limited(self) -> bool:
        return self.max_tokens is not None or self.max_cost_usd is not None

    def _still_holds(self, kept: Admission) -> bool:
        is_same = (kept.max_tokens, kept.max_cost_usd) == (self.max_tokens, self.max_cost_usd)
        return kept.admitted or is_same

    def _decision(self, folder: Path, plan: PlanDoc, number: int) -> Admission:
        # What has begun is finished in all configurations, under whichever budget.
        has_begun = any(
            _has_begun(folder / entry.folder) for entry in plan.trials if entry.round == number
        )
        reason = "" if has_begun else self._reached()
        return Admission(
            schema_version=SCHEMA_VERSION,
            round=number,
            admitted=not reason,
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
            reason=reason,
        )

    def _reached(self) -> str:
        """Return which budget is used up, as a sentence; nothing while none is."""
        for figure, limit, told in self._figures():
            if figure.used(limit) >= limit:
                return f"the budget is used up: {told}"
        return ""

    def summary(self) -> str | None:
        """Return what the batch has used of its budget, in words; None without a budget."""
        told = [told for _, _, told in self._figures()]
        return f"budget: {'; '.join(told)}" if told else None

    def _figures(self) -> Iterator[tuple[Figure, float, str]]:
        """Yield what is used of each thing that has a limit, that limit, and both in words."""
        sessions = self._finished() if self._is_limited else []
        tokens, cost = self.max_tokens, self.max_cost_usd
        if tokens is not None:
            figure = _figure([session.tokens for session in sessions])
            used = math.ceil(figure.used(tokens))
            told = f"{used:,} of {tokens:,} tokens are used"
            yield figure, tokens, told + _untold(figure, "its tokens")
        if cost is not None:
            figure = _figure([session.cost_usd for session in sessions])
            told = f"{figure.used(cost):,.2f} of {cost:,.2f} US dollars are used"
            yield figure, cost, told + _untold(figure, "its cost")

    def _finished(self) -> list[_Session]:
        """Return what each finished session of the batch used, of all its tasks and clients."""
        for folder in self.results.glob(f"*/*/{self.batch}"):
            if not self._is_free(folder):
                for trial in _trial_folders(folder):
                    if trial not in self._sessions:
                        self._look_at(Path(trial, "result.json"))
        return [session for session in self._sessions.values() if session is not None]

    def _look_at(self, result: Path) -> None:
        if result.exists():
            self._sessions[str(result.parent)] = _session(result)

    def _is_free(self, folder: Path) -> bool:
        if folder not in self._free:
            try:
                self._free[folder] = self.is_free(read_model(folder / "plan.json", PlanDoc))
            except DocumentError:
                # An audit's or a candidate's, which has no trials, or one that is damaged.
                return False
        return self._free[folder]


def kept_back(folder: Path, plan: PlanDoc) -> frozenset[str]:
    """Return the trials of a plan, by folder, whose rounds a budget kept from being started.

    Args:
        folder: Holds plan.json and the trials.
        plan: The plan.

    Raises:
        DocumentError: What was decided of a round cannot be read.
    """
    rounds = {
        kept.round
        for path in (folder / FOLDER).glob("round-*.json")
        if not (kept := read_model(path, Admission)).admitted
    }
    return frozenset(entry.folder for entry in plan.trials if entry.round in rounds)


def _session(path: Path) -> _Session | None:
    """Return what one trial used; a result that cannot be read tells nothing."""
    try:
        result = read_model(path, TrialResult)
    except DocumentError:
        return _Session(None, None)
    if result.usage is not None:
        return _Session(result.usage.total, result.usage.cost_usd)
    # Of a trial that was cut off nobody knows how far it had come.
    was_cut_off = result.outcome is Outcome.CANCELLED
    ran = was_cut_off or result.execution is not Execution.NOT_STARTED
    return _Session(None, None) if ran else None


def _figure(told: list[float | None]) -> Figure:
    known = tuple(value for value in told if value is not None)
    return Figure(known, len(told) - len(known))


def _untold(figure: Figure, what: str) -> str:
    if not figure.untold:
        return ""
    one = figure.untold == 1
    counts = "counts" if one else "each counts"
    as_what = "the costliest" if figure.costliest else f"1/{UNTOLD} of the budget"
    told = "1 session" if one else f"{figure.untold} sessions"
    return f" ({told} did not tell {what}, and {counts} like {as_what})"


def _trial_folders(folder: Path) -> Iterator[str]:
    # As plain text: a batch may have thousands, and they are looked through for every round.
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("trial-"):
                yield entry.path


def _has_begun(trial: Path) -> bool:
    return any((trial / name).exists() for name in ("result.json", ".result.json.begun"))
