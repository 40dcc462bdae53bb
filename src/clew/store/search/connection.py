"""A connection to the search file: its named statements, and what its errors mean."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple, cast

import apsw

from clew.errors import SearchUnavailable, StoreClosed
from clew.store.backend import Row, Value
from clew.store.queries import parse
from clew.store.search.index import Damaged
from clew.store.sqlite_driver import FileConnection

FORMAT = 2
"""Changes whenever words are cut in another way or the tables differ: others are rebuilt."""

Identity = tuple[int, int]
"""Device and inode of a file."""


class Files(NamedTuple):
    """The files that a connection is on. While it is open, SQLite makes and removes none."""

    main: Identity | None
    wal: Identity | None
    shm: Identity | None


_SQL = parse((files("clew.store") / "sql" / "search.sqlite.sql").read_text("utf-8"))
_BUSY_MILLISECONDS = 100
_SCRUB_SECONDS = 10.0


def _typed(doing: str, error: apsw.Error | OSError) -> SearchUnavailable:
    """What SQLite or the file system says about the search file, as a typed error."""
    damaged = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError)
    # SQLError: a table is missing or cannot be read, for every statement here is known. Only the
    # expression of a search is not: should FTS5 refuse one, its file is innocent.
    if isinstance(error, damaged) and not str(error).startswith("fts5:"):
        return Damaged(f"the search file is damaged ({doing}): {error}")
    return SearchUnavailable(f"the search file cannot be used ({doing}): {error}")


@contextmanager
def translated(doing: str) -> Generator[None]:
    """Raise what SQLite and the file system say about the search file as typed errors."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise _typed(doing, error) from error


class _Keep:
    """A function that nobody calls; it refers to its connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __call__(self, *_: object) -> None:
        return None


class Connection:
    """A connection, and which files it is on. One thread at a time.

    Raises Damaged and SearchUnavailable only. The database must exist.
    """

    __slots__ = ("_connection", "_execute", "_execute_many", "files")

    def __init__(self, path: str) -> None:
        self.files = Files(None, None, None)
        try:
            with translated("open"):
                self._connection = FileConnection(path)
        except StoreClosed as error:  # open in the parent at a fork: queries go without it
            raise SearchUnavailable(str(error)) from error
        self._execute: Any = cast(Any, self._connection).execute
        self._execute_many: Any = cast(Any, self._connection).executemany
        try:
            with translated("open"):
                # A cycle that only close() breaks: in the child of a fork the collector must not
                # close what the parent uses.
                cast(Any, self._connection).create_scalar_function("keep", _Keep(self._connection))
                self._connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
                self._connection.set_busy_timeout(_BUSY_MILLISECONDS)
            if self.rows("pages") == [(0,)]:  # of a file with pages it would want the write lock
                self.rows("pragma_space")
            for pragma in ("pragma_journal", "pragma_synchronous", "pragma_cache"):
                self.rows(pragma)
            self._ensure_tables()
        except BaseException:
            self.close()
            raise

    def rows(self, name: str, **params: Value) -> list[Row]:
        """Run a statement to its end: all rows."""
        try:
            return self._execute(_SQL[name], params).fetchall()
        except apsw.Error as error:
            raise _typed(name, error) from error

    def ids(self, name: str, **params: Value) -> Generator[int]:
        """The first column, lazily: SQLite looks for little more than is taken."""
        size = 32
        with translated(name):
            rows = self._execute(_SQL[name], params)
        try:
            while True:
                with translated(name):
                    found = [row[0] for row in islice(rows, size)]
                yield from found
                if len(found) < size:
                    return
                size = min(512, size * 2)
        finally:
            rows.close(True)

    def batch(self, name: str, params: Iterable[Mapping[str, Value]]) -> None:
        """Run a statement once for each set of parameters."""
        try:
            self._execute_many(_SQL[name], params).fetchall()
        except apsw.Error as error:
            raise _typed(name, error) from error

    def begin(self) -> bool:
        """Begin to write; False if another connection keeps writing."""
        try:
            self._execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise _typed("begin", error) from error
        return True

    def commit(self) -> None:
        with translated("commit"):
            self._execute("COMMIT")

    def scrub(self) -> bool:
        """Write the file anew, without what was deleted from the index. Deleted words stay in an
        FTS5 table until its parts are merged, and their bytes in the file until VACUUM. False:
        other connections kept using it."""
        deadline = time.monotonic() + _SCRUB_SECONDS
        while True:
            try:
                for name in ("pragma_secure_delete", "words_optimize", "vacuum"):
                    self._execute(_SQL[name]).fetchall()
                if not self._execute(_SQL["cut_wal"]).fetchall()[0][0]:
                    return True
            except (apsw.BusyError, apsw.LockedError):
                pass
            except apsw.Error as error:
                raise _typed("scrub", error) from error
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)

    def end(self) -> None:
        """Roll back if a transaction is open. Never raises: at worst closing does it."""
        with suppress(apsw.Error):
            if self._connection.in_transaction:
                self._execute("ROLLBACK")

    def close(self, tidy: bool = True) -> None:
        """Close. The last connection to close copies the -wal back and removes it, if `tidy`."""
        with suppress(apsw.Error):
            if not tidy:
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._connection.close(True)

    def _ensure_tables(self) -> None:
        """Fill a new file, in one transaction: there is no half-made one. Refuse other formats."""
        found = self.rows("format_read")[0][0]
        if found == FORMAT:
            return
        if found or self.rows("tables_count")[0][0]:
            raise Damaged(f"the search file has format {found}, this clew writes {FORMAT}")
        if not self.begin():
            raise SearchUnavailable("the search file is locked by another program")
        for name in ("words_create", "words_automerge", "mark_create", "mark_insert"):
            self.rows(name)
        with translated("format"):
            self._execute(f"PRAGMA user_version = {FORMAT:d}").fetchall()
        self.commit()
