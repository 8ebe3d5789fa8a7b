"""Tests of a session that runs one shard of a plan."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.counting.shards import own_trials, shard_of_task
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.model.trial import PlanDoc
from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project
from tests.plugin.test_resume import FATAL

RUN = ("evals", "--evalarc-client=good", "--evalarc-trials=3", "--evalarc-batch=night")


def shard_run(number: int, of: int = 2, *more: str) -> tuple[str, ...]:
    return (*RUN, f"--evalarc-shard={number}/{of}", f"--evalarc-results=part-{number}", *more)


def folder_of(project: Project, number: int) -> Path:
    return project.root / f"part-{number}" / "hello/good/night"


def trials_in(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("trial-*/result.json")}


def document(path: Path) -> Any:
    return json.loads(path.read_bytes())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--evalarc-shard", "0/4"], "--evalarc-shard '0/4': is no shard; give K/N as 2/4"),
        (["--evalarc-shard", "5/4"], "--evalarc-shard '5/4': is no shard"),
        (["--evalarc-shard", "a/b"], "--evalarc-shard 'a/b': is no shard"),
        (["--evalarc-shard", "1/0"], "--evalarc-shard '1/0': is no shard"),
        (["--evalarc-shard", "²/4"], "--evalarc-shard '²/4': is no shard"),
        (["--evalarc-shard", "1/100001"], "N at most 100000"),
        (["--evalarc-shard", "2/4"], "needs the name of the batch that all shards are of"),
        (
            ["--evalarc-shard", "2/4", "--evalarc-batch", "b", "--evalarc-submission=evals"],
            "cannot be combined with --evalarc-submission",
        ),
    ],
    ids=lambda value: "-".join(value[1:2]) if isinstance(value, list) else "",
)
def test_a_wrong_shard_ends_the_session_in_one_sentence(
    arguments: list[str], sentence: str, project: Project, pytester: pytest.Pytester
) -> None:
    """An array of a hundred jobs that each guess would be found out at the merging."""
    session = project.inline(pytester, *arguments, "evals")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert sentence in session.stderr
    assert len(session.stderr.strip().splitlines()) == 1
    assert not project.results.exists()


def test_each_trial_and_audit_is_an_item_of_one_shard(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Together they are what one machine collects, and no two share an item."""
    project.add_task("other")
    whole = project.inline(pytester, *RUN, "--co", "-q").ids()
    parts = [project.inline(pytester, *shard_run(n, 2, "--co", "-q")).ids() for n in (1, 2)]

    assert sorted(parts[0] + parts[1]) == sorted(whole)
    assert not set(parts[0]) & set(parts[1])
    for task in ("hello", "other"):
        (at,) = [n for n in (1, 2) if shard_of_task(task, 2) == n]
        file = f"evals/tasks/{task}/task.toml"
        assert f"{file}::validate" in parts[at - 1]
        assert f"{file}::audit::silent" in parts[at - 1]
    assert not (project.root / "part-1").exists()


