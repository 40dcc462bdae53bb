"""What a server writes to its stderr: read, so that it never stands on the screen nor fills a disk,
and forgotten but for its end, which explains why it died."""

from __future__ import annotations

import os
import re
import threading
from typing import TextIO

KEPT = 4096
"""Bytes that are remembered."""
_LINES = 5
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Tail:
    """The end of a stream of bytes. `file` is where a child process writes; `close` it here once
    the child has it."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w")
        self._kept = b""
        self._done = threading.Event()
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()

    def close(self) -> None:
        """Let go of our own end; reading ends when the child's is closed, too."""
        self.file.close()

    def last(self, wait: float = 0.0) -> str:
        """The last lines. `wait`: seconds for what is still on its way from a child that died."""
        self._done.wait(wait)
        text = self._kept.decode("utf-8", "replace")
        lines = [" ".join(_plain(line).split()) for line in text.splitlines()]
        return "\n".join([line for line in lines if line][-_LINES:])

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            while data := stream.read(KEPT):
                self._kept = (self._kept + data)[-KEPT:]
        self._done.set()


def _plain(line: str) -> str:
    """Without what would move a terminal's cursor or colour it."""
    return "".join(letter if letter.isprintable() else " " for letter in _COLOUR.sub("", line))
