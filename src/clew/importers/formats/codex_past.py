"""What of a Codex thread's past its later lines speak about: turns that are taken back, and
messages that a compaction puts in again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import Parts, Text, plain_text
from clew.importers.chain import number_of
from clew.importers.fields import canonical, listed, mapping
from clew.importers.formats.responses_items import Said, kind_of, said
from clew.importers.records import Kept, Skipped

KEPT = 80_000
"""Bytes of the user's newest messages that stay when a compaction without a list of its own is
read again: Codex keeps 20,000 tokens and counts four bytes for one."""
_LEAST = 80
"""Bytes that a message counts as at least, so that a compaction names no more than a thousand."""

_CONTEXT = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions for ", "<skill>",
    "<user_shell_command>", "<turn_aborted>", "<subagent_notification>", "<hook_prompt",
)  # fmt: skip
"""How messages of the role "user" begin that no user wrote."""


class _Message(NamedTuple):
    number: int
    id: str
    size: int = 0
    """Bytes of its text, of one that a user typed."""


class Turn(NamedTuple):
    """Where a turn begins."""

    first: str
    """The user's message, or what Codex put before it for this turn."""
    before: str | None
    """The record before that."""


class Past:
    """What is remembered of a thread: little, and of the users' messages only."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._ahead: Turn | None = None
        self._messages: dict[bytes, list[_Message]] = {}
        """Those of users and developers, by what they say."""
        self._order: list[bytes] = []
        self._typed: list[_Message] = []

    def add(self, id: str, before: str | None, item: dict[str, Any], message: Said) -> None:
        """A record was made of this item, which follows the record `before`."""
        injected = is_context(message)
        begins = message.role is Role.USER and not injected
        if begins:
            self._turns.append(self._ahead if self._ahead and self._turns else Turn(id, before))
        if begins or not injected:
            self._ahead = None
        elif self._ahead is None:
            self._ahead = Turn(id, before)
        if message.role is not Role.ASSISTANT and kind_of(item) == "message":
            key = _key(item)
            one = _Message(number_of(id), id)
            self._messages.setdefault(key, []).append(one)
            self._order.append(key)
            if begins:
                size = len(plain_text(message.parts).encode(errors="replace"))
                self._typed.append(one._replace(size=max(size, _LEAST)))

    def take_back(self, turns: int) -> Turn | None:
        """Forget the newest turns; gives the first of them."""
        if turns < 1 or not self._turns:
            return None
        at = max(0, len(self._turns) - turns)
        first = self._turns[at]
        del self._turns[at:]
        self._ahead = None
        self._forget(number_of(first.first))
        return first

    def _forget(self, number: int) -> None:
        """Messages from this number on are gone from the history."""
        while self._order and self._messages[self._order[-1]][-1].number >= number:
            self._messages[self._order.pop()].pop()
        while self._typed and self._typed[-1].number >= number:
            self._typed.pop()

    def body(
        self, payload: dict[str, Any], model: str | None
    ) -> tuple[tuple[Kept | Inline, ...], list[Skipped]]:
        """What stands for all before a compaction, and what of its list is not imported."""
        given = payload.get("replacement_history")
        summary = payload.get("message")
        words = summary if isinstance(summary, str) else ""
        if not isinstance(given, list):
            kept = [Kept(each.id, each.id) for each in self._newest()]
            return (*kept, *_summary(words)), []
        items = [mapping(each) for each in listed(payload["replacement_history"])]
        body, skipped = self._replaced(items, model)
        if words and not any(_is_text(item, words) for item in items):
            body += _summary(words)
        return tuple(body), skipped

    def _replaced(
        self, items: Sequence[dict[str, Any]], model: str | None
    ) -> tuple[list[Kept | Inline], list[Skipped]]:
        body: list[Kept | Inline] = []
        skipped: list[Skipped] = []
        last = -1
        for item, old in zip(items, self._found(items), strict=True):
            if old is not None:
                before = body[-1] if body else None
                if isinstance(before, Kept) and old.number == last + 1:
                    body[-1] = Kept(before.first, old.id)
                else:
                    body.append(Kept(old.id, old.id))
                last = old.number
            elif (message := said(item, model)) is not None:
                body.append(Inline(message.role, message.parts))
            else:
                skipped.append(Skipped(f"replacement_history/{kind_of(item) or 'item of no type'}"))
        return body, skipped

    def _found(self, items: Sequence[dict[str, Any]]) -> list[_Message | None]:
        """For each item the message that it repeats, in the order of the log: of equal ones the
        newest that fits before what follows, since Codex keeps the newest."""
        found: list[_Message | None] = []
        limit: int | None = None
        for item in reversed(items):
            same = self._messages.get(_key(item), []) if kind_of(item) == "message" else []
            at = len(same) if limit is None else bisect_left(same, limit, key=_number)
            old = same[at - 1] if at else None
            limit = limit if old is None else old.number
            found.append(old)
        return found[::-1]

    def _newest(self) -> list[_Message]:
        """The user's newest messages that fit into KEPT, in the order of the log."""
        kept: list[_Message] = []
        left = KEPT
        for old in reversed(self._typed):
            left -= old.size
            if left < 0:
                break
            kept.append(old)
        return kept[::-1]


def _number(message: _Message) -> int:
    return message.number


def is_context(message: Said) -> bool:
    """Whether Codex put this message in, not a user or model."""
    if message.role in (Role.DEVELOPER, Role.SYSTEM):
        return True
    return message.role is Role.USER and _opening(message.parts).startswith(_CONTEXT)


def _opening(parts: Parts) -> str:
    first = parts[0] if parts else None
    return first.text[:200].lstrip() if isinstance(first, Text) else ""


def _key(item: dict[str, Any]) -> bytes:
    content = canonical([item.get("role"), item.get("content")])
    return hashlib.blake2b(content, digest_size=8).digest()


def _is_text(item: dict[str, Any], words: str) -> bool:
    pieces = listed(item.get("content"))
    return any(mapping(piece).get("text") == words for piece in pieces)


def _summary(words: str) -> Iterator[Inline]:
    """Codex gives its summary to the model as a message of the user."""
    if words:
        yield Inline(Role.USER, (Text(words),))
