"""The client's session: what it starts with, what it may touch, and how it ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_evalarc.clients.protocol import Needs, Watcher
from pytest_evalarc.errors import SetupError
from pytest_evalarc.grading.lab import SYSTEM_PATH, FileLab, PackLab
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Ended, Exit, Policy, Secret, Wrapped
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.runs.redaction import SECRET_BYTES
from pytest_evalarc.treatments.protocol import Staged

TRANSCRIPT = "transcript.jsonl"
TRANSCRIPT_BYTES = 256 * MIB
"""A stream beyond this ends the session: a structured record is never cut."""
STDERR_BYTES = MIB
STARTUP_S = 120.0
OUTER_S = 15.0
"""What a sandbox that ends a session itself gets beyond the deadline before we end it."""
DEADLINE_STATUSES = (124, 137)
"""How a command ends that a sandbox ends at its deadline: by its signal, or by one that cannot be
ignored."""
GRACE_S = 3.0
"""What a sandbox may take to end its own tree when it is asked to."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A trial that is prepared: nothing is left to do but to start its client."""

    lab: FileLab | PackLab
    staged: Staged | None
    policy: Policy
    wrapped: Wrapped
    """The client as the host starts it."""
    deadline_s: float
    """Wall-clock seconds of the whole session."""
    own: Offered = field(default_factory=Offered)
    """What the client offers of its own."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Watched configuration as it is right before the session, by what is watched."""
    watcher: Watcher | None = None
    """Tells from the client's output that it has delivered its end."""


def session_env(layout: RunLayout, tools: Tools) -> dict[str, str]:
    """Return the whole environment of a client session; equal in all configurations."""
    return {
        "HOME": str(layout.home),
        "PATH": os.pathsep.join(
            [str(layout.bin), *(str(path) for path in tools.bins), *SYSTEM_PATH]
        ),
        "TMPDIR": str(layout.tmp),
        "CARGO_HOME": str(layout.cargo_home),
        "EVAL_EVIDENCE_DIR": str(layout.evidence),
        "SYMPOSIUM_HOOK_TRACE": str(layout.evidence / "hook-trace.jsonl"),
        "LANG": "C.UTF-8",
        **tools.env,
    }


def given_env(needs: Needs, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the harness's own environment that a client is to get.

    Raises:
        SetupError: One of them is not set, or is too short for a key.
    """
    wanted = (*needs.env, *needs.key_env)
    for name in wanted:
        if name not in environ:
            hint = f"export {name} before pytest is started"
            raise SetupError(f"variable {name}", "is not set, and the client is to get it", hint)
    for name in needs.key_env:
        if not _is_secret(environ[name]):
            raise SetupError(
                f"variable {name}",
                f"holds fewer than {SECRET_BYTES} bytes, so it is no key",
                "what is as short could not be struck out of what is kept",
            )
    given = {name: environ[name] for name in wanted}
    return {**given, **{name: Secret(environ[name]) for name in needs.key_env}}


def secrets_of(needs: Needs, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what must not reach anything stored: the client's credentials."""
    given = (environ.get(name, "") for name in needs.key_env)
    return tuple(Secret(key) for key in given if _is_secret(key))


def _is_secret(key: str) -> bool:
    return len(os.fsencode(key.strip())) >= SECRET_BYTES


def run_session(ready: Ready, folder: Path) -> Exit:
    """Let the client work, end everything it started, and keep both its streams.

    Args:
        ready: The prepared trial.
        folder: The result folder; gets `transcript.jsonl` and `stderr.log`.

    Raises:
        KeyboardInterrupt: The caller cancelled it.
        OSError: The streams cannot be kept: the harness itself is broken.
    """
    # Unbuffered, so that what was said is kept whenever this process dies.
    with (
        (folder / TRANSCRIPT).open("wb", buffering=0) as stream,
        (folder / "stderr.log").open("wb", buffering=0) as complaints,
    ):
        exit = supervise(
            ready.wrapped,
            Watch(
                total_s=ready.deadline_s + (OUTER_S if ready.wrapped.ends_itself else 0.0),
                startup_s=STARTUP_S,
                output_limit_bytes=TRANSCRIPT_BYTES,
                polite=True,
                grace_s=GRACE_S,
                is_finished=ready.watcher,
                cancelled=ready.lab.cancelled,
            ),
            stdout=Capture(TRANSCRIPT_BYTES, file=stream),
            stderr=Capture(STDERR_BYTES // 2, STDERR_BYTES // 2, file=complaints),
        )
    if exit.reason is Ended.CANCELLED:
        raise KeyboardInterrupt("the session was cancelled")
    return at_its_deadline(exit, ready.deadline_s) if ready.wrapped.ends_itself else exit


def at_its_deadline(exit: Exit, deadline_s: float) -> Exit:
    """Return how a session ended that its sandbox ends itself: at the deadline, or before.

    Neither the status alone would do, for a client may end with the same one at any time, nor the
    time, for the sandbox takes some to start and to end.
    """
    is_ended = exit.reason is Ended.EXITED and exit.status in DEADLINE_STATUSES
    is_late = exit.wall_time_s >= deadline_s
    return replace(exit, reason=Ended.DEADLINE) if is_ended and is_late else exit


def execution_of(exit: Exit, transcript: Transcript) -> Execution:
    """Return how a session ended: our own deadline first, then what the client says.

    A completion event counts only if the client gave it before it was signalled; an exit status
    decides nothing.
    """
    if exit.reason is Ended.NOT_STARTED:
        return Execution.NOT_STARTED
    if exit.reason in (Ended.DEADLINE, Ended.STARTUP, Ended.IDLE):
        return Execution.TIMEOUT
    completed = transcript.completion is not None and not transcript.completion.is_error
    if exit.reason in (Ended.EXITED, Ended.FINISHED) and completed:
        return Execution.COMPLETED
    return Execution.CLIENT_ERROR
