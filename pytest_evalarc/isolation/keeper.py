"""Stand between the harness and a process tree that would outlive it; run as a script.

The keeper is started with one end of a socket. It starts the command, adopts every orphan of it,
and ends the whole tree when the command has ended, or when the socket closes because the harness
asked or died. A byte on the socket asks the tree to end and leaves it the time to do so. At its
end the keeper says through the socket how the command ended and which processes survived.

Standard library alone: it runs with `-I -S`, so that it starts fast and imports nothing foreign.
"""

import os
import select
import signal
import sys
import time

SUBREAPER = 36
SWEEP_S = 5.0
OWN_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A signal to the whole group reaches the harness too, and that one decides."""


def adopt_orphans() -> None:
    """Become the parent of every orphan below, so that none can get away by forking twice."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Return the ids of all processes below one.

    Zombies are among them: a process whose first thread has ended looks like one and runs on.
    """
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = file.read().rpartition(b")")[2].split()[1]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def tree(leader: int) -> list[int]:
    """Return the processes that the command has left, its leader's group included."""
    if sys.platform == "linux":
        return descendants(os.getpid())
    try:
        os.killpg(leader, 0)
    except OSError:
        return []
    return [-leader]


def send(signal_number: int, pids: list[int]) -> None:
    """Signal processes; one that has just ended is no error."""
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except OSError:
            continue


def reap(leader: int, status: "int | None") -> "tuple[int | None, bool]":
    """Collect ended children; return the leader's status once known, and if any child is left."""
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, False
        if pid == 0:
            return status, True
        if pid == leader:
            status = ended


def sweep(leader: int, status: "int | None") -> "tuple[int | None, list[int]]":
    """Kill the tree until nothing is left; return the leader's status and what survived."""
    patience = time.monotonic() + SWEEP_S
    while True:
        status, has_children = reap(leader, status)
        # Orphans become children of the adopter: where there are none, there is no tree.
        if not has_children and sys.platform == "linux":
            return status, []
        left = tree(leader)
        if not left or time.monotonic() >= patience:
            return status, left
        send(signal.SIGKILL, left)
        time.sleep(0.001)


def start(argv: "list[str]") -> int:
    """Start the command in a session of its own; return its process id."""
    # Python ignores some, the keeper others, and whoever started the harness in the background yet
    # others; a command expects what the system does.
    fixed = {signal.SIGKILL, signal.SIGSTOP}
    defaults = sorted(signal.valid_signals() - fixed)
    return os.posix_spawnp(argv[0], argv, os.environ, setsid=True, setsigdef=defaults)


def wait(leader: int, control: int) -> "int | None":
    """Wait until the command has ended or the socket is closed; return the command's status."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    while True:
        status, _ = reap(leader, None)
        if status is not None:
            return status
        ready, _, _ = select.select([control, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
        if control in ready:
            if not os.read(control, 1):
                return None
            send(signal.SIGTERM, tree(leader))


def give_back_locale(given: str) -> None:
    """Undo what Python does to the environment when it is started in the C locale."""
    os.environ.pop("LC_CTYPE", None)
    if given:
        os.environ["LC_CTYPE"] = given


def main(argv: "list[str]") -> int:
    """Keep a command; `argv` is the socket's descriptor, the given LC_CTYPE, and the command."""
    control, locale, *command = int(argv[0]), *argv[1:]
    os.set_inheritable(control, False)
    give_back_locale(locale)
    for number in OWN_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    try:
        leader = start(command)
    except OSError as error:
        os.write(2, f"{command[0]}: {os.strerror(error.errno or 0)}\n".encode())
        os.write(control, b"127 \n")
        return 0
    status, left = sweep(leader, wait(leader, control))
    code = os.waitstatus_to_exitcode(status) if status is not None else ""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        os.write(control, f"{code} {','.join(map(str, left))}\n".encode())
    except OSError:
        pass  # The harness is gone; that is why we are here.
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
