"""Leaving a chat: by signal, and what is said at the end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator

from clew.cli.chat.session import Session
from clew.cli.screen import Piece
from clew.cli.text import short_id

SIGNALS = ("SIGTERM", "SIGHUP")


def on_signals(leave: Callable[[], None]) -> None:
    """Leave as if the person did when we are told to end, or the terminal is gone."""
    if sys.platform == "win32":
        return
    loop = asyncio.get_running_loop()
    for name in SIGNALS:
        loop.add_signal_handler(getattr(signal, name), leave)


async def farewell(session: Session) -> list[list[Piece | str]]:
    """How to come back; nothing when nothing was said."""
    return [*_lines(session, (await session.conv.info()).message_count)] if session.is_open else []


def _lines(session: Session, messages: int) -> Iterator[list[Piece | str]]:
    if messages or session.status.waiting:
        command = session.settings.command(f"chat --resume {short_id(session.conv.id)}")
        yield [("To come back: ", "dim"), (command, "cyan")]
