"""The doctor of stores on PostgreSQL: the connection, the schema, durability, and the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clew.errors import ClewError, StoreError
from clew.store import doctor_rows, doctor_server, doctor_spool, postgres_migrate
from clew.store.address import Address
from clew.store.findings import Ask, Finding, counted, size_text
from clew.store.postgres_driver import Connection
from clew.store.postgres_upkeep import asking, looking
from clew.store.search.index import Mark
from clew.store.search.index import Store as Log
from clew.store.search.table_index import FORMAT

OPENING = "clew.open()"
"""Python that opens the store: with the URL, which may hold a password, in CLEW_STORE."""
_LOCAL = ("localhost", "127.0.0.1", "::1", "")


def diagnose(address: Address) -> Iterator[Finding]:
    """As doctor.diagnose, for a database of a server."""
    try:
        with looking(address) as connection:
            yield from _inside(address, connection)
    except ClewError as error:
        yield Finding(
            "error", "server", str(error),
            "Mend what the message names: the URL (CLEW_STORE, --store), the server, or its "
            "pg_hba.conf",
            code="server.unreachable",
        )  # fmt: skip


def _inside(address: Address, connection: Connection) -> Iterator[Finding]:
    ask = asking(connection)
    yield _server(address, ask)
    yield network(connection)
    yield from _durability(ask)
    try:
        schema = list(_schema(connection))
    except StoreError as error:
        remedy = "Name a database of clew's own in the URL, or use a user who may read this one"
        yield Finding("error", "schema", str(error), remedy, code="schema.unreadable")
        return
    yield from schema
    meta = postgres_migrate.meta_of(connection)
    if meta is None:
        return
    yield from doctor_spool.look(None, meta.get("store_id"))
    for subject, look in _looks(address):
        yield from _careful(subject, look, ask)


def _looks(address: Address) -> list[tuple[str, Callable[[Ask], Iterator[Finding]]]]:
    return [
        ("integrity", _indexes),
        ("contents", lambda ask: doctor_rows.look(ask, OPENING, ask("clock")[0][0])),
        ("size", _size),
        ("search", _search),
        ("replication", doctor_server.replication),
        ("connections", lambda ask: doctor_server.connections(ask, address)),
        ("rights", doctor_server.rights),
        ("transactions", doctor_server.transactions),
        ("vacuum", doctor_server.vacuum),
    ]


def _careful(subject: str, look: Callable[[Ask], Iterator[Finding]], ask: Ask) -> Iterator[Finding]:
    """What a look finds; that it cannot look is a finding too."""
    try:
        yield from look(ask)
    except StoreError as error:
        remedy = "Mend what the message names, then look again"
        yield Finding("error", subject, str(error), remedy, code="server.partial")


def _server(address: Address, ask: Ask) -> Finding:
    """Which server this is, and whether it takes writes."""
    version, user, standby, read_only = ask("server")[0]
    what = f"PostgreSQL {version}, {address.shown} as {user}"
    if standby:
        return Finding(
            "warn", "server", f"{what}: a standby, which can be read only",
            "Name the primary; a URL with several hosts and target_session_attrs=read-write finds "
            "it",
            code="server.standby",
        )  # fmt: skip
    if read_only:
        return Finding(
            "warn", "server",
            f"{what}: default_transaction_read_only is on, which hosts pass by and `clew migrate` "
            f"does not",
            "Set it off for this user and database (ALTER ROLE, ALTER DATABASE)",
            code="server.read-only",
        )  # fmt: skip
    return Finding("ok", "server", what)


def network(connection: Connection) -> Finding:
    """Whether others can read what goes over the network."""
    host = connection.info.host
    if connection.pgconn.ssl_in_use:
        mode = connection.info.get_parameters().get("sslmode", "prefer")
        if mode.startswith("verify"):
            return Finding("ok", "network", f"TLS, and the server is who it says (sslmode={mode})")
        return Finding(
            "ok", "network", f"TLS, but the server's certificate is not checked (sslmode={mode})",
            "Add sslmode=verify-full to the URL",
        )  # fmt: skip
    if host.startswith("/") or host in _LOCAL:
        return Finding("ok", "network", "the server is on this machine; no TLS")
    return Finding(
        "warn", "network", f"what goes to {host} and back is not encrypted",
        "Turn on `ssl` in the server, and add sslmode=verify-full to the URL",
        code="network.plain",
    )  # fmt: skip


def _durability(ask: Ask) -> Iterator[Finding]:
    """Settings under which an acknowledged message may be lost."""
    fsync, pages, commit, checksums = ask("durability")[0]
    if fsync != "on":
        yield Finding(
            "error", "durability", "fsync is off: a loss of power damages the database",
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();",
            code="durability.fsync",
        )  # fmt: skip
    if pages != "on":
        yield Finding(
            "error", "durability",
            "full_page_writes is off: a loss of power can leave pages that are half written",
            "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();",
            code="durability.pages",
        )  # fmt: skip
    if (fsync, pages) == ("on", "on"):
        sums = "pages have checksums" if checksums == "on" else "pages have no checksums"
        ours = ", which clew sets on for itself" if commit == "off" else ""
        remedy = None if checksums == "on" else "pg_checksums --enable, while the server is stopped"
        yield Finding("ok", "durability", f"synchronous_commit is {commit}{ours}; {sums}", remedy)


def _schema(connection: Connection) -> Iterator[Finding]:
    """Whether this is a store, of which schema, and whether its numbers fit the server."""
    meta = postgres_migrate.meta_of(connection)
    if meta is None:
        what = "the database holds no store yet"
        yield Finding("warn", "schema", what, "clew migrate", code="schema.none")
        return
    later = doctor_rows.newer(meta, postgres_migrate.newest())
    missing = postgres_migrate.pending(connection)
    if later is not None:
        yield later
    elif missing:
        names = ", ".join(step.name for step in missing)
        yield Finding(
            "warn", "schema", f"schema {meta['schema_version']}; not applied yet: {names}",
            "clew migrate, as the owner of the tables",
            code="schema.pending",
        )  # fmt: skip
    else:
        yield Finding("ok", "schema", f"schema {meta['schema_version']}, as this clew writes it")
    yield from doctor_rows.moved(meta)
    yield from doctor_rows.unfinished(meta)
    if postgres_migrate.ahead(connection):
        yield Finding(
            "error", "schema",
            "the store comes from another server, by a dump, and its numbers do not go on here",
            "clew migrate --restored, once, as the owner of the tables",
            code="schema.restored",
        )  # fmt: skip


def _indexes(ask: Ask) -> Iterator[Finding]:
    names = [name for (name,) in ask("invalid_indexes")]
    if names:
        yield Finding(
            "error", "integrity",
            f"{counted(len(names), 'index', 'indexes')} cannot be used: {', '.join(names)}",
            "; ".join(f"REINDEX INDEX CONCURRENTLY {name}" for name in names),
            code="integrity.index",
        )  # fmt: skip
    else:
        yield Finding("ok", "integrity", "every index can be used; `clew verify` reads all rows")


def _size(ask: Ask) -> Iterator[Finding]:
    log, search, database = ask("sizes")[0]
    what = (
        f"{size_text(log)}, and {size_text(search)} for search; the database {size_text(database)}"
    )
    yield Finding("ok", "size", what)


def _search(ask: Ask) -> Iterator[Finding]:
    """Whether the index belongs to this log, and how far it has come."""
    found = ask("search_mark_read")
    format, *mark = found[0] if found else (FORMAT,)
    if format > FORMAT:
        yield Finding(
            "warn", "search",
            f"the index has format {format}, of a newer clew; this one knows {FORMAT}, and reads "
            f"the log instead",
            "pip install -U clew",
            code="search.newer",
        )  # fmt: skip
    elif format < FORMAT or not Mark(*mark).fits(Log(*ask("search_store")[0])):
        yield Finding("ok", "search", "the index is of another log or format; a search rebuilds it")
    else:
        behind = ask("search_behind")[0][0]
        state = f"{counted(behind, 'message')} not indexed yet" if behind else "all is indexed"
        yield Finding("ok", "search", state)
