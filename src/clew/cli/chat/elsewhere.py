"""What another process does in the conversation: it answers a message that was sent here, or a
question that is asked here. Its turn is waited for, and what it wrote is shown."""

from __future__ import annotations

import asyncio
from typing import Protocol

from clew.cli.screen import Piece
from clew.cli.text import glance
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall
from clew.store.aio.conversation import AsyncConversation

POLL = 0.5
"""Seconds between two looks."""
MOST = 100
"""Messages of the other process that are shown."""
SAID = 200
"""Columns of what a person said there."""


class Chat(Protocol):
    """The chat that waits."""

    shown: set[int]
    """Numbers of messages that were shown as they came."""

    @property
    def conv(self) -> AsyncConversation: ...

    @property
    def busy(self) -> bool: ...

    def asked(self) -> ToolCall | None:
        """What is asked here."""
        ...

    def unasked(self) -> None:
        """It is asked no more."""
        ...

    def waits(self, waiting: int) -> None:
        """So many messages wait."""
        ...

    def ask(self, calls: list[ToolCall]) -> None: ...
    def markdown(self, text: str) -> None: ...
    def write(self, *pieces: Piece | str) -> None: ...
    async def waiting_calls(self) -> list[ToolCall]: ...
    async def take_up(self) -> None: ...


async def follow(chat: Chat) -> None:
    """Wait until what was said here is answered there, and show it. Where the other has gone the
    turn is taken up here. Ends when the chat goes on in another conversation."""
    conv = chat.conv
    await _follow(chat, conv, (await conv.info()).head)


async def watch(chat: Chat) -> None:
    """As long as something is asked here, see whether it is answered elsewhere; then `follow`."""
    conv = chat.conv
    head = (await conv.info()).head
    while chat.conv is conv and (call := chat.asked()) is not None:
        await asyncio.sleep(POLL)
        waiting = await chat.waiting_calls()
        if chat.conv is conv and call == chat.asked() and call not in waiting:
            chat.unasked()
            if waiting:
                chat.ask(waiting)
                continue
            await _follow(chat, conv, head)


async def _follow(chat: Chat, conv: AsyncConversation, head: int) -> None:
    while chat.conv is conv:
        info = await conv.info()
        chat.waits(info.waiting)
        if not chat.busy:
            calls = await chat.waiting_calls()
            if calls or (info.turn is None and not info.waiting):
                await _show(chat, conv, head)
                chat.ask(calls)
                return
            await chat.take_up()
        await asyncio.sleep(POLL)


async def _show(chat: Chat, conv: AsyncConversation, head: int) -> None:
    page = await conv.log(limit=MOST, order="newest")
    for message in reversed(page.items):
        if message.seq > head and message.seq not in chat.shown:
            _show_message(chat, message)


def _show_message(chat: Chat, message: Message) -> None:
    text = message.text
    if not text.strip():
        return
    if message.role is Role.ASSISTANT:
        chat.markdown(text)
    elif message.role is Role.USER:
        chat.write(("> " + glance(text, SAID), "dim"))
