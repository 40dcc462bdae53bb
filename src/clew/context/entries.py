"""What becomes one message of a rendering, and the joining of what was one for an API.

Other tools store a message of an API as several records: the text, then each call, with the results
of the first calls between them. The log keeps the records as they came; `api_group` says which were
one. Pure: the log itself is never joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from clew.domain.chat import SHAPE
from clew.domain.messages import Message, Role
from clew.domain.parts import Parts, ToolResult

HELD = 500
"""Entries that a message may wait for until it is complete. A source that gives one group to a
whole conversation must not make the reader of one page wait for the last."""

_SPEAKERS = (Role.USER, Role.ASSISTANT)


class Entry(NamedTuple):
    """One message of a rendering."""

    role: Role
    parts: Parts
    author: str | None = None
    meta: Any = None
    api_group: str | None = None
    messages: tuple[Message, ...] = ()
    """Those of the log it is made of, in their order; none of what a compaction made."""

    def having(self, parts: Parts) -> Entry:
        """With other parts; itself when they are its own, which is most often and quicker."""
        return self if parts == self.parts else self._replace(parts=parts)


def entry_of(message: Message) -> Entry:
    """A message of the log as it stands there."""
    return Entry(
        message.role, message.parts, message.author, message.meta, message.api_group, (message,)
    )


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, those of one `api_group` as one message of the assistant.

    `joined(map(entry_of, messages))`, of the visible messages of a log in their order. The one
    stands in the place of the first and has the parts of all, in their order; what stood between
    them (tool results, system messages) comes behind it. Never over a message of a user or another
    one of the assistant. Lazy: looks at most `HELD` entries ahead, and joins no more.
    """
    group: list[Entry] = []
    for entry in entries:
        if not group and entry.api_group is None:  # most, and cheap
            yield entry
            continue
        if group and not _stays(entry, group):
            yield from _closed(group)
            group = []
        if group or _is_member(entry):
            group.append(entry)
        else:
            yield entry
    yield from _closed(group)


def _is_member(entry: Entry) -> bool:
    """Whether others may be one with it. What holds results is a message of its own: a rendering
    gives each result one."""
    return (
        entry.api_group is not None
        and entry.role is Role.ASSISTANT
        and not any(isinstance(part, ToolResult) for part in entry.parts)
    )


def _stays(entry: Entry, group: Sequence[Entry]) -> bool:
    """Whether a group is still open behind this entry."""
    if len(group) >= HELD:
        return False
    same = entry.api_group == group[0].api_group
    return entry.role not in _SPEAKERS or (same and _is_member(entry))


def _closed(group: Sequence[Entry]) -> Iterator[Entry]:
    members = [entry for entry in group if entry.role is Role.ASSISTANT]
    if members:
        yield members[0] if len(members) == 1 else one(members)
    yield from (entry for entry in group if entry.role is not Role.ASSISTANT)


def one(members: Sequence[Entry]) -> Entry:
    """Entries of one role as one: all parts in their order."""
    return Entry(
        members[0].role,
        tuple(part for entry in members for part in entry.parts),
        next((entry.author for entry in members if entry.author is not None), None),
        _meta(members),
        members[0].api_group,
        tuple(message for entry in members for message in entry.messages),
    )


def _meta(members: Iterable[Entry]) -> dict[str, Any] | None:
    """Of each field the last that is given: tools complete them from record to record. The shape of
    a Chat Completions message speaks of places in one record, so it is left out."""
    merged: dict[str, Any] = {}
    for entry in members:
        for name, value in cast(dict[str, Any], entry.meta or {}).items():
            before = merged.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                value = cast(dict[str, Any], before) | cast(dict[str, Any], value)
            merged[name] = value
    if isinstance(chat := merged.get("chat"), dict):
        fields = cast(dict[str, Any], chat).items()
        merged["chat"] = {name: value for name, value in fields if name != SHAPE}
    return merged or None
