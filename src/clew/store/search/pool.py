"""Connections to the search file: as many as threads use at a time, a few kept."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from clew.errors import SearchUnavailable, StoreClosed
from clew.store.forks import INHERITED, watch
from clew.store.search.connection import Connection
from clew.store.search.file import close_file, files_at, open_file
from clew.store.search.index import Damaged

_KEEP = 4


class Pool:
    """Lends connections. Each loan looks first whether the name still means the same file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._refusal: str | None = None
        watch(self)

    @contextmanager
    def lend(self) -> Generator[Connection]:
        """A connection for the time of the block; closed if the block finds the file unfit.

        Raises Damaged, with the file that was judged, and SearchUnavailable.
        """
        connection = self._take()
        try:
            yield connection
        except SearchUnavailable as error:
            if isinstance(error, Damaged) and error.identity is None:
                error.identity = connection.files.main
            close_file(self.path, connection)
            raise
        except BaseException:
            close_file(self.path, connection)
            raise
        self._give_back(connection)

    def close(self) -> None:
        """Close what is idle, and later each connection that is given back."""
        with self._lock:
            self._refusal = self._refusal or "the store is closed"
            idle, self._idle = self._idle, []
        for connection in idle:
            close_file(self.path, connection)

    def forked(self) -> None:
        """In the child of a fork: leave the parent's connections as they are."""
        self._lock = threading.Lock()
        self._refusal = INHERITED
        self._idle = []

    def _take(self) -> Connection:
        now = files_at(self.path)
        stale: list[Connection] = []
        found: Connection | None = None
        with self._lock:
            if self._refusal is not None:
                raise StoreClosed(self._refusal)
            while self._idle and found is None:
                connection = self._idle.pop()
                if connection.files == now:
                    found = connection
                else:
                    stale.append(connection)
        for connection in stale:
            close_file(self.path, connection)
        if found is None and any(connection.files.main == now.main for connection in stale):
            damaged = Damaged("a companion of the search file was deleted while it was in use")
            damaged.identity = now.main
            raise damaged
        return found or open_file(self.path)

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if self._refusal is None and len(self._idle) < _KEEP:
                self._idle.append(connection)
                return
        if self._refusal is not INHERITED:
            close_file(self.path, connection)
