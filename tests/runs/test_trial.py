from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc import __version__
from pytest_evalarc.clients.embedded.client import client_sha256
from pytest_evalarc.errors import DocumentError, InfrastructureError, SubmissionError
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.runs import session
from pytest_evalarc.runs.intake import HostLost
from pytest_evalarc.runs.trial import cancelled, read_transcript, run_trial
from pytest_evalarc.treatments.skills import Skills
from tests.evals import CANARY, DONE, SOLUTION, START, Evals, shell
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]

SOLVE = f"cat > app/__init__.py <<'END'\n{SOLUTION}END\n"

# The whole pipeline, with the toolchain that users have.


def test_the_oracle_succeeds_with_and_without_skills_and_nop_fails(make: Make) -> None:
    """They are the controls of everything: preparation, session, grading and expectations."""
    oracle, nop = make("oracle", is_plain=False), make("nop", is_plain=False)

    results = {
        (evals.known_client.name, configuration): evals.run(evals.trial(configuration))
        for evals in (oracle, nop)
        for configuration in ("without-skills", "with-skills")
    }

    assert {key: result.outcome for key, result in results.items()} == {
        ("oracle", "without-skills"): Outcome.SUCCEEDED,
        ("oracle", "with-skills"): Outcome.SUCCEEDED,
        ("nop", "without-skills"): Outcome.FAILED,
        ("nop", "with-skills"): Outcome.FAILED,
    }
    assert {result.execution for result in results.values()} == {Execution.COMPLETED}
    told = results["oracle", "with-skills"].expectations
    assert told is not None
    assert {decision.name: decision.verdict for decision in told.decisions} == {
        "installed-use-numbers": "pass",
        "used-use-numbers": "pass",
    }
    assert results["oracle", "without-skills"].expectations is None
    benchmark = read_benchmark(oracle.folder)
    assert benchmark.selection == "complete"
    assert benchmark.delta is not None and benchmark.delta.success_rate == 0


REFERENCE_RESULT: dict[str, Any] = {
    "task": {"name": str, "kind": str, "content_hash": str},
    "client": {"name": str, "version": str},
    "model": {"name": (str, type(None)), "settings": dict},
    "mode": str,
    "trial": int,
    "order": int,
    "symposium": (dict, type(None)),
    "os": str,
    "toolchain": str,
    "deadlines_secs": {"setup": float, "agent": float, "grading": float},
    "elapsed_secs": float,
    "usage": (dict, type(None)),
    "execution": str,
    "isolation": {
        "mode": str,
        "srt_version": (str, type(None)),
        "audit_findings": list,
        "config_changes": list,
    },
    "code": {
        "build": str,
        "unit_tests": str,
        "hidden": {"adds": str, "empty": str},
        "fmt_check": type(None),
        "edits_outside_editable": list,
    },
    "expectations": {
        "skills": {"use-numbers": {"installed": str, "used": str, "observed_load": str}},
        "hooks": dict,
        "sync": {
            "skill_dir_empty_before": (str, type(None)),
            "session_start": (str, type(None)),
            "sync_recorded": (str, type(None)),
        },
    },
    "success": str,
}
"""The example of the reference, with the names that a Python task has for its steps."""


def misfits(found: Any, wanted: Any, path: str = "") -> list[str]:
    """Return the keys of the example that a document lacks, or holds as another type."""
    if not isinstance(wanted, dict):
        return [] if isinstance(found, wanted) else [f"{path}: {found!r}"]
    if not isinstance(found, dict):
        return [f"{path}: {found!r}"]
    return [
        line
        for key, inner in wanted.items()
        for line in (
            misfits(found[key], inner, f"{path}.{key}") if key in found else [f"{path}.{key}"]
        )
    ]


def test_a_result_holds_every_key_of_the_references_example(make: Make) -> None:
    """Readers of other tools look for exactly these, and an unknown value is null."""
    evals = make("oracle", is_plain=False)
    trial = evals.trial("with-skills")
    evals.run(trial)

    document = json.loads((trial.folder / "result.json").read_bytes())

    assert misfits(document, REFERENCE_RESULT) == []
    assert document["client"] == {
        "name": "oracle",
        "version": __version__,
        "sha256": client_sha256(),
    }
    assert document["task"]["content_hash"] == evals.task.sha256
    assert document["model"] == {"name": None, "settings": {}, "served": []}
    assert document["symposium"] is None
    assert document["usage"] is None
    assert document["isolation"]["srt_version"] is None
    assert document["isolation"]["mode"] == "enforced"
    assert document["treatment"]["name"] == "skills"
    assert len(document["treatment"]["digest"]) == 64
    sandbox = evals.batch.sandbox.record(evals.task.limits)
    assert document["sandbox"] == {
        "name": "bwrap",
        "version": sandbox.version,
        "sha256": sandbox.sha256,
        "limits": sandbox.limits,
    }
    assert document["expectations"]["skills"]["use-numbers"]["observed_load"] == "loaded"


