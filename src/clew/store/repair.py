"""Repair: what can be saved of a damaged store, as a new store beside it.

The damaged store is read and never written. It is copied below SQLite (salvage_image.py), every row
that is left is read from the copy's pages (salvage*.py), put into a new store (repair_load.py) and
mended until every invariant holds (repair_mend.py). Only on request does the result take the place
of the old store, which is kept.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from types import TracebackType

import apsw
from msgspec import Struct

from clew.clock import Clock, SystemClock
from clew.domain.compactions import Ref
from clew.errors import StoreError
from clew.ids import Ids
from clew.store import conversations, cuts, log, repair_mend
from clew.store.admission import admitted
from clew.store.backend import Transaction
from clew.store.backup_packs import unusable
from clew.store.codec import Codec
from clew.store.copying import PATIENCE, Progress, connection, publish, remove
from clew.store.repair_load import Loader
from clew.store.repair_swap import Swapped, swap_in
from clew.store.restore import name_beside, problems_in, write_turn
from clew.store.salvage import Salvage
from clew.store.salvage_image import Staged, stage, written
from clew.store.salvage_pages import Image
from clew.store.salvage_shapes import SQL, shapes_of
from clew.store.sqlite import SqliteBackend
from clew.store.sqlite_driver import query
from clew.store.verify import Problem

Bar = Callable[[str], AbstractContextManager[Progress]]
"""A progress report for a phase, by its name."""


class TableReport(Struct, frozen=True):
    """`read`: rows saved. `lost`: rows that an index or a page names and that are not there, as
    far as known: what was on a page that is gone altogether nobody can count."""

    table: str
    read: int
    lost: int
    damaged_pages: int


class LostMessages(Struct, frozen=True):
    """Seqs of a conversation that are lost, as closed ranges. A text stands in each place."""

    conversation: str
    ranges: tuple[tuple[int, int], ...]


class RepairReport(Struct, frozen=True):
    """What a repair found. `problems`: rules that do not hold in the result; always empty, else it
    would be a fault of clew."""

    store: str
    result: str
    pages: int
    page_size: int
    damaged_pages: int
    unread_bytes: int
    """Bytes that the disk did not give."""
    wal_frames: int
    lost_wal_frames: int
    messages: int
    lost_messages: int
    tables: tuple[TableReport, ...]
    conversations: tuple[LostMessages, ...]
    mended: Mapping[str, int]
    """What else was done, and how often."""
    problems: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is known to be missing."""
        return not (
            self.damaged_pages or self.unread_bytes or self.lost_wal_frames or self.lost_messages
            or self.mended or any(table.lost for table in self.tables)
        )  # fmt: skip


def _no_bar(_: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)


