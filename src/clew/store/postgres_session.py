"""Statements in libpq's pipeline mode, by psycopg.pq.

Commands are written into libpq's buffer and go to the server together when a result is wanted.
psycopg's own pipeline goes to the socket at each command, which was more than half of the CPU of an
append. Its connection, its waiting (signals, cancellation), its errors and its types are used here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import PipelineAborted, error_from_result
from psycopg.waiting import Ready, Wait

from clew.errors import InputError
from clew.store.backend import Row, Value

_TEXT, _BINARY = pq.Format.TEXT, pq.Format.BINARY
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)
_NUL = "PostgreSQL cannot keep a NUL character in a name, key or filter"


class Session(psycopg.Connection[Any]):
    """A connection that remembers which statements its server has prepared."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepared: set[bytes] = set()
        self.pooled = False
        """Whether the next transaction may run in another session of the server."""


class Command:
    """A statement as the server takes it: $1, $2, ... for the parameters in `names`."""

    __slots__ = ("name", "names", "text")

    def __init__(self, name: str, text: str, names: Sequence[str] = ()) -> None:
        self.name, self.text, self.names = name.encode(), text.encode(), tuple(names)


class Pipeline:
    """Commands on their way to a server, and the results that are due. One thread at a time."""

    __slots__ = ("_due", "_parsed", "_pg", "_session", "_waiting")

    def __init__(self, session: Session) -> None:
        self._session, self._pg = session, session.pgconn
        self._due: list[bytes | None] = []
        """One for each result: the statement that it prepares, or None."""
        self._parsed: set[bytes] = set()
        self._waiting = False
        try:
            self._pg.enter_pipeline_mode()
        except psycopg.Error:
            session.close()
            raise

    def send(self, command: Command, params: Mapping[str, Value]) -> None:
        """Put a command behind the others. InputError for a value that the server cannot keep."""
        given = [params[name] for name in command.names]
        values = [*map(_encode, given)]
        formats = [_BINARY if isinstance(value, bytes) else _TEXT for value in given]
        pg, session = self._pg, self._session
        if session.pooled:
            pg.send_query_params(command.text, values, None, formats, _BINARY)
        else:
            if command.name not in session.prepared and command.name not in self._parsed:
                pg.send_prepare(command.name, command.text)
                self._parsed.add(command.name)
                self._due.append(command.name)
            pg.send_query_prepared(command.name, values, formats, _BINARY)
        self._due.append(None)

    def fetch(self) -> pq.abc.PGresult:
        """Wait for all that was sent; the last result. Raises the first error among them.

        By a sync and not a flush, which tells as much: after it the server counts for how long its
        client says nothing inside a transaction, and ends that one day.
        """
        self._pg.pipeline_sync()
        self._due.append(None)
        return self._collect()[-2]

    def rows(self) -> list[Row]:
        """As `fetch`, its rows as values."""
        result = self.fetch()
        if result.ntuples == 0:
            return []
        loader = Transformer(self._session)
        loader.set_pgresult(result, format=_BINARY)
        return loader.load_rows(0, result.ntuples, tuple)

    def end(self) -> pq.abc.PGresult:
        """Wait for everything and leave the mode; the last command's result, or the first error."""
        try:
            return self.fetch()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Leave the mode, whatever is under way; a connection that cannot is closed."""
        try:
            if self._pg.pipeline_status == pq.PipelineStatus.OFF:
                return
            if self._waiting:  # interrupted: which results are still to come nobody knows
                self._session.close()
                return
            if self._due:
                with suppress(psycopg.Error):  # of a unit that has failed already
                    self.fetch()
            self._pg.exit_pipeline_mode()
        except psycopg.Error:
            self._session.close()

    def _collect(self) -> list[pq.abc.PGresult]:
        self._waiting = True
        results = self._session.wait(_receive(self._pg, len(self._due)))
        self._waiting = False
        due, self._due = self._due, []
        for name, result in zip(due, results, strict=True):
            if result.status in _FAILED:
                raise error_from_result(result, encoding="utf-8")
            if result.status == pq.ExecStatus.PIPELINE_ABORTED:
                raise PipelineAborted("an earlier statement of the transaction failed")
            if name is not None:
                self._session.prepared.add(name)
        return results


def _encode(value: Value) -> bytes | None:
    """As the server takes it: texts and numbers without a type, which it knows from the column, so
    that one prepared statement serves whatever values come, NULL too."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if "\0" in value:
            raise InputError(_NUL)
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise InputError("a name, key or filter holds a lone surrogate; encode it") from None
    return repr(value).encode() if isinstance(value, float) else b"%d" % value


def _receive(pg: pq.abc.PGconn, count: int) -> PQGen[list[pq.abc.PGresult]]:
    """Send what is in the buffer and take so many results."""
    found: list[pq.abc.PGresult] = []
    while pg.flush():
        if (yield Wait.RW) & Ready.R:
            pg.consume_input()
    while True:
        while not pg.is_busy():
            result = pg.get_result()
            if result is not None:  # None parts the results of two commands
                found.append(result)
                if len(found) == count:
                    return found
        yield Wait.R
        pg.consume_input()
