"""Records as drafts, and chats as new conversations: what of a source is kept, and where."""

from __future__ import annotations

from typing import Any, Literal

from clew.context.tokens import count_parts
from clew.domain.conversations import NewConversation, Workspace
from clew.domain.messages import Draft
from clew.domain.parts import plain_text
from clew.domain.text import clean, shorten
from clew.importers.records import Chat, Record
from clew.importers.wrapping import said
from clew.store.drafts import PREVIEW, TITLE, Prepared

LABEL = 1000
"""Characters of a label; the store refuses longer ones."""
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
        meta |= {k: v for k, v in (("cwd", place.cwd), ("git_branch", place.git_branch)) if v}
    if record.model and label(record.model) != model:
        meta["model"] = record.model[:LABEL]
    return {"import": meta} if meta else None


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
