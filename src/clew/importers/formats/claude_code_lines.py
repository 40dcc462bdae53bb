"""Lines of a Claude Code session file, in types: quickly when they are as expected, with care when
they are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct, field

from clew.importers.decode import check_depth, decode
from clew.importers.fields import compact, flag, ident, listed, mapping, number, text, whole
from clew.importers.records import Damaged
from clew.importers.source import Piece

NOTHING = Raw(b"")


class Media(Struct, frozen=True, gc=False):
    """The `source` of an image or document."""

    type: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


class Block(Struct, frozen=True, gc=False):
    """A content block of any type: which fields count, `type` says."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NOTHING
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None
    source: Media | None = None
    title: str | None = None


class OutputDetails(Struct, frozen=True, gc=False):
    """What of the output was thinking."""

    thinking_tokens: int | None = None


class Tokens(Struct, frozen=True, gc=False):
    """The `usage` of an API message."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Message(Struct, frozen=True, gc=False):
    """The Anthropic message of a record."""

    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    usage: Tokens | None = None
    stop_reason: str | None = None


class Line(Struct, frozen=True, gc=False, rename="camel"):
    """One record. Fields that are rarely of use stay undecoded."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    entrypoint: str | None = None
    request_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    source_tool_assistant_uuid: str | None = field(default=None, name="sourceToolAssistantUUID")
    cost: float | None = field(default=None, name="costUSD")
    duration_ms: float | None = None
    message: Message | None = None
    tool_use_result: Raw = NOTHING
    compact_metadata: Raw = NOTHING
    retracted: Raw = field(default=NOTHING, name="retractedMessageUuids")
    attachment: Raw = NOTHING
    summary: str | None = None
    leaf_uuid: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None


class Entry(Struct, gc=False):
    """A line and where it came from."""

    number: int
    line: Line
    data: bytes
    """The bytes of the line, or of its part where several records stood on it."""
    value: dict[str, Any] | None = None
    """All it holds, once that was needed."""

    def whole(self) -> dict[str, Any]:
        """The record with all its fields; decoded once, or each odd block would cost a line."""
        if self.value is None:
            try:
                self.value = mapping(decode(self.data))
            except ValueError:  # in a part that is not read otherwise
                self.value = {}
        return self.value


_decoder = msgspec.json.Decoder(Line)
_careful = json.JSONDecoder(strict=False)
_BEGINNING = re.compile(r'\{"(?:type|parentUuid|uuid|isSidechain|sessionId)"')
_BLANK = re.compile("[\0 \t\r]*")
_KINDS: dict[Any, str] = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    list: "a list",
}
_TRIES = 8
"""Places of a line at which a record is looked for behind a damaged one."""


