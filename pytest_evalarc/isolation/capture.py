"""Keep the head and the tail of a stream, and count all of it."""

from __future__ import annotations

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
        self._tail_room = tail_bytes
        self._head = bytearray()
        self._file = file
        self._tail = bytearray()
        self.total_bytes = 0
        self.dropped_bytes = 0
        """Bytes between head and tail that were counted and not kept."""

    def add(self, chunk: bytes) -> None:
        """Take one chunk of the stream."""
        self.total_bytes += len(chunk)
        kept, rest = chunk[: self._room], chunk[self._room :]
        self._room -= len(kept)
        if kept and self._file is not None:
            self._file.write(kept)
        elif kept:
            self._head += kept
        if rest:
            self._keep_tail(rest)

    def _keep_tail(self, rest: bytes) -> None:
        self._tail += rest
        surplus = len(self._tail) - self._tail_room
        if surplus > 0:
            # Cheap: a bytearray moves its start and copies now and then.
            del self._tail[:surplus]
            self.dropped_bytes += surplus

    @property
    def tail(self) -> bytes:
        """The last bytes of what did not fit the head."""
        return bytes(self._tail)

    def data(self) -> bytes:
        """Return what was kept, with a line that says how much was dropped between.

        A capture into a file returns its tail alone.
        """
        marker = b""
        if self.dropped_bytes:
            marker = f"\n[{self.dropped_bytes} bytes dropped]\n".encode()
        return bytes(self._head) + marker + self.tail

    def close(self) -> None:
        """Write what belongs to the file's end, and close the file."""
        if self._file is not None and not self._file.closed:
            with self._file:
                self._file.write(self.data())