def test_the_retained_files_are_those_of_the_reference(make: Make) -> None:
    """What an outcome rests on can be looked at after the run folder is gone."""
    evals = make(shell(f"{SOLVE}echo kept > $EVAL_EVIDENCE_DIR/note; echo odd >&2"))
    trial = evals.trial("with-skills")

    evals.run(trial)

    kept = {path.relative_to(trial.folder).as_posix() for path in trial.folder.rglob("*")}
    assert {
        "result.json",
        "bwrap.json",
        "submission",
        "submission.json",
        "submission/app/__init__.py",
        "grading",
        "transcript.jsonl",
        "response.txt",
        "stderr.log",
        "evidence/note",
    } <= kept
    assert (evals.folder / "plan.json").is_file()
    assert (trial.folder / "stderr.log").read_text() == "odd\n"
    policy = json.loads((trial.folder / "bwrap.json").read_bytes())
    assert str(trial.layout.project) in policy["filesystem"]["allowWrite"]
    assert str(evals.project) in policy["filesystem"]["denyRead"]
    assert not trial.layout.root.exists()


def test_the_run_folder_stays_when_it_is_to_be_kept(make: Make) -> None:
    """A user who looks for a fault needs the trial as it was."""
    evals = make("oracle", options={"keep": True})
    trial = evals.trial()

    evals.run(trial)

    assert (trial.layout.project / "app/__init__.py").read_text() == SOLUTION


# What a client sees.

DOCUMENTED = Path(__file__).parents[2] / "docs/environment.md"


def documented(column: int, **places: Path) -> dict[str, str]:
    """Return the documented environment of a client session (1) or of a check (2)."""
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in DOCUMENTED.read_text().splitlines()
        if line.startswith("| `")
    ]
    return {
        row[0].strip("`"): _filled_in(row[column], places) for row in rows if row[column].strip()
    }


def _filled_in(cell: str, places: dict[str, Path]) -> str:
    cell = cell.replace("the toolchain's own folder", "`<tools>/bin`")
    value = ":".join(re.findall("`([^`]*)`", cell.replace("the working folder", "`<cwd>`")))
    for name, place in places.items():
        value = value.replace(f"<{name}>", str(place))
    return value