def entries(piece: Piece) -> Iterator[Entry | Damaged]:
    """The records of a line: one, several that were glued together, or none."""
    try:
        line = _decoder.decode(piece.data)
        check_depth(piece.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        yield from _with_care(piece)
    else:
        yield Entry(piece.number, line, piece.data)


def _with_care(piece: Piece) -> Iterator[Entry | Damaged]:
    where = f"line {piece.number}"
    data = piece.data.strip(b"\0 \t\r")
    try:
        value = decode(data or piece.data)
    except ValueError as error:
        yield from _pieces(piece.number, data, str(error))
        return
    if isinstance(value, dict):
        yield _entry(piece.number, data, cast(dict[str, Any], value))
    else:
        yield Damaged(where, f"{_KINDS.get(type(cast(object, value)), 'null')}, not an object")


def _pieces(number: int, data: bytes, reason: str) -> Iterator[Entry | Damaged]:
    """Records that stand on one line, because a line end was lost; what a crash left of the one
    before them is passed over."""
    damaged = Damaged(f"line {number}", reason)
    rest = data.decode("utf-8", "replace")
    at, failed, is_next = 0, 0, True
    while at < len(rest) or not rest:
        found, end = _object_at(rest, at)
        if found is not None and (is_next or _is_record(found)):
            yield _entry(number, compact(found).encode(), found)
            blank = _BLANK.match(rest, end)
            at, is_next = blank.end() if blank else end, True
            continue
        if is_next:
            yield damaged
        failed, is_next = failed + 1, False
        beginning = _BEGINNING.search(rest, at + 1)
        if beginning is None or failed > _TRIES:
            return
        at = beginning.start()


def _object_at(rest: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """The object that begins there, and where it ends."""
    try:
        value, end = _careful.raw_decode(rest, at)
        check_depth(rest[at:end].encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None, at
    return (cast(dict[str, Any], value) if isinstance(value, dict) else None), end


def _is_record(value: dict[str, Any]) -> bool:
    return "type" in value and not value.keys().isdisjoint(("uuid", "sessionId", "leafUuid"))


# ---------------------------------------------------------------------- with care


def _entry(number: int, data: bytes, value: dict[str, Any]) -> Entry:
    return Entry(number, _line(value), data, value)


def _line(value: dict[str, Any]) -> Line:
    message = value.get("message")
    return Line(
        type=ident(value.get("type")),
        subtype=ident(value.get("subtype")),
        uuid=ident(value.get("uuid")),
        parent_uuid=ident(value.get("parentUuid")),
        logical_parent_uuid=ident(value.get("logicalParentUuid")),
        session_id=ident(value.get("sessionId")),
        agent_id=ident(value.get("agentId")),
        timestamp=ident(value.get("timestamp")),
        cwd=text(value.get("cwd")),
        git_branch=text(value.get("gitBranch")),
        version=ident(value.get("version")),
        entrypoint=ident(value.get("entrypoint")),
        request_id=ident(value.get("requestId")),
        is_sidechain=flag(value.get("isSidechain")),
        is_meta=flag(value.get("isMeta")),
        is_compact_summary=flag(value.get("isCompactSummary")),
        is_api_error_message=flag(value.get("isApiErrorMessage")),
        source_tool_assistant_uuid=ident(value.get("sourceToolAssistantUUID")),
        cost=number(value.get("costUSD")),
        duration_ms=number(value.get("durationMs")),
        message=_message(mapping(cast(object, message))) if isinstance(message, dict) else None,
        tool_use_result=_raw(value, "toolUseResult"),
        compact_metadata=_raw(value, "compactMetadata"),
        retracted=_raw(value, "retractedMessageUuids"),
        attachment=_raw(value, "attachment"),
        summary=text(value.get("summary")),
        leaf_uuid=ident(value.get("leafUuid")),
        custom_title=text(value.get("customTitle")),
        ai_title=text(value.get("aiTitle")),
    )


def _raw(value: dict[str, Any], name: str) -> Raw:
    return Raw(compact(value[name]).encode()) if value.get(name) is not None else NOTHING


def _message(value: dict[str, Any]) -> Message:
    return Message(
        id=ident(value.get("id")),
        model=ident(value.get("model")),
        content=content_of(value.get("content")),
        usage=_tokens(mapping(value.get("usage"))) if "usage" in value else None,
        stop_reason=ident(value.get("stop_reason")),
    )


def content_of(value: object) -> str | list[Block] | None:
    """Content as blocks, one for each element; of what is neither text nor list, one that has no
    type."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return [_block(each) for each in listed(cast(object, value))]
    return [Block()]


def _block(value: object) -> Block:
    if isinstance(value, str):
        return Block(type="text", text=value)
    fields = mapping(value)
    source = mapping(fields.get("source"))
    return Block(
        type=ident(fields.get("type")),
        text=text(fields.get("text")),
        thinking=text(fields.get("thinking")),
        signature=text(fields.get("signature")),
        data=text(fields.get("data")),
        id=ident(fields.get("id")),
        name=ident(fields.get("name")),
        input=_raw(fields, "input"),
        tool_use_id=ident(fields.get("tool_use_id")),
        content=content_of(fields.get("content")),
        is_error=flag(fields.get("is_error")),
        source=Media(
            type=text(source.get("type")),
            media_type=text(source.get("media_type")),
            data=text(source.get("data")),
            url=text(source.get("url")),
        )
        if source
        else None,
        title=text(fields.get("title")),
    )


def _tokens(value: dict[str, Any]) -> Tokens:
    details = mapping(value.get("output_tokens_details"))
    return Tokens(
        input_tokens=whole(value.get("input_tokens")),
        output_tokens=whole(value.get("output_tokens")),
        cache_creation_input_tokens=whole(value.get("cache_creation_input_tokens")),
        cache_read_input_tokens=whole(value.get("cache_read_input_tokens")),
        output_tokens_details=OutputDetails(whole(details.get("thinking_tokens"))),
    )
