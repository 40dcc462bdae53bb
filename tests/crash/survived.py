"""Whether files are a store that lost nothing: first what SQLite says, then what clew says."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import apsw

import clew

NAME = "store.db"
SEQUENCES = """
SELECT c.no FROM conversation AS c LEFT JOIN message AS m ON m.conversation_no = c.no
WHERE c.binned_at IS NULL GROUP BY c.no
HAVING c.head <> c.base + count(m.seq) OR c.head <> coalesce(max(m.seq), c.base)
"""


class Promised:
    """What a process was told, in its order: what is stored, and what it has given up since."""

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self.gone: set[str] = set()

    def take(self, said: tuple[str, ...]) -> None:
        match said[0]:
            case "stored":
                self.stored.update(said[1:])
            case "giving up":
                self.stored.difference_update(said[1:])
            case _:
                self.gone.update(said[1:])

    def broken(self, keys: Iterable[str], conversations: Iterable[str]) -> str | None:
        """What does not hold; None if all does."""
        if lost := self.stored.difference(keys):
            return f"lost {sorted(lost)}"
        back = self.gone.intersection(conversations)
        return f"back {sorted(back)}" if back else None


class Found(NamedTuple):
    """Files that are a store, and what is in it."""

    keys: frozenset[str]
    conversations: frozenset[str]


def look(folder: Path) -> Found | str:
    """What SQLite finds in the log: all keys and conversations, or what is wrong. Leaves the files
    as they are. A store that was being made may have no table yet."""
    try:
        connection = apsw.Connection(os.fspath(folder / NAME))
    except apsw.Error as error:
        return f"corrupt: {error}"
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        run = connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE").fetchall()  # no -shm
        sound = run("PRAGMA integrity_check").fetchall()
        if sound != [("ok",)]:
            return f"corrupt: {sound[0][0]}"
        if not connection.table_exists("main", "message"):
            return Found(frozenset(), frozenset())
        if holes := run(SEQUENCES).fetchall():
            return f"corrupt: conversations {holes} have holes"
        if loose := run("PRAGMA foreign_key_check").fetchall():
            return f"corrupt: {loose}"
        keys = run("SELECT conversation_no, key FROM message WHERE key IS NOT NULL").fetchall()
        if len(keys) != len(set(keys)):
            return "doubled"
        rows = run("SELECT id FROM conversation WHERE binned_at IS NULL").fetchall()
        return Found(frozenset(key for _, key in keys), frozenset(id for (id,) in rows))
    except apsw.Error as error:
        return f"corrupt: {type(error).__name__} {error}"
    finally:
        connection.close()


def use(folder: Path, search: bool) -> str | None:
    """Open them as a store, read everything, write to it; what is wrong, or None.

    `search`: also whether the search file, caught up, finds what a new one finds.
    """
    try:
        with clew.open(folder / NAME, spool=False) as store:
            if problems := store.verify():
                return f"corrupt: {problems[:3]}"
            for info in store.list_all(limit=1000).items:
                conv = store.profile("p").open(info.id)
                if wrong := _read(conv):
                    return wrong
            store.profile("p").conversation("main").append([clew.user("and on", key="and on")])
            if search and (wrong := _search(store)):
                return wrong
    except clew.ClewError as error:
        return f"{'corrupt' if isinstance(error, clew.Corrupt) else 'refused'}: {error!r}"
    return None


def _read(conv: clew.Conversation) -> str | None:
    """Every message, with its images."""
    messages = list(conv.messages(hidden=True))
    for message in messages:
        for part in message.parts:
            if isinstance(part, clew.Image):
                conv.blob(part.hash or "")
    twice = [key for key, n in Counter(m.key for m in messages if m.key).items() if n > 1]
    return f"doubled {twice}" if twice else None


def _search(store: clew.Store) -> str | None:
    store.search_index.catch_up()
    before = _hits(store)
    store.search_index.discard()
    store.search_index.catch_up()
    after = _hits(store)
    return None if before == after else f"search: {len(before)} hits, a new index has {len(after)}"


def _hits(store: clew.Store) -> list[tuple[str, int]]:
    """What is found without a look at what is not indexed yet, of which there must be none."""
    status = store.search_index.status()
    if status.state != "ready":
        return [(status.state, 0)]
    query = clew.SearchQuery(text="word OR and OR own OR done", hidden=True, limit=200)
    hits = store.profile("p").search(query).hits
    return [(hit.conversation, hit.seq) for hit in hits] + [("rows", status.rows)]
