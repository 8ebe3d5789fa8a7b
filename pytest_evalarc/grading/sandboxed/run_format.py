"""Check with ruff that sources are formatted; run as a script.

Ruff is ours and what it reads is not: a file that it cannot read, or that it dies of, is not
formatted. So it first has to format nothing by the very same settings, and whatever fails there
is no file's fault.
"""

import os
import subprocess
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_here]
from channel import Channel, leave, short

BATCH_BYTES = 1 << 16
"""Far below what the system takes as arguments of one process."""


def batches(paths):
    """Yield lists of paths that fit on a command line."""
    batch, size = [], 0
    for path in paths:
        batch.append(path)
        size += len(os.fsencode(path)) + 1
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def ruff(request, *paths, stdin=""):
    """Run ruff over some paths, `-` for standard input."""
    return subprocess.run(
        [*request["command"], "--", *paths],
        cwd=request["project"],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def main() -> None:
    """Check the sources of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    nothing = ruff(request, "-")
    if nothing.returncode != 0:
        sys.stderr.write(nothing.stderr)
        leave(1)
    send("ready")
    complaints = []
    for batch in batches(request["sources"]):
        done = ruff(request, *batch)
        if done.returncode != 0:
            complaints.append(done.stdout + done.stderr or f"ruff ended with {done.returncode}")
    text = "\n".join(complaints)
    sys.stderr.write(text)
    send(
        "outcome",
        id="fmt_check",
        outcome="failed" if complaints else "passed",
        when="call",
        answered=True,
        text=short(text.strip()),
    )
    send("end", ran=1, exitstatus=0)
    leave(0)


main()
