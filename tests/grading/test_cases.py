"""A pack of a few lines, put to candidates of a few lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading.cases import pack_rows
from pytest_evalarc.grading.lab import PackLab
from pytest_evalarc.grading.pack import Case, CaseVerdict
from pytest_evalarc.grading.session import Bounds, CandidateSession
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.pack import Language, PackInfo
from pytest_evalarc.model.task import Deadlines, Limits, PackRef, Task, TaskBrief
from tests.clocks import moved_on
from tests.needs import needs, needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()\n"
ECHO_IN_NODE = (
    "require('readline').createInterface({ input: process.stdin })"
    ".on('line', (line) => console.log(line))"
)
SEEDS = (17, 41)
COMMAND = ("{python}", "-I", "-S", "-B", "{workspace}/main.py", "{state}")


def ask_once(case, open_session):
    session = open_session()
    same = session.ask({"seed": case.seed}) == {"seed": case.seed}
    session.end("eof")
    return CaseVerdict(verdicts={"echo": same})


@dataclass
class TinyPack:
    """Cases by name, each a function that is put to the candidate."""

    runs: dict[str, Callable] = field(default_factory=lambda: {"echoes": ask_once})

    @property
    def info(self):
        return PackInfo(
            name="tiny",
            version="0.1.0",
            domain="tests",
            code=Path(__file__).parent / "toolchains",
            prompt="Echo.",
            weights={"echo": 1.0},
            cases=dict.fromkeys(self.runs, ("echo",)),
            mutants=(),
            languages={"python": Language(toolchain="python", command=COMMAND)},
        )

    def cases(self, seed):
        return [Case(id=name, seed=seed, content={}) for name in self.runs]

    def run(self, case, open_session):
        return self.runs[case.id](case, open_session)


@dataclass
class Bench:
    """A lab, a task and a folder for candidates."""

    folder: object
    threads: CaseThreads

    def rows(self, pack, code=ECHO, *, jobs=2, sandbox=None, lab=MappingProxyType({}), **task):
        candidate = self.folder / "submitted"
        write_tree(candidate, {"main.py": code.encode()}, replace=True)
        lab = PackLab(
            sandbox=sandbox or Bwrap(),
            toolchain=Python(),
            interpreter=Python().interpreter(Path),
            pack=pack,
            work=self.folder / "work",
            jobs=jobs,
            threads=self.threads,
            **lab,
        )
        try:
            return pack_rows(self.task(**task), read_submission(candidate), lab)
        finally:
            assert list(lab.work.glob("*")) == []

    def task(self, **given):
        return Task(
            brief=TaskBrief(name="tiny", prompt="Echo."),
            kind="capability",
            root=self.folder,
            toolchain="python",
            pack=PackRef(name="tiny", seeds=SEEDS),
            weights={"echo": 1.0},
            sha256="0" * 64,
            **given,
        )


@pytest.fixture
def bench(tmp_path):
    with CaseThreads() as threads:
        yield Bench(tmp_path, threads)


def test_rows_come_seed_by_seed_in_declared_order(bench):
    """However cases overtake each other, two gradings are compared row by row."""
    pack = TinyPack(dict.fromkeys(("b", "a", "c"), ask_once))

    rows = bench.rows(pack, jobs=3)

    assert [(row.seed, row.check) for row in rows] == [
        (seed, name) for seed in SEEDS for name in ("b", "a", "c")
    ]
    assert {(row.status, row.answered) for row in rows} == {("passed", True)}
    assert all(row.verdicts == {"echo": True} and row.cause is None for row in rows)
    assert all(row.wall_time_s > 0 and len(row.processes) == 1 for row in rows)


def test_equal_behaviour_has_equal_transcripts(bench):
    """Flakiness is told by comparing them, and seeds must not be mistaken for it."""
    first, again = bench.rows(TinyPack()), bench.rows(TinyPack())

    assert [row.transcript_sha256 for row in first] == [row.transcript_sha256 for row in again]
    assert len({row.transcript_sha256 for row in first}) == len(SEEDS)


def test_a_wrong_answer_is_a_failure_and_a_fault_is_the_agents_error(bench):
    """A mutant is caught by a wrong answer alone, never by a crash."""
    wrong = bench.rows(TinyPack(), "input(); print(0)")
    crash = bench.rows(TinyPack(), "raise SystemExit(1)")
    twice = bench.rows(TinyPack(), "print(input()); raise SystemExit(4)")

    assert {(r.status, r.answered, r.verdicts["echo"]) for r in wrong} == {("failed", True, False)}
    assert {(r.status, r.answered, r.verdicts["echo"], r.cause.kind) for r in crash} == {
        ("agent_error", False, False, "early_exit")
    }
    assert {(r.status, r.answered, r.verdicts["echo"], r.cause.kind) for r in twice} == {
        ("agent_error", True, False, "exit_status")
    }


def test_sessions_of_a_case_share_a_state_folder_and_cases_do_not(bench):
    """A restart must find what was kept, and a case must not find what another one kept."""
    code = (
        "import pathlib, sys\n"
        "kept = pathlib.Path(sys.argv[1], 'kept')\n"
        "for line in sys.stdin:\n"
        "    print('true' if kept.exists() else 'false', flush=True)\n"
        "    kept.touch()\n"
    )

    def twice(case, open_session):
        seen = []
        for _ in range(2):
            session = open_session()
            seen.append(session.ask("is it there?"))
            session.end("eof")
        return CaseVerdict(verdicts={"echo": seen == [False, True]}, detail=str(seen))

    rows = bench.rows(TinyPack({"first": twice, "second": twice}), code, jobs=1)

    assert [(row.status, row.detail) for row in rows] == [("passed", "[False, True]")] * 4


def test_a_candidate_cannot_write_to_its_own_code(bench):
    """All cases run the same copy, so one of them could otherwise change the next."""
    code = (
        "import sys\n"
        "input()\n"
        "try: open(__file__, 'a').write('#')\n"
        "except OSError as error: print(error.errno)\n"
        "else: print('written')\n"
    )

    def denied(case, open_session):
        reply = open_session().ask(None)
        return CaseVerdict(verdicts={"echo": reply == 30})

    assert {row.status for row in bench.rows(TinyPack({"denied": denied}), code)} == {"passed"}


def test_without_a_boundary_each_case_has_a_copy_of_its_own(bench):
    """What one leaves in its working folder must not be there for another."""
    code = (
        "import pathlib, sys\n"
        "kept = pathlib.Path('kept')\n"
        "input()\n"
        "print('true' if kept.exists() else 'false', flush=True)\n"
        "kept.touch()\n"
    )

    def look(case, open_session):
        session = open_session()
        found = session.ask("is it there?")
        session.end("eof")
        return CaseVerdict(verdicts={"echo": found is False})

    pack = TinyPack({"first": look, "second": look})
    rows = bench.rows(pack, code, jobs=1, sandbox=Local())

    assert [row.status for row in rows] == ["passed"] * 4


def test_the_environment_of_a_candidate_is_ours_alone(bench, monkeypatch):
    """Keys and settings of whoever grades are nobody's business."""
    monkeypatch.setenv("SOME_API_KEY", "secret")
    code = "import json, os; input(); print(json.dumps(dict(os.environ)))"
    seen = []

    def look(case, open_session):
        seen.append(open_session().ask(None))
        return CaseVerdict(verdicts={"echo": True})

    bench.rows(TinyPack({"look": look}), code)

    for variable in ("PWD", "SHLVL", "_", "OLDPWD"):  # What a shell may add by itself.
        seen[0].pop(variable, None)
    assert seen[0] == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
    }


