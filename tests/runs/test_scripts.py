from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.runs.prepare import Trial
from tests.evals import SOLUTION, Evals, shell
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]
SOLVE = f"cat > app/__init__.py <<'END'\n{SOLUTION}END\n"


def recorded(make: Make, client: Any = "oracle", configuration: str = "with-skills") -> Trial:
    evals = make(client)
    trial = evals.trial(configuration)
    evals.run(trial)
    return trial


def replayed(make: Make, recording: Path, configuration: str = "with-skills") -> TrialResult:
    evals = make("replay", settings={"recording": str(recording)})
    return evals.run(evals.trial(configuration))


def tree(trial: Trial) -> dict[str, str]:
    manifest = json.loads((trial.folder / "submission.json").read_bytes())
    return {
        row["path"]: f"{row['type']} {row['mode']} {row['sha256']} {row['target']}"
        for row in manifest["entries"]
    }


@pytest.mark.parametrize("configuration", ["with-skills", "without-skills"])
def test_a_replayed_trial_has_the_outcome_of_the_recorded_one(
    make: Make, configuration: str
) -> None:
    """A kept trial folder is enough to go through everything again without a model."""
    trial = recorded(make, configuration=configuration)
    again = make("replay", settings={"recording": str(trial.folder)})

    result = again.run(again.trial(configuration))

    assert result.outcome is Outcome.SUCCEEDED
    assert tree(again.trial(configuration)) == tree(trial)
    stream = "transcript.jsonl"
    repeated = (again.trial(configuration).folder / stream).read_bytes()
    assert repeated == (trial.folder / stream).read_bytes()


def test_a_kept_batch_is_replayed_trial_by_trial(make: Make) -> None:
    """Each planned trial repeats the recording of its own number and configuration."""
    evals = make("oracle")
    for configuration in ("without-skills", "with-skills"):
        evals.run(evals.trial(configuration))

    assert replayed(make, evals.folder, "without-skills").outcome is Outcome.SUCCEEDED
    assert replayed(make, evals.folder, "with-skills").outcome is Outcome.SUCCEEDED


def test_a_relative_recording_is_named_from_the_project(make: Make) -> None:
    """So a setting in pyproject.toml means the same wherever pytest is started."""
    trial = recorded(make)
    again = make("replay", settings={"recording": "kept"})
    shutil.copytree(trial.folder, again.project / "kept")

    assert again.run(again.trial("with-skills")).outcome is Outcome.SUCCEEDED


def test_a_session_that_removed_and_remade_things_is_replayed_exactly(make: Make) -> None:
    """A removed folder takes what is in it along, and a file can have become a folder."""
    script = f"{SOLVE}rm -r docs README.md; mkdir README.md; echo x > README.md/y; chmod 755 app/*"
    files = {"evals/tasks/tiny/starter/docs/a/b.md": "", "evals/tasks/tiny/starter/docs/c.md": ""}
    first = make(shell(script), files=files)
    trial = first.trial()
    first.run(trial)
    again = make("replay", files=files, settings={"recording": str(trial.folder)})

    result = again.run(again.trial())

    assert result.execution == "completed"
    assert result.outcome is Outcome.SUCCEEDED
    assert tree(again.trial()) == tree(trial)


def test_a_replayed_symbolic_link_invalidates_again(make: Make) -> None:
    """A kept submission stores no link, only its text; without it the replay would pass."""
    trial = recorded(make, shell(f"{SOLVE}ln -s /etc/passwd app/link"), "without-skills")

    result = replayed(make, trial.folder, "without-skills")

    assert result.outcome is Outcome.FAILED
    cause = result.gradings[-1].cause
    assert cause is not None and "app/link: is a symbolic link" in cause.detail


def failed_setup(result: TrialResult) -> str:
    assert result.outcome is Outcome.SETUP_FAILURE
    assert result.cause is not None and "\n" not in result.cause.detail
    return result.cause.detail


def test_a_recording_that_is_missing_is_told_in_one_sentence(make: Make, tmp_path: Path) -> None:
    """The user named it, and can name another."""
    told = failed_setup(replayed(make, tmp_path / "none"))
    assert "holds no transcript.jsonl for trial 1 of with-skills" in told

    evals = make("replay")
    assert "has no setting recording" in failed_setup(evals.run(evals.trial()))


@pytest.mark.parametrize(
    "manifest",
    [b"{", b"[]", b"{}", b'{"entries": 3}', b'{"entries": [{"path": "x"}]}', b"\xff"],
)
def test_a_damaged_recording_is_told_in_one_sentence(make: Make, manifest: bytes) -> None:
    """A copied folder can be torn, and its links would be lost silently."""
    trial = recorded(make)
    (trial.folder / "submission.json").write_bytes(manifest)

    assert "submission.json" in failed_setup(replayed(make, trial.folder))
