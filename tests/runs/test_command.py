"""Trials of agents that a table of the project describes, in a real sandbox."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.transcript import Load
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.runs.plan import check_host, planned_client
from pytest_evalarc.runs.request import ClientLabel
from pytest_evalarc.runs.session import session_env
from pytest_evalarc.runs.trial import cancelled, read_transcript
from tests.evals import SOLUTION, TASK, Evals, shell
from tests.needs import needs_bwrap
from tests.runs.test_redaction import KEY, SPELLINGS, holds

pytestmark = [pytest.mark.slow, needs_bwrap]

SOLVE = f"cat > app/__init__.py <<'END'\n{SOLUTION}END\n"


@dataclass
class Agents(Evals):
    """A batch of one client that a table describes."""

    table: ClientLabel = field(default_factory=lambda: ClientLabel(label="mine", kind="command"))

    @property
    def label(self) -> ClientLabel:
        return self.table

    @property
    def known_client(self) -> Client:
        return planned_client(self.plan, self.registry.clients.get)


Make = Callable[..., Agents]


@pytest.fixture
def agent(tmp_path: Path, eval_root: Path) -> Make:
    """Return what makes a batch of an agent that is a shell script in a folder of its own."""

    def make(script: str, *, label: str = "mine", words: Any = ("{prompt}",), **facts: Any) -> Any:
        program = tmp_path / "opt" / label / "agent"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        table = ClientLabel(
            label=label,
            kind="command",
            command=(str(program), *words),
            settings={"reads": [str(program.parent)], **facts.pop("settings", {})},
            model=facts.pop("model", None),
            key_env=facts.pop("key_env", ()),
        )
        # A batch goes on with the program that it began with, and each test has another one.
        batch = {"root": tmp_path, "eval_root": eval_root, "batch_name": tmp_path.name[-40:]}
        return Agents(**{**batch, "table": table, **facts})

    return make


# How a session ends.


def test_an_agent_that_does_its_work_succeeds(agent: Make) -> None:
    """Its exit status says that it came to its end; the checks say the rest."""
    evals = agent(f"{SOLVE}echo 'All done.'")
    trial = evals.trial()

    result = evals.run(trial)

    assert (result.execution, result.outcome) == (Execution.COMPLETED, Outcome.SUCCEEDED)
    program = Path(evals.table.command[0])
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    assert (result.client.name, result.client.version, result.client.sha256) == (
        "mine",
        None,
        digest,
    )
    assert (result.usage, result.redacted_files) == (None, ())
    assert (trial.folder / "response.txt").read_text() == "All done.\n"
    again = read_transcript(trial)
    assert (again.completion, again.response) == (None, "All done.\n")


def test_what_it_loaded_is_unknown_and_what_was_installed_is_not(agent: Make) -> None:
    """Nothing of its output is interpreted, so no absence in it proves anything."""
    evals = agent(
        f"cat .claude/skills/use-numbers/SKILL.md\n{SOLVE}",
        settings={"skill_folder": ".claude/skills"},
    )

    result = evals.run(evals.trial("with-skills"))

    told = result.expectations
    assert told is not None
    assert {decision.name: decision.verdict for decision in told.decisions} == {
        "installed-use-numbers": "pass",
        "used-use-numbers": "inconclusive",
    }
    assert told.skills["use-numbers"].observed_load is Load.UNKNOWN
    assert result.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$", "no-such-command", "exec /nowhere/x"])
def test_an_agent_that_fails_is_graded_all_the_same(agent: Make, script: str) -> None:
    """What it had done by then may be whole."""
    evals = agent(f"{SOLVE}{script}")

    result = evals.run(evals.trial())

    assert result.execution is Execution.CLIENT_ERROR
    assert (result.outcome, result.cause and result.cause.kind) == (Outcome.FAILED, "client_error")
    assert result.gradings[-1].code_passed


def test_status_0_without_work_is_a_completed_session_that_failed_its_checks(agent: Make) -> None:
    """An agent that greets and leaves is counted, and its code decides."""
    evals = agent("echo 'What would you like help with?'")

    result = evals.run(evals.trial())

    assert result.execution is Execution.COMPLETED
    assert (result.outcome, result.cause and result.cause.kind) == (Outcome.FAILED, "code")


def test_an_agent_that_hangs_runs_into_its_deadline(agent: Make) -> None:
    """A status that follows our signal is no end of its own."""
    quick = {"evals/tasks/tiny/task.toml": TASK.replace("agent = 30", "agent = 0.4")}
    evals = agent(f"{SOLVE}trap 'exit 0' TERM; sleep 600 & wait", files=quick)

    result = evals.run(evals.trial())

    assert (result.execution, result.cause and result.cause.kind) == (
        Execution.TIMEOUT,
        "timeout",
    )
    assert result.gradings[-1].code_passed


def test_a_client_that_delivered_its_end_and_hangs_counts_as_completed(make: Any) -> None:
    """Agents have been seen to stay alive after their last event; their work is whole."""
    done = """echo '{"type":"completion","is_error":false}'\nsleep 600 & sleep 600\n"""
    started = """echo '{"type":"start","format":"evalarc.stream.v1","cwd":"/p"}'\n"""
    evals = make(shell(SOLVE, says=(started, done)))

    result = evals.run(evals.trial())

    assert (result.execution, result.outcome) == (Execution.COMPLETED, Outcome.SUCCEEDED)
    assert result.isolation.audit_findings == ()


# What an agent is given.

PROMPT = "-p --help 'one' \"two\" $HOME `id` $(id) {model}\n\\n é \t; | & * ~"


@pytest.mark.parametrize("by", ["argument", "stdin"])
def test_the_prompt_arrives_as_it_is(agent: Make, by: str) -> None:
    """Nobody between the task and the agent may read it as anything but text."""
    words = ("--", "{prompt}") if by == "argument" else ()
    script = 'shift; printf %s "$1"' if by == "argument" else "cat"
    task = TASK.replace('"Make total() add its arguments."', json.dumps(PROMPT, ensure_ascii=False))
    evals = agent(
        f"{script} > $EVAL_EVIDENCE_DIR/said; cat | wc -c > $EVAL_EVIDENCE_DIR/left",
        words=words,
        settings={"prompt": by},
        files={"evals/tasks/tiny/task.toml": task},
    )
    trial = evals.trial()

    evals.run(trial)

    assert (trial.folder / "evidence/said").read_text() == PROMPT
    # Standard input is at its end at once: who waits for it would wait until the deadline.
    assert (trial.folder / "evidence/left").read_text().strip() == "0"


@pytest.mark.parametrize(
    ("size", "by", "told"),
    [
        (131_071, "argument", None),
        (131_072, "argument", "argument 1: is 131072 bytes long"),
        (2_000_000, "stdin", None),
    ],
)
def test_a_prompt_that_no_argument_holds_asks_for_standard_input(
    agent: Make, size: int, by: str, told: str | None
) -> None:
    """The longest that is let through is one that the system takes indeed."""
    evals = agent(
        '{ cat; printf %s "$1"; } | wc -c',
        words=("{prompt}",) if by == "argument" else (),
        settings={"prompt": by},
        files={
            "evals/tasks/tiny/task.toml": TASK.replace("prompt =", "prompt_file ="),
            "evals/tasks/tiny/Make total() add its arguments.": "x" * size,
        },
    )
    trial = evals.trial()

    result = evals.run(trial)

    if told is None:
        assert (trial.folder / "response.txt").read_text().strip() == str(size)
    else:
        assert (result.outcome, result.cause and result.cause.kind) == (
            Outcome.SETUP_FAILURE,
            "preparation",
        )
        assert result.cause is not None and told in result.cause.detail


def test_a_session_gets_the_documented_variables_and_the_named_ones_alone(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else of the operator's reaches an agent, in no configuration."""
    named = {"MY_KEY": KEY, "MY_URL": "http://x/?a=1&b= 2", "MY_EMPTY": ""}
    for name, value in {**named, "OTHER_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    evals = agent(
        'od -An -v -tx1 /proc/$$/environ | tr a-f A-F; pwd >&2; echo "$2" >&2',
        words=("{prompt}", "{project}"),
        key_env=("MY_KEY",),
        settings={"env": ["MY_URL", "MY_EMPTY"]},
    )

    for configuration in ("without-skills", "with-skills"):
        trial = evals.trial(configuration)
        evals.run(trial)
        # In hexadecimal with spaces between, which is no spelling that is struck out.
        text = bytes.fromhex((trial.folder / "transcript.jsonl").read_text()).decode()
        seen = dict(line.split("=", 1) for line in text.split("\0") if line)

        project = str(trial.layout.project)
        ours = session_env(trial.layout, evals.batch.tools(evals.task))
        assert seen == {**ours, "PWD": project, **named}
        assert (trial.folder / "stderr.log").read_text().split() == [project, project]