def test_a_bug_of_a_pack_is_never_a_verdict(bench):
    """Whoever wrote the cases may be wrong, and the candidate must not pay for it."""

    def buggy(case, open_session):
        with_reply = open_session().ask("anything")
        return CaseVerdict(verdicts={"echo": with_reply["no such key"]})

    def silent(case, open_session):
        return CaseVerdict(verdicts={})

    rows = bench.rows(TinyPack({"buggy": buggy, "silent": silent, "echoes": ask_once}))

    assert [row.status for row in rows[:3]] == ["environment_error", "environment_error", "passed"]
    assert {row.cause.kind for row in rows[:2]} == {"grader_broke"}
    assert [row.verdicts for row in rows[:2]] == [{"echo": None}, {"echo": None}]
    assert "TypeError" in rows[0].cause.detail


def test_a_pack_that_leaves_out_a_case_is_refused(bench):
    """Nothing fails where nothing runs, and that would read as success."""

    class Forgetful(TinyPack):
        def cases(self, seed):
            return super().cases(seed)[:-1]

    with pytest.raises(InfrastructureError, match="not those that it declares"):
        bench.rows(Forgetful({"a": ask_once, "b": ask_once}))


def test_the_deadline_of_the_grading_bounds_all_cases_together(bench):
    """A candidate that hangs in each case must not hold a session up for all of them."""
    rows = bench.rows(
        TinyPack(dict.fromkeys("abcdefgh", ask_once)),
        "while True: pass",
        deadlines=Deadlines(grading=1.0),
    )

    assert {(row.status, row.cause.kind) for row in rows} == {("agent_error", "timeout")}
    assert rows[-1].processes == ()


