"""ChatGPT's data export: conversations.json, its numbered successors, or one conversation.

A conversation is a tree of nodes. The path from the root to `current_node` is what a person last
saw; every other leaf is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.domain.messages import Role
from clew.domain.parts import Parts, Text, ToolCall, ToolResult
from clew.importers.decode import decode
from clew.importers.fields import flag, ident, listed, mapping, meta, moment, number, text
from clew.importers.format import Format
from clew.importers.formats.chatgpt_content import is_empty, kind, pieces, thinking, words
from clew.importers.probe import Probe
from clew.importers.records import ROOT, Chat, Damaged, Event, Record, Skipped, Warned
from clew.importers.source import Source
from clew.importers.tree import Node, orphans, placed

_ROLES = {role.value: role for role in (Role.USER, Role.ASSISTANT, Role.TOOL, Role.SYSTEM)}


class _Call(NamedTuple):
    """A call that a tool's message further down answers: an export has no ids of calls."""

    id: str
    name: str


def matches(probe: Probe) -> bool:
    """A conversation, or an array of them: a title and a mapping of nodes."""
    keys = probe.keys or probe.item_keys
    return {"mapping", "title"} <= keys and bool(keys & {"create_time", "current_node"})


def read(source: Source) -> Iterator[Event]:
    """One conversation at a time."""
    if source.head(1000).lstrip()[:1] != b"[":
        yield from _decoded(source, source.document(), "the file", source.id)
        return
    for item in source.items():
        if isinstance(item, Damaged):
            yield item
        else:
            where = f"element {item.number}"
            yield from _decoded(source, item.data, where, f"{source.id}#{item.number}")


def _decoded(source: Source, data: bytes, where: str, fallback: str) -> Iterator[Event]:
    try:
        value = mapping(decode(data))
    except ValueError as error:
        yield Damaged(where, str(error))
        return
    if not isinstance(value.get("mapping"), dict):
        yield Damaged(where, "no conversation: it has no mapping of nodes")
        return
    id = ident(value.get("conversation_id")) or ident(value.get("id")) or fallback
    yield from _Conversation(source, value, id).events()


class _Conversation:
    def __init__(self, source: Source, value: dict[str, Any], id: str) -> None:
        self._source, self._value, self._id = source, value, id
        self._messages: dict[str, dict[str, Any]] = {}
        self._nodes: dict[str, Node] = {}
        self._calls: dict[str, _Call | None] = {ROOT: None}
        """The newest call on the way to a record, since a person last spoke."""

    def events(self) -> Iterator[Event]:
        yield from self._looked_at()
        if missing := orphans(self._nodes):
            yield Warned(f"{self._id}: {missing} nodes name a parent that is not there")
        yield self._chat()
        current = text(self._value.get("current_node"))
        for id, parent in placed(self._nodes, current):
            yield self._record(id, parent)

    def _looked_at(self) -> Iterator[Event]:
        """Take the nodes, and tell what of them is no record."""
        for key, value in mapping(self._value["mapping"]).items():
            if ident(key) is None:
                yield Damaged("a node", "its id is empty or too long")
                continue
            node = mapping(value)
            message = mapping(node.get("message"))
            reason = _reason(message) if message else ""
            parent = ident(node.get("parent"))
            self._nodes[key] = Node(parent, reason is None, moment(message.get("create_time")))
            self._messages[key] = message
            if reason:
                yield Skipped(reason)

    def _chat(self) -> Chat:
        value = self._value
        return Chat(
            id=self._id,
            title=text(value.get("title")) or None,
            created_at=moment(value.get("create_time")),
            model=text(value.get("default_model_slug")) or self._last_model(),
            prompt=self._instructions(),
            meta=meta(
                gizmo=value.get("gizmo_id"),
                archived=flag(value.get("is_archived")),
                starred=flag(value.get("is_starred")),
            ),
        )

    def _last_model(self) -> str | None:
        named = [model for message in self._messages.values() if (model := _model(message))]
        return named[-1] if named else None

    def _instructions(self) -> str | None:
        """What the person told ChatGPT of themselves and how to answer."""
        for message in self._messages.values():
            if kind(message) != "user_editable_context":
                continue
            content = mapping(message.get("content"))
            both = (content.get("user_profile"), content.get("user_instructions"))
            if said := "\n\n".join(each for each in both if isinstance(each, str) and each):
                return said
        return None

    def _record(self, id: str, parent: str) -> Record:
        message = self._messages[id]
        role = _ROLES[_author(message)]
        call = None if role is Role.USER else self._calls[parent]
        parts: Parts
        match role:
            case Role.TOOL:
                parts = (self._result(id, message, call),)
            case Role.ASSISTANT if recipient := _recipient(message):
                call = _Call(f"call_{id}", recipient)
                parts = (_called(call, words(message)),)
            case Role.ASSISTANT if kind(message) in ("thoughts", "reasoning_recap"):
                parts = (thinking(message, _model(message)),)
            case _:
                parts = pieces(self._source, message)
        self._calls[id] = call
        return Record(
            chat=self._id,
            id=id,
            parent=parent,
            role=role,
            parts=parts,
            created_at=moment(message.get("create_time")),
            model=_model(message) if role is Role.ASSISTANT else None,
            meta=_facts(message),
        )

    def _result(self, id: str, message: dict[str, Any], call: _Call | None) -> ToolResult:
        found = pieces(self._source, message)
        texts = [piece.text for piece in found if isinstance(piece, Text)]
        state = mapping(mapping(message.get("metadata")).get("aggregate_result")).get("status")
        failed = isinstance(state, str) and state.startswith("failed")
        return ToolResult(
            call_id=call.id if call else f"call_{id}",
            content="\n".join(texts) if len(texts) == len(found) else found,
            name=text(mapping(message.get("author")).get("name")) or (call.name if call else None),
            is_error=failed or kind(message) == "system_error",
        )


