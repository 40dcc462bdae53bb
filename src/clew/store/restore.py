"""Restoring a store: the content of a backup in the place of the live store.

No file takes the place of another. Pages are written into the live file, in one transaction that
also changes the stamp, so every process that has it open stops with StoreReplaced at its next
write instead of going on in a store that it does not know.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType

import apsw
from msgspec import Struct

from clew.clock import SECOND, Clock, SystemClock
from clew.config import Limits
from clew.errors import Busy, Corrupt, InputError, StoreError
from clew.ids import Ids
from clew.store import dictionary, migrate
from clew.store.admission import admitted
from clew.store.codec import Codec
from clew.store.copying import (
    PATIENCE,
    SQL,
    Contents,
    Progress,
    check_store,
    connection,
    contents,
    copy_file,
    copy_snapshot,
    copying,
    create,
    remove,
    run,
    step,
)
from clew.store.database import Database
from clew.store.findings import counted
from clew.store.kit import Kit
from clew.store.search.file import identity, replace
from clew.store.sqlite import SqliteBackend
from clew.store.sqlite_driver import query
from clew.store.turnstile import Turnstile
from clew.store.verify import Problem, verify


class Restored(Struct, frozen=True):
    """What a restore did. `kept`: the copy of the store that was replaced; None: there was none."""

    path: Path
    kept: Path | None
    conversations: int
    messages: int


def restore(
    path: str | os.PathLike[str], source: str | os.PathLike[str], *,
    progress: Progress | None = None,
) -> Restored:  # fmt: skip
    """Put the content of the store file `source` in the place of the store at `path`.

    `source` is copied, brought up to date and verified before anything is touched: Corrupt when an
    invariant does not hold in it. The replaced store is kept as a file beside it, and is exactly
    what was there: no writer comes between. Other processes may have the store open; their next
    write raises StoreReplaced. Raises InputError, StoreError, Busy.
    """
    with Restoration(path, source) as ready:
        return ready.apply(progress)


def _nothing() -> None:
    """No condition."""


class Restoration:
    """A verified copy of `source`, ready to replace the store at `path`; use it as a context.

    Nothing is touched before `apply`, so a person can be asked in between.
    """

    def __init__(
        self, path: str | os.PathLike[str], source: str | os.PathLike[str],
        progress: Progress | None = None, clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self.path, self.source = Path(path).expanduser(), Path(source).expanduser()
        self._clock = clock or SystemClock()
        check_store(self.source)
        if self.path.exists() and os.path.samefile(self.path, self.source):
            raise InputError(f"{self.source} is the store itself; give a backup of it")
        _check_live(self.path)
        self._staged = self.path.with_name(f"{self.path.name}.restore-{os.urandom(4).hex()}")
        try:
            create(self._staged)
            copy_snapshot(self.source, self._staged, progress)
            self.contents = self._make_ready()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Restoration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Remove the prepared copy. May be repeated."""
        remove(self._staged)

    def apply(
        self, progress: Progress | None = None, check: Callable[[], None] = _nothing
    ) -> Restored:
        """Replace the store. Raises Busy when another process keeps writing. `check` is asked
        while nobody else can write; what it raises leaves everything as it is."""
        if not self.path.exists():
            create(self.path)
        empty = migrate.examine(str(self.path)).empty
        kept = None if empty else name_beside(self.path, "replaced", self._clock)
        with admitted(self.path, "restore", PATIENCE), write_turn(self.path):
            check()
            _copy_into(self._staged, self.path, kept, progress)
        search = f"{self.path}.search"
        replace(search, identity(search))
        return Restored(self.path, kept, self.contents.conversations, self.contents.messages)

    def _make_ready(self) -> Contents:
        """Bring the copy up to date, verify it, and give it a stamp of its own."""
        try:
            problems = problems_in(self._staged, self._clock)
            faults = [f"{problem.invariant} {problem.detail}" for problem in problems]
        except Corrupt as error:
            faults = [str(error.__cause__ or error)]
        if faults:
            raise Corrupt(
                f"{self.source} does not pass verification ({counted(len(faults), 'problem')}, the "
                f"first: {faults[0]}). Nothing was changed; restore another backup"
            )
        with closing(connection(self._staged)) as copy:
            query(copy, SQL["stamp_write"], (os.urandom(16).hex(),))
            return contents(copy)


def problems_in(
    path: Path, clock: Clock, progress: Progress | None = None
) -> list[Problem]:  # fmt: skip
    """The invariants that do not hold in the store at `path`, which nobody else has open."""
    backend = SqliteBackend(path, create=False)
    try:
        codec = Codec(lambda: dictionary.known(backend))
        return verify(Database(backend, Kit(codec, Ids(clock), clock, Limits())), progress)
    finally:
        backend.close()


def name_beside(path: Path, what: str, clock: Clock) -> Path:
    """A new name beside a store, with the time: `agent.replaced-20260501T031500Z.db`."""
    moment = time.gmtime(clock.now() // SECOND)
    stem = f"{path.stem}.{what}-{time.strftime('%Y%m%dT%H%M%SZ', moment)}"
    name = path.with_name(f"{stem}{path.suffix}")
    while name.exists():
        name = path.with_name(f"{stem}-{os.urandom(2).hex()}{path.suffix}")
    return name


def _check_live(path: Path) -> None:
    if path.exists() and not migrate.examine(str(path)).empty:
        return
    if os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal"):
        raise StoreError(
            f"{path}-wal lies there without its store, and may hold the newest messages. "
            f"Move it away, then restore again"
        )
    elif not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")


def _copy_into(staged: Path, live: Path, kept: Path | None, progress: Progress | None) -> None:
    """Write the pages of `staged` into the live store, in one transaction."""
    with (
        closing(connection(staged)) as reading,
        closing(connection(live)) as writing,
    ):
        if kept is not None:
            _prepare_live(reading, writing, live)
        with copying(reading, writing) as copy:
            step(copy, 1)  # from here on nobody else can commit
            if kept is not None:
                _keep(live, kept)
            run(copy, progress)
        query(writing, SQL["merge_wal"])  # its schema is in order now


def _prepare_live(reading: apsw.Connection, writing: apsw.Connection, live: Path) -> None:
    """What SQLite asks of a file that is copied into while others read it."""
    if query(writing, SQL["page_size"]) != query(reading, SQL["page_size"]):
        raise StoreError(
            f"{live} has another page size than the backup. Close all that has it open, move it "
            f"away, then restore again"
        )
    if not migrate.examine(str(live)).wal:
        query(writing, SQL["use_wal"])


def _keep(live: Path, kept: Path) -> None:
    """Copy the store that is being replaced, whatever state it is in."""
    create(kept)
    try:
        with closing(connection(live)) as reading:
            copy_file(reading, kept, None)
    except BaseException:
        remove(kept)
        raise


@contextmanager
def write_turn(path: Path) -> Generator[None, None, None]:
    """Inside the store's turnstile: busy writers would starve a restore otherwise."""
    turnstile = Turnstile(os.path.realpath(path))
    deadline = time.monotonic() + PATIENCE
    try:
        while not turnstile.try_enter():
            if time.monotonic() > deadline:
                raise Busy(f"another process has been writing to {path}; stop it, then try again")
            time.sleep(0.005)
        try:
            yield
        finally:
            turnstile.leave()
    finally:
        turnstile.close()