def test_a_session_has_exactly_the_documented_environment_in_every_configuration(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable more in one arm could explain the difference between them."""
    monkeypatch.setenv("EVALARC_SECRET", CANARY)
    script = "cat /proc/$$/environ > $EVAL_EVIDENCE_DIR/env"
    evals = make(shell(script), is_plain=False)

    for configuration in ("without-skills", "with-skills"):
        trial = evals.trial(configuration)
        evals.run(trial)
        text = (trial.folder / "evidence/env").read_text()
        seen = dict(line.split("=", 1) for line in text.split("\0") if line)

        layout, tools = trial.layout, evals.batch.lab(evals.task).tools.root
        assert seen == documented(1, run=layout.root, tools=tools, cwd=layout.project)


def test_a_grading_process_has_exactly_the_documented_environment(make: Make) -> None:
    """It says what a check can rely on, and that no key reaches it."""
    evals = make(is_plain=False)
    lab, tmp = evals.batch.lab(evals.task), Path("/tmp/x")

    # The sandbox sets this one when the process starts.
    given = {"PWD": str(tmp), **lab.grading_env(tmp)}

    assert given == documented(2, tmp=tmp, tools=lab.tools.root, cwd=tmp)


def test_a_session_reads_nothing_but_its_own_trial(make: Make) -> None:
    """Checks, solution, other trials, results and this package hold the answers."""
    first = make("oracle", options={"keep": True})
    first.run(first.trial())
    home = first.trial().layout.root
    own = make(
        "nop",
        files={"evals/tasks/tiny/task.toml": (first.task.root / "task.toml").read_text()},
    )
    package = Path(sys.modules["pytest_evalarc"].__file__ or "").parent
    hidden = [
        own.task.root / "checks/adds.py",
        own.task.root / "solution/app/__init__.py",
        own.project / "evals/plugins/other/skills/tune-numbers/SKILL.md",
        own.project / "CLAUDE.md",
        first.folder / "plan.json",
        first.trial().folder / "submission/app/__init__.py",
        home / "project/app/__init__.py",
        package / "__init__.py",
        Path(sys.prefix) / "pyvenv.cfg",
    ]
    assert all(path.is_file() for path in hidden)
    places = " ".join(f"'{path}'" for path in hidden)
    script = (
        f'for path in {places}; do cat $path && echo "saw $path"; done >&2\n'
        f"grep -rl {CANARY} $HOME/.. /tmp /home /root /etc /var 2>/dev/null >&2\n"
        "find $HOME/.. -name 'test_*' >&2; cat ../fixtures/numbers/numbers.txt >&2\n"
        "echo x > ../fixtures/numbers/numbers.txt; echo x > ../bin/sh"
    )
    spy = make(shell(script), root=own.root)

    trial = spy.trial()
    result = spy.run(trial)

    said = (trial.folder / "stderr.log").read_text()
    assert "saw " not in said
    assert CANARY not in said
    assert "1 2 3" in said
    assert result.execution is Execution.COMPLETED
    assert result.code is not None and result.code["edits_outside_editable"] == []


def test_results_planted_by_a_client_change_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is made after the client is dead, where it could never write."""
    script = (
        "for d in . $HOME $TMPDIR $CARGO_HOME $EVAL_EVIDENCE_DIR app; do\n"
        'for f in result.json reward.txt junit.xml benchmark.json; do echo \'{"success":"pass"}\''
        " > $d/$f; done; done"
    )
    evals = make(shell(script), options={"trials": 2})

    failed = evals.run(evals.trial(number=1))
    monkeypatch.setattr("pytest_evalarc.runs.trial.grade", no_space)
    excluded = evals.run(evals.trial(number=2))

    assert (failed.outcome, failed.success) == (Outcome.FAILED, "fail")
    assert (excluded.outcome, excluded.success) == (Outcome.EXCLUDED_GRADING, None)


# How a session ends.


@pytest.mark.parametrize(
    ("says", "script", "execution", "outcome"),
    [
        ((START, DONE), SOLVE, Execution.COMPLETED, Outcome.SUCCEEDED),
        ((START, DONE + "exit 3"), SOLVE, Execution.COMPLETED, Outcome.SUCCEEDED),
        ((START, ""), SOLVE, Execution.CLIENT_ERROR, Outcome.FAILED),
        ((START, DONE.replace("false", "true")), SOLVE, Execution.CLIENT_ERROR, Outcome.FAILED),
        (("", ""), "echo Hello", Execution.CLIENT_ERROR, Outcome.FAILED),
        (("", ""), "kill -9 $$", Execution.CLIENT_ERROR, Outcome.FAILED),
    ],
)
def test_what_the_client_says_decides_how_it_ended_and_its_status_nothing(
    make: Make, says: tuple[str, str], script: str, execution: Execution, outcome: Outcome
) -> None:
    """Status 0 without a completion event is a client that started without its prompt."""
    evals = make(shell(script, says=says))

    result = evals.run(evals.trial())

    assert (result.execution, result.outcome) == (execution, outcome)
    assert result.gradings[-1].code_passed is (script == SOLVE)


def test_a_client_that_hangs_is_a_timeout_and_is_graded_all_the_same(make: Make) -> None:
    """Its completion event came with our signal, so it proves no end of its own."""
    task = make().task.root / "task.toml"
    script = f"{SOLVE}trap \"printf '%s' '{{}}'\" TERM\n(trap '' TERM; sleep 600) & sleep 600"
    quick = task.read_text().replace("agent = 30", "agent = 0.4")
    evals = make(shell(script), files={"evals/tasks/tiny/task.toml": quick})

    result = evals.run(evals.trial())

    assert result.execution is Execution.TIMEOUT
    assert (result.outcome, result.cause and result.cause.kind) == (Outcome.FAILED, "timeout")
    assert result.gradings[-1].code_passed
    assert result.code is not None and result.code["hidden"] == {"adds": "pass", "empty": "pass"}
    assert not evals.trial().layout.root.exists()


def test_a_client_that_floods_is_ended_and_its_trial_counted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A structured record is never cut silently, so too long a one is an error of the client."""
    monkeypatch.setattr(session, "TRANSCRIPT_BYTES", 1 << 20)
    evals = make(shell(f"{SOLVE}while :; do echo '{'x' * 4000}'; done"))
    trial = evals.trial()

    result = evals.run(trial)

    assert result.execution is Execution.CLIENT_ERROR
    assert (result.outcome, result.cause and result.cause.kind) == (Outcome.FAILED, "client_error")
    assert result.gradings[-1].code_passed
    # A line at its end says how much was dropped.
    assert (trial.folder / "transcript.jsonl").stat().st_size < (1 << 20) + 100


HOSTILE_STREAM = r"""
printf '%s\n' '{"type":"response","text":"\ud800 \u0000 \u001b]0;x\u0007"}'
printf '%s\n' '{"type":"tool_call","id":"\ud800","kind":"read","name":"\udfff","target":"\ud83d/x"}'
printf '%s\n' '{"type":"tool_call","id":"2","kind":"edit","name":"w","target":"/root/\ud83d"}'
printf '%s\n' '{"type":"usage","input_tokens":99999999999999999999999999,"output_tokens":1e999}'
printf '%s\n' '{"type":"usage","input_tokens":NaN}'
printf '\377\376\n\000\n'
printf '%s\n' '{"type":"start","format":"evalarc.stream.v1","cwd":"/x","skills":["\ud800"]}'
"""


@pytest.mark.parametrize("configuration", ["without-skills", "with-skills"])
def test_no_stream_keeps_a_result_from_being_written(make: Make, configuration: str) -> None:
    """One half of a surrogate pair in a message must not void the whole trial."""
    says = (HOSTILE_STREAM, DONE)
    evals = make(shell(SOLVE, says=says))

    result = evals.run(evals.trial(configuration))

    assert result.gradings[-1].code_passed
    assert result.execution is Execution.COMPLETED
    assert result.usage is None
    # In what was not wholly understood, a load can have been missed.
    is_sure = configuration == "without-skills"
    expected = Outcome.SUCCEEDED if is_sure else Outcome.INCONCLUSIVE
    assert result.outcome is expected
    assert read_benchmark(evals.folder).configurations[configuration].planned == 1


def test_a_client_that_offers_what_nobody_planned_is_excluded(make: Make) -> None:
    """The operator's own skill in one arm would make the difference between them fiction."""
    start = START.replace('"cwd"', '"skills":["use-numbers","sneaky"],"cwd"')
    evals = make(shell(SOLVE, says=(start, DONE)))

    result = evals.run(evals.trial("with-skills"))

    assert (result.outcome, result.cause and result.cause.kind) == (
        Outcome.EXCLUDED_ISOLATION,
        "arm_mismatch",
    )
    assert result.cause is not None and "sneaky" in result.cause.detail


def test_a_denied_path_that_was_tried_is_told_and_one_that_was_reached_excludes(
    make: Make,
) -> None:
    """Only a tool's own success proves an escape; a failed attempt is what the sandbox is for."""
    call = '{"type":"tool_call","id":"%s","kind":"read","name":"read","target":"/root/x"}'
    answer = '{"type":"tool_result","id":"%s","is_error":%s,"content":""}'

    def outcome(is_error: str) -> TrialResult:
        said = f"echo '{call % 1}'\necho '{answer % (1, is_error)}'"
        evals = make(shell(f"{SOLVE}{said}"))
        return evals.run(evals.trial())

    tried, reached = outcome("true"), outcome("false")

    assert tried.outcome is Outcome.SUCCEEDED
    assert tried.isolation.audit_findings == ("a denied path was tried: read of /root/x",)
    assert (reached.outcome, reached.cause and reached.cause.kind) == (
        Outcome.EXCLUDED_ISOLATION,
        "escape",
    )


# What a session leaves.


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("ln -s /etc/passwd app/link", "app/link: is a symbolic link"),
        ("rm -r app; ln -s /etc app", "app: is a symbolic link"),
        ("mkfifo app/pipe", "app/pipe: is a special file"),
        ("truncate -s 1T big 2>/dev/null || truncate -s 300M big", "MiB|bytes|limit"),
        ("d=d; for i in $(seq 99); do d=$d/d; done; mkdir -p $d", "64"),
    ],
)
def test_a_submission_that_cannot_be_graded_fails(make: Make, script: str, told: str) -> None:
    """It is the submission's doing: an exclusion would be bought by one link."""
    limit = (make().task.root / "task.toml").read_text().replace("tmp_mib = 16", "disk_mib = 4096")
    evals = make(shell(script), files={"evals/tasks/tiny/task.toml": limit})
    trial = evals.trial()

    result = evals.run(trial)

    assert (result.outcome, result.execution) == (Outcome.FAILED, Execution.COMPLETED)
    cause = result.gradings[-1].cause
    assert cause is not None and cause.kind == "invalid_submission"
    assert re.search(told, cause.detail)
    listed = trial.folder / "submission-listing.txt"
    assert listed.exists() is ("big" in script or "seq" in script)
    assert not listed.exists() or "README.md" in listed.read_text().splitlines()


