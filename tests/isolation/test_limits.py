from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import limits as limiting
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.isolation.limits import (
    Group,
    GroupPool,
    Hierarchy,
    Joined,
    enforced_by,
    hierarchy,
)
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.task import Limits
from tests.isolation.programs import (
    SANDBOXES,
    SEES_PYTHON,
    WITHOUT_GROUPS,
    Ran,
    becomes_true,
    living,
    marker,
    python,
    run,
    shell,
)
from tests.needs import needs_bwrap

MIB = 1 << 20
T = TypeVar("T")

SANDBOX = pytest.mark.parametrize("sandbox", [pytest.param("bwrap", marks=needs_bwrap), "local"])
ALLOCATE = "import sys; x = b'x' * (int(sys.argv[1]) << 20); print(len(x))"


def controls(*controllers: str) -> bool:
    place = hierarchy()
    return place is not None and set(controllers) <= set(place.parents)


needs_memory_group = pytest.mark.skipif(not controls("memory"), reason="no memory control group")
needs_pids_group = pytest.mark.skipif(not controls("pids"), reason="no pids control group")


def limited(sandbox: str, argv: tuple[str, ...], **values: float) -> Ran:
    policy = Policy(read=SEES_PYTHON.read, limits=Limits(**values))
    return run(SANDBOXES[sandbox](), argv, policy=policy)


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiting, "hierarchy", lambda: None)
    monkeypatch.setattr(limiting, "_pool", lambda _pid: None)


@pytest.mark.slow
@needs_memory_group
@SANDBOX
def test_too_much_memory_ends_a_process_and_is_told(sandbox: str) -> None:
    """Out of memory is a class of its own: neither a wrong answer nor a broken harness."""
    small = limited(sandbox, python(ALLOCATE, 20), memory_mib=64)
    large = limited(sandbox, python(ALLOCATE, 192), memory_mib=64)
    small_again = limited(sandbox, python(ALLOCATE, 20), memory_mib=64)

    assert [ran.exit.out_of_memory for ran in (small, large, small_again)] == [False, True, False]
    assert [ran.exit.status == 0 for ran in (small, large, small_again)] == [True, False, True]


@pytest.mark.slow
@needs_memory_group
@SANDBOX
def test_a_limit_may_grow_and_shrink_from_process_to_process(sandbox: str) -> None:
    """Tasks of one session have limits of their own, and groups are used again."""
    sizes = [64, 1024, 64]

    ran = [limited(sandbox, python(ALLOCATE, 192), memory_mib=size) for size in sizes]

    assert [one.exit.out_of_memory for one in ran] == [True, False, True]


FORK_BOMB = """
import os, sys, time
made = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(600)
        made += 1
    except OSError:
        print(made, flush=True)
        os._exit(0)
"""


@pytest.mark.slow
@needs_pids_group
@SANDBOX
def test_a_fork_bomb_is_contained_and_gone(sandbox: str) -> None:
    """The machine must stay usable, and nothing may be left for whoever is next."""
    mark = marker()

    ran = limited(sandbox, python(FORK_BOMB, mark), processes=20)

    # The sandbox's own two are granted on top.
    assert 18 <= int(ran.lines[0]) <= 21
    assert ran.exit.survivors == ()
    assert living(mark) == []


@pytest.mark.slow
@SANDBOX
def test_a_file_cannot_grow_beyond_its_limit(sandbox: str, tmp_path: Path) -> None:
    """A disk that one submission fills breaks the trials of all others."""
    policy = Policy(write=(tmp_path,), limits=Limits(disk_mib=1))

    ran = run(
        SANDBOXES[sandbox](), shell('head -c 3000000 /dev/zero > "$1/f"', tmp_path), policy=policy
    )

    assert ran.exit.status != 0
    assert (tmp_path / "f").stat().st_size <= MIB


@pytest.mark.slow
@SANDBOX
def test_no_process_leaves_a_core_dump(sandbox: str) -> None:
    """A dump holds all memory of a process, and lands wherever the machine says."""
    assert limited(sandbox, shell("ulimit -c")).lines == ["0"]


