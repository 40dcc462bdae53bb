"""Group commit: one of those who wait commits for all of them.

A caller that finds no leader leads: it commits on its own thread, for itself and for all who came
meanwhile, and then hands on to the first of those who came since. Tasks of an event loop, who may
not block (tasks.py), have one helper thread lead for them; so does a caller that finds another
process inside the turnstile, because only a thread that nobody waits for may block there.

Only the leader uses the turnstile and the engine (line.py says who that is), so neither needs a
lock of its own. The turnstile and the write lock are held from BEGIN to COMMIT, no longer.
"""

from __future__ import annotations

import threading
from threading import get_ident
from time import monotonic
from typing import TypeVar

from clew.errors import Busy, StoreError
from clew.store.backend import Unit
from clew.store.batch import BatchRunner, Engine, Errors
from clew.store.caller import DONE, Caller, answer
from clew.store.forks import INHERITED, watch
from clew.store.line import Line
from clew.store.turnstile import Turnstile

T = TypeVar("T")

LINGER, LINGER_TASKS = 0.05, 0.5
"""How long a leader waits for company, as a share of the last commit's time. Longer for tasks:
those of a loop come back one after another, on one thread, each after its own code has run. With
0.05 only half of them caught the next commit, and the other half waited for the one after it."""


class Committer:
    """Runs units of work for any number of threads, event loops and, by its turnstile, processes.

    `patience`: seconds that a unit waits in the queue before Busy. `runner` has the counters.
    """

    def __init__(self, engine: Engine, turnstile: Turnstile, *, patience: float = 30.0) -> None:
        self.runner = BatchRunner(engine)
        self._engine = engine
        self._turnstile = turnstile
        self.patience = patience
        self.line = Line()
        self._crowd = 0
        self._tasks = False
        self._running = 0
        self._outside = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        watch(self)

    # -- callers

    def write(self, unit: Unit[T]) -> T:
        """Run a unit; its result once it is durable, or its error. After Busy nothing was done.

        Interrupted (KeyboardInterrupt) while queued, the unit is withdrawn; in a batch of another
        thread, its outcome is awaited first; in one's own, nobody knows whether it is stored.
        """
        me = Caller(unit)
        line = self.line
        try:
            line.join(me)
            while me.state != DONE:
                if line.leader is me:
                    self._lead(me)
                else:
                    self._follow(me)
        except BaseException:
            try:
                self._recover(me)
            except KeyboardInterrupt:  # before its own guard was up
                self._recover(me)
            raise
        return me.outcome()

    def join_task(self, me: Caller) -> None:
        """Queue a task of an event loop; the helper leads for it."""
        if self._thread is None:
            self.line.check()
            self._start_helper()
        self.line.join(me)

    def busy(self) -> Busy:
        """The error of a caller whose patience has ended."""
        holder = "another process holds it" if self._outside else "a commit is still running"
        return Busy(
            f"no write turn within {self.patience:g} s: {holder}. Nothing was written; "
            f"the same call may be repeated with the same keys."
        )

    def close(self) -> None:
        """Refuse new units, wait for those in the queue (no longer than patience: then they get
        Busy) and for the commit under way, and let go of the helper and the turnstile."""
        if self._running == get_ident():
            raise StoreError("a unit of work cannot close the store that runs it")
        idle = self.line.refuse("the store is closed")
        end = monotonic() + self.patience
        while not idle.wait(0.02):
            if self._outside and not (self.line.waiting or self.line.batch):
                break  # the helper stands before another process, with nothing to commit
            if monotonic() > end:
                answer(self.line.expel(self.busy))
        with self._starting:
            self._stopping = True
            if self._thread is None:
                self._turnstile.close()
                return
        self.line.helper.wake()
        if idle.is_set() and self._thread is not threading.current_thread():
            self._thread.join()  # it closes the turnstile; if it still stands there, it will

    def forked(self) -> None:
        """In the child of a fork: nothing here is usable. The old line's mutex may be held by a
        thread that does not exist here, so there is a new one, and it refuses."""
        self.line = Line()
        self.line.refuse(INHERITED)
        self._starting = threading.Lock()
        self._thread = None
        self._turnstile.close()

    def _follow(self, me: Caller) -> None:
        """Sleep until answered or appointed leader; Busy when patience ends before either."""
        if self._running == get_ident():
            raise StoreError("a unit of work cannot write through the store that runs it")
        if me.sleep(max(0.0, me.since + self.patience - monotonic())):
            if me.state != DONE:
                self.line.leads(me)  # waits until whoever woke us has written it down
        elif self.line.withdraw(me):
            raise self.busy()
        else:
            me.since = monotonic()  # it has begun: its outcome is real and has to be awaited

    def _recover(self, me: Caller) -> None:
        """Leave nobody waiting and nothing held after an interruption, wherever it came; a second
        one only starts this again."""
        while me.state != DONE or self.line.leader is me:
            try:
                if self.line.leader is me:
                    self._engine.rollback()
                    self._turnstile.leave()
                    self._running = 0
                    self.line.give_up(me)
                    if self.line.leader is self.line.helper:
                        self._start_helper()
                elif not self.line.withdraw(me):
                    self._follow(me)
            except (KeyboardInterrupt, Busy):
                continue

    # -- the leader

    def _lead(self, me: Caller) -> None:
        """Commit for all who wait, or leave that to the helper if another process is inside."""
        self._linger()
        if self._turnstile.try_enter():
            signalled = get_ident() == threading.main_thread().ident
            self._serve(Exception if signalled else BaseException, stay=False)
        else:
            self._start_helper()
            self.line.delegate(me)

    def _linger(self) -> None:
        """Wait a little for as many as came last time: those whom the last commit woke are on
        their way back, and without this they would miss this one and need another sync."""
        if self._crowd > 1:
            share = LINGER_TASKS if self._tasks else LINGER
            self.line.gather(self._crowd, self.runner.sync * share)

    def _serve(self, caught: Errors, stay: bool) -> None:
        """Inside the turnstile: run a batch, leave as soon as it is committed, answer, hand on.
        `stay`: lead on if the batch had units, even when nobody has come since."""
        batch = self.line.take()
        self._crowd = len(batch)
        self._tasks = bool(batch) and batch[0].loop is not None
        if batch:
            self._running = get_ident()
            self.runner.run(batch, caught)
            self._running = 0
        self._turnstile.leave()
        answer(batch)
        self.line.hand_on(stay and bool(batch))

    # -- the helper thread

    def _start_helper(self) -> None:
        """Have the helper thread. It sleeps until it is appointed, which may happen before. None
        is made once the store is closed: nobody is left whom it could lead for."""
        with self._starting:
            if self._thread is None and not self._stopping:
                thread = threading.Thread(target=self._help, name="clew-commit", daemon=True)
                thread.start()
                self._thread = thread

    def _help(self) -> None:
        """Lead whenever appointed. No signal reaches this thread and nobody waits for it, so it
        may block in the turnstile, and whatever a unit raises is that unit's outcome."""
        line = self.line
        while not self._stopping:
            line.helper.sleep(-1)
            while line.leads(line.helper):
                self._linger()
                self._serve_others()
        self._turnstile.close()

    def _serve_others(self) -> None:
        """In company with other processes, queue up again at once for those who are on their way
        back with their next unit: one who queued only then would miss a round. If nobody comes,
        that costs the others a glance."""
        self._outside = True
        try:
            company = not self._turnstile.try_enter()
            if company:
                self._turnstile.enter()
        except StoreError as error:
            self._outside = False
            batch = self.line.take()
            for caller in batch:
                caller.fail(error)
            answer(batch)
            self.line.hand_on(stay=False)
        else:
            self._outside = False
            self._serve(BaseException, stay=company)
