"""Gradings that stand for later ones, over whole sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.grading import lab
from pytest_evalarc.packs.support_routing.pack import SupportRouting
from tests.needs import needs, needs_bwrap
from tests.plugin.project import TASK_ID, Project, Session

pytestmark = [pytest.mark.slow, needs_bwrap]

CONTROLS = ("reference", "reference-repeat", "starter", "silent", "nameless")


def audit(project: Project, pytester: pytest.Pytester, batch: str, *more: str) -> Session:
    options = ("-k", "audit", "-q", "--evalarc-cache", f"--evalarc-batch={batch}")
    return project.inline(pytester, *options, *more)


def cached(project: Project, batch: str, folder: str = "audit") -> dict[str, bool]:
    """Return whether each control of a batch comes from the cache."""
    rows = (project.results / "hello" / folder / batch / "rows").glob("*.json")
    found = {path.stem: json.loads(path.read_bytes())["grading"]["cached"] for path in rows}
    return {control: grading is not None for control, grading in found.items()}


def entries(project: Project) -> dict[Path, Any]:
    return {path: json.loads(path.read_bytes()) for path in project.cache_home.rglob("*.json")}


def without_cached(value: Any) -> Any:
    """Return a document without what may differ: the batch, and where gradings come from."""
    if isinstance(value, dict):
        left = {key: value[key] for key in value if key not in ("batch", "cached")}
        return {key: without_cached(inner) for key, inner in left.items()}
    return [without_cached(inner) for inner in value] if isinstance(value, list) else value


def test_a_second_audit_of_an_unchanged_task_starts_no_process_of_a_submission(
    project: Project, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it shows is the same, times included, and both it and the terminal say where from."""
    first = audit(project, pytester, "b1")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(lab, "supervise", refuse)
    second = audit(project, pytester, "b2")

    assert (first.ret, second.ret) == (0, 0)
    assert "0 of 5 gradings from the cache" in first.stdout
    assert "5 of 5 gradings from the cache" in second.stdout
    assert cached(project, "b1") == dict.fromkeys(CONTROLS, False)
    assert cached(project, "b2") == dict.fromkeys(CONTROLS, True)
    one, two = project.documents("audit.json").values()
    assert without_cached(one) == without_cached(two)
    assert two["mutants"][0]["evaluation"]["cached"]["graded_at"]
    assert main(["verify", str(project.results / "hello/audit/b2/audit.json")]) == 0


