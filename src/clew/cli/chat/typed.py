"""Lines from standard input that can be waited for without a thread, which nothing could interrupt:
Ctrl-C must leave at once. A file, which never lets anybody wait, is read where it stands."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from collections import deque
from typing import TextIO

CHUNK = 65536


class Lines:
    """The lines of a stream. `next` gives None at its end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdin
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._lines: deque[str] = deque()
        self._ended = False

    async def next(self) -> str | None:
        """The next line, without its end."""
        while not self._lines and not self._ended:
            if not await self._wait():
                line = self._stream.readline()
                self._ended = not line
                return line.removesuffix("\n").removesuffix("\r") if line else None
        return self._lines.popleft() if self._lines else None

    async def _wait(self) -> bool:
        """Wait for more and take it; false when this stream is not one to wait for."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        try:
            descriptor = self._stream.fileno()
            loop.add_reader(descriptor, came.set)
        except (OSError, ValueError, NotImplementedError):
            return False
        try:
            await came.wait()
        finally:
            loop.remove_reader(descriptor)
        self._take(_read(descriptor))
        return True

    def _take(self, data: bytes) -> None:
        self._ended = not data
        text = self._rest + self._decoder.decode(data, final=self._ended)
        *lines, self._rest = text.split("\n")
        if self._ended and self._rest:
            lines, self._rest = [*lines, self._rest], ""
        self._lines.extend(line.removesuffix("\r") for line in lines)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:  # the terminal is gone
        return b""
