"""What every store offers to the benchmarks, clew's and the peers' alike.

Methods may be coroutines. `native` turns a chat message into what the store takes; it runs outside
the timed sections.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from benchmarks.workload import ChatMessage


class Adapter:
    """A store under measurement."""

    one_by_one = True
    """Whether a single message can be appended durably; else a turn of four is the unit."""
    asynchronous = False
    """Whether clients are tasks of one event loop; else each is a thread."""

    def open(self, path: str) -> Any:
        raise NotImplementedError

    def create(self, name: str) -> Any:
        """Make a conversation."""
        raise NotImplementedError

    def native(self, message: ChatMessage) -> Any:
        """The message in the store's own terms."""
        return message

    def append(self, name: str, messages: Sequence[Any]) -> Any:
        """Append one message, or a turn, durably."""
        raise NotImplementedError

    def read(self, name: str) -> Any:
        """Load a conversation as its users do; the number of messages."""
        raise NotImplementedError

    def version(self) -> str:
        """Name and version of the store and of the SQLite under it."""
        raise NotImplementedError

    def close(self) -> Any:
        raise NotImplementedError


async def settle(value: Any) -> Any:
    """The result of a method that may be a coroutine."""
    return await value if inspect.isawaitable(value) else value
