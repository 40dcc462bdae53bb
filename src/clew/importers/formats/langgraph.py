"""LangGraph's checkpoints in SQLite: each thread is a conversation, each fork of it a branch.

A checkpoint holds the whole list of messages. A thread's newest checkpoint is where it stands; the
way to it, from the first one, says in which order its messages came.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

from msgspec import Struct

from clew.importers.fields import listed, mapping, meta, moment, text
from clew.importers.foreign import Foreign, loose
from clew.importers.format import Format
from clew.importers.formats.langgraph_messages import Message, message_of, record_of
from clew.importers.formats.langgraph_values import Named, Values
from clew.importers.probe import Probe
from clew.importers.records import ROOT, Chat, Damaged, Event, Rewound, Skipped, Warned
from clew.importers.source import Source

CHANNEL = "messages"
_NONE = frozenset[str]()
_KEYS = frozenset(("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint"))
_ROWS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, rowid FROM checkpoints "
    "ORDER BY 1, 2, 3"
)
_BLOB = "SELECT type, CAST(checkpoint AS BLOB) FROM checkpoints WHERE rowid = ?"
_UNFINISHED = (
    "SELECT count(*) FROM writes AS w WHERE w.channel = ? AND NOT EXISTS (SELECT 1 FROM "
    "checkpoints AS c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND "
    "c.parent_checkpoint_id = w.checkpoint_id)"
)


def matches(probe: Probe) -> bool:
    return "writes" in probe.tables and probe.tables.get("checkpoints", _NONE) >= _KEYS


def read(source: Source) -> Iterator[Event]:
    """Every thread: the way to its newest checkpoint, then its forks, then its subgraphs."""
    with source.database() as database:
        rows = (_row(row) for row in database.rows(_ROWS))
        for thread, spaces in groupby(rows, key=lambda row: row.thread):
            main: _Thread | None = None
            for space, nodes in groupby(spaces, key=lambda row: row.space):
                if main is None:
                    main = _Thread(database, thread)
                    yield Chat(id=thread)
                if not space:
                    yield from main.read(list(nodes))
                else:
                    yield from _subgraph(database, main, space, list(nodes))
        for row in database.rows(_UNFINISHED, CHANNEL):
            if row[0]:
                yield Skipped("writes of an unfinished step", int(row[0]))


class _Row(Struct, frozen=True):
    """A checkpoint; its blob is read when it is its turn."""

    thread: str
    space: str
    id: str
    parent: str | None
    number: int


def _row(row: tuple[Any, ...]) -> _Row:
    texts = [loose(each) or "" for each in row]
    return _Row(texts[0] or "(no id)", texts[1], texts[2], texts[3] or None, int(row[4]))


def _subgraph(database: Foreign, main: _Thread, space: str, nodes: list[_Row]) -> Iterator[Event]:
    """A subgraph's messages, if they are not those of the thread."""
    inner = _Thread(database, f"{main.chat}:{space}")
    events = list(inner.read(nodes))
    if inner.prints <= main.prints:
        yield Skipped("checkpoint_ns that says what the thread says")
        return
    yield Chat(id=inner.chat, origin=main.chat, meta=meta(checkpoint_ns=space))
    yield from events


