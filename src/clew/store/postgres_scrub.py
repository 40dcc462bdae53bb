"""What can be done on a server about bytes of rows that are gone, and reading all that is there.

VACUUM takes dead rows away, so that nothing can read them any more. Their bytes stay in the free
part of pages until these are written again, and in the write-ahead log as long as that is kept:
only the server's owner can do more (VACUUM FULL, archives, replicas), and is told so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
from psycopg import sql

from clew.store.address import Address
from clew.store.postgres_driver import connect, query, translate
from clew.store.values import StoredValue, stored

BATCH = 500
LEFT = (
    "the server's files keep old bytes in free space until it is written again: its owner may run "
    "VACUUM FULL on the store's tables",
    "the server's write-ahead log, its archive, replicas and base backups hold it as long as they "
    "are kept",
)
_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND "
    "relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('meta')) "
    "ORDER BY relname"
)


def scrub(address: Address, patience: float) -> tuple[str, ...]:
    """VACUUM every table; gives what is beyond that, and which tables another user owns."""
    with closing(connect(address, patience)) as connection:
        connection.autocommit = True
        refused: list[str] = []
        connection.add_notice_handler(lambda notice: refused.append(notice.message_primary or ""))
        for (table,) in query(connection, _TABLES):
            try:
                connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(table)))
            except psycopg.Error as error:
                raise translate(error) from error
    said = tuple(f"the server says: {text}" for text in dict.fromkeys(refused))
    return (*LEFT, *said)


def values(address: Address, patience: float) -> Iterator[StoredValue]:
    """Every text and every bytes of every table of the store, on one snapshot."""
    with closing(connect(address, patience)) as connection:
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        for (table,) in query(connection, _TABLES):
            with connection.cursor(name="clew_values") as cursor:
                cursor.itersize = BATCH
                cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))
                columns = [column.name for column in cursor.description or ()]
                for row in cursor:
                    yield from stored(table, columns, row)
