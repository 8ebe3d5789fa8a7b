from __future__ import annotations

import os
import shutil
import socket
import stat
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import bwrap
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.model.task import Limits
from tests.isolation.programs import SEES_PYTHON, Ran, python, run, shell
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]


def inside(script: str, *arguments: object, policy: Policy | None = None) -> Ran:
    return run(Bwrap(), shell(script, *arguments), policy=policy)


def inside_python(script: str, *arguments: object) -> Ran:
    return run(Bwrap(), python(script, *arguments), policy=SEES_PYTHON)


def is_readable(path: Path, policy: Policy) -> bool:
    return inside('cat "$1"', path, policy=policy).stdout == b"content"


def is_writable(path: Path, policy: Policy | None = None) -> bool:
    return inside('echo x > "$1"', path, policy=policy).exit.status == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """`d/open/shut`, a file in each folder."""
    inner = tmp_path / "d" / "open" / "shut"
    inner.mkdir(parents=True)
    for folder in (inner.parent.parent, inner.parent, inner):
        (folder / "file").write_text("content")
    return tmp_path / "d"


def test_what_no_policy_names_is_not_there(tree: Path) -> None:
    """The root is an allow-list: a new folder of the host is hidden before anybody thinks of it."""
    assert not is_readable(tree / "file", Policy())


def test_the_innermost_rule_decides_what_is_readable(tree: Path) -> None:
    """A user denies a data root, a trial lies in it, and its answers in the trial's folder."""
    policy = Policy(read=(tree.parent, tree / "open"), deny_read=(tree, tree / "open" / "shut"))

    seen = [
        is_readable(path / "file", policy) for path in (tree, tree / "open", tree / "open" / "shut")
    ]

    assert seen == [False, True, False]


def test_a_denied_folder_shows_neither_names_nor_takes_files(tree: Path) -> None:
    """Names of hidden checks tell, and a place to write would be a place to hide."""
    policy = Policy(read=(tree,), deny_read=(tree / "open",))

    ran = inside('ls -A "$1"; echo x > "$1/new"', tree / "open", policy=policy)

    assert ran.lines == []
    assert ran.exit.status != 0


def test_a_denied_file_is_not_readable(tree: Path) -> None:
    """A denial may name one file in a folder that is needed."""
    policy = Policy(read=(tree,), deny_read=(tree / "file",))

    assert not is_readable(tree / "file", policy)
    assert is_readable(tree / "open" / "file", policy)


def test_a_denied_path_that_does_not_exist_is_no_obstacle(tree: Path) -> None:
    """Denials name every place where user data may lie, on any machine."""
    policy = Policy(read=(tree,), deny_read=(tree / "missing", Path("/no/such/place")))

    assert is_readable(tree / "file", policy)


def test_a_denied_system_path_is_not_readable() -> None:
    """Also what every process sees by default can be denied."""
    denied = inside(
        "cat /etc/passwd; ls /usr/share", policy=Policy(deny_read=(Path("/etc/passwd"),))
    )

    assert b"root" not in denied.stdout
    assert b"root" in inside("cat /etc/passwd").stdout


def test_a_denial_through_a_symbolic_link_hides_what_it_leads_to(tree: Path) -> None:
    """A home folder often is a link, and the data lies behind it."""
    link = tree.parent / "link"
    link.symlink_to(tree / "open")

    assert not is_readable(tree / "open" / "file", Policy(read=(tree,), deny_read=(link,)))


def test_a_readable_symbolic_link_shows_what_it_leads_to(tree: Path) -> None:
    """Paths are mounted where they resolve to, which is the name that programs then use."""
    link = tree.parent / "link"
    link.symlink_to(tree / "open")

    assert is_readable(tree / "open" / "file", Policy(read=(link,)))


def test_a_missing_readable_path_is_the_harness_s_fault(tmp_path: Path) -> None:
    """A sandbox that does not start must never look like a submission that fails."""
    with pytest.raises(InfrastructureError, match="missing: cannot be shown in a sandbox"):
        inside("true", policy=Policy(read=(tmp_path / "missing",)))


