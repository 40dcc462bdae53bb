"""Named statements in one PostgreSQL transaction, sent in a pipeline.

A statement whose rows nobody wants is sent and not waited for: an append is two round trips, one
for BEGIN and the row's lock, one for all that follows up to COMMIT. An error of such a statement
comes with the next one that is waited for, COMMIT at the latest; the server skips what lies
between, so nothing of the transaction can be stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NoReturn, TypeVar

import psycopg

from clew.errors import StoreError
from clew.store import queries
from clew.store.backend import Row, Transaction, Unit, Value
from clew.store.postgres_driver import translate
from clew.store.postgres_session import Command, Pipeline, Session

T = TypeVar("T")

_READ = Command("read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
"""One snapshot for all statements of a reader. A transaction that only reads is never refused for
that. See docs/decisions/0012-isolation.md."""
_WRITE = Command("write", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
"""Each statement sees what is committed when it begins: what a unit looks for after it has its
lock, the one who had the lock before has committed."""
_GUARD = Command("guard", "SELECT clew_guard($1)", ("schema",))
_COMMIT = Command("commit", "COMMIT")


@cache
def statements() -> Mapping[str, Command]:
    """The store's statements as the server takes them, read once per process."""
    own = queries.parse(queries.read("search.postgres.sql"))
    texts = {**queries.load("postgres"), **own}
    return MappingProxyType({name: command(name, text) for name, text in texts.items()})


def command(name: str, text: str) -> Command:
    """A statement with `:name` parameters as one with $1, $2, ..."""
    names = tuple(dict.fromkeys(re.findall(r":(\w+)", text)))
    return Command(name, re.sub(r":(\w+)", lambda m: f"${names.index(m[1]) + 1}", text), names)


class PostgresTransaction:
    """`Transaction` on a session; one thread at a time.

    `setup` runs first in each transaction of a session that a pooler lends.
    """

    __slots__ = ("_pipeline", "_session", "_setup", "committing")

    def __init__(self, session: Session, setup: Command | None) -> None:
        self._session, self._setup = session, setup
        self._pipeline = Pipeline(session)
        self.committing = False
        """Whether COMMIT of a write may have been sent: then a lost connection leaves it open."""

    # -- the waist

    def rows(self, name: str, /, **params: Value) -> list[Row]:
        try:
            self._pipeline.send(statements()[name], params)
            return self._pipeline.rows()
        except psycopg.Error as error:
            _fail(name, error)

    def row(self, name: str, /, **params: Value) -> Row | None:
        rows = self.rows(name, **params)
        return rows[0] if rows else None

    def run(self, name: str, /, **params: Value) -> None:
        try:
            self._pipeline.send(statements()[name], params)
        except psycopg.Error as error:
            _fail(name, error)

    def changed(self, name: str, /, **params: Value) -> int:
        try:
            self._pipeline.send(statements()[name], params)
            return self._pipeline.fetch().command_tuples or 0
        except psycopg.Error as error:
            _fail(name, error)

    def batch(self, name: str, params: Iterable[Mapping[str, Value]]) -> None:
        for values in params:
            self.run(name, **values)

    # -- whole transactions

    def read(self, reader: Unit[T]) -> T:
        """Run a reader on one snapshot."""
        return self._whole(_READ, reader)

    def write(self, unit: Unit[T], schema: int) -> T:
        """Run a unit and commit it. `schema`: the newest that this code knows; the guard refuses it
        if that is too old, in the transaction, so that no unit slips past a migration."""

        def guarded(tx: Transaction) -> T:
            result = unit(tx)
            self._pipeline.send(_GUARD, {"schema": schema})
            return result

        return self._whole(_WRITE, guarded)

    def _whole(self, begin: Command, work: Unit[T]) -> T:
        pipeline = self._pipeline
        try:
            pipeline.send(begin, {})
            if self._setup is not None:
                pipeline.send(self._setup, {})
            result = work(self)
            pipeline.send(_COMMIT, {})
            self.committing = begin is _WRITE
            ended = pipeline.end()
        finally:
            pipeline.abandon()
        if ended.command_status != b"COMMIT":
            raise StoreError("the transaction ended inside a unit of work that did not report it")
        return result


def _fail(name: str, error: psycopg.Error) -> NoReturn:
    failure = translate(error)
    failure.add_note(f"in statement {name}")
    raise failure from error