@pytest.mark.parametrize(
    "script",
    [
        "chmod 000 . $HOME $EVAL_EVIDENCE_DIR",
        "mkfifo $EVAL_EVIDENCE_DIR/pipe .agents 2>/dev/null",
        "rm -rf .agents; ln -s /etc .agents",
        "rm -rf .agents/skills; mkfifo .agents/skills",
        "rm -rf .agents app; touch .agents",
        "d=$EVAL_EVIDENCE_DIR; for i in $(seq 99); do d=$d/d; done; mkdir -p $d",
        r"touch $(printf 'app/\377\n\033x') $(printf '.agents/skills/\377')",
        "mkdir .git; echo x > .git/config; rm -rf .agents/skills/use-numbers/SKILL.md",
    ],
)
def test_whatever_a_session_leaves_ends_as_an_outcome(make: Make, script: str) -> None:
    """A trial was paid for, and what it left must not break the harness."""
    evals = make(shell(script))

    result = evals.run(evals.trial("with-skills"))

    assert result.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE)
    assert result.execution is Execution.COMPLETED
    assert not evals.trial("with-skills").layout.root.exists()


def test_a_skill_that_the_client_edits_makes_its_expectations_inconclusive(make: Make) -> None:
    """What it then loaded may be its own text instead of the plugin's."""
    evals = make(shell(f"{SOLVE}echo mine >> .agents/skills/use-numbers/SKILL.md"))

    result = evals.run(evals.trial("with-skills"))

    assert result.isolation.config_changes == (".agents/skills/use-numbers: altered",)
    told = result.expectations
    assert told is not None and told.skills["use-numbers"].installed == "inconclusive"
    assert result.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE)
    assert result.code is not None and result.code["edits_outside_editable"] == []