class _Thread:
    """Reads the checkpoints of one thread, or of a subgraph in it."""

    def __init__(self, database: Foreign, chat: str) -> None:
        self.database, self.chat = database, chat
        self.values = Values()
        self.known: dict[int, Message] = {}
        """By the identity of the object it was made of, which `values` holds."""
        self.names: dict[tuple[str, bytes], str] = {}
        """The record of a message, by its id and what it says."""
        self.taken: set[str] = set()
        self.other = 0
        self.damaged: list[Damaged] = []

    @property
    def prints(self) -> set[bytes]:
        return {print for _, print in self.names}

    def read(self, nodes: list[_Row]) -> Iterator[Event]:
        by_id = {node.id: node for node in nodes}
        parents = {node.parent for node in nodes}
        leaves = [node for node in reversed(nodes) if node.id not in parents]
        newest = nodes[-1]
        leaves = [newest, *(leaf for leaf in leaves if leaf is not newest)]
        walked: set[str] = set()
        for leaf in leaves:
            way = self.way(leaf, by_id, walked)
            walked.update(node.id for node in way)
            yield from self.main(way) if leaf is newest else self.branch(way)
            yield from self.damaged
            self.damaged.clear()
        if self.other:
            yield Skipped("channels other than messages", self.other)

    def way(self, leaf: _Row, nodes: dict[str, _Row], walked: set[str]) -> list[_Row]:
        """The checkpoints to a leaf: from the first one, or from the one where it leaves a way
        that was walked."""
        way: list[_Row] = []
        seen: set[str] = set()
        each: _Row | None = leaf
        while each is not None and each.id not in seen:
            seen.add(each.id)
            way.append(each)
            if each.id in walked:
                break
            each = None if each.parent is None else nodes.get(each.parent)
        return way[::-1]

    # ------------------------------------------------------------------ the main way

    def main(self, way: list[_Row]) -> Iterator[Event]:
        """The messages in the order they came, as they were in the end. What was removed from the
        end is taken back there; what was removed elsewhere stays."""
        _, last, others = self.messages(way[-1])
        self.other += others
        final = {message.id: message for message in last}
        current: list[str] = []
        log: list[str] = []
        parent: str | None = None
        kept = 0
        for node in way:
            at, found, _ = self.messages(node)
            ids = [message.id for message in found]
            gone = _gone(current, set(ids))
            if gone and current[-len(gone) :] == gone:
                first = next((id for id in gone if id in log), None)  # none: gone once before
                if first is not None:
                    yield Rewound(chat=self.chat, first=first)
                    del log[log.index(first) :]
                parent = log[-1] if log else ROOT
            else:
                kept += len(gone)
            for message in found:
                self.names[message.id, message.print] = message.id
                if message.id not in self.taken:
                    self.taken.add(message.id)
                    told = final.get(message.id, message)
                    yield record_of(told, self.chat, message.id, parent, at)
                    log.append(message.id)
                    parent = None
            current = ids
        if kept:
            yield Warned(
                f"thread {self.chat!r}: {kept} messages were removed from the middle; they are kept"
            )

    # ------------------------------------------------------------------ forks

    def branch(self, way: list[_Row]) -> Iterator[Event]:
        """The messages that only this way has. One that says something else under an id that is
        taken gets one of its own."""
        for node in way:
            at, found, _ = self.messages(node)
            parent = ROOT
            for message in found:
                id = self.names.get((message.id, message.print))
                if id is None:
                    id = message.id
                    if id in self.taken:
                        id = f"{id}:{message.print.hex()[:8]}"
                    self.names[message.id, message.print] = id
                    if id not in self.taken:
                        self.taken.add(id)
                        yield record_of(message, self.chat, id, parent, at)
                parent = id

    # ------------------------------------------------------------------ one checkpoint

    def messages(self, node: _Row) -> tuple[int | None, list[Message], int]:
        """When it was made, its messages, each id once, and how many other channels it has."""
        checkpoint: dict[str, Any] = {}
        for kind, data in self.database.rows(_BLOB, node.number):
            try:
                checkpoint = _checkpoint(self.values.decode(loose(kind) or "msgpack", data or b""))
            except ValueError as error:
                damaged = Damaged(f"checkpoint {node.id}", str(error))
                if damaged not in self.damaged:
                    self.damaged.append(damaged)
        channels = mapping(checkpoint.get("channel_values"))
        found = self.listed(channels.get(CHANNEL))
        others = sum(1 for name in channels if not str(name).startswith(("__", "branch:")))
        at = moment(text(checkpoint.get("ts")))
        return at, found, others - (CHANNEL in channels)

    def listed(self, given: object) -> list[Message]:
        found: dict[str, Message] = {}
        for place, each in enumerate(listed(given) or [given]):
            message = self.known.get(id(each)) or message_of(each, place)
            if message is None:
                continue
            if isinstance(each, Named):  # the same object in the next checkpoint
                self.known[id(each)] = message
            found[message.id] = message
        return list(found.values())


def _checkpoint(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("no checkpoint")
    return mapping(cast(object, value))


def _gone(before: list[str], now: set[str]) -> list[str]:
    return [id for id in before if id not in now]


FORMAT = Format(name="langgraph", label="LangGraph", matches=matches, read=read, rewrites=True)
