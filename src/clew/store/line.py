"""The line of those who wait to be committed, and who of them leads.

Nothing here blocks or touches the database. One mutex makes every change whole; there is one
leader or none, and none only when nobody waits. The leader stays on record until its batch is
answered, so when it is interrupted half-way, `give_up` finds all there is to undo, and may itself
be interrupted and called again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from clew.errors import StoreClosed
from clew.store.caller import DONE, QUEUED, TAKEN, Caller, answer, helper

if TYPE_CHECKING:
    import asyncio

LIMIT = 256
"""Units in one commit: the first of them waits until the last has run."""


class Line:
    """The queue, the batch that left it last, and the leader."""

    def __init__(self) -> None:
        self.helper = helper()
        self.leader: Caller | None = None
        self.batch: Sequence[Caller] = ()
        self._mutex = threading.Lock()
        self._queue: deque[Caller] = deque()
        self._refusal: str | None = None
        self._wanted = 0
        self._gathered = helper()
        self._idle: threading.Event | None = None

    def join(self, me: Caller) -> None:
        """Queue up. Without a leader the caller becomes it, or the helper for a task."""
        with self._mutex:
            self.check()
            self._queue.append(me)
            if self.leader is None:
                if me.loop is None:
                    self.leader = me
                else:
                    self._appoint(self.helper)
            elif me.loop is None:
                me.since = monotonic()
                me.arm()
            if self._wanted and len(self._queue) >= self._wanted:
                self._wanted = 0
                self._gathered.wake()

    @property
    def waiting(self) -> int:
        """How many are queued, the leader included until it takes its batch."""
        return len(self._queue)

    def check(self) -> None:
        """Raise StoreClosed if nobody is let in any more."""
        if self._refusal is not None:
            raise StoreClosed(self._refusal)

    def leads(self, me: Caller) -> bool:
        """Whether it is this caller's turn to lead."""
        with self._mutex:
            return self.leader is me

    def withdraw(self, me: Caller) -> bool:
        """Take out a unit that nobody has begun; False if somebody has, or it leads."""
        with self._mutex:
            if me.state != QUEUED or self.leader is me:
                return False
            me.state = DONE
            if me in self._queue:
                self._queue.remove(me)
            return True

    def gather(self, crowd: int, seconds: float) -> None:
        """Wait until as many are queued, or so long. For the leader."""
        if len(self._queue) >= crowd:
            return
        with self._mutex:
            self._gathered.sleep(0)
            if len(self._queue) >= crowd:
                return
            self._wanted = crowd
        self._gathered.sleep(seconds)
        self._wanted = 0

    def take(self) -> Sequence[Caller]:
        """The first of the queue, as a batch: on record before they leave the queue."""
        with self._mutex:
            self.batch = batch = list(islice(self._queue, LIMIT))
            for caller in batch:
                caller.state = TAKEN
                self._queue.popleft()
            return batch

    def hand_on(self, stay: bool) -> None:
        """The batch is answered. The first who waits leads next; the helper goes on by itself,
        and if it is to `stay` also when nobody waits."""
        with self._mutex:
            self.batch = ()
            if not self._queue:
                if not stay:
                    self._retire()
            elif self.leader is not self.helper:
                first = self._queue[0]
                self._appoint(self.helper if first.lock is None else first)

    def delegate(self, me: Caller) -> None:
        """The helper leads instead of this caller, who waits like any other."""
        with self._mutex:
            if me.lock is None:
                me.since = monotonic()
                me.arm()
            self._appoint(self.helper)

    def give_up(self, me: Caller) -> None:
        """Undo the lead of an interrupted caller: those of its batch whom it had not answered run
        again, before all others, under the helper. They may be committed already; they look for
        their keys. The helper, because no signal reaches it: should a unit itself have raised
        what looked like an interruption, it comes to that unit's own caller there.
        """
        with self._mutex:
            me.state = DONE
            if me in self._queue:
                self._queue.remove(me)
            for caller in reversed(self.batch):
                if caller.state == TAKEN:
                    if caller not in self._queue:
                        self._queue.appendleft(caller)
                    caller.state = QUEUED
            answer([caller for caller in self.batch if caller.state == DONE])
            self.batch = ()
            if self._queue:
                self._appoint(self.helper)
            else:
                self._retire()

    def late(
        self, loop: asyncio.AbstractEventLoop, due: float, error: Callable[[], Exception]
    ) -> tuple[Sequence[Caller], float]:
        """Withdraw the loop's tasks that joined before `due`; and when the next one did, or 0."""
        with self._mutex:
            mine = [caller for caller in self._queue if caller.loop is loop]
            late = [caller for caller in mine if caller.since <= due]
            self._turn_away(late, error)
            return late, mine[len(late)].since if len(late) < len(mine) else 0.0

    def refuse(self, reason: str) -> threading.Event:
        """Let nobody in any more; the event is set as soon as nobody waits or leads."""
        with self._mutex:
            self._refusal = self._refusal or reason
            if self._idle is None:
                self._idle = threading.Event()
                if self.leader is None:
                    self._idle.set()
            return self._idle

    def expel(self, error: Callable[[], Exception]) -> Sequence[Caller]:
        """Withdraw all who are queued, the leader excepted."""
        with self._mutex:
            out = [caller for caller in self._queue if caller is not self.leader]
            self._turn_away(out, error)
            return out

    def _turn_away(self, callers: Sequence[Caller], error: Callable[[], Exception]) -> None:
        for caller in callers:
            self._queue.remove(caller)
            caller.error = error()  # before DONE: a caller that wakes just now looks at both
            caller.state = DONE

    def _retire(self) -> None:
        self.leader = None
        if self._idle is not None:
            self._idle.set()

    def _appoint(self, heir: Caller) -> None:
        """Wake first, write down then: interrupted between the two, the old leader is still on
        record and appoints again. The heir looks at the record under the mutex (`leads`)."""
        heir.wake()
        self.leader = heir
