"""Messages: what goes into the log (a draft) and what comes out of it (a message)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from clew.clock import check_time
from clew.domain.erasure import ERASED_META
from clew.domain.parts import Parts, Text, plain_text
from clew.domain.values import json_text, json_value
from clew.errors import InputError


class Role(enum.StrEnum):
    """Who speaks. Stored as the small number beside it (see ROLE_CODES)."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    DEVELOPER = "developer"


ROLE_CODES: dict[Role, int] = {
    Role.USER: 1,
    Role.ASSISTANT: 2,
    Role.TOOL: 3,
    Role.SYSTEM: 4,
    Role.DEVELOPER: 5,
}
ROLES: dict[int, Role] = {code: role for role, code in ROLE_CODES.items()}
_ERASED = json_text(ERASED_META)


class Draft(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A message before it is accepted.

    `uid` (32 hexadecimal characters) is minted by the store unless the caller brings one; `key` is
    the caller's own idempotency key. Writing either a second time returns the first message, or
    raises KeyReused when role or parts differ; author, meta and the other fields are not compared.
    `after` is the head the caller saw when it first tried to write this uid: the store looks for
    the uid only above it.
    """

    role: Role
    parts: Parts
    uid: str | None = None
    key: str | None = None
    after: int = 0
    author: str | None = None
    api_group: str | None = None
    replaces: int | None = None
    tokens: int | None = None
    meta: dict[str, Any] | None = None
    created_at: int | None = None
    """Microseconds; the store's clock when None."""


def partial(text: str) -> Draft:
    """What a model had said when it was stopped, as a message marked so (`meta.partial`)."""
    return Draft(role=Role.ASSISTANT, parts=(Text(text),), meta={"partial": True})


def wants_next(meta: dict[str, Any] | None) -> bool:
    """Whether a message that waits wants a turn of its own (`meta.queue`), and not to be taken into
    the one that runs."""
    return bool(meta) and meta.get("queue") is True


def known_role(role: object) -> bool:
    """Whether this is a role, or the word for one."""
    return isinstance(role, str) and role in ROLE_CODES


def check_drafts(drafts: object) -> None:
    """Refuse what is no list of drafts."""
    if type(drafts) is list or type(drafts) is tuple:  # most; asking an ABC takes a microsecond
        return
    if isinstance(drafts, Sequence) and not isinstance(drafts, str | bytes | bytearray):
        return
    raise InputError(f"messages is a {type(drafts).__name__}; pass a list of Drafts")


def check_draft(draft: Draft) -> None:
    """Refuse what is no draft, or has a field of another type, but for texts and parts."""
    if not isinstance(draft, Draft):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"a message is a {type(draft).__name__}; pass a clew.Draft, or use add() for dicts"
        )
    if type(draft.role) is not Role and not known_role(draft.role):
        raise InputError(f"role is {draft.role!r}; give one of {', '.join(Role)}")
    if not isinstance(draft.parts, tuple | list):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"parts is a {type(draft.parts).__name__}; pass a tuple of parts")
    if draft.tokens is not None:
        _whole("tokens", draft.tokens)
        if draft.tokens < 0:
            raise InputError(f"tokens is {draft.tokens}; give the count, or None if nobody counted")
    if draft.created_at is not None:
        _whole("created_at", draft.created_at)
        check_time("created_at", draft.created_at)
    if draft.replaces is not None:
        _whole("replaces", draft.replaces)
    if draft.after != 0:
        _whole("after", draft.after)
    if draft.meta is not None and not isinstance(draft.meta, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"meta is a {type(draft.meta).__name__}; pass a dictionary")


def _whole(what: str, value: object) -> None:
    if not isinstance(value, int):
        raise InputError(f"{what} is {value!r}; pass a whole number")


