"""The spool of one store, as its handles use it: for any number of threads.

The file is opened at the first write of a handle, its room reserved then, and is taken away again
by a close that leaves nothing in it, as SQLite does with the -wal. Whether anything waits is one
byte of the file (`pending`), which every write asks. What waits is read once and remembered until
somebody changes the file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar

from msgspec import Struct

from clew.errors import StoreClosed, StoreFull, StoreUnusable
from clew.store.forks import INHERITED, watch
from clew.store.spool.file import ForeignFile, Replaced, SpoolFile, peek
from clew.store.spool.record import (
    BYTES,
    EMPTY,
    FIRST,
    GONE,
    HEADER,
    HELD,
    PENDING,
    Entry,
    Record,
    Scan,
    State,
    frame,
    pack,
)

T = TypeVar("T")

AGAIN = 10.0
"""Seconds until a file that could not be opened is tried again by a write that needs none."""
TRIES = 3
"""How often a file that others take away meanwhile is opened anew."""


class Contents(Struct, frozen=True):
    """What stands in a spool."""

    entries: tuple[Entry, ...] = ()
    """Of every state but done."""
    used: int = 0
    """Bytes; of `room`."""
    room: int = 0
    torn: bool = False
    """The last bytes are the beginning of a record that was never acknowledged."""

    def counted(self, states: Collection[State]) -> int:
        """Messages in records of these states."""
        return sum(len(e.record.messages) for e in self.entries if e.record and e.state in states)


class Spool:
    """`path`: of the file. `size`: bytes to reserve."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self._size = path, size
        self.problem: OSError | None = None
        """Why it could not be opened or reserved, the last time that was tried."""
        self.bringing = threading.Lock()
        """Held by the thread that brings messages in; another one need not do it too."""
        self.away_until = 0.0
        """By `monotonic`: until then nobody asks a server again that did not answer."""
        self._lock = threading.RLock()
        self._file: SpoolFile | None = None
        self._seen: tuple[int, Scan] | None = None
        self._again = 0.0
        self._closed = self._inherited = False
        watch(self)

    # ------------------------------------------------------------------ asked by every write

    def pending(self) -> bool:
        """Whether messages wait to be brought in. Opens the file at the first call; one that
        cannot be opened holds nobody up."""
        file = self._file
        if file is not None:
            with suppress(OSError):
                mark = file.mark()
                if mark != GONE:
                    return mark == PENDING
        return self._look()

    @property
    def opened(self) -> bool:
        """Whether `pending` costs no more than a glance."""
        return self._file is not None or self._inherited

    def _look(self) -> bool:
        with self._lock:
            if self._inherited or self._closed or monotonic() < self._again:
                return False
            try:
                return self._with(lambda file: file.mark() == PENDING)
            except OSError as error:
                self.problem, self._again = error, monotonic() + AGAIN
                return False

    # ------------------------------------------------------------------ writing

    def add(self, record: Record) -> None:
        """Have a record on disk. StoreFull: there is no room left for it. StoreUnusable: the spool
        itself cannot be written. StoreClosed: this is a forked child."""
        if self._inherited:
            raise StoreClosed(INHERITED)
        payload = pack(record)
        try:
            with self._lock:
                self._with(lambda file: self._add(file, record, payload))
        except OSError as error:
            self.problem = error
            raise StoreUnusable(
                f"the spool {self.path} cannot be written either: {error.strerror or error}"
            ) from error

    def _add(self, file: SpoolFile, record: Record, payload: bytes) -> None:
        seen = self._scan(file)
        epoch = file.epoch()
        framed = frame(payload, len(seen.entries) + 1, epoch)
        if seen.end + len(framed) > file.room:
            self._shrink(file, seen)
            raise StoreFull(
                f"the spool {self.path} is used up: {file.room - seen.end:,} of {file.room:,} "
                f"bytes are free, the message takes {len(framed):,}. Make the store usable again; "
                f"`clew spool` says what waits"
            )
        self._seen = None
        file.append(framed, seen.end)
        entry = Entry(len(seen.entries) + 1, epoch, seen.end, len(payload), "pending", record)
        self._seen = file.changes(), Scan((*seen.entries, entry), entry.end, torn=False)

    def _shrink(self, file: SpoolFile, seen: Scan) -> None:
        """Where a record does not fit, but some are done: leave those out, and have it tried again
        (Replaced). Not while a record is damaged: its bytes are all there is of it."""
        left = [e for e in seen.entries if e.state != "done"]
        if len(left) < len(seen.entries) and all(e.record for e in left):
            with suppress(OSError):  # no room for a second file
                file.replace_by([(pack(e.record), e.state) for e in left if e.record])
        if file.mark() == GONE:
            raise Replaced("written anew")

    def settle(self, entries: Iterable[Entry], state: State) -> None:
        """Note what became of records. OSError: it could not be noted, and they come again."""
        by_place = {(e.epoch, e.offset): e for e in entries}
        with self._lock:
            self._with(lambda file: self._settle(file, by_place, state))

    def _settle(
        self, file: SpoolFile, entries: dict[tuple[bytes, int], Entry], state: State
    ) -> None:
        epoch, now = file.epoch(), {e.offset: e for e in self._scan(file).entries}
        places = [at for of, at in entries if of == epoch and at in now]
        file.set_state([at for at in places if now[at].state != "done"], BYTES[state])
        self._tidy(file)

    def _tidy(self, file: SpoolFile) -> None:
        """Make room where nothing waits any more, and tell by the mark."""
        self._seen = None
        found = self._scan(file)
        left = [e for e in found.entries if e.state != "done"]
        if not left:
            file.empty(max(found.end, FIRST))
        else:
            waits = any(e.state == "pending" for e in left)
            file.set_mark(PENDING if waits else EMPTY)
        self._seen = None

    def remove(self, chosen: Callable[[Record], bool]) -> int:
        """Take the records out that are chosen, whatever their state, and write zeros over them;
        gives how many messages that were. OSError."""
        if not os.path.exists(self.path):
            return 0
        with self._lock:
            return self._with(lambda file: self._remove(file, chosen))

    def _remove(self, file: SpoolFile, chosen: Callable[[Record], bool]) -> int:
        gone = [e for e in self._scan(file).entries if e.record and chosen(e.record)]
        if gone:
            file.set_state([e.offset for e in gone], BYTES["done"])
        found = self._scan_anew(file)
        file.wipe([_body(e) for e in found.entries if e.state == "done"])
        self._tidy(file)
        return sum(len(e.record.messages) for e in gone if e.record)

    # ------------------------------------------------------------------ reading

    def contents(self) -> Contents:
        """All that is in it. Makes no file. OSError."""
        if self._inherited or not os.path.exists(self.path):
            return Contents()
        with self._lock:
            if self._file is None:
                return _contents(*peek(str(self.path)))
            return self._with(lambda file: _contents(self._scan(file), file.room))

    def waiting(self, conversation: str) -> bool:
        """Whether messages of this conversation wait to be brought in. OSError."""
        return any(
            e.record is not None and e.record.conversation == conversation
            for e in self.contents().entries
            if e.state == "pending"
        )

    def is_pending(self, entry: Entry) -> bool:
        """Whether nobody has settled this record since it was read. OSError."""
        with self._lock:
            return self._with(
                lambda file: (
                    file.epoch() == entry.epoch
                    and file.state_at(entry.offset) == BYTES[entry.state]
                )
            )

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Release the file; take it away if nothing is in it. A message that comes later still is
        accepted. May be repeated."""
        with self._lock:
            self._closed = True
            file, self._file = self._file, None
            if file is None:
                return
            with suppress(OSError), file.held():
                if not any(e.state != "done" for e in self._scan_anew(file).entries):
                    file.remove()
            file.close()

    def forked(self) -> None:
        """In the child of a fork: the file, and its lock, are the parent's."""
        self._lock, self.bringing = threading.RLock(), threading.Lock()
        self._inherited = True
        file, self._file = self._file, None
        if file is not None:
            file.close()

    # ------------------------------------------------------------------ inside

    def _with(self, work: Callable[[SpoolFile], T]) -> T:
        """Run work under the file's lock, on the file that the path names now."""
        for left in reversed(range(TRIES)):
            file = self._file
            try:
                if file is None or file.mark() == GONE:
                    file = self._open()
                with file.held():
                    return work(file)
            except Replaced:
                self._drop()
                if not left:
                    raise
            finally:
                if self._closed:
                    self._drop()
        raise AssertionError("unreachable")

    def _open(self) -> SpoolFile:
        self._drop()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._file = SpoolFile(str(self.path), self._size)
        except ForeignFile:
            self._set_aside()
            self._file = SpoolFile(str(self.path), self._size)
        self.problem, self._again = None, 0.0
        return self._file

    def _set_aside(self) -> None:
        """Keep what cannot be read: it may be evidence, or another program's."""
        for number in range(1, 1000):
            aside = f"{self.path}.damaged-{number}"
            if not os.path.exists(aside):
                os.rename(self.path, aside)
                return

    def _drop(self) -> None:
        self._seen = None
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _scan(self, file: SpoolFile) -> Scan:
        changes = file.changes()
        if self._seen is None or self._seen[0] != changes:
            self._seen = changes, file.scan()
        return self._seen[1]

    def _scan_anew(self, file: SpoolFile) -> Scan:
        self._seen = None
        return self._scan(file)


def _contents(found: Scan, size: int) -> Contents:
    left = tuple(e for e in found.entries if e.state != "done")
    used = found.end - FIRST if left else 0
    return Contents(left, used, max(0, size - FIRST), found.torn)


def _body(entry: Entry) -> tuple[int, int]:
    """The bytes of a record's payload."""
    return entry.offset + HEADER, entry.end


def held(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Those that wait for a person."""
    return tuple(e for e in entries if e.state in HELD)
