"""The edge of psycopg: how a connection is made, and what its errors mean to callers.

Texts name the kind of failure and the remedy, never a statement's parameters or a message's
content; the server's own text, which may quote both, stays in the cause.
"""

from __future__ import annotations

import re
from logging import NullHandler, getLogger
from typing import Any, LiteralString, cast

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from clew.errors import (
    Busy,
    Corrupt,
    InputError,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreMoved,
    Unavailable,
)
from clew.store.address import Address
from clew.store.codec import DictionaryGone
from clew.store.postgres_session import Session

Connection = psycopg.Connection[Any]

# What goes wrong is told by a typed error. A program that sets up logging gets psycopg's lines too;
# one that does not would see them on its standard error.
getLogger("psycopg").addHandler(NullHandler())

OLDEST_SERVER = 140000
_LONGEST_WAIT = 2**31 - 1
"""Milliseconds that the server can count."""
LONGEST_CONNECT = 5
"""Seconds for one try at one host: of several the next may be the one that answers."""


class Contention(Busy):
    """The server could not do it now: it undid a transaction so that others could go on, or has no
    connection left. The same may go through the next moment."""


class InDoubt(Unavailable):
    """The connection was lost after COMMIT was sent: the transaction may be stored, or may yet be.
    What a later run meets does not tell that nothing was written."""


class Distrusted(Unavailable):
    """TLS was asked for, and the server has none, or a certificate that is not the one expected:
    waiting does not help."""

    retryable = False


_TLS = re.compile(r"certificate verify failed|does not match host name|does not support SSL")


class Demoted(StoreError):
    """The server takes no writes, which it may have done when the connection was made."""


def parameters(address: Address, patience: float) -> dict[str, Any]:
    """What psycopg.connect is given beside the address. What the URL says wins."""
    try:
        given = conninfo_to_dict(address.conninfo)
    except psycopg.ProgrammingError as error:
        # libpq's text may quote the password, and so does not go on.
        unknown = re.match(r'invalid URI query parameter: "\w+"', str(error))
        raise InputError(
            f"the URL of {address.shown} cannot be read{f': {unknown[0]}' if unknown else ''}; it "
            f"is postgresql://user@host:port/database?parameter=value, with what is special in a "
            f"password written as %XX"
        ) from None
    ours: dict[str, Any] = {
        "application_name": "clew",
        "connect_timeout": max(2, min(LONGEST_CONNECT, int(patience))),
        # Whoever says nothing is asked three times, and has gone after a minute.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    return {
        "autocommit": True,
        "client_encoding": "UTF8",  # whatever the URL or the environment says: ours is
        # Our sessions prepare by themselves; psycopg would deallocate theirs after a rollback.
        "prepare_threshold": None,
    } | {name: value for name, value in ours.items() if name not in given}


def connect(address: Address, patience: float) -> Session:
    """A connection of its own, set up, or the typed error."""
    given = parameters(address, patience)
    try:
        connection = Session.connect(address.conninfo, **given)
    except psycopg.Error as error:
        raise translate(error, address.shown) from error
    connection.pooled = address.pooled
    if not address.pooled:
        try:
            connection.execute(session(address, patience).encode())
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error):
                raise translate(error, address.shown) from error
            raise
    return connection


def query(connection: Connection, statement: str, *params: Any) -> list[Any]:
    """Run one statement outside any unit of work: all rows, or the typed error."""
    try:
        cursor = connection.execute(cast(LiteralString, statement), params or None)
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise translate(error) from error


