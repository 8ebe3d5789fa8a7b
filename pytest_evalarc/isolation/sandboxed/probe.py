"""Try every barrier that a sandbox promises, from inside; run as a script.

Reads one JSON object from standard input and writes one JSON line: a list of
`[barrier, whether it holds, what was seen]`.
"""

import base64
import json
import os
import socket
import sys
from collections.abc import Callable
from urllib.parse import SplitResult, unquote, urlsplit

WRITTEN = "written"
"""The file that is to come to be in a folder that is shown to be read alone."""


def write_outside(target: str) -> str:
    """Create a file that must not come to be."""
    with open(target, "x", encoding="utf-8") as file:
        file.write("written from inside")
    return "a file was written outside"


def write_shown(folder: str) -> str:
    """Create a file in a folder that is shown to be read alone."""
    return write_outside(os.path.join(folder, WRITTEN)).replace("outside", "where it may be read")


def read_secret(secret: str) -> str:
    """Read a file that must not be seen."""
    with open(secret, "rb") as file:
        file.read(1)
    return "a planted secret was read"


def connect(port: int) -> str:
    """Reach a port that listens on the host, straight or through the proxy that is offered."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            return "a port of the host was reached"
    except OSError:
        if "HTTP_PROXY" not in os.environ:
            raise
    return connect_through(urlsplit(os.environ["HTTP_PROXY"]), port)


def connect_through(proxy: SplitResult, port: int) -> str:
    """Let a proxy connect to a port that listens on the host."""
    login = base64.b64encode(unquote(f"{proxy.username}:{proxy.password}").encode()).decode()
    target = f"127.0.0.1:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", f"Proxy-Authorization: Basic {login}"]
    with socket.create_connection((proxy.hostname, proxy.port), timeout=2) as client:
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = client.recv(200).decode("latin-1").partition("\r\n")[0]
    if " 200 " in f"{answer} ":
        return "a port of the host was reached through the proxy"
    raise PermissionError(f"refused by the proxy: {answer}")


def connect_abstract(name: str) -> str:
    """Reach an abstract socket of the host, which no file permission guards."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect("\0" + name)
        return "a socket of the host was reached"


def signal_host(pid: int) -> str:
    """Find the harness by its process id."""
    os.kill(pid, 0)
    return "the harness could be signalled"


def change_kernel(switch: str) -> str:
    """Open a setting of the whole machine for writing; nothing is written."""
    with open(switch, "r+b", buffering=0):
        return "a kernel setting could be written"


def change_device(device: str) -> str:
    """Set the mode of a device node; it is the mode that it has, so nothing is harmed."""
    os.chmod(device, os.stat(device).st_mode & 0o7777)
    return "the mode of a device was set"


def be_root() -> str:
    """Have the id that programs treat as all-powerful."""
    if os.getuid() != 0:
        raise PermissionError(f"user id {os.getuid()}")
    return "the process is root"


def have_capabilities() -> str:
    """Hold a right that the kernel asks for where a user id does not decide."""
    with open("/proc/self/status", encoding="ascii") as file:
        (held,) = (line.split()[1] for line in file if line.startswith("CapEff:"))
    if not int(held, 16):
        raise PermissionError("none is held")
    return f"the process has capabilities ({held})"


def attempt(name: str, act: Callable[..., str], *arguments: object) -> "tuple[str, bool, str]":
    """Return the barrier's row: it holds when the attempt fails."""
    try:
        seen = act(*arguments)
    except OSError as error:
        return name, True, str(error)
    return name, False, seen


def main() -> None:
    """Try all barriers."""
    plan = json.load(sys.stdin)
    rows = [
        attempt("write_outside", write_outside, plan["target"]),
        attempt("read_only", write_shown, plan["shown"]),
        attempt("read_secret", read_secret, plan["secret"]),
        attempt("network", connect, plan["port"]),
        attempt("host_sockets", connect_abstract, plan["socket"]),
        attempt("host_processes", signal_host, plan["pid"]),
        attempt("kernel_settings", change_kernel, plan["switch"]),
        attempt("host_devices", change_device, plan["device"]),
        attempt("not_root", be_root),
        attempt("capabilities", have_capabilities),
    ]
    print(json.dumps(rows))


main()
