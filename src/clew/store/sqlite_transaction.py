"""Named statements on one SQLite connection, and the edges of its transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, cast

import apsw

from clew.errors import InputError, StoreClosed, StoreError
from clew.store.backend import Row, Value
from clew.store.forks import INHERITED
from clew.store.guard import Guard
from clew.store.sqlite_driver import again, query, translate
from clew.store.witness import Layout

_ROOTS = "SELECT name, rootpage FROM sqlite_schema WHERE name IN ('meta', 'sqlite_sequence')"
_SUM = "SELECT coalesce(sum(seq), 0) FROM sqlite_sequence"
_FAULTS = (apsw.Error, MemoryError, UnicodeEncodeError, OverflowError)
"""What executing a statement may raise: the engine's faults, and values it cannot hold."""


class SqliteTransaction:
    """`Transaction` on a connection that is used again and again; one thread at a time.

    Every statement runs to its end (`fetchall`): one that is abandoned at its first row may skip
    the checks that SQLite makes after the last.
    """

    __slots__ = ("_connection", "_execute", "_guard", "_live", "_statements", "broken")

    def __init__(
        self, connection: apsw.Connection, statements: Mapping[str, str], guard: Guard
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._guard = guard
        self._live: Any = cast(Any, connection.cursor()).execute
        self._execute = self._live
        self.broken = False
        """Whether the connection must not be used again."""

    # -- the waist

    def rows(self, name: str, /, **params: Value) -> list[Row]:
        try:
            return self._execute(self._statements[name], params).fetchall()
        except _FAULTS as error:
            self._fail(name, error)

    def row(self, name: str, /, **params: Value) -> Row | None:
        try:
            rows = self._execute(self._statements[name], params).fetchall()
        except _FAULTS as error:
            self._fail(name, error)
        return rows[0] if rows else None

    def run(self, name: str, /, **params: Value) -> None:
        try:
            self._execute(self._statements[name], params).fetchall()
        except _FAULTS as error:
            self._fail(name, error)

    def changed(self, name: str, /, **params: Value) -> int:
        try:
            self._execute(self._statements[name], params).fetchall()
        except _FAULTS as error:
            self._fail(name, error)
        return self._connection.changes()

    def batch(self, name: str, params: Iterable[Mapping[str, Value]]) -> None:
        if self._execute is not self._live:
            self._execute(name, params)
        try:
            cast(Any, self._connection).executemany(self._statements[name], params).fetchall()
        except _FAULTS as error:
            self._fail(name, error)

    def _fail(self, name: str, error: Exception) -> NoReturn:
        """Raise what the error means. A value that SQLite cannot hold was never handed to it, so
        the transaction is as it was. Else only a constraint leaves the transaction as it was; any
        other fault ends it here, and statements that the unit may still try are refused, because
        outside a transaction each would commit by itself."""
        if isinstance(error, UnicodeEncodeError):
            raise InputError("a name, key or filter holds a lone surrogate; encode it") from None
        if isinstance(error, OverflowError):
            raise InputError("a number does not fit into 64 bits; give a smaller one") from None
        failure = self._meaning(error) if isinstance(error, apsw.Error) else error
        if not (isinstance(error, apsw.ConstraintError) and self._connection.in_transaction):
            self.end()
            self._execute = _ended
        failure.add_note(f"in statement {name}")
        raise failure from (None if failure is error else error)

    def _meaning(self, error: apsw.Error) -> StoreError:
        return self._guard.explain(translate(error, self._connection.system_errno))

    # -- the edges

    @property
    def in_transaction(self) -> bool:
        return not self.broken and self._connection.in_transaction

    def begin(self, how: str, pause: Callable[[float], None]) -> None:
        """Run BEGIN or BEGIN IMMEDIATE; statements work again. `pause` sleeps between attempts
        after an I/O error that may pass."""
        self._execute = self._live
        again(lambda: self.edge(how), pause)

    def edge(self, statement: str) -> None:
        """Run a statement that moves an edge of the transaction, such as COMMIT or SAVEPOINT."""
        try:
            self._live(statement)
        except apsw.Error as error:
            raise self._meaning(error) from error

    def drop_pages(self) -> None:
        """Forget the pages read so far. Between transactions."""
        query(self._connection, "PRAGMA shrink_memory")

    def layout(self) -> Layout | None:
        """What the witness compares, as this transaction sees it; None: there are no numbers."""
        try:
            roots = dict(query(self._connection, _ROOTS))
            if len(roots) < 2:
                return None
            cookie = int(query(self._connection, "PRAGMA schema_version")[0][0])
            return Layout(cookie, roots["meta"], roots["sqlite_sequence"], self.total())
        except StoreError as error:
            raise self._guard.explain(error) from error.__cause__

    def total(self) -> int:
        """The sum of the numbers that were ever given to rows."""
        try:
            return int(self._live(_SUM).fetchall()[0][0])
        except apsw.Error as error:
            raise self._meaning(error) from error

    def version(self) -> int:
        """A count that moves with every commit to the file that this connection comes to see."""
        return self._connection.data_version()

    def end(self) -> None:
        """Roll back if a transaction is open. Never raises: a connection that cannot is broken."""
        try:
            if self.in_transaction:
                self._live("ROLLBACK")
        except apsw.Error:
            self.broken = True

    def close(self) -> None:
        """Close the connection, unless it is another process'. Never raises: what closing could
        not do, the next opener does."""
        if self._live is not _disowned:
            self.broken = True
            try:
                if self._guard.keeps_wal:
                    self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                self._connection.close(True)
            except apsw.Error:
                pass

    def disown(self) -> None:
        """In the child of a fork: never touch the connection again, not even to close it."""
        self._live = self._execute = _disowned
        self.broken = True


def _ended(*_: object) -> NoReturn:
    raise StoreError("the transaction ended with an earlier error of this unit of work")


def _disowned(*_: object) -> NoReturn:
    raise StoreClosed(INHERITED)