def test_two_labels_of_one_kind_have_results_of_their_own(agent: Make) -> None:
    """Models are compared side by side, each with its own program, model and folder."""
    script = f'{SOLVE}echo "$1"'
    one = agent(script, label="small", words=("{model}", "{prompt}"), model="m-1")
    two = agent(f"# Another.\n{script}", label="large", words=("{model}", "{prompt}"), model="m-2")

    results = {evals.table.label: evals.run(evals.trial()) for evals in (one, two)}

    assert {label: result.model.name for label, result in results.items()} == {
        "small": "m-1",
        "large": "m-2",
    }
    assert one.folder != two.folder
    assert (one.trial().folder / "response.txt").read_text() == "m-1\n"
    assert (two.trial().folder / "response.txt").read_text() == "m-2\n"
    assert results["small"].client.sha256 != results["large"].client.sha256
    plans = [json.loads((evals.folder / "plan.json").read_bytes()) for evals in (one, two)]
    assert [plan["command"] for plan in plans] == [list(one.table.command), list(two.table.command)]


# What keeps an agent from starting.


def setup_failure(result: TrialResult) -> str:
    assert result.cause is not None
    assert (result.outcome, result.execution) == (Outcome.SETUP_FAILURE, Execution.NOT_STARTED)
    return result.cause.detail