def test_nothing_is_kept_or_said_unless_it_is_asked_for(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Whoever wants every number to be of now need not know of a cache."""
    session = project.inline(pytester, "-k", "audit", "-q", "--evalarc-batch=b1")

    assert session.ret == 0
    assert "cache" not in session.stdout
    assert not project.cache_home.exists()


def test_a_changed_check_is_put_to_every_control_again(
    project: Project, pytester: pytest.Pytester
) -> None:
    """An audit is of the checks that are there now."""
    audit(project, pytester, "b1")
    check = project.root / "evals/tasks/hello/checks/names.sh"
    check.write_text(check.read_text() + "\n")

    session = audit(project, pytester, "b2")

    assert "0 of 5 gradings from the cache" in session.stdout


def test_full_and_fast_audits_share_what_asks_the_same_of_a_control(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A mutant of a fast audit met fewer checks, and such a row must not stand for a whole one."""
    audit(project, pytester, "b1", "--evalarc-audit=fast")
    fast = cached(project, "b1")
    audit(project, pytester, "b2")

    assert fast == dict.fromkeys(("reference", "starter", "silent", "nameless"), False)
    assert cached(project, "b2") == {
        "reference": True,
        "reference-repeat": False,
        "starter": True,
        "silent": False,
        "nameless": False,
    }
    *_, full = project.documents("audit.json").values()
    assert full["mode"] == "full"
    assert [len(mutant["evaluation"]["cases"]) for mutant in full["mutants"]] == [2, 2]


def test_a_reference_that_is_graded_anew_is_repeated_anew(
    project: Project, pytester: pytest.Pytester
) -> None:
    """The repeat shows whether the reference is flaky here and now, so it is no memory."""
    audit(project, pytester, "b1")
    row = project.results / "hello/audit/b1/rows/reference.json"
    seconds = json.loads(row.read_bytes())["grading"]["wall_time_s"]
    own = [
        path
        for path, entry in entries(project).items()
        if entry["grading"]["wall_time_s"] == seconds
    ]
    assert len(own) == 1
    own[0].unlink()

    audit(project, pytester, "b2")

    assert cached(project, "b2") == {
        **dict.fromkeys(CONTROLS, True),
        "reference": False,
        "reference-repeat": False,
    }


def test_the_repeat_is_never_the_reference_itself(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Both are one submission under the same checks; compared with itself it shows nothing."""
    audit(project, pytester, "b1")

    audit(project, pytester, "b2")

    found = [
        json.loads((project.results / f"hello/audit/b2/rows/{control}.json").read_bytes())
        for control in ("reference", "reference-repeat")
    ]
    first, repeat = (document["grading"] for document in found)
    assert first["cached"]["key"] != repeat["cached"]["key"]
    assert first["submission_sha256"] == repeat["submission_sha256"]


def test_an_entry_that_was_edited_is_graded_again(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Nobody turns a survivor into a catch by a text editor."""
    audit(project, pytester, "b1")
    for path, entry in entries(project).items():
        row = entry["grading"]["rows"][0]
        row["status"] = "failed" if row["status"] == "passed" else "passed"
        path.write_text(json.dumps(entry, indent=2) + "\n")

    session = audit(project, pytester, "b2")

    assert session.ret == 0
    assert "0 of 5 gradings from the cache" in session.stdout
    assert "5 of 5 gradings from the cache" in audit(project, pytester, "b3").stdout


def test_workers_share_the_cache(project: Project) -> None:
    """Each process asks for what it needs; the controller counts what lies in the results."""
    options = ("-k", "audit", "-q", "--evalarc-cache", "-n", "2", "--dist=load")

    first = project.pytest(*options, "--evalarc-batch=b1")
    second = project.pytest(*options, "--evalarc-batch=b2")

    assert (first.ret, second.ret) == (0, 0), first.stdout + second.stdout
    assert "0 of 5 gradings from the cache" in first.stdout
    assert "5 of 5 gradings from the cache" in second.stdout
    assert len(entries(project)) == len(CONTROLS)


def test_two_sessions_at_once_leave_whole_entries(project: Project) -> None:
    """Two checkouts of a build machine may audit the same task in the same minute."""
    options = ("-k", "audit", "-q", "--evalarc-cache")
    sessions = [project.start(*options, f"--evalarc-batch=b{number}") for number in (1, 2)]
    said = [session.communicate(timeout=120)[0] for session in sessions]

    assert [session.returncode for session in sessions] == [0, 0], said
    third = project.pytest(*options, "--evalarc-batch=b3")
    assert "5 of 5 gradings from the cache" in third.stdout
    assert [path for path in project.cache_home.rglob(".*") if path.is_file()] == []


@pytest.mark.parametrize("language", ["python", pytest.param("javascript", marks=needs("node"))])
def test_a_pack_is_not_put_to_the_same_candidate_twice(project: Project, language: str) -> None:
    """Its cases are the same for the same seed, and another seed asks others."""
    file = "evals/tasks/support/task.toml"
    project.write(
        file,
        'kind = "capability"\n[pack]\nname = "support-routing"\nseeds = [17]\n'
        f'language = "{language}"\n[deadlines]\ncheck = 60\n',
    )
    mutants = len(SupportRouting.info.mutants)
    whole = mutants + 2

    def run(batch: str, *more: str) -> Session:
        options = ("-k", "audit", "-q", "--evalarc-cache", "--evalarc-audit=fast")
        return project.pytest(file, *options, f"--evalarc-batch={batch}", *more)

    first, second = run("b1"), run("b2")
    other = run("b3", "--evalarc-seeds=18")

    assert (first.ret, second.ret, other.ret) == (0, 0, 0), first.stdout + other.stdout
    assert f"0 of {whole} gradings from the cache" in first.stdout
    assert f"{whole} of {whole} gradings from the cache" in second.stdout
    assert f"0 of {whole} gradings from the cache" in other.stdout
    one, two, _ = project.documents("audit.json").values()
    assert without_cached(one) == without_cached(two)
    assert (two["mutation_score"], two["killed"]) == (1.0, mutants)


def test_trials_candidates_and_re_gradings_use_it_too(
    project: Project, pytester: pytest.Pytester
) -> None:
    """All of them grade a submission with the checks of a task."""
    trials = ("--evalarc-task=hello", "--evalarc-client=oracle", "-k", "trial", "-q")
    mine = project.write("mine/src/greeting", "hello, world\n").parents[1]

    first = project.inline(pytester, *trials, "--evalarc-cache", "--evalarc-batch=t1")
    second = project.inline(pytester, *trials, "--evalarc-cache", "--evalarc-batch=t2")
    again = project.inline(
        pytester, "-q", "--evalarc-cache", "--evalarc-regrade=results", "--evalarc-batch=t1"
    )
    judge = ("-q", "--evalarc-cache", "--evalarc-task=hello", f"--evalarc-submission={mine}")
    judged = project.inline(pytester, *judge, "--evalarc-batch=c1")
    judged_again = project.inline(pytester, *judge, "--evalarc-batch=c2")

    assert "0 of 2 gradings from the cache" in first.stdout
    assert "2 of 2 gradings from the cache" in second.stdout
    assert "2 of 2 gradings from the cache" in again.stdout
    assert "0 of 1 gradings from the cache" in judged.stdout
    assert "1 of 1 gradings from the cache" in judged_again.stdout
    *_, evaluation = project.documents("evaluation.json").values()
    assert (evaluation["resolved"], evaluation["cached"] is not None) == (True, True)


def test_the_page_says_what_was_not_graded_for_it(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A reader of the page has no terminal to look at."""
    audit(project, pytester, "b1", "--evalarc-html=first.html")
    audit(project, pytester, "b2", "--evalarc-html=second.html")

    sentence = "5 of 5 gradings from the cache; their seconds are of when they were made."
    assert sentence in (project.root / "second.html").read_text("utf-8")
    assert "from the cache" not in (project.root / "first.html").read_text("utf-8")


@pytest.mark.parametrize(
    "what", [("--evalarc-client=oracle", "-k", "trial"), ("--evalarc-submission=mine",)]
)
def test_the_page_says_when_a_trial_or_candidate_was_graded(
    project: Project, pytester: pytest.Pytester, what: tuple[str, ...]
) -> None:
    """Its seconds are those of another session."""
    project.write("mine/src/greeting", "hello world\n")
    for batch in ("b1", "b2"):
        options = ("--evalarc-cache", f"--evalarc-batch={batch}", f"--evalarc-html={batch}.html")
        project.inline(pytester, "-q", "--evalarc-task=hello", *what, *options)

    pages = [(project.root / f"{batch}.html").read_text("utf-8") for batch in ("b1", "b2")]
    assert ["From the cache of gradings, made 2" in page for page in pages] == [False, True]


@pytest.mark.parametrize("option", ["--evalarc-trust-local", "--evalarc-exploratory"])
def test_a_session_in_which_anything_runs_unbound_does_without(
    project: Project, pytester: pytest.Pytester, option: str
) -> None:
    """What could have written the user's folders could have written the answers."""
    for batch in ("b1", "b2"):
        session = audit(project, pytester, batch, option)
        assert "0 of 5 gradings from the cache" in session.stdout

    assert entries(project) == {}


def test_a_cache_that_others_could_fill_is_refused_in_one_sentence(
    project: Project, pytester: pytest.Pytester
) -> None:
    """An entry is believed, so nobody else may write one."""
    folder = project.cache_home / "pytest-evalarc/gradings"
    folder.mkdir(parents=True)
    folder.chmod(0o777)

    session = audit(project, pytester, "b1")

    assert session.ret == 1
    assert f"{folder}: can be written by every user of this machine" in session.stdout
    assert "XDG_CACHE_HOME" in session.stdout
    assert project.documents("reference.json") == {}


def test_no_submission_sees_what_is_kept_of_hidden_checks(
    project: Project, pytester: pytest.Pytester
) -> None:
    """An earlier grading tells what the checks complain of."""
    project.inline(pytester, "--evalarc-task=hello", "--evalarc-client=oracle", "-k", "trial", "-q")

    results = project.trial_results().values()
    denied = [result["isolation"]["policy"]["filesystem"]["denyRead"] for result in results]
    assert all(str(project.cache_home / "pytest-evalarc/gradings") in paths for paths in denied)
    assert TASK_ID.startswith("evals/")
