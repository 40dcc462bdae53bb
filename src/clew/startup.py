"""The start of a process that is left running: phases, each with a bound, and a way out of a hang.

`arm` begins it, `report` names the phase that comes and how long it may take, `ready` ends it. A
phase that outlives its bound is a start that hangs: then where all threads stand is written down,
and the process exits with RESTART, by which a service manager starts it again.

What could hang the start could hang the way out, too: a lock of the log, a disk, a pipe that nobody
reads. So its threads exist before there is trouble. The one that exits touches no file and takes no
lock but the one it sleeps on, and it waits only GRACE seconds for those that write. Should Python
stand still itself, in C code that holds the interpreter's lock, the system's alarm ends the
process.

Not armed, as in a program that uses the library, all of this does nothing. Nothing here raises.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from clew import service

RESTART = 75
"""The exit code of a start that hung (EX_TEMPFAIL of sysexits.h)."""
DEADLINE = 300.0
"""Seconds that a phase may take unless it says otherwise."""
LONGEST = 900.0
"""Seconds that a phase can ask for."""
GRACE = 10.0
"""Seconds that writing down what hangs may take."""
SLOW = 1.0
"""Seconds after which a person is told what a start is at."""


class Phase(NamedTuple):
    """What a start is at. `number`: from 1. `end`: of the monotonic clock."""

    number: int
    name: str
    began: float
    end: float


class Start:
    """One start. `dump`: a file for the report on a hang. `tell`: shows a slow phase to a person;
    None: nobody watches. The other arguments are for tests."""

    def __init__(
        self, dump: str | None = None, tell: Callable[[str], None] | None = None, *,
        deadline: float = DEADLINE, grace: float = GRACE, leave: Callable[[int], object] = os._exit,
    ) -> None:  # fmt: skip
        self._deadline, self._grace, self._leave = deadline, grace, leave
        now = monotonic()
        self.phase = Phase(1, "starting", now, now + deadline)
        self._over = _held()
        self._writers = [_Writer(self._to_stderr), _Writer(lambda: self._to_file(dump))]
        self._alarm()
        start_new_thread(self._watch, ())
        if tell is not None:
            start_new_thread(self._show, (tell,))

    def report(self, name: str, seconds: float | None = None) -> None:
        """The phase that begins now, and how long it may take."""
        now = monotonic()
        bound = min(self._deadline if seconds is None else seconds, LONGEST)
        self.phase = Phase(self.phase.number + 1, name, now, now + bound)  # one step: whole
        self._alarm()
        service.tell(STATUS=name, EXTEND_TIMEOUT_USEC=int((bound + self._grace) * 1_000_000))

    def finish(self) -> None:
        """The start is over: its threads end. May be repeated."""
        _alarm(0)
        with suppress(RuntimeError):  # it was over already
            self._over.release()
            for writer in self._writers:
                writer.dismiss()

    def _alarm(self) -> None:
        """The last way out, by the system: it needs nothing of this process."""
        _alarm(self.phase.end - monotonic() + 2 * self._grace)

    def _watch(self) -> None:
        """Sleep until the start is over, or the phase has outlived its bound."""
        while (left := self.phase.end - monotonic()) > 0:
            if self._over.acquire(timeout=left):
                self._over.release()
                return
        for writer in self._writers:
            writer.go.release()
        until = monotonic() + self._grace
        for writer in self._writers:
            writer.done.acquire(timeout=max(0.0, until - monotonic()))
        self._leave(RESTART)

    def _show(self, tell: Callable[[str], None]) -> None:
        """Tell of each phase that takes longer than a moment, once."""
        told = 0
        while not self._over.acquire(timeout=SLOW / 4):
            phase = self.phase
            if phase.number != told and monotonic() - phase.began > SLOW:
                told = phase.number
                tell(phase.name)
        self._over.release()

    def _record(self) -> bytes:
        phase, now = self.phase, monotonic()
        fields = {
            "event": "start hung", "pid": os.getpid(), "lease_count": phase.number,
            "last_lease_phase": phase.name, "seconds": round(now - phase.began, 1),
        }  # fmt: skip
        return (json.dumps(fields) + "\n").encode()

    def _to_stderr(self) -> None:
        text = f"clew: the start hung while {self.phase.name}; exiting with {RESTART}\n"
        os.write(2, text.encode() + self._record())
        faulthandler.dump_traceback(2, all_threads=True)

    def _to_file(self, dump: str | None) -> None:
        if dump is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(dump, flags, 0o600)
        os.write(descriptor, self._record())
        faulthandler.dump_traceback(descriptor, all_threads=True)
        os.close(descriptor)


class _Writer:
    """A thread that waits for trouble, to write it down."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.go, self.done = _held(), _held()
        self._work = work
        start_new_thread(self._run, ())

    def dismiss(self) -> None:
        """There will be none."""
        self._work = _nothing
        self.go.release()

    def _run(self) -> None:
        self.go.acquire()
        try:
            self._work()
        except OSError:
            pass  # nobody is left whom it could be told
        finally:
            self.done.release()


def _nothing() -> None:
    """What a writer writes that was dismissed."""


def _held() -> LockType:
    lock = allocate_lock()
    lock.acquire()
    return lock


def _alarm(seconds: float) -> None:
    """Have the system end this process in so many seconds; 0: no more. Only where nothing else
    uses its alarm, and where there is one."""
    if sys.platform != "win32":
        with suppress(ValueError, OSError):
            if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
                signal.setitimer(signal.ITIMER_REAL, max(0.0, seconds))


_current: Start | None = None


def arm(dump: str | None = None, tell: Callable[[str], None] | None = None) -> None:
    """Begin the start of this process: at the entry of what is left running. Again: nothing.

    CLEW_START_DEADLINE: seconds that a phase may take unless it says otherwise; 0 switches it off.
    """
    global _current
    deadline = _seconds(os.environ.get("CLEW_START_DEADLINE"))
    if _current is None and deadline > 0:
        _current = Start(dump, tell, deadline=deadline)


def report(name: str, seconds: float | None = None) -> None:
    """Say what the start is at, in words that follow "while", and how long that may take."""
    if _current is not None:
        _current.report(name, seconds)


def ready() -> None:
    """The start is over: the process does what it is there for. Told to the service manager."""
    global _current
    start, _current = _current, None
    if start is not None:
        start.finish()
        service.tell(READY=1, STATUS="ready")


def ending() -> None:
    """The process was told to end, or could not start: nothing of a start is left."""
    global _current
    start, _current = _current, None
    if start is not None:
        start.finish()
    service.tell(STOPPING=1)


def _seconds(text: str | None) -> float:
    try:
        return DEADLINE if text is None else float(text)
    except ValueError:
        return DEADLINE