def test_noise_offers_all_other_plugins_beside_the_treatment(make: Make) -> None:
    """It asks whether a skill is still found among others."""
    start = START.replace('"cwd"', '"skills":["use-numbers","tune-numbers"],"cwd"')
    evals = make(
        shell(f"{SOLVE}ls .agents/skills >&2", says=(start, DONE)),
        options={"configuration": "noise"},
    )
    trial = evals.trial("noise")

    result = evals.run(trial)

    assert (trial.folder / "stderr.log").read_text().split() == ["tune-numbers", "use-numbers"]
    assert result.outcome is not Outcome.EXCLUDED_ISOLATION


# Preparation.


def setup_failure(result: TrialResult, kind: str) -> str:
    assert result.cause is not None
    assert (result.outcome, result.cause.kind) == (Outcome.SETUP_FAILURE, kind)
    assert (result.execution, result.started_at, result.gradings) == (
        Execution.NOT_STARTED,
        None,
        (),
    )
    return result.cause.detail


def test_a_fixture_that_is_gone_is_a_setup_failure(make: Make) -> None:
    """The client was never started, so nothing can be said of it."""
    evals = make()
    (evals.task.fixtures[0].root / "numbers.txt").unlink()
    evals.task.fixtures[0].root.rmdir()

    assert "numbers" in setup_failure(evals.run(evals.trial()), "preparation")


@pytest.mark.parametrize("configuration", ["without-skills", "with-skills"])
def test_a_starter_with_skills_fails_the_prelaunch_check_in_both_arms(
    make: Make, configuration: str
) -> None:
    """A baseline that holds a skill is none."""
    evals = make()
    skill = evals.task.starter / ".agents/skills/stray"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("")

    told = setup_failure(evals.run(evals.trial(configuration)), "prelaunch")

    assert "must be empty before the client starts" in told
    assert not evals.trial(configuration).layout.root.exists()


def test_a_setting_that_an_embedded_client_does_not_take_is_told(make: Make) -> None:
    """It would stand in the result as if it had been obeyed."""
    evals = make("replay", settings={"recrding": "x"})

    told = setup_failure(evals.run(evals.trial()), "preparation")

    assert told == "client replay: takes no setting 'recrding'; nearest: recording"


def no_space(*_: object, **__: object) -> Any:
    raise OSError(28, "No space left on device")


def broken(*_: object, **__: object) -> Any:
    raise InfrastructureError("sandbox", "went away")


def bug(*_: object, **__: object) -> Any:
    raise RuntimeError("a plugin's bug \x1b[31m")


