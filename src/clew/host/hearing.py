"""Telling those who watch a turn: a screen that fails must not end what it shows."""

from __future__ import annotations

import asyncio
from types import TracebackType

from clew.host.events import Emit, Event


def heard(emit: Emit | None) -> Emit:
    """What tells a listener of each event. An error of its own goes to the loop's handler, which
    logs it; None: nobody listens."""
    if emit is None:
        return _untold

    def tell(event: Event) -> None:
        with _Passed():
            emit(event)

    return tell


class _Passed:
    """Around a call of a listener. What ends a task or the program goes on."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:  # fmt: skip
        if not isinstance(error, Exception):
            return False
        told = {"message": "a listener of a turn's events failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)
        return True


def _untold(_: Event) -> None:
    """Nobody watches."""
