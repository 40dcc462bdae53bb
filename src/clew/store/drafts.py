"""Drafts made ready to insert, before any lock is taken: encoded, checked, blobs taken out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from clew.context import tokens
from clew.context.images import sized
from clew.domain.messages import ROLE_CODES, Draft, Message, Role, check_draft, check_drafts
from clew.domain.parts import File, Image, Part, Parts, Text, ToolResult, check_parts
from clew.domain.text import a_text, shorten
from clew.errors import InputError, TooLarge
from clew.store.kit import Kit

PREVIEW, TITLE = 160, 80
"""Characters."""

_HOLDERS = (Image, File, ToolResult)
"""The parts that may hold bytes."""

_NONE: dict[bytes, bytes | None] = {}

_SPOKEN = frozenset((Role.USER, Role.ASSISTANT))


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
    blobs: dict[bytes, bytes | None]
    """Bytes of images and files by their hash; None: stored with an earlier message."""


def prepare(kit: Kit, drafts: Sequence[Draft]) -> tuple[Prepared, ...]:
    """All drafts of a batch, or a typed error that names the first bad one."""
    check_drafts(drafts)
    if not drafts:
        raise InputError("nothing to append; pass at least one message")
    check_batch(kit, len(drafts))
    return prepare_all(kit, drafts)


def check_batch(kit: Kit, count: int) -> None:
    """Refuse more messages than one transaction may bring."""
    if count > kit.limits.batch:
        raise TooLarge("batch (messages)", count, kit.limits.batch)


def prepare_all(kit: Kit, drafts: Sequence[Draft]) -> tuple[Prepared, ...]:
    """As `prepare`, of any number: for a list of which most is there already."""
    now = kit.clock.now()
    if len(drafts) == 1:
        return (_prepare(kit, drafts[0], now),)
    ready: list[Prepared] = []
    try:
        for draft in drafts:
            ready.append(_prepare(kit, draft, now))
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise InputError(f"message {len(ready) + 1} of {len(drafts)}: {error}") from None
    prepared = tuple(ready)
    _check_names(prepared)
    return prepared


def _check_names(prepared: tuple[Prepared, ...]) -> None:
    keys = [p.key for p in prepared if p.key is not None]
    uids = [p.uid for p in prepared if not p.minted]
    if len(set(keys)) < len(keys) or len(set(uids)) < len(uids):
        raise InputError("two messages of a batch share a key or uid; a key names one message")


def _prepare(kit: Kit, draft: Draft, now: int) -> Prepared:
    check_draft(draft)
    parts, blobs = externalise(kit, draft.parts)
    check_parts(parts)
    packed = kit.codec.pack(parts, kit.limits.message)
    preview = _preview(draft.role, parts)
    return Prepared(
        uid=kit.ids.uid() if draft.uid is None else uid_bytes(draft.uid),
        minted=draft.uid is None,
        after=draft.after,
        key=None if draft.key is None else kit.key("message key", draft.key),
        role=ROLE_CODES[draft.role],
        author=None if draft.author is None else kit.label("author", draft.author),
        api_group=None if draft.api_group is None else kit.label("api_group", draft.api_group),
        replaces=draft.replaces,
        parts=packed,
        meta=None if draft.meta is None else kit.json("meta", draft.meta),
        tokens=_counted(draft.tokens, parts),
        at=now if draft.created_at is None else draft.created_at,
        preview=preview,
        title=shorten(preview, TITLE) if preview and draft.role == Role.USER else None,
        blobs=blobs,
    )


def _counted(given: int | None, parts: Parts) -> int | None:
    """The tokens of a message, counted if nobody did: once, here, rather than at every reading. Not
    while the tables are not loaded: a script that only appends must not wait for them."""
    return tokens.count_parts(parts) if given is None and tokens.loaded() else given


def _preview(role: Role, parts: Parts) -> str | None:
    """What a list shows of this message, if it is one that a person reads."""
    if role in _SPOKEN:
        for part in parts:
            if type(part) is Text:
                return shorten(part.text, PREVIEW)
    return None


def preview_of(message: Message) -> str | None:
    """As `_preview`, of a message of the log."""
    return _preview(message.role, message.parts)


def uid_bytes(uid: str) -> bytes:
    """The 16 bytes of a uid given as hexadecimal text (dashes allowed, as in a UUID)."""
    a_text("uid", uid)
    try:
        value = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        value = b""
    if len(value) != 16:
        raise InputError(f"uid {uid!r} is not 32 hexadecimal characters; use ids.uid() or a UUID")
    return value


def hash_bytes(name: str) -> bytes:
    """The 32 bytes of a blob's hash."""
    try:
        value = bytes.fromhex(name)
    except ValueError:
        value = b""
    if len(value) != 32:
        raise InputError(f"blob hash {name!r} is not 64 hexadecimal characters")
    return value


def externalise(kit: Kit, parts: Parts) -> tuple[Parts, dict[bytes, bytes | None]]:
    """Parts without bytes, and the bytes by their SHA-256."""
    for part in parts:
        if isinstance(part, _HOLDERS) and not _is_text(part):
            break
    else:
        return parts, _NONE
    blobs: dict[bytes, bytes | None] = {}
    return tuple(_without_bytes(kit, part, blobs) for part in parts), blobs


def _is_text(part: Part) -> bool:
    """Whether this is a tool's result of text alone, as most are."""
    return isinstance(part, ToolResult) and isinstance(part.content, str)


def _without_bytes(kit: Kit, part: Part, blobs: dict[bytes, bytes | None]) -> Part:
    match part:
        case Image(data=bytes() | bytearray() as given) | File(data=bytes() | bytearray() as given):
            data = bytes(given)
            if len(data) > kit.limits.blob:
                raise TooLarge(type(part).__name__.lower(), len(data), kit.limits.blob)
            digest = hashlib.sha256(data).digest()
            blobs[digest] = data
            return sized(replace(part, data=None, hash=digest.hex(), size=len(data)), data)
        case Image(hash=str(name)) | File(hash=str(name)):
            blobs.setdefault(hash_bytes(name), None)
            return part
        case ToolResult(content=tuple(content)):
            inner = tuple(_without_bytes(kit, piece, blobs) for piece in content)
            return replace(part, content=inner)
        case _:
            return part
