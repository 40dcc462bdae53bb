"""What of an OpenHands conversation the model is still sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import Text
from clew.importers.fields import ident, listed, text, whole
from clew.importers.records import Compacted, Kept


class Level(Struct):
    """A conversation that is going on: the main one, or a delegate's."""

    chat: str
    call: str = ""
    """Of a delegate: the call that began it."""
    records: list[tuple[str, bool]] = []
    """Id of each record, and whether a condensation forgot it."""


def condensed(level: Level, given: dict[str, Any], id: str, at: int | None) -> Compacted:
    """From here on the model is sent what was not forgotten, with the summary in between."""
    gone = {each for one in listed(given.get("forgotten_event_ids")) if (each := ident(one))}
    first, last = (whole(given.get(f"forgotten_events_{end}_id")) for end in ("start", "end"))
    if first is not None and last is not None:
        gone |= {each for each, _ in level.records if first <= _number(each) <= last}
    level.records = [(each, was or each in gone) for each, was in level.records]
    summary = text(given.get("summary"))
    inline = Inline(role=Role.USER, parts=(Text(summary),)) if summary else None
    offset = whole(given.get("summary_offset")) or 0
    return Compacted(
        chat=level.chat,
        id=f"condensation:{id}",
        body=tuple(_body(level.records, inline, offset)),
        at=at,
    )


def _number(id: str) -> int:
    return int(id) if id.isascii() and id.isdecimal() and len(id) < 19 else -1


def _body(
    records: list[tuple[str, bool]], summary: Inline | None, offset: int
) -> Iterator[Kept | Inline]:
    """What was not forgotten, as runs, with the summary behind the first `offset` of it."""
    run: Kept | None = None
    count = 0
    for id, is_gone in records:
        is_place = summary is not None and count == offset
        if run is not None and (is_gone or is_place):
            yield run
            run = None
        if is_gone:
            continue
        if summary is not None and is_place:
            yield summary
            summary = None
        run = Kept(id if run is None else run.first, id)
        count += 1
    if run is not None:
        yield run
    if summary is not None:
        yield summary