@pytest.mark.parametrize("name", ["a b", "line\nbreak", "ünïcödé-✓", "-rf", "--", "*", "a\\b", '"'])
def test_a_path_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Folders of users have such names, and none of them may be taken for an option."""
    folder = tmp_path / name
    secret = folder / name
    secret.mkdir(parents=True)
    (secret / "file").write_text("content")
    (folder / "file").write_text("content")
    policy = Policy(read=(folder,), deny_read=(secret,))

    assert is_readable(folder / "file", policy)
    assert not is_readable(secret / "file", policy)
    assert is_writable(folder / "new", Policy(write=(folder,)))


def test_writable_folders_can_be_written_and_all_else_cannot(tmp_path: Path) -> None:
    """A fixture that one trial changes would be another one in the next."""
    box, fixture = tmp_path / "box", tmp_path / "fixture"
    box.mkdir()
    fixture.mkdir()
    policy = Policy(read=(tmp_path,), write=(box,))

    assert is_writable(box / "new", policy)
    assert (box / "new").read_text() == "x\n"
    assert not is_writable(fixture / "new", policy)
    assert not is_writable(tmp_path / "new", policy)


@pytest.mark.parametrize(
    "path", ["/new", "/usr/new", "/etc/new", "/etc/passwd", "/dev/new", "/proc/new", "/.harness"]
)
def test_root_devices_and_system_are_read_only(path: str) -> None:
    """A mount below the root does not make the root itself read-only."""
    assert not is_writable(Path(path))


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_a_temporary_folder_is_private_and_bounded(folder: str) -> None:
    """It is memory of the host, so a full one must hit the process alone."""
    policy = Policy(limits=Limits(tmp_mib=2))

    ran = inside('ls -A "$1"; head -c 3000000 /dev/zero > "$1/big"', folder, policy=policy)

    assert ran.lines == []
    assert b"No space left on device" in ran.stderr


def test_keys_and_password_hashes_are_not_there() -> None:
    """A harness that runs as root could read them."""
    ran = inside("ls /etc/shadow /etc/ssl/private /etc/ssh /root /home /run /var /sys /opt")

    assert ran.lines == []


def test_no_port_of_the_host_can_be_reached() -> None:
    """Services of the machine trust whoever comes from the machine."""
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]

        ran = inside_python(connect, port)

    assert b"ConnectionRefusedError" in ran.stderr


def test_no_socket_of_the_host_can_be_reached(tmp_path: Path) -> None:
    """An abstract name has no file, and a file of a socket works on a read-only mount too."""
    connect = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(%s)"
    name = f"evalarc-{os.getpid()}-{tmp_path.name}"
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named:
        abstract.bind("\0" + name)
        abstract.listen(1)
        named.bind(str(path))
        named.listen(1)

        by_name = inside_python(connect % "'\\0' + sys.argv[1]", name)
        by_path = inside_python(connect % "sys.argv[1]", path)

    assert b"ConnectionRefusedError" in by_name.stderr
    assert b"FileNotFoundError" in by_path.stderr


def test_a_local_network_of_its_own_works() -> None:
    """A submission may well test a server of its own."""
    ran = inside_python(
        "import socket; s = socket.create_server(('localhost', 0));"
        "socket.create_connection(s.getsockname(), 5); print('met')"
    )

    assert ran.lines == ["met"]


def test_no_process_of_the_host_can_be_seen() -> None:
    """What can be seen can be signalled, and its environment may hold a key."""
    ran = inside("for entry in /proc/[0-9]*; do cat $entry/comm; done; kill -0 $1", os.getpid())

    assert set(ran.lines) <= {"bwrap", "sh", "cat"}
    assert ran.exit.status != 0


WRITABLE_SETTINGS = """
import os
for folder, folders, files in os.walk("/proc"):
    if folder == "/proc":
        folders[:] = [name for name in folders if not name.isdigit() and "self" not in name]
    for name in files:
        path = os.path.join(folder, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            continue
        print(path)
"""


def test_no_setting_of_the_kernel_can_be_written() -> None:
    """They ask for root by user id, so a harness that runs as root hands them over."""
    assert inside_python(WRITABLE_SETTINGS).lines == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could write them")
def test_settings_could_be_written_without_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test before: the attack does win where nothing stops it."""
    monkeypatch.setattr(bwrap, "sealed_proc", tuple)

    assert "/proc/sys/kernel/core_pattern" in inside_python(WRITABLE_SETTINGS).lines


def test_the_process_is_nobody_and_stays_it() -> None:
    """Programs trust the id 0, and a set-user-id program could give it back."""
    ran = inside("id -u; id -g; grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs)' /proc/self/status")

    assert ran.lines[:2] == ["65534", "65534"]
    assert {line.split()[1].lstrip("0") for line in ran.lines[2:]} == {"", "1"}
    assert "NoNewPrivs:\t1" in ran.lines


def test_a_set_user_id_program_has_no_effect(tmp_path: Path) -> None:
    """Whatever the harness can see may carry that bit."""
    program = tmp_path / "id"
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o4755)

    ran = inside('"$1" -u', program, policy=Policy(write=(tmp_path,)))

    assert program.stat().st_mode & stat.S_ISUID
    assert ran.lines == ["65534"]


