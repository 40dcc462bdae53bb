"""LibreChat's export of a conversation: a list of messages, or a tree of them by `children`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.messages import Role
from clew.domain.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import (
    arguments,
    file_named,
    flag,
    ident,
    image_at,
    listed,
    mapping,
    media,
    meta,
    moment,
    text,
    unknown,
    whole,
)
from clew.importers.format import Format
from clew.importers.nested import split
from clew.importers.probe import Probe
from clew.importers.records import ROOT, Chat, Damaged, Event, Record, Skipped, Spent, Warned
from clew.importers.source import Source
from clew.importers.tree import Node, orphans, placed

_ROOT = "00000000-0000-0000-0000-000000000000"


def matches(probe: Probe) -> bool:
    """An object of a conversation's id and its messages, and how it was exported."""
    marks = {"endpoint", "recursive", "branches", "exportAt"}
    return {"conversationId", "messages"} <= probe.keys and len(marks & probe.keys) >= 2


def read(source: Source) -> Iterator[Event]:
    """Everything after the messages are known: a child may stand before its parent."""
    document, *pieces = split(source.document())
    about: dict[str, Any] = {}
    try:
        about = mapping(decode(document.data))
    except ValueError as error:
        yield Damaged("the file", str(error))
    ids = [ROOT]
    messages: dict[str, dict[str, Any]] = {}
    for number, piece in enumerate(pieces, 1):
        try:
            message = mapping(decode(piece.data))
            id = ident(message.get("messageId"))
            reason = "it has no messageId"
        except ValueError as error:
            message, id, reason = {}, None, str(error)
        ids.append(id or ROOT)
        if id is None:
            yield Damaged(f"message {number}", reason)
        elif id in messages:
            yield Skipped("duplicate messageId")
        else:
            message.setdefault("parentMessageId", ids[piece.above])
            messages[id] = message
    if messages:
        yield from _conversation(source, about, messages)


def _conversation(
    source: Source, about: dict[str, Any], messages: dict[str, dict[str, Any]]
) -> Iterator[Event]:
    named = next((id for m in messages.values() if (id := ident(m.get("conversationId")))), None)
    chat = ident(about.get("conversationId")) or named or source.id
    nodes: dict[str, Node] = {}
    for id, message in messages.items():
        parts, results = _content(message)
        parent = ident(message.get("parentMessageId"))
        above = None if parent == _ROOT else parent
        nodes[id] = Node(above, bool(parts or results), moment(message.get("createdAt")))
        if not (parts or results):
            yield Skipped("empty message")
    if missing := orphans(nodes):
        yield Warned(f"{chat}: {missing} messages name a parent that is not there")
    yield _chat(chat, about, messages)
    ends = {ROOT: ROOT}
    for place in placed(nodes, None):
        message = messages[place.id]
        yield from _skipped(message)
        for record in _records(chat, place.id, ends[place.parent], message):
            yield record
            ends[place.id] = record.id or ROOT


def _chat(id: str, about: dict[str, Any], messages: dict[str, dict[str, Any]]) -> Chat:
    options = mapping(about.get("options"))
    times = [at for m in messages.values() if (at := moment(m.get("createdAt"))) is not None]
    return Chat(
        id=id,
        title=text(about.get("title")) or text(options.get("title")) or None,
        created_at=min(times, default=None),
        model=text(options.get("model")) or None,
        prompt=text(options.get("promptPrefix")) or text(options.get("system")) or None,
        meta=meta(
            endpoint=text(about.get("endpoint")),
            agent=text(options.get("agent_id")),
            label=text(options.get("chatGptLabel")) or text(options.get("modelLabel")),
        ),
    )


def _records(chat: str, id: str, parent: str, message: dict[str, Any]) -> Iterator[Record]:
    """The message, and after it what the tools that it called gave."""
    parts, results = _content(message)
    at = moment(message.get("createdAt"))
    by_user = flag(message.get("isCreatedByUser"))
    if parts:
        yield Record(
            chat=chat,
            id=id,
            parent=parent,
            role=Role.USER if by_user else Role.ASSISTANT,
            parts=parts,
            created_at=at,
            spent=None if by_user else _spent(message),
            model=None if by_user else text(message.get("model")),
            meta=meta(
                sender=text(message.get("sender")),
                endpoint=text(message.get("endpoint")),
                error=flag(message.get("error")),
                unfinished=flag(message.get("unfinished")),
                finish=text(message.get("finish_reason")),
            ),
        )
    if results:
        yield Record(
            chat=chat,
            id=f"{id}/result",
            parent=id if parts else parent,
            role=Role.TOOL,
            parts=results,
            created_at=at,
        )


