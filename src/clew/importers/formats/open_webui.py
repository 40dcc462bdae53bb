"""Open WebUI's export of chats: an array of them, or one. Each is a tree by `parentId`; the lists
of children beside it may be stale and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.messages import Role
from clew.domain.parts import File, Part, Text
from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import (
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
from clew.importers.pieces import usage_of
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent, Warned
from clew.importers.source import Source
from clew.importers.tree import Node, orphans, placed

_ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.SYSTEM)}


def matches(probe: Probe) -> bool:
    """A row of its table of chats, or an array of them."""
    keys = probe.keys or probe.item_keys
    return "chat" in keys and len({"user_id", "title", "created_at", "share_id"} & keys) >= 2


def read(source: Source) -> Iterator[Event]:
    """One chat at a time."""
    if source.head(1000).lstrip()[:1] != b"[":
        yield from _decoded(source.document(), "the file", source.id)
        return
    for item in source.items():
        if isinstance(item, Damaged):
            yield item
        else:
            yield from _decoded(item.data, f"element {item.number}", f"{source.id}#{item.number}")


def _decoded(data: bytes, where: str, fallback: str) -> Iterator[Event]:
    try:
        row = mapping(decode(data))
    except ValueError as error:
        yield Damaged(where, str(error))
        return
    chat = mapping(row.get("chat"))
    messages = _messages(chat)
    if not messages:
        yield Damaged(where, "no chat with messages")
        return
    yield from _conversation(row, chat, messages, fallback)


def _messages(chat: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By their ids. Old chats have a list only, some of it without ids."""
    history = mapping(mapping(chat.get("history")).get("messages"))
    if history:
        return {id: mapping(message) for id, message in history.items() if ident(id)}
    found: dict[str, dict[str, Any]] = {}
    before: str | None = None
    for number, message in enumerate(map(mapping, listed(chat.get("messages"))), 1):
        id = ident(message.get("id")) or f"#{number}"
        found[id] = {"parentId": before, **message}
        before = id
    return found


def _conversation(
    row: dict[str, Any], chat: dict[str, Any], messages: dict[str, dict[str, Any]], fallback: str
) -> Iterator[Event]:
    chat_id = ident(row.get("id")) or ident(chat.get("id")) or fallback
    nodes: dict[str, Node] = {}
    for id, message in messages.items():
        reason = _reason(message)
        at = moment(message.get("timestamp"))
        nodes[id] = Node(ident(message.get("parentId")), reason is None, at)
        if reason:
            yield Skipped(reason)
    if missing := orphans(nodes):
        yield Warned(f"{chat_id}: {missing} messages name a parent that is not there")
    yield _chat(chat_id, row, chat)
    for place in placed(nodes, text(mapping(chat.get("history")).get("currentId"))):
        yield _record(chat_id, place.id, place.parent, messages[place.id])


def _chat(id: str, row: dict[str, Any], chat: dict[str, Any]) -> Chat:
    system = text(chat.get("system")) or text(mapping(chat.get("params")).get("system"))
    models = [model for model in listed(chat.get("models")) if isinstance(model, str) and model]
    return Chat(
        id=id,
        title=text(row.get("title")) or text(chat.get("title")) or None,
        created_at=moment(row.get("created_at")) or moment(chat.get("timestamp")),
        model=models[0] if models else None,
        prompt=system or None,
        meta=meta(
            archived=flag(row.get("archived")),
            pinned=flag(row.get("pinned")),
            folder=text(row.get("folder_id")),
            tags=mapping(row.get("meta")).get("tags"),
        ),
    )


def _reason(message: dict[str, Any]) -> str | None:
    """Why a message is not imported; None when it is."""
    if (role := text(message.get("role"))) not in _ROLES:
        return f"role {role}"[:80]
    return None if _parts(message) else "empty message"


def _record(chat: str, id: str, parent: str, message: dict[str, Any]) -> Record:
    role = _ROLES[message["role"]]
    answer = role is Role.ASSISTANT
    return Record(
        chat=chat,
        id=id,
        parent=parent,
        role=role,
        parts=_parts(message),
        created_at=moment(message.get("timestamp")),
        spent=_spent(message) if answer else None,
        model=text(message.get("model")) if answer else None,
        meta=meta(
            error=bool(message.get("error")),
            unfinished=message.get("done") is False,
            sources=len(listed(message.get("sources")) or listed(message.get("citations"))),
        ),
    )


def _parts(message: dict[str, Any]) -> tuple[Part, ...]:
    content = message.get("content")
    said: list[object] = [content] if isinstance(content, str) else listed(content)
    parts = [_piece(piece) for piece in said if piece]
    if not parts and (error := text(mapping(message.get("error")).get("content"))):
        parts.append(Text(error))
    return (*parts, *(_file(each) for each in map(mapping, listed(message.get("files"))) if each))


def _piece(piece: object) -> Part:
    fields = mapping(piece)
    match piece, fields.get("type"):
        case str(said), _:
            return Text(said)
        case _, "text" if isinstance(fields.get("text"), str):
            return Text(fields["text"])
        case _, "image_url":
            return image_at(mapping(fields.get("image_url")).get("url")) or unknown(piece)
        case _:
            return unknown(piece)


def _file(fields: dict[str, Any]) -> Part:
    """An attached image, or a file that lies on the server: its text may stand in the export."""
    kind = media(fields.get("content_type"), "application/octet-stream")
    if fields.get("type") == "image" or kind.startswith("image/"):
        return image_at(fields.get("url")) or unknown(fields)
    held = mapping(fields.get("file"))
    said = text(mapping(held.get("data")).get("content"))
    name = text(fields.get("name")) or text(held.get("filename"))
    if said:
        return File(media_type="text/plain", name=name, data=said.encode("utf-8", "replace"))
    return file_named(kind, name, fields.get("url"), fields.get("id")) or unknown(fields)


def _spent(message: dict[str, Any]) -> Spent | None:
    """In the words of OpenAI or of Ollama, whichever served it."""
    usage = mapping(message.get("usage")) or mapping(message.get("info"))
    of_ollama = Usage(
        input=whole(usage.get("prompt_eval_count")) or 0, output=whole(usage.get("eval_count")) or 0
    )
    counts = usage_of(usage) or of_ollama
    if counts == Usage():
        return None
    return Spent(model=text(message.get("model")) or "unknown", usage=counts)


FORMAT = Format(
    name="open-webui",
    label="Open WebUI",
    matches=matches,
    read=read,
    growth="branch",
)
