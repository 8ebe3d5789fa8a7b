"""The record channel: what a grading process reports, on a descriptor no child of it inherits.

Each record is one JSON line with the nonce that arrived on standard input. Descriptor 1 is pointed
at standard error, so that whatever the submission prints is a diagnostic and never a record.
"""

import json
import os
import sys

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
SUPPRESSED = 2000
"""Characters of a text that travel in a record."""
NOT_DUMPABLE = 4


class Channel:
    """Sends records to the host; only the process that opened it can."""

    def __init__(self) -> None:
        """Take over standard output and read the request from standard input."""
        descriptor = os.dup(1)
        os.dup2(2, 1)
        os.set_inheritable(descriptor, False)
        self.request = json.loads(sys.stdin.buffer.read())
        self.send = _sender(descriptor, self.request.pop("nonce"))
        _hide_memory()


def _sender(descriptor, nonce, write=os.write, getpid=os.getpid):
    # Bound here, so that replacing a function of `os` later changes nothing; kept in a closure,
    # so that no attribute holds the nonce.
    own = getpid()

    def send(kind: str, **data: object) -> None:
        if getpid() == own:
            line = _encode({"nonce": nonce, "kind": kind, **data})
            write(descriptor, line.encode("ascii") + b"\n")

    return send


def _hide_memory() -> None:
    """Keep children from reading this process's memory and descriptors through /proc."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(NOT_DUMPABLE, 0, 0, 0, 0)


def short(text: object) -> str:
    """Return a text that fits a record, its end kept because the reason stands there."""
    words = str(text)
    return words if len(words) <= SUPPRESSED else "…" + words[-SUPPRESSED:]


def leave(status: int) -> None:
    """End the process at once, so that no exit handler of the submission runs."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # The submission may have put anything in their place.
        os._exit(status)
