"""Finding the conversation that a person means, and making it one that can go on.

For /resume, and for `clew chat --resume`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.cli.text import one_line, short_id
from clew.domain.conversations import ConversationSummary, ListFilter
from clew.errors import Ambiguous, NotFound
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile

NEWEST = 10
"""Conversations that are offered."""


class Found(NamedTuple):
    """The one conversation that was meant, or those it may be."""

    conv: AsyncConversation | None
    several: Sequence[ConversationSummary] = ()


async def find(profile: AsyncProfile, text: str) -> Found:
    """By id, another tool's id, a beginning of either, or words of the title. Neither one nor
    several: there is none."""
    try:
        return Found(await profile.resolve(text))
    except Ambiguous as error:
        infos = [await (await profile.open(id)).info() for id in error.candidates]
        return Found(None, [info.summary() for info in infos])
    except NotFound:
        pass
    for archived in (False, True):
        titled = ListFilter(title=text, archived=archived)
        page = await profile.list(titled, limit=NEWEST)
        if len(page.items) == 1:
            return Found(await profile.open(page.items[0].id))
        if page.items:
            return Found(None, page.items)
    return Found(None)


async def ready(conv: AsyncConversation) -> tuple[AsyncConversation, list[str]]:
    """The conversation in which a person can go on, and what they should know.

    One that ended is opened again. Of one that takes no messages it is a branch, since what is
    read-only stays as it is."""
    info = await conv.info()
    notes: list[str] = []
    if info.read_only:
        branch = await conv.branch()
        notes.append(
            f"{short_id(info.id)} is read-only: this is a branch of it, {short_id(branch.id)}."
        )
        return branch, notes
    if info.ended and await conv.reopen():
        reason = one_line(info.end_reason or "closed")
        notes.append(f"It had ended ({reason}) and is open again.")
    if info.archived:
        notes.append("It is archived: no list shows it. `clew unarchive` puts it back.")
    if info.kind == "delegate":
        notes.append("It is a sub-agent's.")
    return conv, notes
