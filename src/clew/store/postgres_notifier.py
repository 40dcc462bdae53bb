"""Tells the followers of other processes, soon after a commit, that there is something to read.

Not by NOTIFY inside the transaction: the server lets one such commit through at a time, whichever
conversation it is for. One thread per store sends one notification for all commits since the last.
One that is not sent is only late: followers also look by themselves.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from time import monotonic

import psycopg

from clew.errors import ClewError
from clew.store.postgres_driver import translate
from clew.store.postgres_pool import Pool

PAUSE = 0.05
"""Seconds between two notifications, at least."""
_SEND = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, '')"


class Notifier:
    """Sends on `channel` after `committed` was called."""

    def __init__(self, pool: Pool, channel: str) -> None:
        self._pool, self._channel = pool, channel
        self.forked()

    def committed(self) -> None:
        """A commit is durable."""
        self._wanted = True
        if self._thread is None or not self._thread.is_alive():
            self._start()
        self._wake.set()

    def close(self) -> None:
        """Send what is not sent yet, and end."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def forked(self) -> None:
        """In the child of a fork: the thread is not here, and its locks may be held for ever."""
        self._wanted = False
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="clew-notify", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            self._wake.wait()
            self._wake.clear()
            stopping = self._stopping.is_set()
            if self._wanted:
                self._wanted = False
                with suppress(ClewError, OSError):
                    self._send()
            self._stopping.wait(PAUSE)

    def _send(self) -> None:
        with self._pool.lend(monotonic() + PAUSE) as connection:
            try:
                connection.execute(_SEND, (self._channel,))
            except psycopg.Error as error:
                raise translate(error) from error
