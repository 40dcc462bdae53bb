"""Records as drafts, and chats as new conversations: what of a source is kept, and where."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from clew.config import Limits
from clew.context.tokens import count_parts
from clew.domain.conversations import NewConversation, Workspace
from clew.domain.messages import Draft
from clew.domain.parts import plain_text
from clew.domain.text import clean, shorten
from clew.domain.values import check_json
from clew.errors import InputError
from clew.importers.fields import ident, mapping
from clew.importers.records import Chat, Record
from clew.importers.report import SourceReport
from clew.importers.wrapping import said
from clew.store.codec import escape_json
from clew.store.drafts import PREVIEW, TITLE, Prepared

LABEL = 1000
"""Characters of a label; the store refuses longer ones."""
_MOST = Limits()
Kind = Literal["root", "branch", "delegate"]


def label(text: str | None) -> str | None:
    """A text of the source as a label column takes it; None when it is empty."""
    return clean(text[:LABEL]) if text else None


def draft_of(record: Record, uid: bytes, at: int, model: str | None) -> Draft:
    """A record as a draft. `at`: its time if it bears none; `model`: of the message before it."""
    return Draft(
        role=record.role, parts=record.parts, uid=uid.hex(), author=label(record.author),
        api_group=label(record.api_group), tokens=count_parts(record.parts),
        meta=_meta(record, model),
        created_at=at if record.created_at is None else record.created_at,
    )  # fmt: skip


def as_said(prepared: Prepared, record: Record) -> Prepared:
    """With the title and preview of what a person said in it."""
    if prepared.title is None:
        return prepared
    text = None if (record.meta or {}).get("isMeta") else said(plain_text(record.parts))
    if text is None:
        return prepared._replace(title=None, preview=None)
    return prepared._replace(title=shorten(text, TITLE), preview=shorten(text, PREVIEW))


def _meta(record: Record, model: str | None) -> dict[str, Any] | None:
    """What of the record has no column of its own: under `import`."""
    meta: dict[str, Any] = dict(record.meta or {})
    if record.id is not None and not (len(record.id) == 36 and record.id.count("-") == 4):
        meta["id"] = record.id[:LABEL]
    place = record.workspace
    if place is not None:
        named = (("cwd", label(place.cwd)), ("git_branch", label(place.git_branch)))
        meta |= {name: value for name, value in named if value}
    if record.model and label(record.model) != model:
        meta["model"] = record.model[:LABEL]
    return {"import": meta} if meta else None


def fitted(chat: Chat, report: SourceReport) -> Chat:
    """A chat without what would have a store refuse it; that is counted in the report."""
    found, left = fitting(chat)
    for kind in left:
        report.skip(kind)
    return found


def fitting(chat: Chat) -> tuple[Chat, list[str]]:
    """A chat with what a store takes of its prompt and tools, and what of them is left out: a store
    would refuse the whole chat for it."""
    left: list[str] = []
    prompt = chat.prompt
    if prompt is not None and len(escape_json(prompt)) > _MOST.prompt:
        prompt = None
        left.append("system prompt that is too large")
    given = chat.tools or ()
    tools = tuple(tool for tool in given if _is_schema(tool))
    left += ["tool without a name, or with what JSON cannot hold"] * (len(given) - len(tools))
    if not _fits(tools):
        left += ["tool of a set that is too large"] * len(tools)
        tools = ()
    if not left:
        return chat, left
    return replace(chat, prompt=prompt, tools=tools or None), left


def _is_schema(tool: dict[str, Any]) -> bool:
    if _tool_name(tool) is None:
        return False
    try:
        check_json("tool", tool)
    except InputError:
        return False
    return True


def _tool_name(tool: dict[str, Any]) -> str | None:
    """Where a store looks for it: at the top, or under "function"."""
    name = tool.get("name") or mapping(tool.get("function")).get("name")
    return ident(name) if isinstance(name, str) else None


def _fits(tools: tuple[dict[str, Any], ...]) -> bool:
    names = [_tool_name(tool) for tool in tools]
    return len(escape_json(names)) <= _MOST.meta and len(escape_json(tools)) <= _MOST.prompt


def conversation_of(
    chat: Chat, format: str, id: str, kind: Kind, first: Record, at: int, *, archived: bool,
    now: int,
) -> NewConversation:  # fmt: skip
    """A new conversation for a chat, or for a branch of it, that begins with this record."""
    meta = {"format": format, "chat": chat.id[:LABEL], **(chat.meta or {})}
    if chat.call is not None:
        meta["call"] = chat.call[:LABEL]
    inherits = kind == "branch"
    began = None if inherits else chat.created_at
    return NewConversation(
        id=id, source=format, prompt=None if inherits else chat.prompt,
        toolset=None if inherits else chat.tools, automation=chat.automation, archived=archived,
        meta={"import": meta}, model=label(first.model or chat.model),
        workspace=_workspace(first.workspace or chat.workspace),
        created_at=began if began is not None else first.created_at or at, imported_at=now,
    )  # fmt: skip


def _workspace(place: Workspace) -> Workspace:
    return Workspace(label(place.cwd), label(place.git_root), label(place.git_branch))
