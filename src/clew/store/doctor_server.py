"""The part of a diagnosis that looks at what a server gives to all its users."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from clew.store.address import Address
from clew.store.findings import Ask, Finding, counted
from clew.store.postgres_transaction import statements

OWN = 2
"""Connections of a host beside its pool: one to listen, and for a moment one to open the store."""
MANY_HELD_BACK = 100_000
"""Transactions."""
UNFROZEN = 1_000_000_000
"""Transactions; the server stops taking writes at twice as many."""
SHOWN = 5
_ROLES = "docs/operating/scale.md has the roles"
_POWERS = (
    "is a superuser", "may create roles", "may create databases", "may copy the whole server",
    "passes by row security",
)  # fmt: skip
_WRITE = re.compile(r"\b(INSERT INTO|DELETE FROM|UPDATE) (?!SET\b|SKIP\b)(\w+)")
_LOCK = re.compile(r"\bFROM (\w+)(?:(?!\bFROM\b).)*\bFOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)\b", re.S)
"""The table whose rows a statement locks, which asks for UPDATE."""
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")


def replication(ask: Ask) -> Iterator[Finding]:
    """What a failover would lose."""
    standbys, synchronous, late = ask("replication")[0]
    if late is not None:
        yield Finding("ok", "replication", f"a standby; the newest it has seen is {span(late)} old")
    elif not standbys:
        yield Finding("ok", "replication", "no standby is connected, as far as this user sees")
    elif synchronous:
        yield Finding(
            "ok", "replication",
            f"{counted(standbys, 'standby', 'standbys')}; commits wait for {synchronous}",
        )  # fmt: skip
    else:
        yield Finding(
            "ok", "replication",
            f"{counted(standbys, 'standby', 'standbys')}, for which no commit waits: a failover "
            f"may lose the newest messages",
            "Set synchronous_standby_names, if that must not be",
        )  # fmt: skip


def connections(ask: Ask, address: Address) -> Iterator[Finding]:
    """Whether one more host gets as many connections as it may take."""
    row = ask("connections")[0]
    owners = ("the server", "the user", "the database")
    limits = list(zip(owners, row[::2], row[1::2], strict=True))
    wanted = address.pool_size + OWN
    for owner, most, used in limits:
        if 0 <= most < used + wanted:
            yield Finding(
                "warn", "connections",
                f"{used} of {most} connections of {owner} are in use; a host takes up to {wanted}",
                "Raise max_connections (or the limit of the user or database), lower pool_size in "
                "the URL, or put PgBouncer between (pooler=transaction)",
                code="connections.low",
            )  # fmt: skip
            return
    _, most, used = limits[0]
    pooled = ", through a pooler" if address.pooled else ""
    yield Finding(
        "ok", "connections", f"{used} of {most} in use; a host takes up to {wanted}{pooled}"
    )


_AS_OWNER = re.compile(
    r"copy_|meta_erasure_|dictionary_drop|blob_drop|model_call_unprompt|\w+_(erase|repack|forget)"
)
"""Names of statements that only the owner of the tables runs."""


def needed() -> Mapping[str, set[str]]:
    """What a host must be allowed to do with each table that it writes: what its statements do.
    Those of a copy and of an erasure do more, as the owner."""
    rights: dict[str, set[str]] = defaultdict(set)
    for name, statement in statements().items():
        if _AS_OWNER.match(name):
            continue
        text = statement.text.decode()
        for verb, table in _WRITE.findall(text):
            rights[table].add(verb.partition(" ")[0])
            if " DO UPDATE " in text:
                rights[table].add("UPDATE")
        for table in _LOCK.findall(text):
            rights[table].add("UPDATE")
    return rights


def rights(ask: Ask) -> Iterator[Finding]:
    """Whether the user may do what a host needs, and what it need not be able to do."""
    wanted = needed()
    missing: list[str] = []
    for table, *allowed in ask("table_rights"):
        need = {"SELECT", *wanted.get(table, ())}
        lacks = [right for right, has in zip(_RIGHTS, allowed, strict=True) if not has]
        missing += [f"{right} on {table}" for right in lacks if right in need]
    missing += [f"USAGE on {name}" for name, has in ask("sequence_rights") if not has]
    *powers, owner = ask("powers")[0]
    has = [what for what, given in zip(_POWERS, powers, strict=True) if given]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        yield Finding(
            "error", "rights", f"the user lacks {', '.join(missing[:SHOWN])}{more}",
            f"GRANT them, as the owner of the tables; {_ROLES}",
            code="rights.missing",
        )  # fmt: skip
    if has:
        yield Finding(
            "warn", "rights", f"the user {' and '.join(has[:2])}, which no host needs",
            f"Give hosts a user of their own; {_ROLES}",
            code="rights.excessive",
        )  # fmt: skip
    elif owner and not missing:
        yield Finding(
            "ok", "rights", "the user owns the tables, and may change them",
            f"Hosts need less; {_ROLES}",
        )  # fmt: skip
    elif not missing:
        yield Finding("ok", "rights", "the user may do what a host needs, and no more")


def transactions(ask: Ask) -> Iterator[Finding]:
    """Transactions that stay open: all readers of what is new look at it again and again until they
    end, and nothing that was deleted since is cleaned up."""
    found = [
        f"process {pid} ({program or 'unnamed'}, database {database}) for {span(age)}"
        for pid, program, database, age, _ in ask("long_transactions")
    ]
    found += [
        f"prepared transaction {gid} (database {database}) for {span(age)}"
        for gid, database, age in ask("prepared_transactions")
    ]
    held = ask("held_back")[0][0]
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield Finding(
            "warn", "transactions", f"open: {', '.join(found[:SHOWN])}{more}",
            "They hold back search, follow and vacuum. End them: SELECT pg_terminate_backend(..), "
            "ROLLBACK PREPARED ..; idle_in_transaction_session_timeout prevents them",
            code="transactions.open",
        )  # fmt: skip
    elif held > MANY_HELD_BACK:
        yield Finding(
            "warn", "transactions",
            f"one is open since {held:,} others began; this user does not see whose it is",
            "Look as a member of pg_read_all_stats",
            code="transactions.hidden",
        )  # fmt: skip
    else:
        yield Finding("ok", "transactions", "none is open for long")


def vacuum(ask: Ask) -> Iterator[Finding]:
    """Whether the server comes near the end of its transaction numbers."""
    age = ask("unfrozen")[0][0]
    if age > UNFROZEN:
        yield Finding(
            "error", "vacuum", f"the oldest row is {age:,} transactions old; at 2,100,000,000 the "
            "server takes no more writes",
            "VACUUM (FREEZE) the database, and look why autovacuum does not",
            code="vacuum.late",
        )  # fmt: skip


def span(seconds: int) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
