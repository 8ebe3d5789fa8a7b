"""Keep the head and the tail of a stream, and count all of it."""

from __future__ import annotations

from collections import deque
from typing import BinaryIO


class Capture:
    """A bounded record of one output stream.

    The head goes to memory or to a file as it comes; of what follows only the last bytes are
    kept, so a flood costs neither memory nor disk. The byte count stays true.

    Args:
        head_bytes: How much is kept from the start.
        tail_bytes: How much is kept from the end of what did not fit the head.
        file: Where the head is written; None keeps it in memory.
    """

    def __init__(
        self, head_bytes: int, tail_bytes: int = 0, *, file: BinaryIO | None = None
    ) -> None:
        self._room = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._file = file
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Take one chunk of the stream."""
        self.total_bytes += len(chunk)
        kept, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(kept)
        if kept and self._file is not None:
            self._file.write(kept)
        elif kept:
            self._head += kept
        if rest and self._tail_bytes:
            self._keep_tail(rest)

    def _keep_tail(self, rest: bytes) -> None:
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    @property
    def tail(self) -> bytes:
        """The last bytes of what did not fit the head."""
        return b"".join(self._tail)[-self._tail_bytes :] if self._tail_bytes else b""

    @property
    def dropped_bytes(self) -> int:
        """Bytes between head and tail that were counted and not kept."""
        if self._room > 0:
            return 0
        head = self.total_bytes - self._overflow_bytes
        return self.total_bytes - head - len(self.tail)

    @property
    def _overflow_bytes(self) -> int:
        kept = self._file.tell() if self._file is not None else len(self._head)
        return self.total_bytes - kept

    def data(self) -> bytes:
        """Return what was kept, with a line that says how much was dropped between.

        A capture into a file returns its tail alone.
        """
        dropped = self.dropped_bytes
        marker = f"\n[{dropped} bytes dropped]\n".encode() if dropped else b""
        return bytes(self._head) + marker + self.tail

    def close(self) -> None:
        """Write what belongs to the file's end, and close the file."""
        if self._file is not None and not self._file.closed:
            end = self.data()
            self._file.write(end)
            self._file.close()
