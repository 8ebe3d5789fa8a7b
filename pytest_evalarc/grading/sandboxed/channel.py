"""The record channel: what a grading process reports, on a descriptor no child of it inherits.

Each record is one line: a signature, a space, and JSON. The signature is keyed with the nonce that
arrived on standard input and covers the record's place in the sequence, so that whoever diverts the
channel learns nothing to sign with, and can leave out no record. Descriptor 1 is pointed at
standard error, so that whatever the submission prints is a diagnostic and never a record.
"""

import json
import os
import sys
from _hashlib import hmac_digest  # Of C, so that no part of it can be replaced by another.

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


def _sender(descriptor, nonce, write=os.write, getpid=os.getpid, sign=hmac_digest):
    # Bound here, so that replacing a function later changes nothing; kept in a closure, so that
    # no attribute holds the key.
    own, key, sent = getpid(), nonce.encode(), 0

    def send(kind: str, **data: object) -> None:
        nonlocal sent
        if getpid() == own:
            text = _encode({"kind": kind, **data}).encode("ascii")
            signature = sign(key, b"%d %b" % (sent, text), "sha256").hex().encode("ascii")
            sent += 1
            write(descriptor, signature + b" " + text + b"\n")

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