def test_a_grading_tells_when_it_leaves_threads_idle(bench):
    """Whoever has more to grade can begin then, and takes no thread from this grading."""
    begun, told = [], []

    def note(case, open_session):
        begun.append((case.seed, case.id))
        return ask_once(case, open_session)

    pack = TinyPack(dict.fromkeys("abc", note))
    bench.rows(pack, jobs=1, lab={"on_last_cases": lambda: told.append(len(begun))})

    assert told == [5]
    assert begun == [(seed, name) for seed in SEEDS for name in "abc"]


def test_what_is_given_up_leaves_no_case_behind(bench):
    """The threads go on with other gradings, and its folder is taken away."""
    cancelled = threading.Event()
    begun = []

    def hang(case, open_session):
        session = open_session()
        begun.append(case.id)
        cancelled.set()
        return CaseVerdict(verdicts={"echo": session.ask(None) is None})

    pack = TinyPack(dict.fromkeys("abcdefgh", hang))
    with pytest.raises(KeyboardInterrupt):
        bench.rows(pack, "while True: pass", jobs=2, lab={"cancelled": cancelled})

    assert set(begun) <= {"a", "b"}
    assert [row.status for row in bench.rows(TinyPack())] == ["passed", "passed"]


def test_gradings_that_overlap_share_the_threads_and_keep_their_own_clocks(
    bench, tmp_path, monkeypatch
):
    """The second waits for threads that the first holds, and that is not its candidate's doing."""
    held, asked = threading.Event(), threading.Event()
    move_on = moved_on(monkeypatch)
    order = []

    def hold(case, open_session):
        held.set()
        asked.wait(60)
        # The second has a moment to come and wait, and then more time passes than it may take.
        time.sleep(0.5)
        move_on(60)
        order.append("first")
        return ask_once(case, open_session)

    def follow(case, open_session):
        order.append("second")
        return ask_once(case, open_session)

    second = Bench(tmp_path / "second", bench.threads)
    with ThreadPoolExecutor(1) as other:
        patient = Deadlines(grading=600, check=600)
        running = other.submit(bench.rows, TinyPack({"holds": hold}), jobs=1, deadlines=patient)
        held.wait(60)
        asked.set()
        rows = second.rows(TinyPack({"follows": follow}), jobs=1, deadlines=Deadlines(grading=60))

    assert order == ["first"] * 2 + ["second"] * 2
    assert {row.status for row in (*running.result(), *rows)} == {"passed"}


@pytest.mark.slow
@needs("node")
def test_a_candidate_in_node_starts_where_memory_is_bounded_by_rlimit(tmp_path, monkeypatch):
    """V8 maps half a GiB before it runs anything: no candidate would ever answer."""
    monkeypatch.setattr("pytest_evalarc.isolation.limits.hierarchy", lambda: None)
    monkeypatch.setattr("pytest_evalarc.isolation.limits._pool", lambda pid: None)
    node = Node()
    node.stage(tmp_path / "node")
    interpreter = node.interpreter(lambda: tmp_path / "node")
    command = Command(
        argv=(str(interpreter.program), "-e", ECHO_IN_NODE),
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": "/tmp"},
    )
    policy = Policy(
        read=(interpreter.program,),
        limits=Limits(memory_mib=256, tmp_mib=16),
        reserved_mib=interpreter.reserved_mib,
    )
    bounds = Bounds(case_ends_s=time.monotonic() + 60)

    with CandidateSession(Bwrap(), command, policy, bounds=bounds) as session:
        assert session.ask({"says": "hello"}) == {"says": "hello"}
        session.end("eof")
