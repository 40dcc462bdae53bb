"""The lines of a Codex rollout in one form, however old the version that wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from clew.importers.chain import Place
from clew.importers.decode import decode, loose_keys
from clew.importers.fields import canonical, listed, mapping, text
from clew.importers.formats.responses_items import TYPES, kind_of
from clew.importers.objects import objects
from clew.importers.records import Damaged
from clew.importers.source import Source

KINDS = frozenset((
    "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
))  # fmt: skip
OLD_HEAD = frozenset(("id", "timestamp", "instructions"))
_OLD_CALLS = ("tool_call", "tool_result")
_HEAD = 64 * 1024
_FOLDER = re.compile(r"\d{2,4}")
_THREAD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILE = re.compile(rf"rollout-.*-({_THREAD.pattern})$")


class Row(NamedTuple):
    """A line: what it is, what it says, and when it was written."""

    kind: str
    payload: dict[str, Any]
    timestamp: object = None
    ordinal: object = None


def rows(source: Source) -> Iterator[Row | Damaged]:
    """The lines of a rollout, or the session and items of the JSON files before them."""
    if is_document(source.head(_HEAD)):
        yield from _document(source)
        return
    for line in objects(source.lines()):
        yield line if isinstance(line, Damaged) else row_of(line.value)


def is_document(head: bytes) -> bool:
    """Whether this is a session file of the first Codex, which was one JSON object."""
    found = head.lstrip()
    return (
        found[:1] == b"{"
        and b'"items"' in found
        and loose_keys(found) - {"items"} == frozenset(("session",))
    )


def row_of(line: dict[str, Any]) -> Row:
    """A line in the one form. Files of 2025 had the items bare, and before them a head."""
    kind, payload = text(line.get("type")) or "", mapping(line.get("payload"))
    stamp, ordinal = line.get("timestamp"), line.get("ordinal")
    if payload:
        return Row(kind, payload, stamp or payload.get("timestamp"), ordinal)
    if not kind and line.keys() >= OLD_HEAD:
        return Row("session_meta", line, stamp)
    if kind in _OLD_CALLS:
        return Row(kind, line, stamp)
    if kind_of(line) in TYPES:
        return Row("response_item", line, stamp)
    return Row(kind or text(line.get("record_type")) or "line of no type", {}, stamp)


def placed(found: Iterator[Row | Damaged]) -> Iterator[tuple[Row | Damaged, Place]]:
    """The rows, each with the place that it has or, if it is no item, that one is at."""
    place = Place()
    for row in found:
        if isinstance(row, Row) and (row.kind == "response_item" or row.kind in _OLD_CALLS):
            place = place.next(canonical(row.payload))
        yield row, place


def thread_of(source: Source) -> str | None:
    """The id in the name of a rollout."""
    found = _FILE.match(source.stem)
    return found[1] if found else None


def rollout_of(thread: str, beside: Source) -> Source | None:
    """The rollout of another thread, if it lies where Codex keeps it: in this folder, or in that
    of the day its id tells."""
    if beside.member is not None or not _THREAD.fullmatch(thread):
        return None
    folder = beside.path.parent
    folders = [folder]
    if _FOLDER.fullmatch(folder.name) and _FOLDER.fullmatch(folder.parent.name):
        folders += _days(thread, folder.parents[2])
    for each in folders:
        for path in sorted(each.glob(f"rollout-*-{thread}.jsonl")):
            if path.is_file() and not path.is_symlink():
                return Source(path)
    return None


def _days(thread: str, sessions: Path) -> list[Path]:
    """The folders of the day that a thread began on, and of those around it (folders are named by
    local time): ids begin with their time."""
    began = int(thread[:8] + thread[9:13], 16) / 1000
    if not 0 < began < 4e9:
        return []
    days = (datetime.fromtimestamp(began, UTC) + timedelta(days=each) for each in (-1, 0, 1))
    return [sessions / day.strftime("%Y/%m/%d") for day in days]


def _document(source: Source) -> Iterator[Row | Damaged]:
    try:
        value = mapping(decode(source.document()))
    except ValueError as error:
        yield Damaged("file", str(error))
        return
    session = mapping(value.get("session"))
    yield Row("session_meta", session, session.get("timestamp"))
    for item in listed(value.get("items")):
        yield row_of(mapping(item))