def test_no_further_user_namespace_can_be_made() -> None:
    """Inside one, a process is root again and reaches kernel code that is not meant for it."""
    ran = inside_python(
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True);"
        "print(libc.unshare(0x10000000), os.strerror(ctypes.get_errno()))"
    )

    assert ran.lines == ["-1 No space left on device"]


def test_the_environment_is_exactly_what_was_given() -> None:
    """The harness's own holds keys; and an empty variable is not an unset one."""
    given = {"A": "1", "EMPTY": "", "LINES": "a\nb"}

    ran = run(Bwrap(), ("/usr/bin/env", "-0"), env=given)

    seen = dict(line.split("=", 1) for line in ran.stdout.decode().split("\0") if line)
    assert seen == {**given, "PWD": "/"}


def test_only_the_three_streams_are_open() -> None:
    """Any other descriptor would be a way out: to a file of the host, or to the supervisor."""
    ran = inside_python("import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))")

    # The fourth is the listing's own.
    assert ran.lines == ["[0, 1, 2, 3]"]


def test_no_terminal_of_the_host_can_be_typed_into() -> None:
    """Characters pushed into a terminal are run by the shell that waits there."""
    assert b"No such device" in inside("exec 3<> /dev/tty").stderr


def test_the_working_folder_is_the_command_s(tmp_path: Path) -> None:
    """Relative paths of a submission mean its own folder."""
    ran = run(Bwrap(), ("/bin/pwd",), policy=Policy(read=(tmp_path,)), cwd=tmp_path)

    assert ran.lines == [str(tmp_path)]


@pytest.mark.parametrize("first", ["-c", "--help", "--bind"])
def test_a_program_s_name_is_never_taken_for_an_option(first: str) -> None:
    """A task may name its program as it likes, but not loosen its sandbox with it."""
    ran = run(Bwrap(), (first, "/", "/"))

    assert ran.exit.status not in (0, None)
    assert ran.stdout == b""


def test_a_planted_symbolic_link_leads_outside_where_nothing_guards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of `Policy`: mount points are made from outside, along whatever is in the way.

    While a sandbox is set up the whole host stands below `/oldroot`. A submission that puts a link
    there in the place of a folder has the harness make the next mount point on the host.
    """
    box, outside = tmp_path / "box", tmp_path / "outside"
    (box / "inner").mkdir(parents=True)
    outside.mkdir()
    attack = shell('rmdir "$1/inner" && ln -s "/oldroot$2" "$1/inner"', box, outside)
    assert run(Bwrap(), attack, policy=Policy(write=(box,))).exit.status == 0
    point = box / "inner" / "made"
    version = Bwrap().record(Limits()).version or ""
    is_led = tuple(int(part) for part in version.split(".")[:2]) < (0, 12)
    unguarded = [(str(box), "write"), (str(point), "deny")]
    monkeypatch.setattr(bwrap, "_effective", lambda _policy: unguarded)

    inside("true")

    assert (outside / "made").exists() == is_led
    with pytest.raises(InfrastructureError, match="no mount point may lie below"):
        Policy(write=(box,), deny_read=(point,))


def test_domains_are_refused() -> None:
    """It has no network at all, and a client without its model host would only hang."""
    with pytest.raises(InfrastructureError, match="use the sandbox srt"):
        inside("true", policy=Policy(domains=("example.org",)))


def test_a_missing_bubblewrap_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is never a silent downgrade."""
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: None)
    command = Command(argv=("true",), cwd=Path("/"), env={})

    with pytest.raises(InfrastructureError, match="apt-get install bubblewrap"):
        Bwrap().wrap(command, Policy())


def test_the_record_names_program_and_enforcers() -> None:
    """Trials are compared only where the boundary was the same."""
    record = Bwrap().record(Limits())

    assert record.level == "enforced"
    assert record.version is not None
    assert record.sha256 is not None
    assert record.limits["tmp_mib"] == "tmpfs"
    assert set(record.limits) == {field.name for field in fields(Limits)}
