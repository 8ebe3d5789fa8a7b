"""Tests of shards that are joined into one batch."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.counting.shards import own_trials, shard_of_task
from pytest_evalarc.errors import DocumentError, EvalArcError, SubmissionError, UsageError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.submission import keep, read_submission
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.model.shard import ShardDoc
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.reporting.batch import write_documents
from pytest_evalarc.reporting.measured import read_measured
from pytest_evalarc.reporting.merge import merge
from pytest_evalarc.reporting.page.gather import batch_folders, gather
from pytest_evalarc.reporting.page.trial import Sources
from pytest_evalarc.reporting.verify import verify
from pytest_evalarc.runs.budget import Admission
from pytest_evalarc.runs.folders import Folders, shard_path
from tests.batches import write_audit, write_batch
from tests.documents import grading

OF = 3
PLACE = Path("tiny/oracle/b1")
AUDIT = Path("tiny/audit/b1")


def without(*trials: int) -> list[Any]:
    """Return gradings of six trials, of which some fail."""
    return [grading("adds.sums") if number in trials else None for number in range(1, 7)]


class Shards:
    """A batch as one machine wrote it, and the same in shards."""

    def __init__(self, root: Path) -> None:
        self.root = root
        project = root / "whole"
        folder = write_batch(
            project, {"without-skills": without(1, 4, 5), "with-skills": without(2)}
        )
        write_audit(project)
        self.whole = folder.parents[2]
        self.plan = read_model(folder / "plan.json", PlanDoc)
        write_documents(Folders(eval_root=root, results=self.whole, batch="b1"))
        self.parts = [self._part(number) for number in range(1, OF + 1)]

    def _part(self, number: int) -> Path:
        shard = Shard(number=number, of=OF)
        document = ShardDoc(schema_version=SCHEMA_VERSION, batch="b1", shard=shard)
        part = self.root / f"part-{number}"
        (part / PLACE).mkdir(parents=True)
        write_model(shard_path(part, "b1"), document)
        write_model(part / PLACE / "shard.json", document)
        shutil.copy(self.whole / PLACE / "plan.json", part / PLACE)
        for trial in own_trials(self.plan.trials, shard, task="tiny", client="oracle"):
            shutil.copytree(self.whole / PLACE / trial.folder, part / PLACE / trial.folder)
        if shard_of_task("tiny", OF) == number:
            shutil.copytree(self.whole / AUDIT, part / AUDIT)
            write_model(part / AUDIT / "shard.json", document)
        return part

    def trial(self, number: int) -> Path:
        """Return the folder of the first trial of a shard."""
        return sorted((self.parts[number - 1] / PLACE).glob("trial-*"))[0]

    @property
    def audit(self) -> Path:
        """The folder of the audit, in the shard that it belongs to."""
        return self.parts[shard_of_task("tiny", OF) - 1] / AUDIT

    def merge(self) -> Path:
        merge(self.parts, self.root / "merged")
        return self.root / "merged"

    def refused(self) -> str:
        """Return why the shards are not merged; nothing is left of the attempt."""
        before = sorted(os.listdir(self.root))
        with pytest.raises(EvalArcError) as raised:
            self.merge()
        assert sorted(os.listdir(self.root)) == before
        return str(raised.value)


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    """Return three shards of six rounds and an audit."""
    return Shards(tmp_path)


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Change a document as somebody with an editor would."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), "utf-8")


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "latest" not in path.parts
    }


def problems(results: Path) -> tuple[EvalArcError, ...]:
    """Return what the report page of a folder of results would complain of."""
    folders = batch_folders(results, "b1")
    assert folders
    known = installed()
    sources = Sources(
        clients=known.clients.get,
        task_of=lambda _: None,
        packs=known.packs.get,
        page_folder=results,
    )
    return gather(folders, sources).problems


def test_merged_shards_are_what_one_machine_writes(shards: Shards) -> None:
    """Byte for byte: plans, results, benchmark, audit and summary, and no mark of a shard."""
    merged = files(shards.merge())

    assert merged.pop(".gitignore") == b"*\n"
    assert merged == files(shards.whole)
    assert len([path for path in merged if path.endswith("result.json")]) == 12
    benchmark = json.loads(merged[str(PLACE / "benchmark.json")])
    assert benchmark["selection"] == "complete"
    assert benchmark["configurations"]["without-skills"]["succeeded"] == 3
    assert "shard" not in benchmark
    assert (shards.root / "merged/tiny/oracle/latest").readlink() == Path("b1")


def test_the_order_of_the_shards_does_not_matter(shards: Shards) -> None:
    """A shell lists shard 10 before shard 2."""
    shards.parts.reverse()

    assert json.loads((shards.merge() / PLACE / "benchmark.json").read_bytes()) == json.loads(
        (shards.whole / PLACE / "benchmark.json").read_bytes()
    )


def test_times_decide_nothing(shards: Shards) -> None:
    """Clocks of machines differ by years at worst, and file times are those of a download."""
    for number, part in enumerate(shards.parts, start=1):
        year = 1990 + 20 * number
        for path in part.glob("*/oracle/*/trial-*/result.json"):
            edit(path, lambda doc, year=year: doc.update(started_at=f"{year}-01-01T00:00:00Z"))  # type: ignore[misc]
            os.utime(path, (0, 0))

    merged = shards.merge()

    assert (merged / PLACE / "benchmark.json").read_bytes() == (
        shards.whole / PLACE / "benchmark.json"
    ).read_bytes()


def test_the_readers_of_results_take_a_merged_batch_for_whole(shards: Shards) -> None:
    """The page, `verify` and `compare` see no difference, and find nothing to complain of."""
    merged = shards.merge()

    for name in (PLACE / "benchmark.json", AUDIT / "audit.json", Path("b1.summary.json")):
        assert verify(merged / name) == ()
    assert read_measured(merged / "b1") == read_measured(shards.whole / "b1")
    assert problems(merged) == ()


def test_the_readers_of_results_take_a_shard_for_a_part(shards: Shards) -> None:
    """Its own documents agree with their rows, and none of them passes for the whole."""
    part = shards.parts[0]
    documents = write_documents(Folders(eval_root=part, results=part, batch="b1"))

    assert documents.problems == ()
    assert verify(part / PLACE / "benchmark.json") == ()
    benchmark = documents.benchmarks[0][0]
    assert benchmark.selection == "partial"
    assert benchmark.configurations["with-skills"].planned == 2
    assert benchmark.configurations["with-skills"].cancelled == 0
    assert benchmark.delta is not None
    assert benchmark.delta.verdict is None
    assert documents.summary is not None
    assert documents.summary[0].tasks[0].left_out == "partial"
    assert read_measured(part / PLACE)[0].selection == "partial"
    assert problems(part) == ()


def test_a_trial_that_was_cut_off_stays_counted_as_cancelled(shards: Shards) -> None:
    """It ended, with its cause: to leave it out would flatter the batch."""
    trial = shards.trial(2)
    result = read_model(trial / "result.json", TrialResult)
    killed = {
        "outcome": "cancelled",
        "cause": {"kind": "worker_crash", "detail": "it died"},
        "execution": "not_started",
        "success": None,
        "gradings": [],
        "code": None,
    }
    edit(trial / "result.json", lambda document: document.update(killed))

    merged = shards.merge()

    benchmark = json.loads((merged / PLACE / "benchmark.json").read_bytes())
    counted = benchmark["configurations"][result.mode]
    assert counted["causes"]["cancelled"] == {"worker_crash": 1}
    assert benchmark["selection"] == "partial"


def test_a_round_that_a_budget_kept_back_is_no_gap(shards: Shards) -> None:
    """It was decided, and the batch that one machine would write says `budget` too."""
    trial = shards.trial(2)
    number = read_model(trial / "result.json", TrialResult).trial
    budget = shards.parts[1] / PLACE / "budget"
    budget.mkdir()
    admission = Admission(
        schema_version=SCHEMA_VERSION, round=number, admitted=False, max_tokens=1, reason="used up"
    )
    write_model(budget / f"round-{number}.json", admission)
    for name in self_and_pair(number):
        shutil.rmtree(shards.parts[1] / PLACE / name)

    merged = shards.merge()

    benchmark = json.loads((merged / PLACE / "benchmark.json").read_bytes())
    assert benchmark["configurations"]["with-skills"]["causes"]["cancelled"] == {"budget": 1}
    assert (merged / PLACE / "budget" / f"round-{number}.json").exists()


def self_and_pair(number: int) -> tuple[str, str]:
    return (f"trial-{number}-with-skills", f"trial-{number}-without-skills")


def test_evidence_comes_along_and_is_checked(shards: Shards) -> None:
    """A kept submission that is not the graded one would prove something else."""
    trial = shards.trial(1)
    project = shards.root / "project-left"
    (project / "app").mkdir(parents=True)
    (project / "app" / "__init__.py").write_text("x = 1\n")
    kept = keep(read_submission(project), trial)
    edit(
        trial / "result.json",
        lambda document: document["gradings"][0].update(submission_sha256=kept.sha256),
    )
    (trial / "transcript.jsonl").write_text("{}\n")

    place = shards.merge() / PLACE / trial.name

    assert (place / "submission/app/__init__.py").read_text() == "x = 1\n"
    assert (place / "transcript.jsonl").samefile(trial / "transcript.jsonl")

    shutil.rmtree(shards.root / "merged")
    (trial / "submission/app/__init__.py").write_text("x = 2\n")
    with pytest.raises(SubmissionError, match="its files are not those that were kept"):
        shards.merge()
    assert not (shards.root / "merged").exists()


def test_what_is_there_is_not_written_over(shards: Shards) -> None:
    """Not even where it is an empty folder."""
    (shards.root / "merged").mkdir()

    with pytest.raises(UsageError, match="merged: is there already; name a new folder"):
        merge(shards.parts, shards.root / "merged")


# Refusals: each names the folder and the field.


def test_a_missing_shard_is_refused(shards: Shards) -> None:
    """A rate over three of four machines is the rate of a smaller plan."""
    del shards.parts[1]

    assert shards.refused() == ("merge: shard 2 of 3 is missing; name the folder of every shard")
    del shards.parts[0]
    assert "shards 1, 2 of 3 are missing" in shards.refused()


def test_a_shard_that_is_named_twice_is_refused(shards: Shards) -> None:
    """Its trials would count twice."""
    copy = shards.root / "copy"
    shutil.copytree(shards.parts[0], copy)
    shards.parts.append(copy)

    assert shards.refused() == (
        f"{copy}/b1.shard.json: shard.number: is 1, and so it is in {shards.parts[0]}; "
        "name each shard once"
    )


def test_a_trial_in_two_shards_is_refused(shards: Shards) -> None:
    """As when folders were copied together by hand."""
    trial = shards.trial(1)
    shutil.copytree(trial, shards.parts[2] / PLACE / trial.name)

    assert shards.refused() == (
        f"{shards.parts[2] / PLACE / trial.name}: belongs to shard 1, and lies in shard 3/3; "
        "move it away"
    )


def test_a_trial_that_no_plan_has_is_refused(shards: Shards) -> None:
    """It is of another batch, or of another number of trials."""
    (shards.parts[0] / PLACE / "trial-7-with-skills").mkdir()

    assert "belongs to no shard of this plan" in shards.refused()


@pytest.mark.parametrize("is_begun", [False, True])
def test_an_unfinished_trial_is_refused(shards: Shards, is_begun: bool) -> None:
    """The job was killed, or runs still; started again it goes on, and settles what was cut off."""
    result = shards.trial(3) / "result.json"
    result.unlink()
    if is_begun:
        result.with_name(".result.json.begun").touch()

    told = shards.refused()

    assert told.startswith(f"{result}: is not there: its shard has not finished that trial")
    assert "start that shard again with the same command" in told


def test_a_shard_that_never_planned_a_task_is_refused(shards: Shards) -> None:
    """It was killed before it came to it, or was asked for other tasks."""
    shutil.rmtree(shards.parts[1] / PLACE)

    told = shards.refused()

    assert told.startswith(
        f"{shards.parts[1] / PLACE / 'plan.json'}: is not there, and shard 1 has"
    )


def test_an_unfinished_audit_is_refused(shards: Shards) -> None:
    """Its score would be null for ever."""
    (shards.audit / "rows" / "first-only.json").unlink()

    assert "audit.json: is partial: not every control was graded" in shards.refused()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("task.content_hash", lambda plan: plan["task"].update(content_hash="0" * 64)),
        ("client", lambda plan: plan.update(client="other")),
        ("model", lambda plan: plan.update(model="m-2")),
        ("settings", lambda plan: plan.update(settings={"effort": "low"})),
        ("sandbox", lambda plan: plan.update(sandbox="local")),
        ("trials", lambda plan: plan["trials"].pop()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_foreign_plan_is_refused_by_its_field(
    shards: Shards, field: str, change: Callable[[Any], None]
) -> None:
    """Machines that ran different things have nothing to add up."""
    path = shards.parts[2] / PLACE / "plan.json"
    edit(path, change)

    assert shards.refused().startswith(f"{path}: {field}: is another one than in {shards.parts[0]}")


def _of_record(document: Any) -> None:
    document["isolation"]["record"]["version"] = "0.13.0"


def _of_mode(document: Any) -> None:
    document["isolation"]["mode"] = document["isolation"]["record"]["level"] = "trusted_local"


def _of_grader(document: Any) -> None:
    document["gradings"][0]["grader_sha256"] = "9" * 64


def _of_runtime(document: Any) -> None:
    document["gradings"][0]["runtime"]["toolchain"] = "CPython 3.12.1"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("client.version", lambda document: document["client"].update(version="9.9.9")),
        ("os", lambda document: document.update(os="linux aarch64")),
        ("isolation.record", _of_record),
        ("isolation.mode", _of_mode),
        ("gradings.grader_sha256", _of_grader),
        ("gradings.runtime", _of_runtime),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_tool_or_boundary_is_refused_by_its_field(
    shards: Shards, field: str, change: Callable[[Any], None]
) -> None:
    """One machine would have refused to go on with it; what differs is then no treatment's."""
    path = shards.trial(3) / "result.json"
    edit(path, change)

    told = shards.refused()

    assert re.search(rf"/result\.json: {re.escape(field)}: is another one than in ", told), told


