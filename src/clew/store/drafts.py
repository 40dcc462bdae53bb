"""Drafts made ready to insert, before any lock is taken: encoded, checked, blobs taken out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from clew.domain.messages import ROLE_CODES, Draft, Role
from clew.domain.parts import File, Image, Part, Parts, Text, ToolResult, plain_text
from clew.domain.text import shorten
from clew.errors import InputError, TooLarge
from clew.store.kit import Kit

PREVIEW, TITLE = 160, 80
"""Characters."""


class Prepared(NamedTuple):
    """One draft as column values. `minted`: its uid was made for this very call."""

    uid: bytes
    minted: bool
    after: int
    key: str | None
    role: int
    author: str | None
    api_group: str | None
    replaces: int | None
    parts: bytes
    meta: str | None
    tokens: int | None
    at: int
    preview: str | None
    title: str | None
    blobs: dict[bytes, bytes]


def prepare(kit: Kit, drafts: Sequence[Draft]) -> tuple[Prepared, ...]:
    """All drafts of a batch, or a typed error that names the first bad one."""
    if not drafts:
        raise InputError("nothing to append; pass at least one message")
    if len(drafts) > kit.limits.batch:
        raise TooLarge("batch (messages)", len(drafts), kit.limits.batch)
    now = kit.clock.now()
    prepared = tuple(_prepare(kit, draft, now) for draft in drafts)
    keys = [p.key for p in prepared if p.key is not None]
    uids = [p.uid for p in prepared if not p.minted]
    if len(set(keys)) < len(keys) or len(set(uids)) < len(uids):
        raise InputError("two messages of one batch have the same key or uid; keys name one message")
    return prepared


def _prepare(kit: Kit, draft: Draft, now: int) -> Prepared:
    parts, blobs = externalise(kit, draft.parts)
    packed = kit.codec.pack(parts)
    # Compressed bytes under the limit may decode to more, so the text is what is measured.
    if len(packed) * 4 > kit.limits.message:
        size = len(kit.codec.json(packed))
        if size > kit.limits.message:
            raise TooLarge("message", size, kit.limits.message)
    spoken = draft.role in (Role.USER, Role.ASSISTANT)
    text = _first_text(parts) if spoken else None
    return Prepared(
        uid=kit.ids.uid() if draft.uid is None else uid_bytes(draft.uid),
        minted=draft.uid is None,
        after=draft.after,
        key=None if draft.key is None else kit.key("message key", draft.key),
        role=ROLE_CODES[draft.role],
        author=kit.label("author", draft.author),
        api_group=kit.label("api_group", draft.api_group),
        replaces=draft.replaces,
        parts=packed,
        meta=kit.json("meta", draft.meta),
        tokens=draft.tokens,
        at=now if draft.created_at is None else draft.created_at,
        preview=None if text is None else shorten(text, PREVIEW),
        title=shorten(text, TITLE) if text is not None and draft.role is Role.USER else None,
        blobs=blobs,
    )


def _first_text(parts: Parts) -> str | None:
    for part in parts:
        if isinstance(part, Text):
            return part.text
    return None


def preview_of(role: Role, parts: Parts) -> str | None:
    """What a list shows of this message, if it is one that a person reads."""
    if role not in (Role.USER, Role.ASSISTANT):
        return None
    return shorten(plain_text(parts), PREVIEW)


def uid_bytes(uid: str) -> bytes:
    """The 16 bytes of a uid given as hexadecimal text (dashes allowed, as in a UUID)."""
    try:
        value = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        value = b""
    if len(value) != 16:
        raise InputError(f"uid {uid!r} is not 32 hexadecimal characters; use ids.uid() or a UUID")
    return value


def externalise(kit: Kit, parts: Parts) -> tuple[Parts, dict[bytes, bytes]]:
    """Parts without bytes, and the bytes by their SHA-256."""
    if all(type(part) is Text for part in parts):
        return parts, {}
    blobs: dict[bytes, bytes] = {}
    return tuple(_without_bytes(kit, part, blobs) for part in parts), blobs


def _without_bytes(kit: Kit, part: Part, blobs: dict[bytes, bytes]) -> Part:
    match part:
        case Image(data=bytes(data)) | File(data=bytes(data)):
            if len(data) > kit.limits.blob:
                raise TooLarge(type(part).__name__.lower(), len(data), kit.limits.blob)
            digest = hashlib.sha256(data).digest()
            blobs[digest] = data
            return replace(part, data=None, hash=digest.hex(), size=len(data))
        case ToolResult(content=tuple(content)):
            inner = tuple(_without_bytes(kit, piece, blobs) for piece in content)
            return replace(part, content=inner)
        case _:
            return part
