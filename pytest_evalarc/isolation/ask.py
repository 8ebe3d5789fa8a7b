"""Ask a program of the host something short, as its version."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Ended, Policy
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.supervise import Watch, supervise

ANSWER_S = 20.0
"""How long a program may take; a large one is read from disk for the first time."""
MOST_BYTES = 4096


def ask(*argv: str, beside: Path | None = None) -> str | None:
    """Return what a program prints, stripped; None when it fails or does not end.

    It is given an empty home folder and no other setting: neither a key nor what a user has
    configured reaches it, and what it leaves behind is removed.

    Args:
        argv: The program and its arguments.
        beside: A folder of programs that it is to find before those of the system.
    """
    path = os.defpath if beside is None else os.pathsep.join((str(beside), os.defpath))
    said = Capture(MOST_BYTES)
    with tempfile.TemporaryDirectory(prefix="pytest-evalarc-ask-") as home:
        command = Command(argv=argv, cwd=Path(home), env={"PATH": path, "HOME": home})
        wrapped = Local().wrap(command, Policy())
        ended = supervise(wrapped, Watch(total_s=ANSWER_S), stdout=said, stderr=Capture(0))
    if ended.reason is not Ended.EXITED or ended.status != 0:
        return None
    return said.data().decode("utf-8", "replace").strip()
