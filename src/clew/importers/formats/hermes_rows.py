"""Rows of Hermes' `messages` table: what they say, and by what they are told from each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from clew.domain.messages import Role, known_role
from clew.domain.parts import Parts, Reasoning
from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import json_of, listed, meta, moment, number, text, whole
from clew.importers.foreign import Foreign, loose
from clew.importers.formats.hermes_compaction import Mark, State
from clew.importers.pieces import calls, content, result, thoughts
from clew.importers.records import Record, Spent

TEXTS = (
    "role", "content", "tool_call_id", "tool_calls", "tool_name", "finish_reason", "reasoning",
    "reasoning_content", "reasoning_details", "codex_reasoning_items", "platform_message_id",
    "effect_disposition",
)  # fmt: skip
NUMBERS = ("id", "timestamp", "token_count", "observed", "active", "compacted")
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
"""In a message that was kept and had the summary put behind it."""
_JSON = "\0json:"
"""Before content that is no plain text."""


class MessageRow(Struct, frozen=True, kw_only=True):
    """A row, with columns that this version of Hermes does not have as None."""

    id: int
    values: dict[str, Any]

    def text(self, column: str) -> str | None:
        return text(self.values.get(column))

    @property
    def at(self) -> int | None:
        return moment(self.values.get("timestamp"))

    @property
    def role(self) -> Role | None:
        """None of a row that is no message, whatever else it is."""
        role = self.text("role")
        return Role(role) if known_role(role) else None

    @property
    def content(self) -> object:
        """A text, or what its JSON is."""
        said = self.text("content")
        if said is None or not said.startswith(_JSON):
            return said
        try:
            return decode(said[len(_JSON) :])
        except ValueError:
            return said

    def json(self, column: str) -> object:
        """The value of a column that holds JSON; None when it holds none."""
        return json_of(self.text(column))


def rows_of(database: Foreign, session: str, columns: frozenset[str]) -> Iterator[MessageRow]:
    """The rows of a session in the order they were written (their times may not be: a clock can be
    put back)."""
    texts = [name for name in TEXTS if name in columns]
    numbers = [name for name in NUMBERS if name in columns]
    picked = ", ".join([*texts, *numbers])
    order = f"SELECT {picked} FROM messages WHERE session_id = ? ORDER BY id"  # noqa: S608
    for row in database.rows(order, session):
        values = dict(zip([*texts, *numbers], row, strict=True))
        for name in texts:
            values[name] = loose(values[name])
        id = values.get("id")
        yield MessageRow(id=id if isinstance(id, int) else 0, values=values)


# ---------------------------------------------------------------------- told apart


def mark_of(row: MessageRow) -> Mark:
    """What is needed to tell copies from messages."""
    said, asked, call = row.text("content"), row.text("tool_calls"), row.text("tool_call_id")
    role = row.text("role") or ""
    exact = _hash(role, said, asked, call)
    if role == "tool" and call:
        key = _hash("of call", call)
    elif asked and (ids := [found.id for found in calls(row.json("tool_calls"))]):
        key = _hash("of calls", *ids)
    else:
        key = exact
    return Mark(
        id=str(row.id),
        key=key,
        exact=exact,
        at=row.at,
        state=_state(row),
        is_summary=is_summary(said),
    )


def _hash(*words: str | None) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for word in words:
        data = b"\0" if word is None else word.encode("utf-8", "replace")
        digest.update(b"%d:" % (-1 if word is None else len(data)) + data)
    return digest.digest()


def _state(row: MessageRow) -> State:
    """Columns that are missing mean a version that could not compact in place nor rewind."""
    if row.values.get("active", 1) != 0:
        return "active"
    return "compacted" if row.values.get("compacted") == 1 else "rewound"


def is_summary(said: str | None) -> bool:
    """Whether a message is, or ends with, a summary that a compaction made."""
    if said is None:
        return False
    return said.lstrip()[:20].startswith(_SUMMARIES) or _MERGED in said[:100_000]


# ---------------------------------------------------------------------- what they say


def parts_of(row: MessageRow, role: Role, model: str | None) -> Parts:
    """The parts of a message."""
    if role is Role.TOOL:
        return (result(row.text("tool_call_id"), row.content, row.text("tool_name")),)
    said = content(row.content)
    if role is not Role.ASSISTANT:
        return said
    return (*thinking(row, model), *said, *calls(row.json("tool_calls")))


def thinking(row: MessageRow, model: str | None) -> list[Reasoning]:
    """What the model thought, as the row has it."""
    details = listed(row.json("codex_reasoning_items")) or listed(row.json("reasoning_details"))
    return thoughts(details, row.text("reasoning_content") or row.text("reasoning"), model)


def record_of(
    row: MessageRow, chat: str, role: Role, model: str | None, parent: str | None
) -> Record:
    """A row as a message of its own."""
    return Record(
        chat=chat,
        role=role,
        parts=parts_of(row, role, model),
        id=str(row.id),
        parent=parent,
        created_at=row.at,
        model=model if role is Role.ASSISTANT else None,
        meta=meta(
            observed=row.values.get("observed") == 1,
            finish_reason=row.text("finish_reason"),
            platform_message_id=row.text("platform_message_id"),
            effect_disposition=row.text("effect_disposition"),
            tokens=whole(row.values.get("token_count")),
        ),
    )


# ---------------------------------------------------------------------- what they cost

COUNTS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd",
)  # fmt: skip


def spent_of(values: dict[str, Any], model: str | None) -> Spent | None:
    """Counters as usage: Hermes counts tokens read from and written to a cache apart."""
    counts = {name: whole(values.get(name)) or 0 for name in COUNTS[:5]}
    if not any(counts.values()):
        return None
    cached = counts["cache_read_tokens"]
    usage = Usage(
        input=counts["input_tokens"] + cached + counts["cache_write_tokens"],
        output=counts["output_tokens"],
        cached=cached,
        reasoning=counts["reasoning_tokens"],
    )
    costs = (number(values.get(name)) for name in ("actual_cost_usd", "estimated_cost_usd"))
    cost = next((each for each in costs if each), None)
    return Spent(model=model or "unknown", usage=usage, cost=cost)
