"""The store of a batch against a model: whatever dies, no trial is lost or run twice.

A machine runs trials, counts them, goes on with them under budgets, damages and restores files and
merges shards. Any of these steps can be cut off at any change of the disk: by death, after which
nothing more of that step reaches the disk, or by a disk that is full.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.counting.shards import own_trials
from pytest_evalarc.errors import DocumentError, EvalArcError, UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.planned import Execution, PlannedTrial, Shard
from pytest_evalarc.model.transcript import Usage
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.batch import write_documents
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.reporting.merge import merge
from pytest_evalarc.runs.budget import Budget, kept_back
from pytest_evalarc.runs.draft import Draft
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.once import mark_of, once
from pytest_evalarc.runs.prune import old_results
from pytest_evalarc.runs.shards import keep_shard, open_shard
from pytest_evalarc.runs.trial import cancelled
from tests.batches import ENFORCED
from tests.documents import grading
from tests.evals import Evals
from tests.fuzz.forms import files_of, fuzzed, require_told

TRIALS = 3
TOKENS = 100
CHANGES = (
    *((Path, name) for name in ("open", "replace", "rename", "unlink", "mkdir", "symlink_to")),
    *((os, name) for name in ("fsync", "link", "mkdir", "rmdir", "unlink")),
)
"""Every call by which the steps here change the disk, or say that a change shall last."""
ENDINGS = ("passed", "failed", "setup", "interrupt", "broken", "dies")


class Died(BaseException):
    """The process is dead: what still runs of it in this test reaches the disk no more."""


class Disk:
    """Cuts a step off at one of its changes: `at` counts down to it; None lets all through."""

    def __init__(self, root: Path, at: int | None, *, dies: bool) -> None:
        self.root = root
        self.at = at
        self.dies = dies
        self.is_dead = False

    def change(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise if this change is the one, or comes after death."""
        if name == "open" and "x" not in str(args[1:] or kwargs.get("mode", "")):
            return
        if self.at is not None:
            self.at -= 1
        if self.is_dead or (self.at is not None and self.at < 0):
            if self.dies:
                self.die(name, args)
            if name in ("unlink", "rmdir"):
                # A full disk takes no more, and gives away all the same.
                return
            raise OSError(errno.ENOSPC, "No space left on device")

    def die(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "open" and not self.is_dead:
            # Killed while it wrote: a part of the new file is there.
            os.close(os.open(args[0], os.O_CREAT | os.O_WRONLY, 0o600))
        self.is_dead = True
        raise Died

    @contextmanager
    def in_use(self) -> Iterator[None]:
        with (
            mock.patch.multiple(Path, **self._watched(Path)),
            mock.patch.multiple(os, **self._watched(os)),
        ):
            yield

    def _watched(self, owner: Any) -> dict[str, Callable[..., Any]]:
        return {name: self._one(name, getattr(owner, name)) for at, name in CHANGES if at is owner}

    def _one(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.change(name, args, kwargs)
            return real(*args, **kwargs)

        return watched


CUTS = st.none() | st.tuples(st.integers(0, 14), st.booleans())


class Store(RuleBasedStateMachine):
    """A batch in one to three shards, beside what it should hold."""

    @initialize(of=st.integers(1, 3))
    def plan(self, of: int) -> None:
        # What reaches the disk is decided here, and not by the machine that this runs on.
        self.unsynced = mock.patch.object(os, "fsync", lambda descriptor: None)
        self.unsynced.start()
        self.root = Path(tempfile.mkdtemp())
        self.evals = Evals(self.root / "own", options={"trials": TRIALS})
        self.of = of
        self.ran: Counter[str] = Counter()
        self.done: dict[str, bytes] = {}
        """Content of every result that has ever been whole on disk, by the trial's folder."""
        self.begun: set[str] = set()
        """Trials of which a mark is left."""
        self.damaged: set[str] = set()
        self.back: dict[str, int] = {}
        """The budget under which a round was kept back, by `shard/round`."""
        self.admitted: set[str] = set()
        self.merges = 0
        for number in range(1, of + 1):
            self.open_part(number)

    def open_part(self, number: int) -> None:
        folder = self.folder(number)
        if self.of > 1:
            shard = Shard(number=number, of=self.of)
            open_shard(self.folders(number), shard)
            folder.mkdir(parents=True, exist_ok=True)
            keep_shard(folder / "shard.json", "b1", shard)
        once(folder / "plan.json", PlanDoc, lambda: self.evals.plan)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)
            self.unsynced.stop()

    # Where things are, and what the model says of them.

    def folders(self, number: int) -> Folders:
        results = self.root / f"part-{number}"
        return Folders(eval_root=self.root / "eval", results=results, batch="b1")

    def folder(self, number: int) -> Path:
        return self.folders(number).trials("tiny", "oracle")

    def shard_of(self, entry: PlannedTrial) -> int:
        for number in range(1, self.of + 1):
            shard = Shard(number=number, of=self.of)
            if entry in own_trials(self.evals.plan.trials, shard, task="tiny", client="oracle"):
                return number
        raise AssertionError("every trial belongs to a shard")

    def result(self, entry: PlannedTrial) -> Path:
        return self.folder(self.shard_of(entry)) / entry.folder / "result.json"

    def entry(self, number: int) -> PlannedTrial:
        return self.evals.plan.trials[number % len(self.evals.plan.trials)]

    # Steps.

    @rule(number=st.integers(0, 5), ending=st.sampled_from(ENDINGS), cut=CUTS)
    def run(self, number: int, ending: str, cut: tuple[int, bool] | None) -> None:
        """Ask for a trial, as the process does whose item needs it."""
        entry = self.entry(number)
        path, name = self.result(entry), entry.folder
        runs_before = self.ran[name]
        disk = Disk(self.root, cut[0] if cut else None, dies=bool(cut and cut[1]))
        disk.dies = disk.dies or ending == "dies"
        found = None
        with disk.in_use(), suppress(Died, KeyboardInterrupt, ZeroDivisionError):
            try:
                found = once(
                    path,
                    TrialResult,
                    lambda: self.produced(entry, ending, disk),
                    lost=lambda error: cancelled(
                        self.evals.plan, entry, self.evals.known_client, error
                    ),
                )
            except EvalArcError as error:
                require_told(error)
                assert name in self.damaged or (cut and not cut[1])
        self.look(entry, runs_before)
        if found is not None:
            assert name in self.done and read_model(path, TrialResult) == found
            assert name not in self.damaged

    @rule(
        number=st.integers(0, 5),
        ending=st.sampled_from(("passed", "failed")),
        at=st.integers(0, 9),
        dies=st.booleans(),
    )
    def run_cut_off(self, number: int, ending: str, at: int, dies: bool) -> None:
        """The same, cut off for certain unless the trial was done before."""
        self.run(number, ending, (at, dies))

    def produced(self, entry: PlannedTrial, ending: str, disk: Disk) -> TrialResult:
        self.ran[entry.folder] += 1
        assert mark_of(self.result(entry)).exists()
        if ending == "dies":
            disk.is_dead = True
            raise Died
        if ending == "interrupt":
            raise KeyboardInterrupt
        if ending == "broken":
            raise ZeroDivisionError
        draft = Draft(
            plan=self.evals.plan,
            entry=entry,
            client=self.evals.known_client,
            execution=Execution.COMPLETED,
            elapsed_s=1.5,
            isolation=ENFORCED,
            usage=Usage(input_tokens=TOKENS, output_tokens=0),
            grading=grading() if ending == "passed" else grading("adds.sums"),
        )
        if ending == "setup":
            draft = Draft(plan=self.evals.plan, entry=entry, client=self.evals.known_client)
            draft.setup = Cause(kind=CauseKind.PREPARATION, detail="no disk")
        return draft.result()

    def look(self, entry: PlannedTrial, runs_before: int) -> None:
        """Take over what a step left of one trial, and hold it to what may be left."""
        path, name = self.result(entry), entry.folder
        was_begun, was_done = name in self.begun, name in self.done
        if was_begun or was_done:
            assert self.ran[name] == runs_before, "what was begun must never be run again"
        if path.exists() and not was_done:
            self.done[name] = path.read_bytes()
            outcome = read_model(path, TrialResult).outcome
            assert not was_begun or outcome == "cancelled"
        if mark_of(path).exists():
            self.begun.add(name)
        elif name in self.begun:
            assert name in self.done, "a mark went and left no result"
            self.begun.discard(name)
        if self.ran[name]:
            assert name in self.done or name in self.begun, "a trial was run and nothing says so"

    @rule(number=st.integers(0, 5), limit=st.sampled_from((50, 150, 10_000)), cut=CUTS)
    @precondition(lambda self: not self.damaged)
    def admit(self, number: int, limit: int, cut: tuple[int, bool] | None) -> None:
        """Ask whether the round of a trial may start under a budget."""
        entry = self.entry(number)
        shard = self.shard_of(entry)
        key = f"{shard}/{entry.round}"
        used_up = self.used(shard, limit) >= limit
        has_begun = any(
            each.round == entry.round and each.folder in {*self.done, *self.begun}
            for each in self.evals.plan.trials
        )
        budget = Budget(results=self.folders(shard).results, batch="b1", max_tokens=limit)
        disk = Disk(self.root, cut[0] if cut else None, dies=bool(cut and cut[1]))
        with disk.in_use(), suppress(Died):
            try:
                reason = budget.admit(self.folder(shard), self.evals.plan, entry)
            except DocumentError as error:
                require_told(error)
                assert cut and not cut[1]
                return
            if key in self.admitted:
                assert reason is None
            elif self.back.get(key) == limit:
                assert reason is not None
            else:
                assert (reason is None) == (has_begun or not used_up)
        self.take_over_admission(shard, entry.round, key)

    @rule(number=st.integers(0, 5), limit=st.sampled_from((50, 100)))
    @precondition(lambda self: not self.damaged)
    def admit_and_lower(self, number: int, limit: int) -> None:
        """What was admitted stays so under a budget that has since been used up."""
        self.admit(number, 10_000, None)
        self.run(number + 2, "passed", None)
        self.admit(number, limit, None)

    def take_over_admission(self, shard: int, number: int, key: str) -> None:
        from pytest_evalarc.runs.budget import Admission

        path = self.folder(shard) / "budget" / f"round-{number}.json"
        if path.exists():
            kept = read_model(path, Admission)
            self.back.pop(key, None)
            if kept.admitted:
                self.admitted.add(key)
            else:
                assert key not in self.admitted and kept.max_tokens is not None
                self.back[key] = kept.max_tokens

    def used(self, shard: int, limit: int) -> float:
        """Return what the results of a shard used, as docs/batches.md says it is counted."""
        known = untold = 0
        for entry in self.evals.plan.trials:
            if entry.folder in self.done and self.shard_of(entry) == shard:
                result = read_model(self.result(entry), TrialResult)
                known += result.usage is not None
                untold += result.outcome == "cancelled"
        return known * TOKENS + untold * (TOKENS if known else limit / 10)

    @rule(number=st.integers(0, 5), share=st.floats(0, 1, exclude_max=True))
    def damage(self, number: int, share: float) -> None:
        """Cut a finished result off at some byte, as a disk that failed may."""
        name = self.entry(number).folder
        if name in self.done:
            # Without its last line end a document is as whole as with it.
            whole = self.done[name].rstrip()
            self.result(self.entry(number)).write_bytes(whole[: int(share * len(whole))])
            self.damaged.add(name)

    @rule()
    @precondition(lambda self: self.damaged)
    def restore(self) -> None:
        for entry in self.evals.plan.trials:
            if entry.folder in self.damaged:
                self.result(entry).write_bytes(self.done[entry.folder])
        self.damaged.clear()

    @rule(shard=st.integers(1, 3), cut=CUTS)
    def count(self, shard: int, cut: tuple[int, bool] | None) -> None:
        """Count a shard and write its documents, which change no result."""
        shard = min(shard, self.of)
        disk = Disk(self.root, cut[0] if cut else None, dies=bool(cut and cut[1]))
        own = [entry for entry in self.evals.plan.trials if self.shard_of(entry) == shard]
        if self.damaged & {entry.folder for entry in own}:
            with suppress(DocumentError):
                read_benchmark(self.folder(shard))
                raise AssertionError("a damaged result was counted")
        else:
            self.require_counts(read_benchmark(self.folder(shard)), own)
        with disk.in_use(), suppress(Died):
            told = write_documents(self.folders(shard))
            for problem in told.problems:
                require_told(problem)
        path = self.folder(shard) / "benchmark.json"
        if path.exists():
            read_model(path, Benchmark)

    def require_counts(self, found: Benchmark, own: list[PlannedTrial]) -> None:
        """Hold a benchmark to what the results of the model say, and nothing else."""
        for name, counted in found.configurations.items():
            mine = [entry for entry in own if entry.configuration == name]
            told = Counter(
                read_model(self.result(entry), TrialResult).outcome.value
                for entry in mine
                if entry.folder in self.done
            )
            missing = sum(entry.folder not in self.done for entry in mine)
            assert counted.planned == len(mine)
            assert counted.succeeded == told["succeeded"]
            assert counted.failed == told["failed"]
            assert counted.setup_failures == told["setup_failure"]
            assert counted.cancelled == told["cancelled"] + missing
            back = sum(
                entry.folder not in self.done
                and f"{self.shard_of(entry)}/{entry.round}" in self.back
                for entry in mine
            )
            assert counted.causes.get("cancelled", {}).get("budget", 0) == back

    @rule(cut=CUTS)
    @precondition(lambda self: self.of > 1)
    def join(self, cut: tuple[int, bool] | None) -> None:
        """Merge the shards: the whole appears as counted, or nothing does."""
        self.merges += 1
        output = self.root / f"merged-{self.merges}"
        parts = [self.folders(number).results for number in range(1, self.of + 1)]
        before = [files_of(part) for part in parts]
        trials = self.evals.plan.trials
        is_whole = not self.damaged and all(
            entry.folder in self.done or f"{self.shard_of(entry)}/{entry.round}" in self.back
            for entry in trials
        )
        disk = Disk(self.root, cut[0] if cut else None, dies=bool(cut and cut[1]))
        merged = None
        with disk.in_use(), suppress(Died):
            try:
                merged = merge(parts, output)
            except EvalArcError as error:
                require_told(error)
                assert not is_whole or cut
        assert [files_of(part) for part in parts] == before
        assert output.exists() == (merged is not None)
        if merged is not None:
            assert is_whole and merged.trials == len(self.done)
            self.require_counts(read_benchmark(output / "tiny/oracle/b1"), list(trials))

    @rule()
    def refuse_another(self) -> None:
        """The folder of a shard is not taken for another, and a plan is never written over."""
        if self.of > 1:
            other = Shard(number=1 + self.of % 2 if self.of == 2 else 3, of=self.of)
            if other.number != 1:
                with suppress(UsageError):
                    open_shard(self.folders(1), other)
                    raise AssertionError("a folder was opened as another shard")
        found = once(self.folder(1) / "plan.json", PlanDoc, lambda: 1 / 0)  # type: ignore[arg-type]
        assert found == self.evals.plan

    @rule()
    def prune(self) -> None:
        """The one batch there is stays, whatever state it is in."""
        found = old_results(self.folders(1).results, keep=1, eval_root=self.root / "eval")
        assert found.removable == ()

    # What holds between any two steps.

    @invariant()
    def no_result_is_lost_or_changed(self) -> None:
        for entry in self.evals.plan.trials if hasattr(self, "evals") else ():
            name = entry.folder
            assert self.ran[name] <= 1, f"{name} was run twice"
            if name in self.done and name not in self.damaged:
                assert self.result(entry).read_bytes() == self.done[name]

    @invariant()
    def what_is_kept_back_is_what_the_disk_says(self) -> None:
        for number in range(1, (self.of if hasattr(self, "of") else 0) + 1):
            back = kept_back(self.folder(number), self.evals.plan)
            rounds = {e.round for e in self.evals.plan.trials if e.folder in back}
            assert rounds == {
                int(key.partition("/")[2]) for key in self.back if key.startswith(f"{number}/")
            }


TestStore = Store.TestCase
TestStore.settings = fuzzed(30, stateful_step_count=30)
