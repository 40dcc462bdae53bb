"""Rows of a store as lines of a file, and back: columns by name, one place for each table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from clew.domain.compactions import BodyItem, Inline
from clew.domain.parts import Parts, check_parts
from clew.domain.text import clean
from clew.domain.values import check_json, json_text, json_value
from clew.errors import InputError, TooLarge
from clew.store.backend import Row, Value
from clew.store.blobs import hashes
from clew.store.copy.tables import RECORDS, ROUTES, Records, Wide
from clew.store.kit import Kit
from clew.store.transfer_lines import (
    AliasLine,
    AttemptLine,
    CallLine,
    CompactionLine,
    CutLine,
    Facts,
    GoalLine,
    Record,
    TodoLine,
    TurnLine,
)

EXPORTED = "it was running when it was exported"
"""Error of a turn that was: a file carries no right to run."""

_BODY = tuple[BodyItem, ...]
_R = TypeVar("_R", bound=Record)

TABLES: Mapping[str, Records] = {table.name: table for table in RECORDS}
ALIAS: Wide = next(table for table in ROUTES if table.name == "alias")
KEYS = {"compaction": "generation"}
"""The key inside a conversation, where it is not the number."""

Fields = dict[str, Any]


def named(table: Records, row: Row) -> Fields:
    """A row of the copy's statements, whose first column is the conversation's number."""
    return dict(zip(table.columns, row[1:], strict=True))


def given(fields: Fields) -> Fields:
    """Without what is None: a line leaves it out."""
    return {name: value for name, value in fields.items() if value is not None}


def hexed(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def table_of(line: Record) -> str:
    """The table of a record: its tag."""
    return str(line.__struct_config__.tag)


def number_of(line: Record) -> int:
    """The number of a record in its table."""
    return line.generation if isinstance(line, CompactionLine) else line.number


# ---------------------------------------------------------------- from rows


def facts_of(row: Fields, numbers: Fields) -> Facts:
    """From the columns of a conversation; `numbers`: the highest of each kind of record."""
    row = {
        name: value for name, value in given(row).items() if name in Facts.__struct_fields__
    } | {
        "prompt": hexed(row["prompt_hash"]), "toolset": hexed(row["toolset_hash"]),
        "meta": json_value(row["meta"]), "conversation": row["id"],
    }  # fmt: skip
    for flag in ("title_locked", "pinned", "archived", "automation", "read_only"):
        row[flag] = bool(row[flag])
    return Facts(**row, **numbers)


def cut_of(id: str, row: Fields) -> CutLine:
    return CutLine(conversation=id, **given(row | {"uid": row["uid"].hex()}))


def attempt_of(id: str, row: Fields) -> AttemptLine:
    return AttemptLine(conversation=id, **given(row | {"uid": row["uid"].hex()}))


def compaction_of(kit: Kit, id: str, row: Fields) -> CompactionLine:
    row = row | {
        "body": kit.codec.value(row["body"], _BODY),
        "cuts": tuple(json_value(row["cuts"])),
        "receipt": json_value(row["receipt"]),
    }
    return CompactionLine(conversation=id, **given(row))


def turn_of(id: str, row: Fields, active_at: int) -> TurnLine:
    """A turn that is running is said to have been interrupted: nobody holds its right there."""
    row = row | {"uid": row["uid"].hex()}
    if row["state"] == "running":
        end = max(row["started_at"], active_at)
        row |= {"state": "interrupted", "ended_at": end, "error": EXPORTED}
    return TurnLine(conversation=id, **given(row))


def call_of(id: str, row: Fields) -> CallLine:
    row = row | {
        "prompt": hexed(row.pop("prompt_hash")), "toolset": hexed(row.pop("toolset_hash")),
        "settings": json_value(row["settings"]), "partial": json_value(row["partial"]),
    }  # fmt: skip
    return CallLine(conversation=id, **given(row))


def todo_of(id: str, row: Fields) -> TodoLine:
    return TodoLine(conversation=id, **row)


def goal_of(id: str, row: Fields) -> GoalLine:
    return GoalLine(conversation=id, **row)


# ---------------------------------------------------------------- to rows


def values_of(kit: Kit, line: Record | AliasLine) -> Fields:
    """The columns of a record, checked; without the conversation's number. InputError."""
    match line:
        case CutLine():
            return _plain(line) | {"uid": bytes.fromhex(line.uid), "by": kit.label("by", line.by)}
        case AttemptLine():
            return _attempt(kit, line)
        case CompactionLine():
            return _compaction(kit, line)
        case TurnLine():
            return _turn(kit, line)
        case CallLine():
            return _call(kit, line)
        case TodoLine() | GoalLine():
            return _plain(line) | {"text": kit.label(table_of(line), line.text)}
        case AliasLine():
            return _plain(line) | {
                "source": kit.key("alias source", line.source),
                "foreign_id": kit.key("alias", line.foreign_id),
            }


