"""/title."""

from __future__ import annotations

from clew.cli.chat.api import Chat
from clew.cli.text import one_line
from clew.errors import Refused

ORIGINS = {"user": "you gave it", "llm": "the model gave it", "derived": "of the first message"}
BACK = "-"
"""Gives the title back to the model."""


async def title(chat: Chat, given: str) -> None:
    """Shows the title, or sets yours, which no model changes any more. `/title -` takes yours off
    again."""
    if not given:
        info = await chat.conv.info()
        if info.title is None:
            chat.write(("It has no title yet; /title TEXT gives one.", "dim"))
        else:
            chat.write(
                (one_line(info.title), "bold"),
                (f"  {ORIGINS[info.title_origin or 'derived']}", "dim"),
            )
        return
    if not await chat.conv.set_title(None if given == BACK else given):
        raise Refused("its title is locked; unlock it with conversation.lock_title(.., False)")
    info = await chat.conv.info()
    shown = one_line(info.title or "") or "(untitled)"
    chat.write("Title: ", (shown, "bold"))
