"""What is in a spool as JSON lines, one message each: whole, and readable without clew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from clew.domain.parts import plain_text
from clew.domain.values import json_text
from clew.store.spool.messages import drafts
from clew.store.spool.record import Entry


def lines(entries: Iterable[Entry]) -> Iterator[str]:
    """A line for each message: where it belongs, why it is here, its text, and the whole draft
    (bytes of images and files in base64)."""
    for entry in entries:
        record = entry.record
        if record is None:
            continue
        for draft in drafts(record.messages):
            value = {
                "conversation": record.conversation, "profile": record.profile,
                "store": record.store, "state": entry.state, "cause": record.cause,
                "at": record.at, "turn": record.turn, "role": draft.role,
                "content": plain_text(draft.parts), "draft": msgspec.to_builtins(draft),
            }  # fmt: skip
            yield f"{json_text(value, 'message')}\n"
