"""The stores that this process has open: one for each file, or database, however often it is
opened.

Ten openings of a file would be ten writer connections that queue for one lock, ten caches and ten
threads. So they share one store, and each has a handle of its own with its own clock, ids and
limits. Handles are counted by being there: `close` takes one off, and so does the collector for a
handle that was dropped. Whoever takes the last one off closes the store.

What makes races harmless: a handle is added and taken off under one lock, and a store whose last
handle was taken off cannot be found any more. So nobody is given a store that is being closed, and
none is closed under a handle. Only that is done under the lock: opening, looking whether a store
still fits its place, and closing (which may merge a long -wal) happen outside, and nobody who wants
another place waits for them. The registry knows stores weakly: it keeps none alive.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from clew.errors import Busy, StoreError
from clew.store.backend import Backend
from clew.store.codec import Codec
from clew.store.forks import Identity, watch
from clew.store.lease import Lease
from clew.store.search.engine import Engine


class Shared:
    """One open store, and what its handles have in common."""

    def __init__(
        self, backend: Backend, codec: Codec, search: Engine, path: Path | None = None,
        identity: Identity | None = None,
    ) -> None:  # fmt: skip
        self.backend, self.codec, self.search = backend, codec, search
        self._path, self._identity = path, identity
        self.leases: weakref.WeakSet[Lease] = weakref.WeakSet()
        self.key: Hashable = None
        """Under which the registry has it; None: it is not shared."""

    def fits(self) -> bool:
        """Whether the place still holds what was opened, and this backend serves it. Raises Busy
        and Unavailable, by which it cannot be known."""
        if self._path is not None and identity_of(self._path) != self._identity:
            return False
        trouble = self.backend.trouble
        if trouble is not None and not trouble.retryable:
            return False
        try:
            found = self.backend.read(lambda tx: tx.row("stamp_read"))
        except StoreError as error:
            if error.retryable:
                raise
            return False  # a fresh opening finds out more, and says what is wrong
        return found is not None and found[0] == self.backend.meta.stamp

    def close(self) -> None:
        """Release files and connections. May be repeated."""
        try:
            self.search.close()
        finally:
            self.backend.close()


class Held(NamedTuple):
    """A handle's hold of a store."""

    shared: Shared
    lease: Lease


class Count(NamedTuple):
    """What is open in this process."""

    stores: int
    """That the next opening of their place would share."""
    retired: int
    """That are kept by old handles only: their place holds another store by now."""
    handles: int


class Registry:
    """Shares stores among the handles of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: weakref.WeakValueDictionary[Hashable, Shared] = weakref.WeakValueDictionary()
        self._opening: dict[Hashable, threading.Event] = {}
        self._all: weakref.WeakSet[Shared] = weakref.WeakSet()
        watch(self)

    def acquire(self, key: Hashable, make: Callable[[], Shared], patience: float) -> Held:
        """A handle of the store at `key`, made by `make` if nobody has it open, or if what they
        have is no longer what is there. `patience`: seconds to wait for another thread that makes
        it, before Busy; what `make` raises leaves nothing behind."""
        end = monotonic() + patience
        while True:
            mine = threading.Event()
            try:
                found = self._find(key, mine)
                if found is mine:
                    return self._add(key, make())
            finally:
                self._opened(key, mine)
            if isinstance(found, threading.Event):
                if not found.wait(max(0.0, end - monotonic())):
                    raise Busy(f"another thread has been opening this store for {patience:g} s")
            elif self._keeps(found):
                return found

    def alone(self, shared: Shared) -> Held:
        """A handle of a store that nobody else is given."""
        return self._add(None, shared)

    def release(self, lease: Lease, shared: Shared) -> None:
        """Take a handle off; the last one closes the store. A repeated call for one that could not
        be closed (inside a unit of work) tries again."""
        with self._lock:
            shared.leases.discard(lease)
            if shared.leases:
                return
            self._forget(shared)
        shared.close()

    def count(self) -> Count:
        """What is open, stores that are not shared left aside."""
        with self._lock:
            live = set(self._live.values())
            mine = [shared for shared in self._all if shared.leases and shared.key is not None]
            handles = sum(len(shared.leases) for shared in mine)
            return Count(len(live & set(mine)), len(set(mine) - live), handles)

    def forked(self) -> None:
        """In the child of a fork: nothing is open here, and the lock may be held by a thread that
        does not exist here. Handles of the parent's refuse by themselves."""
        self.__init__()

    def _find(self, key: Hashable, mine: threading.Event) -> Held | threading.Event:
        """A handle of what is open; or `mine`, if the caller is to open it; or who is at it."""
        with self._lock:
            shared = self._live.get(key)
            if shared is not None:
                return self._hold(shared)
            return self._opening.setdefault(key, mine)

    def _add(self, key: Hashable, shared: Shared) -> Held:
        with self._lock:
            shared.key = key
            if key is not None:
                self._live[key] = shared
            self._all.add(shared)
            return self._hold(shared)

    def _hold(self, shared: Shared) -> Held:
        lease = Lease(shared.backend, lambda lease: self.release(lease, shared))
        shared.leases.add(lease)
        return Held(shared, lease)

    def _opened(self, key: Hashable, mine: threading.Event) -> None:
        """Nobody has to wait for `mine` any more, however it went."""
        with self._lock:
            if self._opening.get(key) is mine:
                del self._opening[key]
        mine.set()

    def _keeps(self, held: Held) -> bool:
        """Whether the handle is good. If not, it is given back, and its store is retired: it is
        its old handles' only, who get the typed error at their next write."""
        fits = False
        try:
            fits = held.shared.fits()
            if not fits:
                with self._lock:
                    self._forget(held.shared)
        finally:
            if not fits:
                held.lease.close()
        return fits

    def _forget(self, shared: Shared) -> None:
        if self._live.get(shared.key) is shared:
            del self._live[shared.key]


def identity_of(path: Path) -> Identity | None:
    """Device and inode; None where there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_registry = Registry()


def acquire(key: Hashable, make: Callable[[], Shared], patience: float) -> Held:
    """`Registry.acquire` of this process."""
    return _registry.acquire(key, make, patience)


def alone(shared: Shared) -> Held:
    """`Registry.alone` of this process."""
    return _registry.alone(shared)


def open_stores() -> Count:
    """What this process has open."""
    return _registry.count()
