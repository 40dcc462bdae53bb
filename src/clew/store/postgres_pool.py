"""The connections of one store to its server: lent for one transaction each.

Whoever needs one connects in its own thread, so it learns by itself why that fails, and a store
needs no threads that a fork could leave half-way. When one connection is lost, those made before
are not lent again: a server that was restarted, or is no longer the primary, is met once, and not
once for each of them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from weakref import WeakSet

from psycopg.pq import TransactionStatus

from clew.errors import Busy, StoreClosed
from clew.store.address import Address
from clew.store.forks import INHERITED
from clew.store.postgres_driver import connect
from clew.store.postgres_session import Session

LONGEST_IDLE, LONGEST_LIFE = 600.0, 3600.0
"""Seconds after which a connection is closed: the server's memory for it grows with its age."""
_LOOK = 1.0
"""Seconds after which those who wait look by themselves: a connection of an interrupted call comes
back without a word."""

_inherited: list[object] = []
"""What the parent holds, in the child of a fork: kept, because letting go of it would close it."""


class _Loan:
    """One of the connections that a pool may have; none is made yet, or it is in `session`."""

    __slots__ = ("__weakref__", "epoch", "made", "returned", "session")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.made = self.returned = monotonic()
        self.session: Session | None = None


class _Waiter:
    __slots__ = ("loan", "served")

    def __init__(self) -> None:
        self.loan: _Loan | None = None
        self.served = threading.Event()


class Pool:
    """At most `address.pool_size` connections; any number of threads, served as they come."""

    def __init__(self, address: Address, patience: float) -> None:
        self._address, self._patience = address, patience
        self._closed: str | None = None
        self._mutex = threading.Lock()
        self._idle: deque[_Loan] = deque()
        """The one used last is at the right, and is lent first."""
        self._lent: WeakSet[_Loan] = WeakSet()
        """Weak: a call that is interrupted before it could give its loan back has given it back."""
        self._queue: deque[_Waiter] = deque()
        self._epoch = 0

    @contextmanager
    def lend(self, deadline: float) -> Generator[Session]:
        """A connection in working order, as far as anybody knows. Busy, Unavailable, StoreClosed.

        Whatever ends the block in a transaction, or with a broken connection, loses it.
        """
        loan = self._take(deadline)
        try:
            if loan.session is not None and not self._is_fit(loan):
                loan.session.close()
                loan.session = None
            if loan.session is None:
                loan.epoch, loan.made = self._epoch, monotonic()
                loan.session = connect(self._address, self._patience)
            yield loan.session
        finally:
            self._give_back(loan)

    def check(self) -> None:
        """Raise StoreClosed if the pool is."""
        if self._closed is not None:
            raise StoreClosed(self._closed)

    def renew(self) -> None:
        """Lend none of the connections there are again."""
        with self._mutex:
            self._epoch += 1

    def close(self) -> None:
        """Close all connections; those lent out when they come back."""
        with self._mutex:
            self._closed = self._closed or "the store is closed"
            idle, self._idle = self._idle, deque[_Loan]()
            waiting = [*self._queue]
        for waiter in waiting:
            waiter.served.set()
        for loan in idle:
            _close(loan)

    def disown(self) -> None:
        """In the child of a fork: the connections are the parent's."""
        self._closed = INHERITED
        _inherited.append((self._idle, [*self._lent]))
        self._mutex, self._idle, self._lent = threading.Lock(), deque(), WeakSet()

    def _take(self, deadline: float) -> _Loan:
        me = _Waiter()
        try:
            with self._mutex:
                self.check()
                self._queue.append(me)
                self._serve()
            while me.loan is None:
                left = deadline - monotonic()
                if left <= 0:
                    raise Busy(
                        f"no connection was free within {self._patience:g} s; all "
                        f"{self._address.pool_size} are in use. Nothing was written; the same "
                        f"call may be repeated with the same keys. `pool_size` in the URL allows "
                        f"more"
                    )
                me.served.wait(min(left, _LOOK))
                with self._mutex:
                    self.check()
                    self._serve()
            return me.loan
        except BaseException:
            with self._mutex:
                if me in self._queue:
                    self._queue.remove(me)
            if me.loan is not None:
                self._give_back(me.loan)
            raise

    def _serve(self) -> None:
        """Lend what is free to those who wait. Needs the mutex."""
        while self._queue and (self._idle or len(self._lent) < self._address.pool_size):
            loan = self._idle.pop() if self._idle else _Loan(self._epoch)
            self._lent.add(loan)
            first = self._queue.popleft()
            first.loan = loan
            first.served.set()

    def _give_back(self, loan: _Loan) -> None:
        old: list[_Loan] = []
        session = loan.session
        idle = session is not None and session.info.transaction_status == TransactionStatus.IDLE
        with self._mutex:
            if session is not None and session.closed and loan.epoch == self._epoch:
                self._epoch += 1
            self._lent.discard(loan)
            loan.returned = monotonic()
            if idle and self._closed is None and self._is_fit(loan):
                self._idle.append(loan)
            else:
                old.append(loan)
            while self._idle and self._idle[0].returned < loan.returned - LONGEST_IDLE:
                old.append(self._idle.popleft())
            self._serve()
        for each in old:
            _close(each)

    def _is_fit(self, loan: _Loan) -> bool:
        return loan.epoch == self._epoch and monotonic() - loan.made < LONGEST_LIFE


def _close(loan: _Loan) -> None:
    if loan.session is not None:
        loan.session.close()
