"""Where a store is: the path of a file, or the URL of a PostgreSQL database.

A URL is libpq's, several hosts included, with two parameters of ours: `pooler=transaction` for a
PgBouncer between us and the server that lends a connection for one transaction at a time, and
`pool_size`, the most connections of one process.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from clew.config import default_store
from clew.errors import InputError

SCHEMES = ("postgresql", "postgres")
POOL_SIZE = 16
"""The server merges the flushes of commits that are under way at once: with 64 clients 16 were a
third faster than 8, and 32 hardly faster than 16 (measured)."""
MOST_CONNECTIONS = 1000
_KEYWORDS = r"(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=\s*\S"
"""libpq's other way to name a database. As the path of a file it would show its password."""


class Address(Struct, frozen=True):
    """A PostgreSQL database as libpq takes it, and how to reach it."""

    conninfo: str
    """May hold a password: never shown, never logged."""
    shown: str
    """For people: no password, no parameters."""
    pool_size: int = POOL_SIZE
    pooled: bool = False
    """Whether a session may change its connection to the server between two transactions."""

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def parse(store: str | Path | None) -> Address | Path:
    """What a caller, or CLEW_STORE, names. InputError for what is neither path nor URL of ours."""
    text = default_store() if store is None else str(store)
    if "=" in text and re.match(r"\s*\w+\s*=", text) and re.search(_KEYWORDS, text):
        raise InputError(
            "the store is given by keywords of libpq (host=... dbname=...); give a URL: "
            "postgresql://user@host:port/database, with what is special in a password written as "
            "%XX"
        )
    if "://" not in text:
        if text.partition(":")[0] in SCHEMES:  # pathlib makes one slash of two
            raise InputError("a URL is text; pass it to clew.open as a str, not as a Path")
        return Path(text).expanduser()
    if text.partition("://")[0] not in SCHEMES:
        raise InputError(
            f"a store is a file or a PostgreSQL database, and {text.partition('://')[0]}:// is "
            f"neither; give a path, or postgresql://user@host/database"
        )
    return _address(text)


def _address(url: str) -> Address:
    # Not by urlsplit as a whole: libpq takes several hosts, and a place without any.
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    netloc, _, database = rest.partition("/")
    hosts = netloc.rpartition("@")[2]
    try:
        for host in hosts.split(","):
            _ = urlsplit(f"//{host}").port
        given, theirs = _divided(query)
        if "@" in database:  # a slash in the password: what follows it would be shown
            raise ValueError
    except ValueError:
        raise InputError(
            "the URL of the store cannot be read; it is postgresql://user@host:port/database, "
            "with what is special in a password written as %XX"
        ) from None
    size, pooler = given["pool_size"], given["pooler"]
    if not size.isdecimal() or not 1 <= int(size) <= MOST_CONNECTIONS:
        raise InputError(f"pool_size is {size!r}; give a number from 1 to {MOST_CONNECTIONS}")
    if pooler not in ("session", "transaction"):
        raise InputError(f"pooler is {pooler!r}; give session or transaction")
    return Address(
        conninfo=f"{scheme}://{rest}{'?' if theirs else ''}{theirs}",
        shown=f"postgresql://{hosts}/{database}",
        pool_size=int(size),
        pooled=pooler == "transaction",
    )


def _divided(query: str) -> tuple[dict[str, str], str]:
    """Our parameters, and the text of the others, almost as it was given. Read as libpq does, for
    which a plus is a plus. ValueError."""
    ours, theirs = {"pool_size": str(POOL_SIZE), "pooler": "session"}, list[str]()
    for parameter in query.split("&") if query else ():
        name, equals, value = parameter.partition("=")
        if not name or not equals:
            raise ValueError
        if unquote(name) in ours:
            ours[unquote(name)] = unquote(value)
        else:
            # libpq refuses a second "=", as in options=-c statement_timeout=5s.
            theirs.append(f"{name}={value.replace('=', '%3D')}")
    return ours, "&".join(theirs)