def _spent(message: dict[str, Any]) -> Spent | None:
    usage = Usage(
        input=whole(message.get("promptTokens")) or 0,
        output=whole(message.get("tokenCount")) or 0,
    )
    if usage == Usage():
        return None
    return Spent(model=text(message.get("model")) or "unknown", usage=usage)


def _content(message: dict[str, Any]) -> tuple[tuple[Part, ...], tuple[ToolResult, ...]]:
    """What it says, and the results of its calls."""
    parts: list[Part] = []
    results: list[ToolResult] = []
    if said := text(message.get("text")):
        parts.append(Text(said))
    elif isinstance(message.get("content"), str):
        parts.append(Text(message["content"]))
    for piece in listed(message.get("content")):
        part, result = _piece(piece, text(message.get("model")), bool(said))
        if part is not None:
            parts.append(part)
        if result is not None:
            results.append(result)
    parts.extend(_file(each) for each in map(mapping, listed(message.get("files"))) if each)
    return tuple(parts), tuple(results)


def _piece(
    piece: object, model: str | None, has_text: bool
) -> tuple[Part | None, ToolResult | None]:
    """An entry of `content`. Where the message has `text` too, that is the same words again."""
    fields = mapping(piece)
    match fields.get("type"):
        case "text" | "error" as kind:
            value = fields.get(kind)
            said = text(value) or text(mapping(value).get("value"))
            return (Text(said) if said and not has_text else None), None
        case "think":
            value = fields.get("think")
            thought = text(value) or text(mapping(value).get("value"))
            return (Reasoning(thought, model=model) if thought else None), None
        case "tool_call":
            return _tool(mapping(fields.get("tool_call")), piece)
        case "image_url":
            target = fields.get("image_url")
            found = image_at(text(target) or mapping(target).get("url"))
            return (found or unknown(piece)), None
        case "image_file":
            return _file(mapping(fields.get("image_file"))), None
        case "agent_update":
            return None, None
        case _:
            return (unknown(piece) if piece else None), None


def _tool(call: dict[str, Any], piece: object) -> tuple[Part | None, ToolResult | None]:
    """A call, of an agent or of an OpenAI assistant, that holds its result."""
    inner = mapping(call.get("function")) or mapping(call.get("code_interpreter")) or call
    id = ident(call.get("id"))
    name = text(inner.get("name")) or text(call.get("type"))
    if id is None or not name:
        return unknown(piece), None
    asked = inner.get("args", inner.get("arguments", inner.get("input")))
    output = inner.get("output", inner.get("outputs"))
    part = ToolCall(id, name, arguments(asked))
    if output is None:
        return part, None
    return part, ToolResult(id, arguments(output), name)


def _file(fields: dict[str, Any]) -> Part:
    """A file on LibreChat's server: the export holds where it lies there, not what is in it."""
    kind = media(fields.get("type"), "application/octet-stream")
    where = text(fields.get("filepath")) or text(fields.get("preview"))
    if where and (kind.startswith("image/") or "width" in fields):
        media_type = kind if kind.startswith("image/") else "image/png"
        width, height = whole(fields.get("width")), whole(fields.get("height"))
        return Image(media_type=media_type, url=where, width=width, height=height)
    found = file_named(kind, fields.get("filename"), where, fields.get("file_id"))
    return found or unknown(fields)


def _skipped(message: dict[str, Any]) -> Iterator[Skipped]:
    if count := len(listed(message.get("attachments"))):
        yield Skipped("attachment", count)
    kinds = [mapping(piece).get("type") for piece in listed(message.get("content"))]
    if count := kinds.count("agent_update"):
        yield Skipped("agent_update", count)


FORMAT = Format(
    name="librechat",
    label="LibreChat",
    matches=matches,
    read=read,
    growth="branch",
)
