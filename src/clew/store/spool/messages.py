"""Messages on their way into a spool, and back to what a caller hands over."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from clew.config import Limits
from clew.domain.messages import ROLES, Draft
from clew.domain.parts import File, Image, Part, Parts, ToolResult
from clew.domain.values import json_value
from clew.store.codec import ESCAPED, Codec
from clew.store.drafts import Prepared
from clew.store.kit import Kit
from clew.store.spool.record import Spooled

_HUGE = 1 << 30
_ANY = Limits(
    message=_HUGE, blob=_HUGE, batch=_HUGE, label=_HUGE, key=_HUGE, meta=_HUGE, prompt=_HUGE,
    inbox=_HUGE,
)  # fmt: skip


def alone(kit: Kit) -> Kit:
    """A kit that asks no store: without its dictionaries. For messages of a store that cannot even
    be read."""
    return kit._replace(codec=Codec())


def unlimited(kit: Kit) -> Kit:
    """A kit that refuses nothing for its size: what was accepted once is not refused later, when
    a smaller limit is set."""
    return kit._replace(limits=_ANY)


def spooled(codec: Codec, prepared: Sequence[Prepared]) -> tuple[Spooled, ...]:
    """Prepared messages, free of the store's dictionary."""
    return tuple(
        Spooled(
            uid=item.uid, role=item.role, at=item.at, after=item.after, key=item.key,
            author=item.author, api_group=item.api_group, replaces=item.replaces,
            tokens=item.tokens, meta=item.meta, parts=_plain(codec, item.parts),
            blobs=tuple((name, data) for name, data in item.blobs.items() if data is not None),
        )
        for item in prepared
    )  # fmt: skip


def _plain(codec: Codec, parts: bytes) -> bytes:
    return bytes((parts[0] & ESCAPED,)) + codec.json(parts)


def drafts(messages: Sequence[Spooled], head: int = 0) -> list[Draft]:
    """The drafts that they were, with their uids. `head`: one that was there before them, above
    which they are looked for."""
    codec = Codec()
    return [
        Draft(
            role=ROLES[each.role], parts=_with_bytes(codec.parts(each.parts), dict(each.blobs)),
            uid=each.uid.hex(), key=each.key, after=each.after or head, author=each.author,
            api_group=each.api_group, replaces=each.replaces, tokens=each.tokens,
            meta=json_value(each.meta), created_at=each.at,
        )
        for each in messages
    ]  # fmt: skip


def _with_bytes(parts: Parts, blobs: dict[bytes, bytes]) -> Parts:
    return tuple(_filled(part, blobs) for part in parts) if blobs else parts


def _filled(part: Part, blobs: dict[bytes, bytes]) -> Part:
    match part:
        case Image(hash=str(name)) | File(hash=str(name)):
            data = blobs.get(bytes.fromhex(name))
            return part if data is None else replace(part, data=data, hash=None, size=None)
        case ToolResult(content=tuple(pieces)):
            return replace(part, content=tuple(_filled(piece, blobs) for piece in pieces))
        case _:
            return part