def _plain(line: Record | AliasLine) -> Fields:
    return {name: getattr(line, name) for name in line.__struct_fields__ if name != "conversation"}


def _attempt(kit: Kit, line: AttemptLine) -> Fields:
    if (line.state == "open") != (line.ended_at is None):
        raise InputError("an attempt that ended needs ended_at, an open one has none")
    return _plain(line) | {
        "uid": bytes.fromhex(line.uid), "model": kit.label("model", line.model),
        "verdict": kit.remark(line.verdict), "summary_error": kit.remark(line.summary_error),
    }  # fmt: skip


def _compaction(kit: Kit, line: CompactionLine) -> Fields:
    shrinks = None not in (line.tokens_before, line.tokens_after) and (
        (line.tokens_after or 0) < (line.tokens_before or 0)
    )
    if line.kind == "ours" and not shrinks:
        raise InputError("a compaction of ours has tokens_after below tokens_before")
    if line.undone_tokens is not None and line.undone_at is None:
        raise InputError("a compaction with undone_tokens needs undone_at")
    for item in line.body:
        if isinstance(item, Inline):
            check_parts(item.parts)
            check_json("meta", item.meta)
    return _plain(line) | {
        "body": kit.codec.pack(line.body, kit.limits.message),
        "cuts": msgspec.json.encode(line.cuts).decode(),
        "receipt": kit.json("receipt", line.receipt),
    }


def _turn(kit: Kit, line: TurnLine) -> Fields:
    if line.state == "running":
        raise InputError("a turn in a file cannot be running: nobody has its right")
    if (line.state == "waiting") != (line.ended_at is None):
        raise InputError("a turn that ended needs ended_at, a waiting one has none")
    return _plain(line) | {
        "uid": bytes.fromhex(line.uid),
        "key": None if line.key is None else kit.key("turn key", line.key),
        "error": kit.remark(line.error),
    }


def _call(kit: Kit, line: CallLine) -> Fields:
    if line.cost is not None and not math.isfinite(line.cost):
        raise InputError(f"cost is {line.cost}; give a number")
    if line.partial is not None and len(line.partial) > kit.limits.message:
        raise TooLarge("partial", len(line.partial), kit.limits.message)
    fields = _plain(line)
    for name in ("prompt", "toolset"):
        digest = fields.pop(name)
        fields[f"{name}_hash"] = None if digest is None else bytes.fromhex(digest)
    return fields | {
        "model": kit.label("model", line.model), "settings": kit.json("settings", line.settings),
        "prefix_hash": kit.label("prefix hash", line.prefix_hash),
        "partial": json_text(line.partial), "error": kit.remark(line.error),
        "api_group": kit.label("api_group", line.api_group),
    }  # fmt: skip


def columns_of(kit: Kit, facts: Facts) -> dict[str, Value]:
    """The columns of a conversation, checked; without those that what is stored decides."""
    if (facts.ended_at is None) != (facts.end_reason is None):
        raise InputError("a conversation that ended needs ended_at and end_reason")
    labels: dict[str, Value] = {}
    for name in ("cwd", "git_root", "git_branch", "model", "preview", "attribution", *_TITLES):
        labels[name] = kit.label(name, getattr(facts, name))
    return labels | {
        "id": kit.key("conversation id", facts.conversation),
        "kind": facts.kind, "source": kit.key("source", facts.source),
        "affinity": kit.key("affinity", facts.affinity),
        "created_at": facts.created_at, "active_at": facts.active_at, "view": facts.view,
        "fence": facts.fence, "title_locked": int(facts.title_locked),
        "pinned": int(facts.pinned), "archived": int(facts.archived),
        "automation": int(facts.automation), "read_only": int(facts.read_only),
        "imported_at": facts.imported_at, "imported_to": facts.imported_to,
        "ended_at": facts.ended_at,
        "end_reason": None if facts.end_reason is None else clean(facts.end_reason),
        "reopened_at": facts.reopened_at, "meta": kit.json("meta", facts.meta),
    }  # fmt: skip


_TITLES = ("title_user", "title_llm", "title_derived")


def line_hashes(line: Any) -> set[bytes]:
    """The blobs that a message or the body of a compaction refers to."""
    if isinstance(line, CompactionLine):
        inline = (item.parts for item in line.body if isinstance(item, Inline))
        return set[bytes]().union(*map(hashes, inline))
    parts: Parts = getattr(line, "parts", ())
    return hashes(parts)