def unreadable(*_: object, **__: object) -> Any:
    raise SubmissionError("project", "cannot be read")


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("make_control", no_space),
        ("make_control", unreadable),
        ("copy_fixtures", broken),
        ("session_env", bug),
        ("script_for", bug),
        ("snapshot", bug),
        ("Policy", broken),
        ("write_atomic", no_space),
    ],
)
def test_a_fault_before_the_client_starts_is_a_setup_failure(
    make: Make, monkeypatch: pytest.MonkeyPatch, where: str, fault: Callable[..., Any]
) -> None:
    """Whoever caused it, the client did not; a bug leaves its traceback as evidence."""
    monkeypatch.setattr(f"pytest_evalarc.runs.prepare.{where}", fault)
    evals = make()
    trial = evals.trial()

    told = setup_failure(run_trial(trial), "preparation")

    assert "\x1b" not in told
    assert not trial.layout.root.exists()
    assert (trial.folder / "traceback.txt").exists() is (fault is bug)


@pytest.mark.parametrize(
    ("method", "fault"),
    [("prelaunch", bug), ("stage", no_space), ("verify", broken), ("ref", bug)],
)
def test_a_fault_of_the_treatment_is_a_setup_failure(
    make: Make, monkeypatch: pytest.MonkeyPatch, method: str, fault: Callable[..., Any]
) -> None:
    """A treatment can be a third party's, and its client never started."""
    monkeypatch.setattr(Skills, method, fault)
    evals = make()

    setup_failure(run_trial(evals.trial("with-skills")), "preparation")


@pytest.mark.parametrize("fault", [no_space, broken, bug])
def test_a_sandbox_that_cannot_start_the_client_is_a_setup_failure(
    make: Make, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any]
) -> None:
    """A client that never ran must not count as one that failed."""
    evals = make()
    trial = evals.trial()
    evals.batch.lab(evals.task)
    monkeypatch.setattr(type(evals.batch.boundary), "wrap", fault)

    setup_failure(run_trial(trial), "preparation")


def test_a_program_that_the_host_cannot_start_is_a_setup_failure(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many processes, or no bubblewrap any more: nobody's work was seen."""
    evals = make()
    trial = evals.trial()
    evals.batch.lab(evals.task)

    def cannot(*_: object, **__: object) -> Any:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", cannot)

    told = setup_failure(run_trial(trial), "preparation")

    assert "could not be started" in told
    assert "Resource temporarily unavailable" in told


def test_preparing_too_long_is_a_setup_failure(make: Make) -> None:
    """The deadline is the task's own."""
    task = (make().task.root / "task.toml").read_text()
    hasty = task.replace("agent = 30", "agent = 30\nsetup = 0.000001")
    evals = make(files={"evals/tasks/tiny/task.toml": hasty})

    assert "raise [deadlines] setup" in setup_failure(evals.run(evals.trial()), "preparation")


# Faults of ours after the session.


@pytest.mark.parametrize("fault", [no_space, broken, bug, unreadable])
def test_a_grader_that_breaks_excludes_the_trial_and_keeps_the_submission(
    make: Make, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any]
) -> None:
    """It is not the agent's failure, and what it left can be graded again."""
    monkeypatch.setattr("pytest_evalarc.runs.trial.grade", fault)
    evals = make()
    trial = evals.trial()

    result = evals.run(trial)

    assert (result.outcome, result.success) == (Outcome.EXCLUDED_GRADING, None)
    assert result.execution is Execution.COMPLETED
    assert result.gradings[-1].status == "infrastructure_error"
    kept = json.loads((trial.folder / "submission.json").read_bytes())
    assert result.gradings[-1].submission_sha256 == kept["sha256"]
    assert (trial.folder / "submission/app/__init__.py").read_text() == SOLUTION
    assert (trial.folder / "traceback.txt").exists() is (fault is bug)


@pytest.mark.parametrize(
    ("place", "fault"), [("keep", bug), ("copy_tree", no_space), ("copy_tree", broken)]
)
def test_a_submission_that_we_cannot_keep_excludes_the_trial(
    make: Make, monkeypatch: pytest.MonkeyPatch, place: str, fault: Callable[..., Any]
) -> None:
    """A full disk is ours; half a submission is no evidence, and its space holds the result."""
    where = "runs.evidence.keep" if place == "keep" else "grading.submission.copy_tree"
    evals = make()
    trial = evals.trial()
    real_read = session.run_session

    def then(*arguments: Any, **words: Any) -> Any:
        ended = real_read(*arguments, **words)
        monkeypatch.setattr(f"pytest_evalarc.{where}", fault)
        return ended

    monkeypatch.setattr("pytest_evalarc.runs.trial.run_session", then)

    result = evals.run(trial)

    assert (result.outcome, result.cause and result.cause.kind) == (
        Outcome.EXCLUDED_GRADING,
        "grading",
    )
    assert not (trial.folder / "submission").exists()
    assert (trial.folder / "transcript.jsonl").stat().st_size > 0