class Message(Struct, eq=False, gc=False):
    """A committed message. It never changes; its parts are decoded when first asked for.

    Made by the store from a row (see `ROW`) and a decoder, or from values by `Message.of`. A Struct
    only because it is made a thousand at a time (no reference cycle can pass through it, hence
    gc=False); read the properties, not the fields.
    """

    _row: tuple[Any, ...]
    _decode: Callable[[bytes], Parts]
    _parts: Parts | None = None

    ROW: ClassVar = (
        "seq", "uid", "role", "parts", "created_at", "key", "turn", "author", "api_group",
        "replaces", "tokens", "meta",
    )  # fmt: skip
    """The columns of a row; role as its number, uid as bytes, meta as JSON text."""

    @classmethod
    def of(
        cls, *, seq: int, uid: str, role: Role, parts: Parts, created_at: int,
        key: str | None = None, turn: int | None = None, author: str | None = None,
        api_group: str | None = None, replaces: int | None = None, tokens: int | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Message:  # fmt: skip
        """A message from values."""
        text = json_text(meta, "meta")
        code = ROLE_CODES[role]
        message = cls(
            (seq, bytes.fromhex(uid), code, b"", created_at, key, turn, author, api_group,
             replaces, tokens, text),
            _no_decoder,
            parts,
        )  # fmt: skip
        return message

    @property
    def seq(self) -> int:
        """Position in the conversation, from 1."""
        return self._row[0]

    @property
    def uid(self) -> str:
        """32 hexadecimal characters, minted where the message was born."""
        return self._row[1].hex()

    @property
    def role(self) -> Role:
        return ROLES[self._row[2]]

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            self._parts = self._decode(self._row[3])
        return self._parts

    @property
    def created_at(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return self._row[4]

    @property
    def key(self) -> str | None:
        return self._row[5]

    @property
    def turn(self) -> int | None:
        return self._row[6]

    @property
    def author(self) -> str | None:
        return self._row[7]

    @property
    def api_group(self) -> str | None:
        return self._row[8]

    @property
    def replaces(self) -> int | None:
        return self._row[9]

    @property
    def place(self) -> int:
        """Where it stands among what is visible: its seq, or that of the message it replaces."""
        return self.seq if self.replaces is None else self.replaces

    @property
    def tokens(self) -> int | None:
        return self._row[10]

    @property
    def meta(self) -> dict[str, Any] | None:
        return json_value(self._row[11])

    @property
    def is_erased(self) -> bool:
        """Whether this is the tombstone of an erased message."""
        return self._row[11] == _ERASED

    @property
    def text(self) -> str:
        """The text parts, joined by line ends."""
        return plain_text(self.parts)

    def inherited(self) -> Message:
        """The same message as a branch shows it: turns stay with the conversation they ran in."""
        return Message((*self._row[:6], None, *self._row[7:]), self._decode, self._parts)

    def draft(self) -> Draft:
        """The same message as a draft; appending it where it came from returns this message."""
        return Draft(
            role=self.role, parts=self.parts, uid=self.uid, key=self.key, after=self.seq - 1,
            author=self.author, api_group=self.api_group, tokens=self.tokens, meta=self.meta,
            created_at=self.created_at,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-encodable values; fields that are None are left out."""
        fields = {name: getattr(self, name) for name in self.ROW}
        fields["role"] = str(self.role)
        fields["parts"] = msgspec.to_builtins(self.parts)
        return {name: value for name, value in fields.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.seq, self._row[1]))

    def __repr__(self) -> str:
        return f"Message(seq={self.seq}, role={self.role.value!r}, text={self.text[:60]!r})"


def _no_decoder(_: bytes) -> Parts:
    return ()


def user(text: str, **fields: Any) -> Draft:
    """A user message of one text part."""
    return Draft(role=Role.USER, parts=(Text(text),), **fields)


def assistant(text: str, **fields: Any) -> Draft:
    """An assistant message of one text part."""
    return Draft(role=Role.ASSISTANT, parts=(Text(text),), **fields)


class Appended(Struct, frozen=True):
    """Outcome of an append.

    `seqs`: the log positions, in the order of the drafts; empty when `queued`.
    `queued`: a turn is open, so the messages wait in the inbox (`numbers` there). Neither seqs nor
    numbers: they were withdrawn from it, and their keys stay taken.
    `head`: the conversation's head afterwards.
    `new`: how many of them this call wrote; 0 means all were there already.
    `spooled`: why the store could not take them. They are durable in the spool, and get their seqs
    with the next write to the conversation that goes through; None: they are in the store.
    """

    seqs: tuple[int, ...]
    head: int
    new: int
    uids: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    spooled: str | None = None

    @property
    def queued(self) -> bool:
        return bool(self.numbers)


class Waiting(Struct, frozen=True, kw_only=True):
    """A message in the inbox: accepted and durable, not yet in the log."""

    number: int
    uid: str
    role: Role
    parts: Parts
    received_at: int
    key: str | None = None
    author: str | None = None
    meta: dict[str, Any] | None = None
    state: str = "waiting"
    seq: int | None = None