def test_a_program_that_no_session_sees_is_a_setup_failure(agent: Make) -> None:
    """It never started, so it must not count as an agent that failed."""
    evals = agent("true", settings={"reads": []})

    assert "lies where no session sees it" in setup_failure(evals.run(evals.trial()))


def test_a_program_that_went_away_is_a_setup_failure(agent: Make) -> None:
    """Nothing was started that could be graded."""
    evals = agent("true")
    Path(evals.table.command[0]).unlink()

    assert "cannot be executed" in setup_failure(evals.run(evals.trial()))


def test_a_program_that_changed_within_a_batch_is_a_setup_failure(agent: Make) -> None:
    """Trials of one batch are compared, and an agent that updated itself is another one."""
    evals = agent("true")
    evals.run(evals.trial())
    program = Path(evals.table.command[0])
    program.write_text("#!/bin/sh\nfalse\n")

    told = setup_failure(evals.run(evals.trial("with-skills")))

    assert "go on with the version that the batch began with" in told


def test_a_variable_of_ours_cannot_be_given(agent: Make) -> None:
    """The harness's own HOME would bring its configuration into every trial."""
    told = setup_failure((evals := agent("true", settings={"env": ["HOME"]})).run(evals.trial()))

    assert told.startswith("variable HOME: is set by every session")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "variable MY_KEY: is not set, and the client is to get it; export MY_KEY"),
        ("", "variable MY_KEY: holds fewer than 8 bytes, so it is no key"),
        ("short\n  ", "variable MY_KEY: holds fewer than 8 bytes"),
    ],
)
def test_a_key_that_is_not_there_is_told_before_anything_runs(
    agent: Make, monkeypatch: pytest.MonkeyPatch, value: str | None, sentence: str
) -> None:
    """A setup failure is final, and this one is mended by one export."""
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)

    with pytest.raises(UsageError, match=sentence):
        check_host(agent("true", key_env=("MY_KEY",)).known_client, None, os.environ)


def test_what_is_missing_on_the_host_is_told_before_anything_runs(agent: Make) -> None:
    """The program is the user's to install."""
    evals = agent("true")
    check_host(evals.known_client, None, os.environ)
    Path(evals.table.command[0]).unlink()

    with pytest.raises(UsageError, match=r"client command: program .*agent: is not there"):
        check_host(evals.known_client, None, os.environ)


# The key.

LEAK = r"""
printf '%s\n' "$MY_KEY"; printf '%s\n' "$MY_KEY" >&2
printf %.8s "$MY_KEY"; sleep 0.05; printf %s "${MY_KEY#????????}"
cat spellings; cat spellings >&2; cat spellings > $EVAL_EVIDENCE_DIR/spellings
printf %s "$MY_KEY" | tee app/key.txt $EVAL_EVIDENCE_DIR/key | base64 -w 9
slug=$(printf %s "$MY_KEY" | base64 -w 0 | tr /+ _-)
mkdir -p "app/$slug/deep"; printf %s "$MY_KEY" > "app/$slug/deep/file"
ln -s "$MY_KEY" link; printf %s "$MY_KEY" > $EVAL_EVIDENCE_DIR/$slug
mkdir sealed; printf %s "$MY_KEY" > sealed/key; chmod 400 sealed/key; chmod 500 sealed
"""


def stored(folder: Path) -> Iterator[str]:
    """Yield every name and the content of every file below a folder."""
    for path in folder.rglob("*"):
        yield path.name
        if path.is_file() and not path.is_symlink():
            yield path.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize("configuration", ["without-skills", "with-skills"])
