"""Prove each promised barrier from inside, before anything is trusted to it."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, TypeAdapter

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Names, Policy, Sandbox
from pytest_evalarc.isolation.engine_probe import probe_argv
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.isolation import Barrier, PreflightDoc
from pytest_evalarc.model.task import Limits

DEADLINE_S = 30.0
_Row = tuple[str, bool, str]
_ROWS = TypeAdapter(Annotated[list[_Row], Field(min_length=1)])
KERNEL_SWITCH = "/proc/sys/kernel/core_pattern"
DEVICE = Path("/dev/full")
PROBE = Path(__file__).parent / "sandboxed" / "probe.py"
WRITTEN = "written"
"""What the probe makes in the folder that it may only read."""
BARRIERS: Mapping[str, str] = MappingProxyType(
    {
        "write_outside": "no file of the host can be made outside of what may be written",
        "read_only": "what is shown to be read cannot be written",
        "read_secret": "no file of the host can be read that the policy does not name",
        "network": "no port of the host can be reached, nor through a proxy that is offered",
        "host_sockets": "no abstract socket of the host can be reached",
        "host_processes": "no process of the host can be signalled",
        "kernel_settings": "no setting of the whole machine can be opened for writing",
        "host_devices": "no device node of the host can be changed",
        "not_root": "the process is not root",
        "capabilities": "the process holds no capability",
    }
)
"""What is tried, each with what it means that it holds; a proof lacks none of them."""


def preflight(sandbox: Sandbox, folder: Path) -> PreflightDoc:
    """Try every barrier from inside the sandbox and return what was seen.

    Args:
        sandbox: The sandbox to prove.
        folder: An empty folder of the host that no policy allows; a secret is planted in it.

    Raises:
        InfrastructureError: The sandbox does not start, so nothing could be tried.
    """
    secret, target, box = folder / "secret", folder / "written", folder / "box"
    write_atomic(secret, secrets.token_bytes(16))
    box.mkdir()
    write_atomic(box / PROBE.name, PROBE.read_bytes())
    device_before = DEVICE.stat().st_ctime_ns
    with _listeners() as (port, name):
        plan: dict[str, str | int] = {
            "target": str(target),
            "secret": str(secret),
            "port": port,
            "socket": name,
            "pid": os.getpid(),
            "switch": KERNEL_SWITCH,
            "device": str(DEVICE),
        }
        rows = _probe(sandbox, box, plan)
    barriers = {name: Barrier(name=name, holds=holds, detail=seen) for name, holds, seen in rows}
    _require_all(sandbox, barriers)
    # Inside, these succeed on what is the sandbox's own, so the host tells whether it was reached.
    # The probe sets the mode that a device has already: only the time of the change would show it.
    reached = {
        "write_outside": target.exists(),
        "read_only": (box / WRITTEN).exists(),
        "host_devices": DEVICE.stat().st_ctime_ns != device_before,
    }
    for name, is_reached in reached.items():
        seen = barriers[name].detail if is_reached else "nothing of it reached the host"
        barriers[name] = Barrier(name=name, holds=not is_reached, detail=seen)
    return PreflightDoc(
        schema_version=SCHEMA_VERSION, sandbox=sandbox.name, barriers=tuple(barriers.values())
    )


def _probe(sandbox: Sandbox, box: Path, plan: dict[str, str | int]) -> list[_Row]:
    state = box.parent / "state"
    state.mkdir()
    names = sandbox.names(
        Names(
            word="python",
            program=str(base_python()),
            workspace=box,
            state=state,
            reads=(python_home(),),
            path=(),
        )
    )
    plan = {**plan, "shown": str(names.workspace)}
    command = Command(
        argv=_attempts(names, plan),
        cwd=Path("/"),
        env={},
        stdin=json.dumps(plan).encode(),
    )
    policy = Policy(read=(box, *names.reads), write=(state,), limits=Limits(tmp_mib=16))
    said, complaint = Capture(1 << 16), Capture(1 << 12)
    ended = supervise(
        sandbox.wrap(command, policy), Watch(total_s=DEADLINE_S), stdout=said, stderr=complaint
    )
    try:
        return _ROWS.validate_json(said.data())
    except ValueError:
        detail = " ".join(complaint.data().decode("utf-8", "replace").split()) or ended.detail
        raise InfrastructureError(
            f"sandbox {sandbox.name}",
            f"it did not start ({ended.reason}, status {ended.status}): {detail}",
            sandbox.remedy,
        ) from None


def _require_all(sandbox: Sandbox, barriers: Mapping[str, Barrier]) -> None:
    """Refuse a proof that leaves something out: what was not tried does not hold."""
    if barriers.keys() != BARRIERS.keys():
        told = ", ".join(sorted(barriers.keys() ^ BARRIERS.keys()))
        problem = f"what tries its barriers was not let say all ({printable(told, limit=400)})"
        raise InfrastructureError(f"sandbox {sandbox.name}", problem, sandbox.remedy)


def _attempts(names: Names, plan: dict[str, str | int]) -> tuple[str, ...]:
    """Return what tries all barriers: a script for Python, or for a shell where that is all."""
    if names.path is None:
        return probe_argv(plan)
    return (names.program, "-I", "-S", "-B", str(names.workspace / PROBE.name))


@contextmanager
def _listeners() -> Iterator[tuple[int, str]]:
    """Listen on a port and on an abstract socket of the host for as long as the probe runs."""
    name = f"pytest-evalarc-{secrets.token_hex(8)}"
    with ExitStack() as open_sockets:
        port = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        if os.uname().sysname == "Linux":
            abstract = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
            abstract.bind("\0" + name)
            abstract.listen(1)
        yield port.getsockname()[1], name