def test_an_edited_result_is_refused(shards: Shards) -> None:
    """Merging counts what the rows give, and says where they do not give what is written."""
    path = shards.trial(1) / "result.json"
    result = read_model(path, TrialResult)
    other = "failed" if result.outcome == "succeeded" else "succeeded"
    edit(path, lambda document: document.update(outcome=other, cause={"kind": "code"}))

    assert str(path) in shards.refused()


def test_an_audit_of_another_state_of_the_task_is_refused(shards: Shards) -> None:
    """Its score would stand beside trials of other checks."""
    edit(
        shards.audit / "plan.json",
        lambda plan: plan["task"].update(content_hash="0" * 64),
    )

    assert f"{shards.audit / 'plan.json'}: task.content_hash: is another one" in shards.refused()


def test_a_folder_without_a_shard_is_refused(shards: Shards) -> None:
    """Results of whole batches have nothing to be joined."""
    shards.parts[1] = shards.whole

    assert shards.refused() == (
        f"{shards.whole}: holds no shard; name the folders of results of sessions with "
        "--evalarc-shard"
    )


def test_shards_of_several_batches_need_a_name(shards: Shards) -> None:
    """Which one is meant is for the user to say."""
    document = ShardDoc(schema_version=SCHEMA_VERSION, batch="b2", shard=Shard(number=1, of=1))
    write_model(shard_path(shards.parts[0], "b2"), document)

    assert shards.refused() == "merge: there are shards of several batches: b1, b2; give --batch"
    merge(shards.parts, shards.root / "merged", batch="b1")
    assert (shards.root / "merged" / PLACE / "benchmark.json").exists()


def test_shards_of_another_number_are_refused(shards: Shards) -> None:
    """Two of four and two of three leave trials out and have others twice."""
    path = shard_path(shards.parts[1], "b1")
    edit(path, lambda document: document["shard"].update(of=4))

    assert shards.refused().startswith(f"{path}: shard.of: is 4, and 3 in {shards.parts[0]}")


def test_a_plan_that_was_moved_from_another_shard_is_refused(shards: Shards) -> None:
    """The folder says one thing of itself, and what lies in it another."""
    path = shards.parts[1] / PLACE / "shard.json"
    edit(path, lambda document: document["shard"].update(number=3))

    assert f"{path}: shard: is 3/3, and its folder of results holds shard 2/3" in shards.refused()


def test_a_start_that_differs_is_refused(shards: Shards) -> None:
    """A client that lists other skills of its own on one machine is another client."""
    for number, part in enumerate(shards.parts):
        offered = {"skills": ["a"] if number else ["b"], "tools": []}
        document = {"schema_version": SCHEMA_VERSION, "offered": offered}
        (part / PLACE / "start.json").write_text(json.dumps(document))

    with pytest.raises(DocumentError, match=r"start\.json: offered"):
        shards.merge()
