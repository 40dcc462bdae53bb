"""Claude Code's compactions: a boundary, then the summary that stands for what was before it."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import Parts
from clew.importers.decode import decode
from clew.importers.fields import ident, mapping, moment, small, whole
from clew.importers.formats.claude_code_chats import Lineage
from clew.importers.formats.claude_code_lines import Line
from clew.importers.records import Compacted, Kept

BOUNDARY = "system/compact_boundary"


def is_boundary(line: Line) -> bool:
    """Whether a compaction begins here. A "microcompact" only empties old tool results and is
    none: what it emptied is not said, and nothing stands for it."""
    return line.type == "system" and line.subtype == "compact_boundary"


def compacted(chat: str, boundary: Line, summary: Parts, lineage: Lineage) -> Compacted | None:
    """The compaction of a boundary (or of a summary that has none); None without an id."""
    uuid = ident(boundary.uuid)
    if uuid is None:
        return None
    facts = value_of(boundary.compact_metadata)
    return Compacted(
        chat=chat,
        id=uuid,
        after=lineage.parent(boundary),
        body=_body(boundary, summary, mapping(facts.get("preservedSegment")), lineage),
        tokens_before=whole(facts.get("preTokens")),
        tokens_after=whole(facts.get("postTokens")),
        at=moment(boundary.timestamp),
        receipt=small(facts),
    )


def _body(
    boundary: Line, summary: Parts, preserved: dict[str, Any], lineage: Lineage
) -> tuple[Kept | Inline, ...]:
    """The summary, and after it the messages that were preserved; before it, when they are
    anchored at the boundary itself."""
    inline = (Inline(Role.USER, summary),) if summary else ()
    first = lineage.kept(ident(preserved.get("headUuid")))
    last = lineage.kept(ident(preserved.get("tailUuid")))
    if first is None or last is None:
        return inline
    kept = (Kept(first, last),)
    return (*kept, *inline) if preserved.get("anchorUuid") == boundary.uuid else (*inline, *kept)


def value_of(raw: Raw) -> dict[str, Any]:
    """An object that was left undecoded; empty when it is none."""
    try:
        return mapping(decode(bytes(raw)))
    except ValueError:
        return {}
