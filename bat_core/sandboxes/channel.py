"""The host's end of the frame protocol, on the running event loop and without threads."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from bat_core.sandboxes.inside.frames import MAX_HEADER, PREFIX, Closed, Frame


class Channel:
    """One conversation over two pipe ends, which it owns.

    Args:
        incoming: Handle that the agent's answers come from.
        outgoing: Handle that calls go to.
        max_body: Longest answer that is accepted; the other side is not trusted.
    """

    def __init__(self, incoming: int, outgoing: int, max_body: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._max_body = max_body
        os.set_blocking(incoming, False)
        os.set_blocking(outgoing, False)

    async def call(self, header: dict[str, Any], body: bytes = b"") -> Frame:
        """Send one frame and return the answer. Raises `Closed`, `OSError`."""
        head = json.dumps(header, separators=(",", ":")).encode()
        await self._write([PREFIX.pack(len(head), len(body)) + head, body])
        head_size, body_size = PREFIX.unpack(await self._read(PREFIX.size))
        if head_size > MAX_HEADER or body_size > self._max_body:
            raise Closed(f"the agent announced {head_size} + {body_size} bytes")
        answer = json.loads(await self._read(head_size))
        if not isinstance(answer, dict):
            raise Closed("the agent's answer is no object")
        return Frame(answer, await self._read(body_size))

    def close(self) -> None:
        """Close both ends; twice is fine."""
        handles = self._incoming, self._outgoing
        self._incoming = self._outgoing = -1
        for handle in handles:
            if handle >= 0:
                os.close(handle)

    async def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            try:
                got = self._take(view[at:])
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await _ready(self._incoming, loop.add_reader, loop.remove_reader)
                continue
            if got == 0:
                raise Closed("the agent is gone")
            at += got
        return data

    def _take(self, view: memoryview) -> int:
        """Read what is there into `view`; 0 at the end. Raises `BlockingIOError` while there's nothing."""
        return os.readv(self._incoming, [view])

    async def _write(self, parts: Sequence[bytes]) -> None:
        for part in parts:
            view = memoryview(part)
            while view:
                try:
                    view = view[os.write(self._outgoing, view) :]
                except BlockingIOError:
                    loop = asyncio.get_running_loop()
                    await _ready(self._outgoing, loop.add_writer, loop.remove_writer)


async def _ready(handle: int, add: Callable[..., Any], remove: Callable[[int], Any]) -> None:
    """Wait until `handle` is ready, and leave nothing registered."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(handle, _wake, future)
    try:
        await future
    finally:
        remove(handle)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
