"""Databases that several jobs need, made by clew itself, once a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks import clew_adapter, stores, workload
from benchmarks.jobs import say
from benchmarks.postgres import copies, floor, server
from benchmarks.workload import Chat
from clew.store import postgres_migrate

_SMALLEST = 5_000
_COPIED = """
INSERT INTO conversation_id(id, no, profile)
SELECT c.id || '-' || n, c.no + n * (CAST(1 AS BIGINT) << 42), c.profile
FROM conversation c CROSS JOIN generate_series(1, %s) n
"""


def rows_of(label: str, chats: list[Chat]) -> dict[str, list[floor.Append]]:
    """The rows that clew writes for some conversations, for the floor to write again."""
    url = server.create(label)
    clew_adapter.write(url, chats)
    rows = floor.written(url, [chat.name for chat in chats])
    server.drop(label)
    return rows


def twins(label: str, names: Iterable[str], template: str | None = None) -> tuple[str, str]:
    """Two databases with the same empty conversations, for clew and for the floor; their URLs."""
    url = server.create(f"{label}-clew", template)
    clew_adapter.create(url, names)
    return url, server.create(f"{label}-floor", f"{label}-clew")


def grown(size: int) -> str:
    """A store of 5,000 messages or ten, a hundred, a thousand times as many, indexed. Copy it
    before writing; its label.

    clew writes the smallest, two conversations of 1,000 messages and the rest of 38; a larger one
    is ten copies of the next smaller.
    """

    def fill(url: str) -> None:
        if size == _SMALLEST:
            clew_adapter.write(url, workload.grown(size, big=2))
        else:
            clew_adapter.create(url, ())
            copies.fill(server.url(grown(size // 10)), url, 10, size // 10 // _SMALLEST)
        clew_adapter.index(url)

    return _once(f"grown-{size}", fill)


def partitioned(label: str, size: int, times: int, partitions: int) -> str:
    """So many copies of a grown store, their messages in hash partitions; the URL."""
    url = server.create(label)
    with floor.connect(url) as connection:
        postgres_migrate.finish(connection, partitions)
    copies.fill(server.url(grown(size)), url, times, size // _SMALLEST)
    settle(url)
    clew_adapter.index(url)
    return url


def listed(count: int) -> str:
    """A store of `count` conversations: three sources, 25 projects, two profiles; its label."""

    def fill(url: str) -> None:
        stores.write_kinds(url)
        multiply(url, count)

    return _once(f"listed-{count}", fill)


def multiply(url: str, count: int) -> None:
    """Copy the rows of the conversation table, unpinned and ever more recent, until there are
    `count`."""
    with floor.connect(url) as connection:
        present = connection.execute("SELECT count(*) FROM conversation").fetchone()
        assert present is not None
        times = -(-count // present[0]) - 1
        own = {
            "no": "i.no",
            "id": "i.id",
            "active_at": "c.active_at + n * 1000000 + c.no %% 1000000",
            "pinned": "0",
        }
        names = floor.columns(connection, "conversation")
        values = ", ".join(own.get(name, f"c.{name}") for name in names)
        connection.execute(_COPIED.encode(), (times,))
        connection.execute(
            f"INSERT INTO conversation({', '.join(names)}) SELECT {values} "  # noqa: S608
            "FROM conversation c CROSS JOIN generate_series(1, %s) n "
            "JOIN conversation_id i ON i.id = c.id || '-' || n".encode(),
            (times,),
        )


def settle(url: str) -> None:
    """Do now what the server itself does in time."""
    with floor.connect(url) as connection:
        connection.execute("VACUUM (ANALYZE)")


def _once(label: str, fill: Callable[[str], None]) -> str:
    """Made under another label, so that a killed job leaves no half of one."""
    if not server.has(label):
        say(f"    making the store {label}")
        unfinished = f"{label}-unfinished"
        server.drop(unfinished)
        url = server.create(unfinished)
        fill(url)
        settle(url)
        server.rename(unfinished, label)
    return label