def _called(call: _Call, arguments: str) -> ToolCall:
    """Tools are given JSON or, as Python is, free text."""
    free = not arguments.lstrip().startswith("{")
    return ToolCall(call.id, call.name, arguments, kind="custom" if free else "function")


def _reason(message: dict[str, Any]) -> str | None:
    """Why a message is not imported, for the count; "" when it counts as imported; None when it is
    a record. Tools' messages have weight 0 in some exports; a person's may too, and only the mark
    tells that nobody typed them."""
    role, type_ = _author(message), kind(message)
    if type_ == "user_editable_context":
        return ""
    if type_ == "model_editable_context":
        return type_
    if role not in _ROLES:
        return f"author {role}"[:80]
    if role == "tool" or (role == "assistant" and _recipient(message)):
        return None
    if _is_hidden(message, role):
        return "hidden message"
    return "empty message" if is_empty(message) else None


def _is_hidden(message: dict[str, Any], role: str) -> bool:
    about = mapping(message.get("metadata"))
    marked = flag(about.get("is_visually_hidden_from_conversation"))
    return marked or (role != "user" and number(message.get("weight")) == 0)


def _author(message: dict[str, Any]) -> str:
    return text(mapping(message.get("author")).get("role")) or ""


def _recipient(message: dict[str, Any]) -> str | None:
    """The tool that an assistant's message is for."""
    name = text(message.get("recipient"))
    return None if name in (None, "", "all", "assistant", "user") else name


def _model(message: dict[str, Any]) -> str | None:
    return text(mapping(message.get("metadata")).get("model_slug")) or None


def _facts(message: dict[str, Any]) -> dict[str, Any] | None:
    about, content = mapping(message.get("metadata")), mapping(message.get("content"))
    status = message.get("status")
    ended = mapping(about.get("finish_details")).get("type")
    return meta(
        status=None if status == "finished_successfully" else text(status),
        finish=text(ended) if ended not in ("stop", "unknown") else None,
        url=text(content.get("url")),
        title=text(content.get("title")),
        citations=len(listed(about.get("citations"))),
        request=text(about.get("request_id")),
    )


FORMAT = Format(
    name="chatgpt",
    label="ChatGPT export",
    matches=matches,
    read=read,
    growth="branch",
)
