"""Values from outside, checked: texts, names, JSON, drafts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from clew.config import Limits
from clew.context import tokens
from clew.context.images import sized
from clew.domain.messages import Draft, check_draft, check_drafts
from clew.domain.parts import File, Image, Part, ToolResult, check_parts
from clew.domain.text import a_text, clean, exact, shorten
from clew.domain.values import json_text, json_value
from clew.errors import InputError, TooLarge
from clew.testing.reference.state import Named, World


def label(limits: Limits, what: str, text: str | None) -> str | None:
    """A text for people."""
    if text is not None:
        a_text(what, text)
    if text is not None and len(text) > limits.label:
        raise TooLarge(what, len(text), limits.label)
    return None if text is None else clean(text)


def remark(limits: Limits, text: str | None) -> str | None:
    """Why something ended: cut short, since an end must not fail."""
    if text is not None and len(text) > limits.label:
        text = text[: limits.label - 1] + "…"
    return label(limits, "the reason", text)


def key(limits: Limits, what: str, text: str) -> str:
    """A text that is compared."""
    a_text(what, text)
    if len(text) > limits.key:
        raise TooLarge(what, len(text), limits.key)
    return exact(what, text)


def plain_json(limits: Limits, what: str, value: Any, limit: int | None = None) -> Any:
    """A value as it comes back from JSON: a small one, unless `limit` says more."""
    text = json_text(value, what)
    limit = limits.meta if limit is None else limit
    if text is not None and len(text) > limit:
        raise TooLarge(what, len(text), limit)
    return json_value(text)


def title_of(text: str) -> str:
    """A title as it is kept."""
    short = shorten(text, 80)
    if short is None:
        raise InputError("a title needs at least one visible character")
    return short


def uid_of(uid: str) -> str:
    """A uid in its one spelling."""
    a_text("uid", uid)
    try:
        value = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        value = b""
    if len(value) != 16:
        raise InputError(f"uid {uid!r} is not 32 hexadecimal characters")
    return value.hex()


def named(world: World, drafts: Sequence[Draft]) -> list[Named]:
    """Checked drafts, each with its uid, their bytes put aside; or the first reason why not."""
    check_drafts(drafts)
    if not drafts:
        raise InputError("nothing to append; pass at least one message")
    check_batch(world.limits, len(drafts))
    return named_all(world, drafts)


def check_batch(limits: Limits, count: int) -> None:
    """Refuse more messages than come in at once."""
    if count > limits.batch:
        raise TooLarge("batch (messages)", count, limits.batch)


def named_all(world: World, drafts: Sequence[Draft]) -> list[Named]:
    """As `named`, of any number."""
    check_drafts(drafts)
    ready: list[Named] = []
    for draft in drafts:
        try:
            ready.append(_named(world, draft))
        except InputError as error:
            if type(error) is not InputError or len(drafts) == 1:
                raise
            raise InputError(f"message {len(ready) + 1} of {len(drafts)}: {error}") from None
    for names in ([n.draft.key for n in ready], [n.uid for n in ready]):
        given = [name for name in names if name is not None]
        if len(set(given)) < len(given):
            raise InputError("two messages of one batch have the same key or uid")
    return ready


def _named(world: World, draft: Draft) -> Named:
    check_draft(draft)
    limits = world.limits
    blobs: dict[str, bytes | None] = {}
    parts = tuple(_without_bytes(limits, blobs, part) for part in draft.parts)
    check_parts(parts)
    try:
        plain = msgspec.to_builtins(parts)
        text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"not a JSON value: {error}") from None
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.message:
        raise TooLarge("message", size, limits.message)
    counts = draft.tokens is None and tokens.loaded()
    draft = replace(
        draft,
        parts=msgspec.convert(json.loads(text), tuple[Part, ...]),
        key=None if draft.key is None else key(limits, "message key", draft.key),
        author=label(limits, "author", draft.author),
        api_group=label(limits, "api_group", draft.api_group),
        tokens=tokens.count_parts(parts) if counts else draft.tokens,
        meta=plain_json(limits, "meta", draft.meta),
    )
    uid = world.ids.uid().hex() if draft.uid is None else uid_of(draft.uid)
    at = world.clock.now() if draft.created_at is None else draft.created_at
    return Named(draft, uid, draft.uid is None, at, blobs)


def _without_bytes(limits: Limits, blobs: dict[str, bytes | None], part: Part) -> Any:
    """The part with a hash in place of its bytes."""
    if isinstance(part, ToolResult) and isinstance(part.content, tuple):
        pieces = tuple(_without_bytes(limits, blobs, piece) for piece in part.content)
        return replace(part, content=pieces)
    if not isinstance(part, Image | File):
        return part
    if part.data is None:
        if part.hash is not None:
            if len(part.hash) != 64 or set(part.hash.lower()) - set("0123456789abcdef"):
                raise InputError(f"blob hash {part.hash!r} is not 64 hexadecimal characters")
            blobs.setdefault(part.hash, None)
        return part
    if not isinstance(part.data, bytes | bytearray):  # pyright: ignore[reportUnnecessaryIsInstance]
        return part
    data = bytes(part.data)
    if len(data) > limits.blob:
        raise TooLarge(type(part).__name__.lower(), len(data), limits.blob)
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return sized(replace(part, data=None, hash=digest, size=len(data)), data)
