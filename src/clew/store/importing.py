"""What an importer needs of a profile: which lines a chat has here, and landing what is new.

A chat of another tool is known by (source, its id), as an alias. Branches that its import made are
known by that id, a "#" and the uid of their first record, so each of them is found again, and one
that was deleted here stays deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import cast

from msgspec import Struct

from clew.domain.conversations import TitleOrigin
from clew.domain.messages import Draft
from clew.store import aliases, log
from clew.store.backend import Backend, Transaction
from clew.store.codec import json_value
from clew.store.drafts import Prepared, prepare_all
from clew.store.kit import Kit
from clew.store.landing import ORIGINS, Land, Landing

PAGE = 20_000
"""Rows of uids read at once."""
_BRANCH = re.compile(r"#[0-9a-f]{32}")


class StoredLine(Struct, frozen=True):
    """One line of a chat as it is here."""

    id: str
    no: int
    name: str
    """The foreign id that it is known by."""
    base: int
    head: int
    imported_to: int | None
    origin: int | None
    """Inner number of the conversation that it branches from."""
    free: bool
    """Nothing is open or waiting in it, it takes messages and has not ended."""
    cuts: tuple[tuple[int, int], ...]
    """(from, to) of the cuts in force."""
    compactions: frozenset[str]
    """Ids that its foreign compactions had in the source."""
    names: frozenset[str]
    """All foreign ids that it is known by."""
    titles: dict[TitleOrigin, str | None]


class StoredChat(Struct, frozen=True):
    """A chat as it is here: its lines, the first one first, and the names that were deleted."""

    lines: tuple[StoredLine, ...]
    deleted: frozenset[str]


class Importing:
    """The importing side of one profile. Its methods wait for the store."""

    def __init__(self, backend: Backend, kit: Kit, profile: str) -> None:
        self._backend, self._kit, self._profile = backend, kit, profile

    def mint(self) -> str:
        """An id for a new conversation."""
        return self._kit.ids.conversation()

    def now(self) -> int:
        """The store's clock, microseconds."""
        return self._kit.clock.now()

    def find(self, source: str, chat: str) -> StoredChat:
        """The lines of a chat. Without any, nothing of it was imported, or all was deleted."""

        def find(tx: Transaction) -> StoredChat:
            names: dict[str, str] = {}
            deleted: set[str] = set()
            rows = tx.rows(
                "import_aliases", profile=self._profile, source=source, low=chat,
                high=chat + "$",  # the character behind "#"
            )  # fmt: skip
            for name, conversation, state in rows:
                if name != chat and not _BRANCH.fullmatch(name, len(chat)):
                    continue
                if state == "claimed":
                    names[conversation] = name
                elif state == "deleted":
                    deleted.add(name)
            lines = [_line(tx, self._profile, id, name) for id, name in names.items()]
            found = [line for line in lines if line is not None]
            found.sort(key=lambda line: (line.name != chat, line.no))
            return StoredChat(tuple(found), frozenset(deleted - set(names.values())))

        return self._backend.read(find)

    def uids(self, line: StoredLine, inherited: bool) -> Iterator[tuple[int, bytes]]:
        """(seq, uid) of a line's messages, ascending; of those it inherits too, if asked."""
        first = 1 if inherited else line.base + 1
        while first <= line.head:
            last = min(line.head, first + PAGE - 1)
            yield from self._backend.read(lambda tx, a=first, b=last: _uids(tx, line, a, b))
            first = last + 1

    def contents(self, line: StoredLine) -> Iterator[tuple[int, bytes]]:
        """(seq, digest) of a line's own messages: for formats that rewrite records."""
        after = line.base
        while after < line.head:
            last = min(line.head, after + 500)
            rows = self._backend.read(
                lambda tx, a=after, b=last: tx.rows("message_uids", no=line.no, after=a, last=b)
            )
            yield from ((row[0], self._digest(row[2], row[3])) for row in rows)
            after = last

    def digest(self, prepared: Prepared) -> bytes:
        """Names what a message says, its role and parts."""
        return self._digest(prepared.role, prepared.parts)

    def _digest(self, role: int, parts: bytes) -> bytes:
        return blake2b(self._kit.codec.json(parts), digest_size=16, salt=bytes([role])).digest()

    def prepare(self, drafts: Sequence[Draft]) -> tuple[Prepared, ...]:
        """Drafts made ready. Raises what an append of them would."""
        return prepare_all(self._kit, drafts)

    def groups(self, line: StoredLine) -> frozenset[str]:
        """The model calls whose usage an import has stored."""
        rows = self._backend.read(lambda tx: tx.rows("import_groups", no=line.no))
        return frozenset(row[0] for row in rows)

    def land(self, landings: Sequence[Landing]) -> None:
        """Land several plans: in one transaction where the engine can, else one after another.

        Raises ImportOvertaken when one of them is out of date; then those of its transaction have
        changed nothing.
        """
        if self._backend.several:
            self._backend.write(Land(self._kit, self._profile, landings))
        else:
            for landing in landings:
                self._backend.write(Land(self._kit, self._profile, [landing]))


def _line(tx: Transaction, profile: str, id: str, name: str) -> StoredLine | None:
    row = tx.row("import_line", id=id, profile=profile)
    if row is None:
        return None
    no, _, base, head, origin, imported_to, free, *titles = row
    cuts = tuple((r[1], r[2]) for r in tx.rows("cut_all", no=no) if r[5] is None)
    receipts: list[object] = [json_value(r[0]) for r in tx.rows("import_receipts", no=no)]
    known = frozenset(
        str(cast(dict[str, object], r).get("id")) for r in receipts if isinstance(r, dict)
    )
    names = frozenset(alias.foreign_id for alias in aliases.of(tx, profile, id))
    shown = dict(zip(ORIGINS, titles, strict=True))
    return StoredLine(
        id, no, name, base, head, imported_to, origin, bool(free), cuts, known, names, shown
    )


def _uids(tx: Transaction, line: StoredLine, first: int, last: int) -> list[tuple[int, bytes]]:
    if first > line.base:
        rows = tx.rows("import_uids", no=line.no, first=first, last=last)
        return [(row[0], row[1]) for row in rows]
    parts = log.segments(tx, line.no, line.base, line.origin, last)
    found: list[tuple[int, bytes]] = []
    for no, start, end in parts:
        if end >= first:
            rows = tx.rows("import_uids", no=no, first=max(start, first), last=end)
            found.extend((row[0], row[1]) for row in rows)
    return found