def test_no_stored_byte_holds_the_key(
    agent: Make, monkeypatch: pytest.MonkeyPatch, configuration: str
) -> None:
    """Results are shared, and whoever finds a key in them can spend the owner's money."""
    monkeypatch.setenv("MY_KEY", KEY)
    starter = {"evals/tasks/tiny/starter/spellings": "\n".join(SPELLINGS.values())}
    evals = agent(f"{SOLVE}{LEAK}", key_env=("MY_KEY",), files=starter)
    trial = evals.trial(configuration)

    result = evals.run(trial)

    assert [text for text in stored(evals.results) if holds(text)] == []
    assert {
        "evidence/key",
        "stderr.log",
        "submission.json",
        "submission/app/key.txt",
        "submission/sealed/key",
        "submission/spellings",
        "transcript.jsonl",
    } <= set(result.redacted_files)
    assert sorted(result.redacted_files) == list(result.redacted_files)
    # The link is none of what is graded, and nothing else is wrong with what was left.
    assert result.gradings[-1].code_passed
    assert result.execution is Execution.COMPLETED
    assert (trial.folder / "submission/app/__init__.py").read_text() == SOLUTION


def test_a_grading_that_may_hold_the_key_is_kept_for_no_later_one(
    agent: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody strikes anything out of the cache; what others have graded is read all the same."""
    monkeypatch.setenv("MY_KEY", KEY)
    options = {"cache": tmp_path / "cache", "trials": 2}
    keyed = agent(SOLVE, key_env=("MY_KEY",), options=options)
    keyless = agent(SOLVE, label="keyless", options=options)

    first = keyed.run(keyed.trial())
    assert list((tmp_path / "cache").iterdir()) == []
    keyless.run(keyless.trial())
    second = keyed.run(keyed.trial(number=2))

    assert (first.gradings[-1].cached, second.gradings[-1].cached is None) == (None, False)
    assert second.outcome is Outcome.SUCCEEDED


def test_a_submission_that_holds_the_key_is_graded_as_it_was_left(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Striking the key out may break the code, and that is no fault of the agent's."""
    monkeypatch.setenv("MY_KEY", "sum(values)")
    evals = agent(SOLVE, key_env=("MY_KEY",))
    trial = evals.trial()

    result = evals.run(trial)

    assert result.outcome is Outcome.SUCCEEDED
    assert result.redacted_files == ("submission/app/__init__.py",)
    assert "sum(values)" not in (trial.folder / "submission/app/__init__.py").read_text()
    kept = json.loads((trial.folder / "submission.json").read_bytes())
    assert result.gradings[-1].submission_sha256 == kept["sha256"]


def test_a_reason_that_repeats_the_key_is_struck_too(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cause names the path that is at fault."""
    monkeypatch.setenv("MY_KEY", "key-0123456789")
    evals = agent('ln -s x "app/$MY_KEY"; echo x > "$MY_KEY"', key_env=("MY_KEY",))

    result = evals.run(evals.trial())

    cause = result.gradings[-1].cause
    assert cause is not None and cause.detail.startswith("app/**************: is a symbolic link")
    assert not any("0123456789" in text for text in stored(evals.results))


def test_what_a_submission_says_of_the_key_while_it_is_graded_is_struck(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check never gets the key, and still prints what the submission brings along."""
    monkeypatch.setenv("MY_KEY", "osprey-0123456789")
    code = "def total(*values): raise ValueError('%s')\\n"
    evals = agent(
        f'printf "{code}" "$MY_KEY" > app/__init__.py', key_env=("MY_KEY",), is_plain=False
    )
    trial = evals.trial()

    result = evals.run(trial)

    said = "".join(row.detail for row in result.gradings[-1].rows)
    assert "ValueError" in said and "*****************" in said
    assert any(path.startswith("grading/") for path in result.redacted_files)
    assert [text for text in stored(evals.results) if holds(text)] == []


@pytest.mark.parametrize("where", ["keep_submission", "grade", "look_outside"])
def test_a_trial_that_is_cut_off_holds_no_key_either(
    agent: Make, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The user's interrupt comes whenever it comes."""
    monkeypatch.setenv("MY_KEY", KEY)
    evals = agent("printf %s $MY_KEY | tee app/key", key_env=("MY_KEY",))

    def interrupt(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt(f"with {KEY}")

    monkeypatch.setattr(f"pytest_evalarc.runs.trial.{where}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        evals.run(evals.trial())

    assert evals.run(evals.trial()).outcome is Outcome.CANCELLED
    assert [text for text in stored(evals.results) if holds(text)] == []


def test_what_a_dead_process_left_is_struck_by_whoever_settles_its_trial(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that the kernel killed could not do it."""
    monkeypatch.setenv("MY_KEY", KEY)
    evals = agent("true", key_env=("MY_KEY",))
    trial = evals.trial()
    trial.folder.mkdir(parents=True)
    (trial.folder / "transcript.jsonl").write_text(KEY)

    result = cancelled(trial.plan, trial.entry, trial.client, None, folder=trial.folder)

    assert result.redacted_files == ("transcript.jsonl",)
    assert "*" in (trial.folder / "transcript.jsonl").read_text()