@pytest.mark.slow
@pytest.mark.parametrize("memory_mib", [64, 128])
def test_memory_is_bounded_by_rlimit_where_there_are_no_groups(
    no_groups: None, memory_mib: int
) -> None:
    """Weaker, since each process counts alone, but never nothing."""
    fits = limited("local", python(ALLOCATE, memory_mib // 4), memory_mib=memory_mib)
    exceeds = limited("local", python(ALLOCATE, memory_mib * 3), memory_mib=memory_mib)

    assert fits.exit.status == 0
    assert exceeds.exit.status != 0
    assert b"MemoryError" in exceeds.stderr
    assert not exceeds.exit.out_of_memory


class JoinedThread:
    """A thread that is in a group of its own, to run things in."""

    def __init__(self, **values: float) -> None:
        self.limits = Limits(**values)

    def run(self, *functions: Callable[[], T]) -> list[T]:
        with (
            Joined(self.limits) as join,
            ThreadPoolExecutor(max_workers=1, initializer=join) as pool,
        ):
            return [pool.submit(function).result() for function in functions]


needs_threads_in_groups = pytest.mark.skipif(
    getattr(hierarchy(), "version", None) != "cgroup-v1",
    reason="no control groups of version 1, which threads can be in",
)


@needs_threads_in_groups
def test_what_a_thread_in_a_group_starts_need_not_join_one() -> None:
    """Joining makes the kernel wait for everybody, which costs more than all else of a start."""
    thread = JoinedThread(memory_mib=64)
    other = Limits(memory_mib=128)

    inside, under_others = thread.run(
        lambda: limiting.in_group(("true",), thread.limits).argv,
        lambda: limiting.in_group(("true",), other).argv,
    )

    assert not [word for word in inside if word.endswith("cgroup.procs")]
    assert [word for word in under_others if word.endswith("cgroup.procs")]
    assert [
        word
        for word in limiting.in_group(("true",), thread.limits).argv
        if word.endswith("cgroup.procs")
    ]


@needs_threads_in_groups
def test_groups_of_threads_are_used_again() -> None:
    """A group that is lost with each control would be thousands by the end of a night."""
    place = hierarchy()
    assert place is not None
    folder = place.parents["memory"]

    def groups() -> set[str]:
        return {path.name for path in folder.glob(f"{limiting.GROUP_PREFIX}{os.getpid()}-*")}

    JoinedThread(memory_mib=64).run(lambda: None)
    before = groups()
    for _ in range(20):
        JoinedThread(memory_mib=64).run(lambda: None)

    assert groups() == before


@pytest.mark.slow
@needs_threads_in_groups
@needs_memory_group
@SANDBOX
def test_memory_is_bounded_for_what_a_thread_in_a_group_starts(sandbox: str) -> None:
    """The kernel must end the process, and never the harness whose thread is in the group."""
    allocate = partial(limited, sandbox, memory_mib=64)

    small, large, again = JoinedThread(memory_mib=64).run(
        lambda: allocate(python(ALLOCATE, 20)),
        lambda: allocate(python(ALLOCATE, 192)),
        lambda: allocate(python(ALLOCATE, 20)),
    )

    assert (small.exit.status, small.exit.out_of_memory) == (0, False)
    assert large.exit.out_of_memory
    assert (again.exit.status, again.exit.out_of_memory) == (0, False)


@pytest.mark.slow
@needs_threads_in_groups
@needs_pids_group
@SANDBOX
def test_processes_are_bounded_for_what_a_thread_in_a_group_starts(sandbox: str) -> None:
    """The thread itself counts for none of them."""
    mark = marker()

    (ran,) = JoinedThread(processes=20).run(
        lambda: limited(sandbox, python(FORK_BOMB, mark), processes=20)
    )

    assert 18 <= int(ran.lines[0]) <= 21
    assert living(mark) == []


def test_the_record_says_what_enforces_each_limit_without_groups(no_groups: None) -> None:
    """A limit that cannot be enforced is recorded, never assumed."""
    assert enforced_by(bounded_tmp=True) == WITHOUT_GROUPS
    assert Local().record(Limits()).limits_status == "partial"


@pytest.mark.parametrize("present", [("memory",), ("memory", "pids", "cpu")])
def test_the_record_says_what_enforces_each_limit_with_groups(
    monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...]
) -> None:
    """A machine may hand out some controllers and keep others."""
    place = Hierarchy(version="cgroup-v2", parents=dict.fromkeys(present, Path("/groups")))
    monkeypatch.setattr(limiting, "hierarchy", lambda: place)

    by = enforced_by(bounded_tmp=False)

    assert by["memory_mib"] == "cgroup-v2"
    assert by["processes"] == ("cgroup-v2" if "pids" in present else None)
    assert by["cpus"] == ("cgroup-v2" if "cpu" in present else None)
    assert by["tmp_mib"] is None


@pytest.mark.slow
@needs_bwrap
def test_what_is_recorded_is_what_is_applied() -> None:
    """The quota is put where the record says that the controller is."""
    place = hierarchy()
    if place is None or "cpu" not in place.parents:
        pytest.skip("no cpu control group")
    pool = GroupPool(place)
    group = pool.take(Limits(cpus=0.5, processes=7))
    folder = place.parents["cpu"] / group.entrances[0].parent.name

    quota = "cpu.cfs_quota_us" if place.version == "cgroup-v1" else "cpu.max"
    said = (folder / quota).read_text().split()[0]

    pool.give_back(group)
    pool.close()
    assert said == "50000"
    assert Bwrap().record(Limits()).limits["cpus"] == place.version


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty tree in the place of the kernel's."""
    monkeypatch.setattr(limiting, "CGROUP_ROOT", tmp_path)
    yield tmp_path


def version_2(folder: Path, handed_down: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.subtree_control").write_text(f"{handed_down}\n")
    (folder / "cgroup.procs").touch()
    return folder


def test_a_group_that_hands_controllers_down_is_used(root: Path) -> None:
    """A container's own group often is made for this."""
    own = version_2(root / "own", "cpu io memory pids")

    place = limiting._version_2(["0::/own"])

    assert place == Hierarchy(
        version="cgroup-v2", parents=dict.fromkeys(["cpu", "memory", "pids"], own)
    )


def test_a_group_beside_one_s_own_is_as_good(root: Path) -> None:
    """A group with processes in it cannot hand anything down, but the one around it does."""
    slice_ = version_2(root / "slice", "memory pids")
    version_2(slice_ / "own", "")

    place = limiting._version_2(["12:cpuset:/", "0::/slice/own"])

    assert place is not None
    assert place.parents == {"memory": slice_, "pids": slice_}


@pytest.mark.parametrize("lines", [[], ["0::/gone"], ["0::/../../outside"], ["4:memory:/"]])
def test_no_usable_group_is_no_error(root: Path, lines: list[str]) -> None:
    """Most machines give none to an ordinary user."""
    assert limiting._version_2(lines) is None


def test_version_1_is_found_controller_by_controller(root: Path) -> None:
    """Each has a tree of its own, and two may share one line."""
    for folder in ("memory/a", "cpu/b"):
        (root / folder).mkdir(parents=True)
        (root / folder / "cgroup.procs").touch()

    place = limiting._version_1(["4:memory:/a", "3:cpu,cpuacct:/b", "8:pids:/gone", "0::/"])

    assert place == Hierarchy(
        version="cgroup-v1", parents={"memory": root / "memory/a", "cpu": root / "cpu/b"}
    )


def test_a_plain_folder_is_no_control_group(root: Path) -> None:
    """Where no control groups are mounted, a limit would be a file that nobody reads."""
    (root / "memory" / "a").mkdir(parents=True)
    version_2(root / "own", "memory pids")
    (root / "own" / "cgroup.procs").unlink()

    assert limiting._version_1(["4:memory:/a"]) is None
    assert limiting._version_2(["0::/own"]) is None


def test_settings_of_version_2(tmp_path: Path) -> None:
    """The names and units are the kernel's; swap is closed where it is counted."""
    place = Hierarchy(
        version="cgroup-v2", parents=dict.fromkeys(["memory", "pids", "cpu"], tmp_path)
    )
    group = Group(place, "g")
    (tmp_path / "g" / "memory.swap.max").write_text("max")
    (tmp_path / "g" / "pids.current").write_text("0\n")
    (tmp_path / "g" / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")

    group.set(Limits(memory_mib=3, processes=5, cpus=1.5))

    said = {path.name: path.read_text() for path in (tmp_path / "g").iterdir()}
    assert said["memory.max"] == str(3 * MIB)
    assert said["memory.swap.max"] == "0"
    assert said["pids.max"] == str(5 + limiting.SANDBOX_PROCESSES)
    assert said["cpu.max"] == "150000 100000"
    assert group.entrances == (tmp_path / "g" / "cgroup.procs",)
    assert not group.ran_out_of_memory
    (tmp_path / "g" / "memory.events").write_text("oom 3\noom_kill 3\n")
    assert group.ran_out_of_memory
    group.set(Limits(memory_mib=3, processes=5, cpus=1.5))
    assert not group.ran_out_of_memory


def test_dead_processes_of_before_take_nothing_away(tmp_path: Path) -> None:
    """They count until the machine's first process collects them, which may take for ever."""
    group = Group(Hierarchy(version="cgroup-v2", parents={"pids": tmp_path}), "g")
    (tmp_path / "g" / "pids.current").write_text("0\n")
    group.set(Limits(processes=5))
    (tmp_path / "g" / "pids.current").write_text("11\n")

    group.set(Limits(processes=5))

    granted = int((tmp_path / "g" / "pids.max").read_text())
    assert granted == 5 + limiting.SANDBOX_PROCESSES + 11


def test_a_refused_limit_is_told_in_one_sentence(tmp_path: Path) -> None:
    """A process must not run without a limit that the record promises."""
    place = Hierarchy(version="cgroup-v2", parents={"memory": tmp_path / "gone"})

    with pytest.raises(InfrastructureError, match="limits: the control group pytest-evalarc-"):
        GroupPool(place).take(Limits())


@pytest.mark.slow
def test_a_group_with_a_process_in_it_is_not_used_again() -> None:
    """The next process would be limited by what another one left behind."""
    place = hierarchy()
    if place is None:
        pytest.skip("no control groups")
    pool = GroupPool(place)
    group = pool.take(Limits())
    with subprocess.Popen(["sleep", "600"]) as left:
        for entrance in group.entrances:
            entrance.write_text(str(left.pid))

        pool.give_back(group)
        other = pool.take(Limits())
        left.kill()

    assert other is not group
    assert becomes_true(lambda: group.is_empty)
    group.remove()
    other.remove()
    pool.close()


@pytest.mark.slow
def test_a_group_that_somebody_removed_is_replaced() -> None:
    """Another harness may take it for an abandoned one, in a container with ids of its own."""
    place = hierarchy()
    if place is None:
        pytest.skip("no control groups")
    pool = GroupPool(place)
    first = pool.take(Limits())
    pool.give_back(first)
    first.remove()

    second = pool.take(Limits(memory_mib=100))

    assert all(entrance.exists() for entrance in second.entrances)
    pool.give_back(second)
    pool.close()


def groups_of(pid: int) -> list[Path]:
    place = hierarchy()
    parents = set(place.parents.values()) if place is not None else set()
    return [path for parent in parents for path in parent.glob(f"pytest-evalarc-{pid}-*")]


HARNESS = """
import os, sys
from pathlib import Path
from pytest_evalarc.isolation.limits import hierarchy, in_group
from pytest_evalarc.model.task import Limits
limited = in_group(["true"], Limits())
limited.release()
print(os.getpid(), flush=True)
if sys.argv[1] == "die":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["end", "die"])
def test_no_group_outlives_its_harness_for_long(how: str) -> None:
    """The kernel keeps empty groups for ever, and looks through all of them now and then."""
    if hierarchy() is None:
        pytest.skip("no control groups")

    done = subprocess.run(
        [sys.executable, "-c", HARNESS, how], stdout=subprocess.PIPE, text=True, check=False
    )

    pid = int(done.stdout)
    if how == "die":
        assert groups_of(pid) != []
        subprocess.run([sys.executable, "-c", HARNESS, "end"], stdout=subprocess.PIPE, check=True)
    assert groups_of(pid) == []


def test_a_forked_child_leaves_the_groups_alone(tmp_path: Path) -> None:
    """It ends before its parent, whose groups they are."""
    place = Hierarchy(version="cgroup-v2", parents={"memory": tmp_path})
    pool = GroupPool(place)
    pool.give_back(pool.take(Limits()))
    pool._owner = os.getpid() + 1

    pool.close()

    assert any(tmp_path.iterdir())
