"""Whoever waits for a unit of work: the unit, how far it has come, and the way to be woken."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clew.store.backend import Transaction, Unit
from clew.store.batch import Entry

if TYPE_CHECKING:
    import asyncio

QUEUED, TAKEN, DONE = range(3)


class Caller(Entry):
    """A unit in the queue (`QUEUED`), in a batch (`TAKEN`), answered or withdrawn (`DONE`).

    A thread sleeps on a lock that only it takes and only the leader releases; a task awaits a
    future of its loop. A lone leader needs neither. The future carries no result: the outcome
    stays in the entry, so a cancelled or abandoned task leaves no exception that nobody fetched.
    """

    __slots__ = ("future", "lock", "loop", "since", "state")

    def __init__(self, unit: Unit[Any]) -> None:
        self.unit = unit
        self.result = None
        self.error = None
        self.state = QUEUED
        self.lock: threading.Lock | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[None] | None = None
        self.since = 0.0

    def arm(self) -> None:
        """Make the lock to sleep on."""
        lock = threading.Lock()
        lock.acquire()
        self.lock = lock

    def sleep(self, timeout: float) -> bool:
        """Sleep until woken; False when that took longer than `timeout` seconds (-1: no bound)."""
        return self.lock is not None and self.lock.acquire(timeout=timeout)

    def wake(self) -> None:
        """Wake the thread, now or when it goes to sleep; twice is as good as once."""
        if self.lock is not None and self.lock.locked():
            self.lock.release()


def answer(callers: Sequence[Caller]) -> None:
    """Tell everybody that the outcome is there: one lock per thread, one call per loop."""
    loops: dict[asyncio.AbstractEventLoop, list[Caller]] = {}
    for caller in callers:
        caller.state = DONE
        if caller.loop is not None:
            loops.setdefault(caller.loop, []).append(caller)
        elif caller.lock is not None:
            caller.wake()
    for loop, tasks in loops.items():
        try:
            loop.call_soon_threadsafe(resolve, tasks)
        except RuntimeError:
            pass  # the loop is closed: nobody is left to be told


def resolve(tasks: Sequence[Caller]) -> None:
    """Wake tasks, in their loop. Skips futures that a cancellation has ended."""
    for caller in tasks:
        if caller.future is not None and not caller.future.done():
            caller.future.set_result(None)


def helper() -> Caller:
    """The helper thread as a leader: woken like any other, with no unit of its own."""
    caller = Caller(_nothing)
    caller.arm()
    return caller


def _nothing(_: Transaction) -> None:
    return None
