"""Stand between the harness and a process tree that would outlive it; run as a script.

The keeper is started with a socket. It starts the command, adopts every orphan of it, and ends the
whole tree when the command has ended, or when the socket closes because the harness asked or died.
It then says through the socket which processes survived, and ends as the command did.

Standard library alone: it runs with `-I -S`, so that it starts fast and imports nothing foreign.
"""

import os
import select
import signal
import socket
import sys
import time

SUBREAPER = 36
GRACE_S = 2.0
SWEEP_S = 5.0


def adopt_orphans() -> None:
    """Become the parent of every orphan below, so that none can get away by forking twice."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Return the ids of all living processes below one, zombies left out."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(name))
        if state == b"Z":
            zombies.add(int(name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return [pid for pid in found if pid not in zombies]


def tree(leader: int) -> list[int]:
    """Return the living processes that the command has left, its leader's group included."""
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


def reap(leader: int, status: "int | None") -> "int | None":
    """Collect ended children; return the leader's wait status once it is known."""
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == leader:
            status = ended


def sweep(leader: int, status: "int | None", *, gently: bool) -> "tuple[int | None, list[int]]":
    """End the tree, gently first where asked; return the leader's status and what survived."""
    if gently:
        send(signal.SIGTERM, tree(leader))
        patience = time.monotonic() + GRACE_S
        while tree(leader) and time.monotonic() < patience:
            status = reap(leader, status)
            time.sleep(0.02)
    patience = time.monotonic() + SWEEP_S
    while True:
        status = reap(leader, status)
        left = tree(leader)
        if not left or time.monotonic() >= patience:
            return status, left
        send(signal.SIGKILL, left)
        time.sleep(0.005)


def start(argv: "list[str]") -> int:
    """Start the command in a session of its own; return its process id."""
    # Python ignores these two; a command expects what the system does.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    return os.posix_spawnp(argv[0], argv, os.environ, setsid=True, setsigdef=defaults)


def wait(leader: int, control: socket.socket) -> "tuple[int | None, bool]":
    """Wait until the command ends or the harness is gone; return its status and which it was."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    while True:
        status = reap(leader, None)
        if status is not None:
            return status, False
        ready, _, _ = select.select([control.fileno(), wake_read], [], [], 1.0)
        if control.fileno() in ready:
            return None, True
        if wake_read in ready:
            os.read(wake_read, 4096)


def main(argv: "list[str]") -> int:
    """Keep one command; `argv` is the socket's descriptor and the command."""
    control = socket.socket(fileno=int(argv[0]))
    control.set_inheritable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A signal to the whole group reaches the harness too, and that one decides.
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    try:
        leader = start(argv[1:])
    except OSError as error:
        control.sendall(f"start {error.errno}\n".encode())
        return 127
    status, asked = wait(leader, control)
    status, left = sweep(leader, status, gently=asked)
    try:
        control.sendall(f"end {status if status is not None else ''} {left}\n".encode())
    except OSError:
        pass  # The harness is gone; that is why we are here.
    return 0


if __name__ == "__main__":
    sys.stdin = None
    os._exit(main(sys.argv[1:]))