def test_a_broken_grading_does_not_move_an_unfinished_session_out_of_the_count(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a client that errs would be excluded exactly when our own side is weak."""
    monkeypatch.setattr("pytest_evalarc.runs.trial.grade", no_space)
    evals = make(shell(SOLVE, says=(START, "")))

    result = evals.run(evals.trial())

    assert (result.outcome, result.cause and result.cause.kind) == (Outcome.FAILED, "client_error")


@pytest.mark.parametrize(
    "where",
    [
        "pytest_evalarc.clients.embedded.client.Embedded.read",
        "pytest_evalarc.runs.trial.look_outside",
        "pytest_evalarc.treatments.skills.Skills.collect",
        "pytest_evalarc.treatments.skills.Skills.decide",
        "pytest_evalarc.runs.draft.Draft.result",
    ],
)
def test_a_broken_harness_raises_after_all_evidence_is_kept(
    make: Make, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A bug is a traceback; the trial ends as cancelled, and what was paid for is there."""
    evals = make()
    trial = evals.trial("with-skills")
    with monkeypatch.context() as patch:
        if not where.endswith("Draft.result"):
            patch.setattr(where, bug)
            with pytest.raises(RuntimeError, match="a plugin's bug"):
                evals.run(trial)
        else:
            patch.setattr("pytest_evalarc.runs.trial.Draft.result", once_broken())
            with pytest.raises(RuntimeError, match="a plugin's bug"):
                evals.run(trial)

    result = evals.run(trial)
    assert (result.outcome, result.cause and result.cause.kind) == (
        Outcome.CANCELLED,
        "interrupted",
    )
    assert result.cause is not None and "RuntimeError: a plugin's bug" in result.cause.detail
    assert (trial.folder / "submission/app/__init__.py").read_text() == SOLUTION
    assert not trial.layout.root.exists()


def once_broken() -> Callable[..., TrialResult]:
    from pytest_evalarc.runs.draft import Draft

    real, calls = Draft.result, []

    def result(draft: Draft) -> TrialResult:
        calls.append(1)
        return bug() if len(calls) == 1 else real(draft)

    return result


def test_a_run_folder_that_cannot_be_removed_does_not_lose_the_result(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes with the batch's working folder, or the user is told then."""
    evals = make()
    trial = evals.trial()
    real, calls = Path.rmdir, []

    def refusing(path: Path) -> None:
        if path == trial.layout.root:
            calls.append(1)
            raise OSError(16, "Device or resource busy")
        real(path)

    monkeypatch.setattr(Path, "rmdir", refusing)

    assert evals.run(trial).outcome is Outcome.SUCCEEDED
    assert calls


def test_evidence_that_cannot_be_kept_is_told_and_voids_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client can write there, so it could otherwise buy an exclusion with it."""
    evals = make(shell(f"{SOLVE}: > $EVAL_EVIDENCE_DIR/note"))
    monkeypatch.setattr("pytest_evalarc.runs.evidence.copy_tree", no_space)

    result = evals.run(evals.trial())

    assert result.outcome is Outcome.SUCCEEDED
    assert "the evidence was not kept" in result.isolation.audit_findings[0]


# Cut off.


@pytest.mark.parametrize(
    "where", ["prepare", "run_session", "keep_submission", "grade", "look_outside"]
)
def test_an_interrupt_at_any_stage_leaves_a_cancelled_result_and_is_raised(
    make: Make, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The user is obeyed, and the trial still ends in exactly one place."""
    evals = make()
    trial = evals.trial()

    def interrupt(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt("SIGTERM")

    with monkeypatch.context() as patch:
        patch.setattr(f"pytest_evalarc.runs.trial.{where}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            evals.run(trial)

    result = evals.run(trial)
    assert result.outcome is Outcome.CANCELLED
    assert result.cause == Cause(kind="interrupted", detail="SIGTERM")
    assert not trial.layout.root.exists()


def test_a_timeout_of_the_test_cancels_this_trial_alone(make: Make) -> None:
    """Nothing is interrupted but the trial, which keeps all that is known of it."""
    evals = make(shell("sleep 600"))
    trial = evals.trial()

    def expire() -> None:
        stream = trial.folder / "transcript.jsonl"
        until_s = time.monotonic() + 60
        while not (stream.exists() and stream.stat().st_size) and time.monotonic() < until_s:
            time.sleep(0.01)
        evals.batch.cancelled.set()

    timer = threading.Thread(target=expire)
    timer.start()
    result = evals.run(trial)
    timer.join()

    assert (result.outcome, result.cause and result.cause.kind) == (
        Outcome.CANCELLED,
        "pytest_timeout",
    )
    assert result.sandbox is not None
    assert not trial.layout.root.exists()


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (None, "worker_crash", "the process that ran it died"),
        (HostLost("host hostA was lost"), "worker_crash", "host hostA was lost"),
        (KeyboardInterrupt(), "interrupted", "the session was interrupted"),
        (KeyboardInterrupt("SIGTERM"), "interrupted", "SIGTERM"),
        (SystemExit(1), "interrupted", "1"),
        (
            pytest.fail.Exception("Timeout (>2.0s) from pytest-timeout."),
            "pytest_timeout",
            "Timeout",
        ),
        (pytest.exit.Exception("enough"), "interrupted", "enough"),
        (OSError(28, "No space left"), "interrupted", "No space left"),
        (ValueError("\x1b[31m"), "interrupted", r"ValueError: \x1b[31m"),
    ],
)
def test_a_cut_off_trial_says_by_what(
    make: Make, error: BaseException | None, kind: str, detail: str
) -> None:
    """Cancellations are counted by cause, so that a crashing worker is not taken for a user."""
    evals = make()
    plan = evals.plan

    result = cancelled(plan, plan.trials[0], evals.known_client, error)

    assert result.outcome is Outcome.CANCELLED
    assert result.cause is not None and result.cause.kind == kind
    assert detail in result.cause.detail
    assert (result.success, result.execution) == (None, Execution.NOT_STARTED)


def test_a_cut_off_trial_without_boundary_does_not_claim_one(make: Make) -> None:
    """Nothing ran, so what was planned is all there is to tell."""
    evals = make(options={"sandbox": "local", "trust_local": True})

    result = cancelled(evals.plan, evals.plan.trials[0], evals.known_client, None)

    assert result.isolation.mode == "trusted_local"


# Counting.


def test_every_planned_trial_ends_in_exactly_one_place(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No trial is dropped, and none counts twice, whatever became of it."""
    evals = make("oracle", options={"trials": 5, "configuration": "without"})
    evals.run(evals.trial(number=1))
    with monkeypatch.context() as patch:
        patch.setattr("pytest_evalarc.runs.trial.grade", no_space)
        evals.run(evals.trial(number=2))
    with monkeypatch.context() as patch:
        patch.setattr("pytest_evalarc.runs.prepare.make_control", no_space)
        evals.run(evals.trial(number=3))
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr("pytest_evalarc.runs.trial.look_outside", bug)
        evals.run(evals.trial(number=4))

    counted = read_benchmark(evals.folder).configurations["without-skills"]

    assert counted.planned == 5
    assert (counted.setup_failures, counted.cancelled, counted.started) == (1, 2, 2)
    assert counted.excluded.grading == 1
    assert (counted.eligible, counted.succeeded, counted.success_rate) == (1, 1, 1.0)
    assert counted.causes["cancelled"] == {"interrupted": 1, "not_reached": 1}


# Reading back.


def test_a_transcript_is_read_again_from_the_kept_stream(make: Make) -> None:
    """A user's own expectation sees what the harness saw."""
    evals = make("oracle")
    trial = evals.trial("with-skills")
    evals.run(trial)

    assert [call.target for call in read_transcript(trial).tool_calls] == [
        ".agents/skills/use-numbers/SKILL.md",
        "app/__init__.py",
    ]


def test_a_trial_without_a_session_has_no_transcript_and_says_so(make: Make) -> None:
    """A missing file is no bug of the test that asked for it."""
    with pytest.raises(DocumentError, match="a trial without a session has none"):
        read_transcript(make().trial())


def test_other_processes_of_a_batch_share_what_is_staged(make: Make) -> None:
    """Two workers must grade with the same programs."""
    evals = make(is_plain=False)
    evals.batch.lab(evals.task)
    before = sorted(os.listdir(evals.batch.folders.tools))

    make(is_plain=False).batch.lab(evals.task)

    assert sorted(os.listdir(evals.batch.folders.tools)) == before
