"""Where a compaction stands in a transcript, and what is said of it."""

from __future__ import annotations

from clew.domain.compactions import Compaction, Inline
from clew.domain.parts import plain_text
from clew.exporters.transcript import Transcript


def placed(source: Transcript) -> list[tuple[int, Compaction]]:
    """Those that were not undone, by the seq they come behind; the first is the last of the
    list."""
    kept = [record for record in source.compactions if record.undone_at is None]
    found = [(record.covers_to, record) for record in kept]
    return sorted(found, key=lambda place: (place[0], place[1].generation), reverse=True)


def told(record: Compaction) -> str:
    """In one line."""
    text = f"Compaction {record.generation} stands for #1 to #{record.covers_to}"
    if record.tokens_before is None or record.tokens_after is None:
        return text
    return f"{text}, {record.tokens_after:,} tokens instead of {record.tokens_before:,}"


def summary(record: Compaction) -> str:
    """What it says in the place of the messages."""
    texts = (plain_text(item.parts) for item in record.body if isinstance(item, Inline))
    return "\n\n".join(text for text in texts if text)
