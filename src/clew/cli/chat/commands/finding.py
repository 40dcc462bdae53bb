"""/search: messages by their words."""

from __future__ import annotations

from clew.cli.chat.api import Chat
from clew.cli.hits import snippet
from clew.cli.text import one_line, short_ids
from clew.cli.times import ago
from clew.domain.search import Hit, SearchPage, SearchQuery
from clew.errors import InputError
from clew.store.findings import counted

FOUND = 10
PAGES = 5
"""Pages that may hold nothing before a search ends."""


async def search(chat: Chat, given: str) -> None:
    """Finds messages in all conversations of the profile, what came last first. All words must be
    there; "a phrase", begin*, -without and this OR that work."""
    if not given:
        raise InputError('name what to look for: /search WORDS, or "a phrase"')
    page = await _search(chat, given)
    if not page.hits:
        chat.write(("Nothing was found.", "dim"))
        return
    now = chat.conv.clock.now()
    short = short_ids(hit.conversation for hit in page.hits)
    for hit in page.hits:
        _write(chat, hit, short[hit.conversation], now)
    if page.behind:
        many = counted(page.behind, "message")
        chat.write((f"{many} could not be looked at: search again in a moment", "yellow"))
    if page.next is not None:
        command = chat.settings.command("search WORDS")
        chat.write((f"There is more: `{command}` in a shell shows it", "dim"))
    chat.write((f"Open one: /resume {short[page.hits[0].conversation]}", "dim"))


async def _search(chat: Chat, text: str) -> SearchPage:
    """The first page that holds something: the work of one call is bounded."""
    page = await chat.profile.search(SearchQuery(text=text, limit=FOUND))
    for _ in range(PAGES):
        if page.hits or page.next is None:
            break
        page = await chat.profile.search(SearchQuery(text=text, limit=FOUND, cursor=page.next))
    return page


def _write(chat: Chat, hit: Hit, short: str, now: int) -> None:
    where = "here" if hit.conversation == chat.conv.id else one_line(hit.title or "")
    chat.write(
        (f"{short} #{hit.seq}", "yellow"), f"  {hit.role}  ",
        (f"{ago(hit.created_at, now)}  ", "dim"), (where, "bold"),
    )  # fmt: skip
    chat.write("    ", *snippet(hit))
