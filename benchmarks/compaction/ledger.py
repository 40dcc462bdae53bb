"""clew's ledger as the kits call it: a budget in characters, epochs kept between the rounds.

A store keeps each epoch in the body of its compaction; here a list does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from clew.compaction.ledger import Epoch, fold, write_epoch
from clew.domain.chat import drafts_of
from clew.domain.messages import Draft, Message

START = 1_767_225_600_000_000
"""2026-01-01, microseconds."""
_MINUTE = 60_000_000


def numbered(drafts: Iterable[Draft], first: int = 1) -> list[Message]:
    """The drafts as a log would number them, a minute apart."""
    return [
        Message.of(
            seq=seq,
            uid=f"{seq:032x}",
            role=draft.role,
            parts=draft.parts,
            created_at=START + seq * _MINUTE,
            author=draft.author,
            meta=draft.meta,
        )
        for seq, draft in enumerate(drafts, first)
    ]


def messages_of(chat: Sequence[dict[str, Any]], first: int = 1) -> list[Message]:
    """Chat Completions messages as those of a log."""
    return numbered(drafts_of(chat), first)


def written(chat: Sequence[dict[str, Any]], room: int) -> Epoch:
    """The first epoch of a conversation, in at most `room` characters."""
    return write_epoch((), messages_of(chat), number=1, room=room, count=len)


class Conversation:
    """One conversation that is compacted again and again."""

    def __init__(self) -> None:
        self._epochs: list[Epoch] = []
        self._number = self._head = 0

    @property
    def text(self) -> str:
        return "\n".join(epoch.text for epoch in self._epochs)

    def compact(self, chat: Sequence[dict[str, Any]], room: int) -> str:
        """What stands for everything so far. A message that is the text of the round before is
        no news: those epochs are kept, and folded as if there were no more room for them."""
        news = [m for m in chat if not self._epochs or m["content"] != self.text]
        if news:
            messages = messages_of(news, self._head + 1)
            self._head += len(messages)
            self._write(messages, room)
        if not news or len(self.text) > room:
            self._fold(room)
        return self.text

    def _write(self, messages: list[Message], room: int) -> None:
        self._number += 1
        left = room - len(self.text) - bool(self._epochs)
        epoch = write_epoch(self._epochs, messages, number=self._number, room=left, count=len)
        self._epochs.append(epoch)

    def _fold(self, room: int) -> None:
        self._number += 1
        self._epochs = [fold(self._epochs, number=self._number, room=room, count=len)]
