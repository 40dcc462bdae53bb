"""Group commit: one of those who wait commits for all of them.

A caller that finds no leader leads: it commits on its own thread, for itself and for all who came
meanwhile, and then hands on to the first of those who came since. asyncio callers, who may not
block, have one helper thread lead for them; so does a caller that finds another process inside the
turnstile, because only a thread that nobody waits for may block there without a bound.

Only the leader uses the turnstile and the engine (line.py says who that is), so neither needs a
lock of its own. The turnstile and the write lock are held from BEGIN to COMMIT, no longer.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from threading import get_ident
from time import monotonic
from typing import TypeVar

from clew.errors import Busy, StoreError
from clew.store.backend import Unit
from clew.store.batch import BatchRunner, Engine, Errors
from clew.store.caller import DONE, Caller, answer, resolve
from clew.store.forks import INHERITED, watch
from clew.store.line import Line
from clew.store.turnstile import Turnstile

T = TypeVar("T")

LINGER = 0.05
"""How long a leader waits for company, as a share of the last commit's time."""


class Committer:
    """Runs units of work for any number of threads, event loops and, by its turnstile, processes.

    `patience`: seconds that a unit waits in the queue before Busy. `runner` has the counters.
    """

    def __init__(self, engine: Engine, turnstile: Turnstile, *, patience: float = 30.0) -> None:
        self.runner = BatchRunner(engine)
        self._engine = engine
        self._turnstile = turnstile
        self._patience = patience
        self._line = Line()
        self._crowd = 0
        self._running = 0
        self._outside = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        watch(self)

    # -- callers

    def write(self, unit: Unit[T]) -> T:
        """Run a unit; its result once it is durable, or its error. After Busy nothing was done.

        Interrupted (KeyboardInterrupt) while queued, the unit is withdrawn; in a batch of another
        thread, its outcome is awaited first; in one's own, nobody knows whether it is stored.
        """
        me = Caller(unit)
        line = self._line
        try:
            line.join(me)
            while me.state != DONE:
                if line.leader is me:
                    self._lead(me)
                else:
                    self._follow(me)
        except BaseException:
            self._recover(me)
            raise
        return me.outcome()

    async def write_async(self, unit: Unit[T]) -> T:
        """As `write`, without blocking the loop. Cancelled while queued, the unit is withdrawn;
        in a batch, its outcome is awaited before CancelledError goes on."""
        me = Caller(unit)
        me.loop = loop = asyncio.get_running_loop()
        me.future = loop.create_future()
        me.since = monotonic()
        cancelled: asyncio.CancelledError | None = None
        try:
            if self._thread is None:
                self._start_helper()
            self._line.join(me)
            self._watch(loop)
            while me.state != DONE:
                try:
                    await me.future
                except asyncio.CancelledError as error:
                    if self._line.withdraw(me):
                        raise
                    cancelled = error
                    me.future = loop.create_future()  # `resolve` runs in this loop: no race
        except BaseException:
            self._line.withdraw(me)
            raise
        if cancelled is not None:
            raise cancelled
        return me.outcome()

    def close(self) -> None:
        """Refuse new units, wait for those in the queue (no longer than patience: then they get
        Busy) and for the commit under way, and let go of the helper and the turnstile."""
        if self._running == get_ident():
            raise StoreError("a unit of work cannot close the store that runs it")
        idle = self._line.refuse("the store is closed")
        if not idle.wait(self._patience):
            answer([self._give_up_on(caller) for caller in self._line.expel()])
            while not idle.wait(0.05):
                if self._outside and not self._line.batch:
                    break  # the helper stands before another process, with nothing to commit
        self._stopping = True
        self._line.helper.wake()
        if self._thread is None:
            self._turnstile.close()
        elif idle.is_set():
            self._thread.join()  # it closes the turnstile; if it still stands there, it will

    def forked(self) -> None:
        """In the child of a fork: nothing here is usable. The old line's mutex may be held by a
        thread that does not exist here, so there is a new one, and it refuses."""
        self._line = Line()
        self._line.refuse(INHERITED)
        self._starting = threading.Lock()
        self._thread = None
        self._turnstile.close()

    def _follow(self, me: Caller) -> None:
        """Sleep until answered or appointed leader; Busy when patience ends before either."""
        if self._running == get_ident():
            raise StoreError("a unit of work cannot write through the store that runs it")
        if me.sleep(max(0.0, me.since + self._patience - monotonic())):
            if me.state != DONE:
                self._line.leads(me)  # waits until whoever woke us has written it down
        elif self._line.withdraw(me):
            raise self._busy()
        else:
            me.since = monotonic()  # it has begun: its outcome is real and has to be awaited

    def _recover(self, me: Caller) -> None:
        """Leave nobody waiting and nothing held after an interruption, wherever it came; a second
        one only starts this again."""
        while me.state != DONE or self._line.leader is me:
            try:
                if self._line.leader is me:
                    self._engine.rollback()
                    self._turnstile.leave()
                    self._running = 0
                    self._line.give_up(me)
                    if self._line.leader is self._line.helper:
                        self._start_helper()
                elif not self._line.withdraw(me):
                    self._follow(me)
            except (KeyboardInterrupt, Busy):
                continue

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look after a loop's patience: one timer per loop, because one per unit costs too much."""
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_later(self._patience, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Busy for the tasks whose patience has ended, and a look at the others when theirs does.
        Runs in the loop, so nobody else resolves its futures meanwhile."""
        due = monotonic() - self._patience
        late, following = self._line.late(loop, due)
        resolve([self._give_up_on(caller) for caller in late])
        if following:
            loop.call_later(following - due, self._expire, loop)
        else:
            self._loops.discard(loop)

    def _give_up_on(self, caller: Caller) -> Caller:
        caller.error = self._busy()
        return caller

    def _busy(self) -> Busy:
        holder = "another process holds it" if self._outside else "a commit is still running"
        return Busy(
            f"no write turn within {self._patience:g} s: {holder}. Nothing was written; "
            f"the same call may be repeated with the same keys."
        )

    # -- the leader

    def _lead(self, me: Caller) -> None:
        """Commit for all who wait, or leave that to the helper if another process is inside."""
        self._linger()
        if self._turnstile.try_enter():
            self._serve(Exception)
        else:
            self._start_helper()
            self._line.delegate(me)

    def _linger(self) -> None:
        """Wait a little for as many as came last time: those whom the last commit woke are on
        their way back, and without this they would miss this one and need another sync."""
        if self._crowd > 1:
            self._line.gather(self._crowd, self.runner.sync * LINGER)

    def _serve(self, caught: Errors) -> None:
        """Inside the turnstile: run a batch, leave as soon as it is committed, answer, hand on."""
        batch = self._line.take()
        self._crowd = len(batch)
        if batch:
            self._running = get_ident()
            self.runner.run(batch, caught)
            self._running = 0
        self._turnstile.leave()
        answer(batch)
        self._line.hand_on()

    # -- the helper thread

    def _start_helper(self) -> None:
        """Have the helper thread. It sleeps until it is appointed, which may happen before."""
        with self._starting:
            if self._thread is None:
                self._line.check()
                thread = threading.Thread(target=self._help, name="clew-commit", daemon=True)
                thread.start()
                self._thread = thread

    def _help(self) -> None:
        """Lead whenever appointed. No signal reaches this thread and nobody waits for it, so it
        may block in the turnstile, and whatever a unit raises is that unit's outcome."""
        line = self._line
        while not self._stopping:
            line.helper.sleep(-1)
            while line.leads(line.helper):
                self._linger()
                self._serve_others()
        self._turnstile.close()

    def _serve_others(self) -> None:
        self._outside = True
        try:
            self._turnstile.enter()
        except StoreError as error:
            batch = self._line.take()
            for caller in batch:
                caller.fail(error)
            answer(batch)
            self._line.hand_on()
        else:
            self._outside = False
            self._serve(BaseException)