def test_the_header_tells_which_share_of_the_plan_is_run(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Who reads the log of one job sees at once that the rest is elsewhere."""
    session = project.inline(pytester, *shard_run(2, 2, "--co"))

    own = 4 if trials_of_shard(project, pytester, 2) == 4 else 2
    audits = 1 if shard_of_task("hello", 2) == 2 else 0
    told = f"{own} of 6 planned trials and {audits} of 1 audits"
    assert f"evalarc: shard 2 of 2 runs {told}; all others are deselected" in session.stdout
    assert session.counts["deselected"] > 0


def trials_of_shard(project: Project, pytester: pytest.Pytester, number: int) -> int:
    ids = project.inline(pytester, *shard_run(number, 2, "--co", "-q")).ids()
    return sum(each.endswith("::run") for each in ids)


def test_ordinary_tests_look_at_the_trials_of_their_shard(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A user's own expectation would start a trial that another machine runs."""
    project.write("evals/test_own.py", "def test_it(evalarc_trial): ...\ndef test_plain(): ...\n")
    parts = [project.inline(pytester, *shard_run(n, 2, "--co", "-q")).ids() for n in (1, 2)]

    looked = [{each for each in part if "test_it[" in each} for part in parts]
    assert len(looked[0]) + len(looked[1]) == 6
    assert not looked[0] & looked[1]
    assert all(any(each.endswith("::test_plain") for each in part) for part in parts)


@pytest.mark.slow
@needs_bwrap
def test_a_shard_keeps_the_whole_plan_and_counts_its_own_trials(project: Project) -> None:
    """What other machines run is neither planned nor cancelled here, and nothing is compared."""
    sessions = [project.pytest(*shard_run(n), "-n", str(n - 1)) for n in (1, 2)]

    assert [session.ret for session in sessions] == [0, 0]
    plans = [(folder_of(project, n) / "plan.json").read_bytes() for n in (1, 2)]
    assert plans[0] == plans[1]
    plan = read_model(folder_of(project, 1) / "plan.json", PlanDoc)
    for number in (1, 2):
        shard = Shard(number=number, of=2)
        own = own_trials(plan.trials, shard, task="hello", client="good")
        folder = folder_of(project, number)
        assert trials_in(folder) == {trial.folder for trial in own}
        benchmark = document(folder / "benchmark.json")
        assert (benchmark["selection"], benchmark["shard"]) == (
            "partial",
            {"number": number, "of": 2},
        )
        counted = benchmark["configurations"]["with-skills"]
        assert (counted["planned"], counted["cancelled"]) == (len(own) // 2, 0)
        assert document(folder / "shard.json")["shard"] == {"number": number, "of": 2}
    audits = [(project.root / f"part-{n}/hello/audit").is_dir() for n in (1, 2)]
    assert audits == [shard_of_task("hello", 2) == n for n in (1, 2)]
    assert "partial: shard 1/2 of the plan" in sessions[0].stdout


@pytest.mark.slow
@needs_bwrap
def test_a_gate_over_a_shard_is_not_decided(project: Project) -> None:
    """A rate of some rounds is no rate of the plan, and says so as a partial one does."""
    session = project.pytest(*shard_run(1), "--evalarc-gate=success_rate>=0", "-m", "evalarc_trial")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert "the trials are those of shard 1/2: merge the shards" in session.stdout


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_shard_that_no_round_falls_to_has_not_failed(project: Project, workers: str) -> None:
    """There may be more machines than rounds, and the array of jobs must not fail for it."""
    run = ("--evalarc-trials=1", "-m", "evalarc_trial", "-n", workers)
    sessions = [project.pytest(*shard_run(n, 3), *run) for n in (1, 2, 3)]

    assert [session.ret for session in sessions] == [0, 0, 0]
    assert sorted(len(trials_in(folder_of(project, n))) for n in (1, 2, 3)) == [0, 0, 2]
    assert all((folder_of(project, n) / "plan.json").exists() for n in (1, 2, 3))
    nothing = project.pytest(*shard_run(1, 3), *run, "-k", "nowhere")
    assert nothing.ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.slow
@needs_bwrap
def test_a_folder_of_results_holds_one_shard_of_a_batch(project: Project) -> None:
    """Mixed in one folder nobody could tell any more what is missing."""
    first = (*RUN, "-m", "evalarc_trial", "--evalarc-trials=1")
    project.pytest(*first, "--evalarc-shard=1/2")
    other = project.pytest(*first, "--evalarc-shard=2/2")
    whole = project.pytest(*first)
    split = project.pytest(*first, "--evalarc-batch=day")
    late = project.pytest(*first, "--evalarc-batch=day", "--evalarc-shard=1/2")
    again = project.pytest(*first, "--evalarc-shard=1/2")

    assert [session.ret for session in (other, whole, split, late, again)] == [4, 4, 0, 4, 0]
    assert "results holds shard 1/2 of batch night; give each shard a folder" in other.stderr
    assert "holds shard 1/2 of it alone; add --evalarc-shard=1/2, or merge" in whole.stderr
    assert "holds batch day as a whole" in late.stderr


def test_a_node_id_of_another_shard_runs_nothing(
    project: Project, pytester: pytest.Pytester
) -> None:
    """It is there, and not this machine's; exit status 0, as its shard runs it."""
    counts = []
    for number in (1, 2):
        run = (f"{TASK_ID}::good::with-skills::trial-002", *shard_run(number)[1:], "--co", "-q")
        session = project.inline(pytester, *run)
        assert session.ret == 0
        counts.append(len(session.ids()))

    assert sorted(counts) == [0, 6]


TIMES = re.compile(r"(_s|_secs|_seconds|started_at)$")


def timeless(value: Any) -> Any:
    """Return a document without what a clock says."""
    if isinstance(value, list):
        return [timeless(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: timeless(each)
        for key, each in value.items()
        if not TIMES.search(key) or key == "agent_secs"
    }
    if isinstance(kept.get("agent_secs"), dict):
        kept["agent_secs"].pop("mean", None)
    elif "agent_secs" in kept:
        kept["agent_secs"] = None
    return kept


def documents_of(results: Path) -> dict[str, Any]:
    """Return every document below a folder, without times; of policies, that folder's own name."""
    here = re.compile(rf"{re.escape(str(results.parent))}/(part-\d|results)\b")
    return {
        str(path.relative_to(results)): timeless(json.loads(here.sub("R", path.read_text())))
        for path in sorted(results.rglob("*.json"))
        if "latest" not in path.parts
    }


@pytest.mark.slow
@needs_bwrap
def test_merged_shards_are_what_one_machine_runs(
    project: Project, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plans, rows, rates and audits alike, and a gate is decided without running anything more."""
    project.add_task("other")
    asked = ("evals", "--evalarc-client=oracle", "--evalarc-client=nop", "--evalarc-trials=3")
    run = (*asked, "--evalarc-batch=night", "-n", "2")
    whole = project.pytest(*run)
    parts = [
        project.pytest(*run, f"--evalarc-shard={n}/3", f"--evalarc-results=part-{n}")
        for n in (1, 2, 3)
    ]
    assert [session.ret for session in (whole, *parts)] == [0, 0, 0, 0]

    merged = project.root / "merged"
    folders = [str(project.root / f"part-{n}") for n in (3, 1, 2)]
    assert main(["merge", *folders, "--output", str(merged)]) == 0

    assert "merged 3 shards of batch night: 24 finished trials" in capsys.readouterr().out
    found = documents_of(merged)
    assert found == documents_of(project.results)
    assert len([path for path in found if path.endswith("result.json")]) == 24
    plan = "hello/nop/night/plan.json"
    assert (merged / plan).read_bytes() == (project.results / plan).read_bytes()
    before = {path: path.stat().st_mtime_ns for path in merged.rglob("result.json")}
    gated = project.inline(
        pytester,
        *asked,
        "--evalarc-batch=night",
        "--evalarc-results=merged",
        "--evalarc-gate=code.rate<=1",
    )
    assert gated.ret == 0, gated.stdout
    assert {path: path.stat().st_mtime_ns for path in merged.rglob("result.json")} == before
    assert main(["verify", *map(str, merged.rglob("benchmark.json"))]) == 0
    assert main(["merge", *folders, "--output", str(merged)]) == 1
    assert "is there already; name a new folder" in capsys.readouterr().err


@pytest.mark.slow
@needs_bwrap
def test_a_shard_that_was_killed_is_gone_on_with_and_then_merged(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until then it is a gap; afterwards the trial that died with it is counted so."""
    project.write("evals/conftest.py", FATAL)
    asked = ("evals", "-m", "evalarc_trial", "--evalarc-client=mortal", "--evalarc-trials=4")
    first, second = (
        (*asked, "--evalarc-batch=night", f"--evalarc-shard={n}/2", f"--evalarc-results=part-{n}")
        for n in (1, 2)
    )
    killed, other = project.pytest(*first), project.pytest(*second)
    merge = ["merge", *(str(project.root / f"part-{n}") for n in (1, 2)), "--output"]
    merge.append(str(project.root / "merged"))

    assert (killed.ret, other.ret) == (-signal.SIGKILL, 0)
    assert main(merge) == 1
    told = capsys.readouterr().err
    assert "result.json: is not there: its shard has not finished that trial" in told
    assert "start that shard again with the same command" in told

    again = project.pytest(*first)
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    assert main(merge) == 0

    assert len(project.starts()) == len(set(project.starts())) == 8
    benchmark = document(project.root / "merged/hello/mortal/night/benchmark.json")
    causes = [counted["causes"]["cancelled"] for counted in benchmark["configurations"].values()]
    assert sorted(causes, key=len) == [{}, {"worker_crash": 1}]
    assert all(counted["planned"] == 4 for counted in benchmark["configurations"].values())


@pytest.mark.slow
@needs_bwrap
def test_shards_that_meet_on_one_machine_do_not_disturb_each_other(project: Project) -> None:
    """Two jobs of an array may land on one node, where they have one evaluation root."""
    run = [shard_run(n, 2, "-m", "evalarc_trial") for n in (1, 2)]
    sessions = [
        project.start(*words, "--basetemp", f"{project.root}-{n}") for n, words in enumerate(run)
    ]
    said = [session.communicate(timeout=120)[0] for session in sessions]

    assert [session.returncode for session in sessions] == [0, 0], said
    assert len(project.starts()) == len(set(project.starts())) == 6
    parts = [str(project.root / f"part-{n}") for n in (1, 2)]
    assert main(["merge", *parts, "--output", str(project.root / "merged")]) == 0
    assert not project.eval_root.exists()