class Repair:
    """A repaired store beside the damaged one at `path`, and a report. Use it as a context: what is
    left half done is removed.

    Raises StoreError when the file cannot be read, or is written to meanwhile; InputError when it
    is empty; Busy; StoreFull.
    """

    def __init__(
        self, path: str | os.PathLike[str], bar: Bar = _no_bar, clock: Clock | None = None
    ) -> None:
        self.path = Path(path).expanduser().absolute()
        self._clock = clock or SystemClock()
        self._ids = Ids(self._clock)
        if not self.path.exists() and not os.path.exists(f"{self.path}-wal"):
            raise StoreError(f"there is no store at {self.path}")
        self.result = name_beside(self.path, "repaired", self._clock)
        nonce = os.urandom(4).hex()
        self._image = self.path.with_name(f"{self.path.name}.repair-{nonce}")
        self._partial = self.result.with_name(f"{self.result.name}.partial-{nonce}")
        try:
            self.report = self._run(bar)
            publish(self._partial, self.result, force=False)
        except OSError as error:
            raise unusable(error, f"cannot repair {self.path}") from error
        finally:
            self.close()

    def __enter__(self) -> Repair:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Remove what only the repair needed; the result stays. May be repeated."""
        remove(self._image)
        remove(self._partial)

    def apply(self, progress: Progress | None = None) -> Swapped:
        """Put the result in the place of the store, which is kept. Raises Busy when a process
        writes to it or has written to it since it was read, or has a file open that can only be
        replaced whole."""
        return swap_in(self.path, self.result, self._clock, progress, self._read)

    def _run(self, bar: Bar) -> RepairReport:
        alone = admitted(self.path, "repair", PATIENCE)
        with bar("Copying") as progress, alone, write_turn(self.path):
            self._read = written(self.path)  # nobody writes while we have the turn
            staged = stage(self.path, self._image, progress)
        SqliteBackend(self._partial).close()
        mended: Counter[str] = Counter()

        def note(what: str, count: int = 1) -> None:
            mended[what] += count

        with closing(connection(self._partial)) as store:
            with bar("Reading") as progress:
                loader, salvage = _load(store, staged, progress)
            codec = Codec(lambda: repair_mend.dictionaries(store))
            lost = repair_mend.mend(store, codec, loader.hints, self._ids, self._clock, note)
            query(store, SQL["commit"])
            tables = _tables(loader, salvage)
        with bar("Verifying") as progress:
            problems = self._settle(note, progress)
        return self._report(staged, salvage, tables, lost, mended, problems)

    def _report(
        self, staged: Staged, salvage: Salvage, tables: Sequence[TableReport],
        lost: Mapping[str, Sequence[Ref]], mended: Mapping[str, int], problems: Sequence[Problem],
    ) -> RepairReport:  # fmt: skip
        gone = [
            LostMessages(id, tuple((item.first, item.last) for item in items))
            for id, items in lost.items()
        ]
        return RepairReport(
            store=str(self.path), result=str(self.result), pages=salvage.pages,
            page_size=staged.page_size,
            damaged_pages=sum(len(found) for found in salvage.damaged.values()),
            unread_bytes=staged.unread, wal_frames=staged.frames,
            lost_wal_frames=staged.lost_frames,
            messages=next((t.read for t in tables if t.table == "message"), 0),
            lost_messages=sum(b - a + 1 for each in gone for a, b in each.ranges),
            tables=tuple(tables), conversations=tuple(gone), mended=dict(mended),
            problems=tuple(problems),
        )  # fmt: skip

    def _settle(self, note: Callable[..., None], progress: Progress) -> list[Problem]:
        """Count, and put out of effect what covers messages that are not as they were."""
        self._counters()
        problems = problems_in(self._partial, self._clock, progress)
        changed = {str(p.conversation) for p in problems if p.invariant in ("I-08", "I-09")}
        if not changed:
            return problems
        with closing(connection(self._partial)) as store:
            for id in sorted(changed):
                count = repair_mend.blank_compactions(store, Codec(), id)
                note("compactions that cover what has changed, put out of effect", count)
        self._counters()
        return problems_in(self._partial, self._clock, progress)

    def _counters(self) -> None:
        """What is derived: the visible messages of each conversation."""
        with closing(SqliteBackend(self._partial, create=False)) as backend:
            counted = backend.read(_visible)
        with closing(connection(self._partial)) as store:
            query(store, SQL["begin"])
            for no, count in counted:
                query(store, SQL["counter"], (no, count))
            query(store, SQL["commit"])


def _load(
    store: apsw.Connection, staged: Staged, progress: Progress
) -> tuple[Loader, Salvage]:  # fmt: skip
    """Begin a transaction and put into it all that is left."""
    query(store, SQL["load_settings"])
    shapes = shapes_of(store)
    query(store, SQL["begin"])
    loader = Loader(store, shapes)
    with Image(staged.path, staged.page_size) as image:
        salvage = Salvage(image, shapes, progress)
        loader.load(salvage)
    return loader, salvage


def _visible(tx: Transaction) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    after = 0
    while page := tx.rows("conversation_all", no=after, limit=500):
        for no, _, _ in page:
            row = conversations.peek(tx, no)
            if row is not None:
                parts = log.segments(tx, no, row.base, row.origin, row.head)
                found.append((no, cuts.visible_count(tx, parts, cuts.all_of(tx, no), row.head)))
        after = page[-1][0]
    return found


def _tables(loader: Loader, salvage: Salvage) -> list[TableReport]:
    found: list[TableReport] = []
    for name, shape in loader.shapes.items():
        if shape.rows and name not in ("sqlite_schema", "sqlite_sequence"):
            lost = max(loader.lost(name), salvage.broken_rows[name])
            pages = len(salvage.damaged.get(name, ()))
            found.append(TableReport(name, loader.read[name], lost, pages))
    return found
