"""The agent's frames over a stream that is attached to a container: its two outputs arrive interleaved."""

from __future__ import annotations

import os
import select
import struct

from bat_core.sandboxes.channel import Channel

_HEAD = struct.Struct(">BxxxI")
_STDOUT = 1
_TELL = 2000


class AttachedChannel(Channel):
    """One conversation over one socket, which it owns.

    Args:
        handle: The attached socket.
        max_body: Longest answer that is accepted.
    """

    def __init__(self, handle: int, max_body: int) -> None:
        super().__init__(handle, os.dup(handle), max_body)
        self._head = bytearray(_HEAD.size)
        self._have = 0  # bytes of the next block's head that came
        self._stream = 0
        self._left = 0  # bytes of the present block that are to come
        self.said = bytearray()

    @property
    def open(self) -> bool:
        """Whether the other end is still there; what it has said stays unread."""
        if self._incoming < 0:
            return False
        poller = select.poll()
        poller.register(self._incoming, select.POLLRDHUP)
        return not poller.poll(0)

    def _take(self, view: memoryview) -> int:
        while True:
            if self._left and self._stream == _STDOUT:
                return self._payload(view)
            ended = not (self._words() if self._left else self._next())
            if ended:
                return 0

    def _payload(self, view: memoryview) -> int:
        """Read a block's content and, in the same call, the head of the block after it."""
        wanted = view[: self._left]
        whole = len(wanted) == self._left
        got = os.readv(self._incoming, [wanted, self._head] if whole else [wanted])
        content = min(got, len(wanted))
        self._left -= content
        if got > content:
            self._have = got - content
            self._parse()
        return content

    def _words(self) -> int:
        """Read some of standard error, and keep its end."""
        data = os.read(self._incoming, min(self._left, 1 << 16))
        self._left -= len(data)
        self.said += data
        del self.said[:-_TELL]
        return len(data)

    def _next(self) -> int:
        got = os.readv(self._incoming, [memoryview(self._head)[self._have :]])
        self._have += got
        self._parse()
        return got

    def _parse(self) -> None:
        if self._have == _HEAD.size:
            self._stream, self._left = _HEAD.unpack(self._head)
            self._have = 0