def session(address: Address, patience: float) -> str:
    """The statement that sets a session up. With a pooler, which lends sessions, each transaction
    does it for itself.

    A client that says nothing inside a transaction (its process is stopped, its machine gone) loses
    the locks in half the time that others wait for them, a second at least.
    """
    wait = min(max(2, int(patience * 1000)), _LONGEST_WAIT)  # 0 would be for ever
    idle = max(1000, wait // 2)
    return (
        f"SELECT set_config('lock_timeout', '{wait}', {address.pooled}), "
        f"set_config('idle_in_transaction_session_timeout', '{idle}', "
        f"{address.pooled}), set_config('synchronous_commit', CASE "
        f"current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE "
        f"current_setting('synchronous_commit') END, {address.pooled})"
    )


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or the server is going or not there yet."""
    state = _state(error)
    if not state:
        return isinstance(error, psycopg.OperationalError) and not isinstance(
            error, errors.PipelineAborted
        )
    return state[:2] == "08" or state in ("57P01", "57P02", "57P03", "57P05", "25P03", "25P04")


def translate(error: psycopg.Error, where: str = "the server") -> StoreError | InputError:
    """The typed error; raise it `from error`."""
    state = _state(error)
    if state[:3] == "28P" or state[:3] == "280":
        return StoreError(f"{where} refuses the user or the password ({state}); see pg_hba.conf")
    if state == "3D000":
        return StoreError(f"there is no database {where}; create it first (CREATE DATABASE)")
    if state in _MEANINGS:
        kind, text = _MEANINGS[state]
        return kind(f"{text} ({state})")
    if state == "22023" and error.sqlstate is None:
        return InputError(f"the URL of {where} has a parameter with a bad value: {_reason(error)}")
    if state == "CLEW2":
        return StoreMoved(error.diag.message_primary or "elsewhere")
    if isinstance(error, errors.IntegrityError) and "(I-23)" in str(error):
        return DictionaryGone("the dictionary is gone (I-23); the same call may be repeated")
    if isinstance(error, errors.IntegrityError):
        return StoreError(
            f"constraint {error.diag.constraint_name or ''} refused the write ({state})"
        )
    if _TLS.search(_reason(error)):
        return Distrusted(f"{where} cannot be reached as its URL asks: {_reason(error)}")
    if is_lost(error):
        return Unavailable(
            f"{where} cannot be reached, or the connection was lost"
            f"{f' ({state})' if state else ''}: {_reason(error)}. "
            f"The same call may be repeated with the same keys."
        )
    if isinstance(error, psycopg.DataError):
        return InputError(f"PostgreSQL cannot keep a value that was given ({state or 'client'})")
    return StoreError(f"PostgreSQL failed ({state or type(error).__name__})")


def _state(error: psycopg.Error) -> str:
    """The server's code; of a refused connection libpq gives the text only."""
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        text = str(error)
        return next((state for state, said in _REFUSALS.items() if re.search(said, text)), "")
    return error.sqlstate or ""


def _reason(error: psycopg.Error) -> str:
    """The first line of libpq's text: about the connection, and without a password."""
    line = (str(error).strip().splitlines() or ["no reason given"])[0]
    return line.removeprefix("connection failed: ").rstrip(".")


_REFUSALS = {
    "22023": r"(invalid|unrecognized) .*(value|option|port number)",
    "28P01": r"password authentication failed|authentication failed for user|no password supplied",
    "28000": r'no pg_hba\.conf entry|role ".*" does not exist|is not permitted to log in',
    "3D000": r'database ".*" does not exist',
    "53300": r"too many clients|too many connections|remaining connection slots",
    "57P03": r"the database system is (starting up|shutting down|in recovery mode|not yet)",
}
"""What a server says when it refuses a connection. In another language than English it is told as
it is, as a server that cannot be reached."""
FOREIGN = "the database has {} of another program; use a database (or schema) of its own"
_AGAIN = "Nothing was written; the same call may be repeated with the same keys"
_STANDBY = "the server takes no writes; is it a standby? Name the primary"
_MEANINGS: dict[str, tuple[type[StoreError | InputError], str]] = {
    "40001": (Contention, f"the server undid the transaction for another. {_AGAIN}"),
    "40P01": (Contention, f"the server undid the transaction to end a deadlock. {_AGAIN}"),
    "55P03": (Busy, f"a lock was not free in time. {_AGAIN}"),
    "57014": (Busy, f"the server cancelled the statement, by a time-out or a person. {_AGAIN}"),
    "53100": (StoreFull, "the server has no space left; nothing of this was stored"),
    "53200": (Busy, f"the server is out of memory. {_AGAIN}"),
    "53300": (Contention, f"the server has no connection left; raise max_connections. {_AGAIN}"),
    "25006": (Demoted, _STANDBY),
    "0A000": (Demoted, _STANDBY),  # so it says when the transaction begins
    "42501": (StoreError, "the user lacks a privilege; docs/operating/scale.md lists the roles"),
    "42P01": (StoreError, "a table of clew is missing; run `clew migrate` as the owner"),
    "42883": (StoreError, "a function of clew is missing; run `clew migrate` as the owner"),
    "42703": (StoreError, "a column of clew is missing; run `clew migrate` as the owner"),
    "42P07": (StoreError, FOREIGN.format("a table or an index by a name of clew's")),
    "42710": (StoreError, FOREIGN.format("something by a name of clew's")),
    "42723": (StoreError, FOREIGN.format("a function by a name of clew's")),
    "3F000": (StoreError, "no schema to create tables in; look at search_path"),
    "22003": (InputError, "a number does not fit into 64 bits; give a smaller one"),
    "XX001": (Corrupt, "the server found damaged data; look at its log"),
    "XX002": (Corrupt, "the server found a damaged index; look at its log, and REINDEX"),
    "58030": (StoreError, "the server could not read or write its files; look at its log"),
    "CLEW1": (
        SchemaTooNew,
        "a newer clew has changed the store, and this one may not write to it; upgrade clew",
    ),
}
