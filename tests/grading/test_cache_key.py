"""Whatever can change a grading changes its key: each of these would else be a wrong verdict."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_evalarc.grading import cache_key
from pytest_evalarc.grading.cache import GradingCache
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.judges import Judges
from pytest_evalarc.grading.lab import FileLab
from pytest_evalarc.grading.scope import EVERYTHING, Scope
from pytest_evalarc.grading.submission import Submission, make_control, read_submission
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import Limits, Task
from tests.evals import Evals, Plain
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]


@dataclass(kw_only=True)
class Asked:
    """One grading that can be asked for again, and what may change in between."""

    evals: Evals
    task: Task
    lab: FileLab
    submission: Submission
    monkeypatch: pytest.MonkeyPatch
    scope: Scope = EVERYTHING

    def graded(self) -> Grading:
        return grade(self.task, self.submission, self.lab, scope=self.scope)

    def edit(self, path: str) -> None:
        """Append one byte to a file below `evals/`."""
        with (self.evals.project / "evals" / path).open("a") as file:
            file.write("\n")

    def submit(self) -> None:
        """Read the submission again, as it is now."""
        self.submission = read_submission(self.submission.root)

    @property
    def file(self) -> Path:
        return self.submission.root / "app/__init__.py"

    def say(self, **facts: object) -> None:
        """Let the sandbox say otherwise of itself."""
        record = Bwrap.record

        def changed(sandbox: Bwrap, limits: Limits) -> IsolationRecord:
            return record(sandbox, limits).model_copy(update=facts)

        self.monkeypatch.setattr(Bwrap, "record", changed)


@pytest.fixture
def asked(tmp_path: Path, staged_root: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    evals = Evals(tmp_path, batch_name="keys", eval_root=staged_root)
    lab = evals.batch.lab(evals.task)
    assert isinstance(lab, FileLab)
    (tmp_path / "cache").mkdir()
    return Asked(
        evals=evals,
        task=evals.task,
        lab=replace(lab, cache=GradingCache(folder=tmp_path / "cache")),
        submission=make_control(evals.task, "reference", tmp_path / "reference"),
        monkeypatch=monkeypatch,
    )


@pytest.fixture(scope="session")
def staged_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eval-root")


def test_the_same_is_answered_from_the_cache(asked: Asked) -> None:
    """It says so, and is the same otherwise, times and all."""
    first = asked.graded()
    again = asked.graded()

    assert first.cached is None
    assert again.cached is not None
    assert again.model_copy(update={"cached": None}) == first
    assert again.code_passed


def test_the_answer_is_of_the_submission_and_not_of_its_place(asked: Asked, tmp_path: Path) -> None:
    """A control is built anew in every session, in a folder of another name."""
    first = asked.graded()
    asked.submission = make_control(asked.task, "reference", tmp_path / "elsewhere")

    assert asked.graded().cached is not None
    assert first.cached is None


def _submission_byte(asked: Asked) -> None:
    asked.file.write_text(asked.file.read_text() + "\n")
    asked.submit()


def _outside_editable(asked: Asked) -> None:
    (asked.submission.root / "README.md").write_text("Mine.\n")
    asked.submit()


def _executable(asked: Asked) -> None:
    asked.file.chmod(0o755)
    asked.submit()


def _limit(asked: Asked) -> None:
    asked.task = replace(asked.task, limits=replace(asked.task.limits, memory_mib=2047))


def _grading_deadline(asked: Asked) -> None:
    asked.task = replace(asked.task, deadlines=replace(asked.task.deadlines, grading=61.0))


def _check_deadline(asked: Asked) -> None:
    first, *others = asked.task.checks
    asked.task = replace(asked.task, checks=(replace(first, deadline_s=19.0), *others))


def _editable(asked: Asked) -> None:
    asked.task = replace(asked.task, editable=("app", "tests"))


def _task_hash(asked: Asked) -> None:
    asked.task = replace(asked.task, sha256="9" * 64)


def _toolchain_version(asked: Asked) -> None:
    plain = Plain()
    plain.version = "plain 2"
    asked.lab = replace(asked.lab, toolchain=plain)


def _toolchain_program(asked: Asked) -> None:
    program = asked.evals.root / "check.py"
    judges = asked.lab.tools.judges
    assert judges is not None
    program.write_bytes(judges.staged[0].read_bytes() + b"#")
    staged = (program, *judges.staged[1:])
    tools = replace(asked.lab.tools, judges=Judges(staged=staged, host=judges.host))
    asked.lab = replace(asked.lab, tools=tools)


def _environment(asked: Asked) -> None:
    asked.lab = replace(asked.lab, tools=replace(asked.lab.tools, env={"A": "1"}))


def _denied(asked: Asked) -> None:
    asked.lab = replace(asked.lab, deny_read=(*asked.lab.deny_read, Path("/usr/share/dict")))


def _turn(asked: Asked) -> None:
    asked.lab = replace(asked.lab, cache=replace(asked.lab.cache, turn=2))  # type: ignore[type-var]


def _scope(asked: Asked) -> None:
    asked.scope = Scope(checks=frozenset({"adds"}))


def _package(asked: Asked) -> None:
    asked.monkeypatch.setattr(cache_key, "package_digest", lambda: "0" * 64)


def _platform(asked: Asked) -> None:
    asked.monkeypatch.setattr(platform, "platform", lambda: "Linux-99")


CHANGES: dict[str, Callable[[Asked], None]] = {
    "submission": _submission_byte,
    "outside editable": _outside_editable,
    "exec bit": _executable,
    "check": lambda asked: asked.edit("tasks/tiny/checks/adds.py"),
    "starter": lambda asked: asked.edit("tasks/tiny/starter/README.md"),
    "fixture": lambda asked: asked.edit("fixtures/numbers/numbers.txt"),
    "content hash": _task_hash,
    "limit": _limit,
    "deadline of all": _grading_deadline,
    "deadline of a check": _check_deadline,
    "editable": _editable,
    "toolchain version": _toolchain_version,
    "toolchain program": _toolchain_program,
    "environment": _environment,
    "denied path": _denied,
    "sandbox": lambda asked: asked.say(sandbox="podman"),
    "sandbox version": lambda asked: asked.say(version="99.0"),
    "sandbox program": lambda asked: asked.say(sha256="8" * 64),
    "image": lambda asked: asked.say(image_id="sha256:" + "7" * 64),
    "enforced limits": lambda asked: asked.say(limits={"cpus": None}),
    "turn": _turn,
    "scope": _scope,
    "our own code": _package,
    "platform": _platform,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_anything_that_decides_is_graded_anew(
    asked: Asked, change: Callable[[Asked], None]
) -> None:
    """What was right of the old is a guess about the new."""
    asked.graded()

    change(asked)

    assert asked.graded().cached is None
    assert asked.graded().cached is not None


def test_the_code_of_a_toolchain_of_anybodys_counts(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how a check is run, and is no part of this package."""
    file = tmp_path / "acme_language.py"
    file.write_text("from tests.evals import Plain\n\n\nclass Acme(Plain):\n    pass\n")
    spec = importlib.util.spec_from_file_location("acme_language", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "acme_language", module)
    spec.loader.exec_module(module)
    asked.lab = replace(asked.lab, toolchain=module.Acme())
    asked.graded()

    file.write_text(file.read_text() + "# 2\n")

    assert asked.graded().cached is None


def test_a_toolchain_that_does_not_say_what_it_rests_on_is_never_cached(asked: Asked) -> None:
    """Its next version might judge otherwise, and nothing would show it."""
    asked.lab = replace(asked.lab, tools=replace(asked.lab.tools, judges=None))
    asked.graded()

    assert asked.graded().cached is None


def test_what_ran_without_a_boundary_neither_fills_nor_asks_the_cache(
    asked: Asked, tmp_path: Path
) -> None:
    """The submission could have written the entry itself."""
    asked.lab = replace(asked.lab, sandbox=Local())
    asked.graded()

    assert asked.graded().cached is None
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_was_edited_while_it_was_graded_is_not_kept(asked: Asked) -> None:
    """Nobody knows whether the old or the new check has judged."""
    check = Plain.check

    def edited(toolchain: Plain, task: Task, *others: object) -> object:
        asked.edit("tasks/tiny/checks/adds.py")
        return check(toolchain, task, *others)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plain, "check", edited)
        asked.graded()

    assert list((asked.evals.root / "cache").iterdir()) == []
