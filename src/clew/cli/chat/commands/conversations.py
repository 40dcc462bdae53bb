"""/new, /resume, /list, /branch: which conversation the chat is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from clew.cli.beginning import new_conversation
from clew.cli.chat.api import Chat
from clew.cli.chat.commands.reaching import NEWEST, find, ready
from clew.cli.chat.commands.showing import alone, beginning, first_word, messages, number
from clew.cli.text import one_line, short_id, short_ids
from clew.cli.times import ago
from clew.domain.conversations import ConversationSummary, ListFilter, NewConversation
from clew.domain.cuts import hidden
from clew.errors import InputError

LISTED = 30
SOURCE = "chat"
_SEQ = re.compile(r"(?:^|\s)@#?(\d{1,18})$")
_offered: WeakKeyDictionary[Chat, Sequence[str]] = WeakKeyDictionary()
"""What each chat has offered last, so that a number names one of it."""


async def new(chat: Chat, given: str) -> None:
    """Begins a new conversation. The one you leave stays as it is: /resume and its id open it
    again, here or in another terminal."""
    alone(given, "new")
    left = await chat.conv.info()
    if not left.head and not left.waiting:
        chat.write(("This one is new already.", "dim"))
        return
    conv = await chat.profile.create(new_conversation(chat.config, SOURCE))
    title = beginning(left.title or left.preview or "")
    await chat.open(conv, recap=False)
    chat.write(
        f"A new conversation. Left: {title}  ",
        (f"/resume {short_id(left.id)}", "cyan"), ("  goes back", "dim"),
    )  # fmt: skip


async def resume(chat: Chat, given: str) -> None:
    """Goes on in another conversation, named by its id, by that of the tool it was imported from,
    by the beginning of either, or by words of its title. Without a name the newest are shown:
    /resume and a number of that list opens one."""
    if not given:
        newest = await chat.profile.list(limit=NEWEST)
        _offer(chat, [info for info in newest.items if info.id != chat.conv.id])
        return
    found = await find(chat.profile, _chosen(chat, given))
    if found.conv is None and found.several:
        chat.write(f"{one_line(given)!r} names several:")
        _offer(chat, found.several)
        return
    if found.conv is None:
        raise InputError(
            f"no conversation has the id or title {one_line(given)!r}; /list shows them, /search "
            "looks into them"
        )
    if found.conv.id == chat.conv.id:
        chat.write(("You are in it.", "dim"))
        return
    conv, notes = await ready(found.conv)
    await chat.open(conv)
    for note in notes:
        chat.write((note, "yellow"))


async def complete_resume(chat: Chat, typed: str) -> Sequence[str]:
    """Ids of the newest conversations."""
    page = await chat.profile.list(limit=2 * NEWEST)
    short = short_ids(info.id for info in page.items)
    return [id for id in short.values() if id.startswith(typed)]


def _chosen(chat: Chat, given: str) -> str:
    """The id behind a number of what was offered last; else what was typed."""
    offered = _offered.get(chat, ())
    if given.isascii() and given.isdecimal() and len(given) < 3 and 0 < int(given) <= len(offered):
        return offered[int(given) - 1]
    return given


def _offer(chat: Chat, found: Sequence[ConversationSummary]) -> None:
    if not found:
        chat.write(("There is no other conversation yet.", "dim"))
        return
    _offered[chat] = [info.id for info in found]
    _table(chat, found)
    chat.write(("Open one: /resume and its number or id", "dim"))


async def list(chat: Chat, given: str) -> None:
    """Lists conversations, newest activity first; with TEXT those that have it in their title.
    `clew list` has more to filter by."""
    want = ListFilter(title=given or None)
    page = await chat.profile.list(want, limit=LISTED, pinned_first=not given)
    if not page.items:
        chat.write(("No title has this; /search looks into the messages.", "dim"))
        return
    _offered[chat] = [info.id for info in page.items]
    _table(chat, page.items)
    if page.next is not None:
        command = chat.settings.command("list")
        chat.write((f"There are more: /list TEXT, or `{command}` in a shell", "dim"))


def _table(chat: Chat, found: Iterable[ConversationSummary]) -> None:
    found = [*found]
    short = short_ids(info.id for info in found)
    now = chat.conv.clock.now()
    chat.table(
        ("", "ID", "TITLE", "ACTIVITY", "MESSAGES", "SOURCE"),
        [
            (
                str(at), short[info.id], _title(info, info.id == chat.conv.id),
                ago(info.active_at, now), f"{info.message_count:,}", one_line(info.source),
            )
            for at, info in enumerate(found, 1)
        ],
    )  # fmt: skip


def _title(info: ConversationSummary, here: bool) -> str:
    title = one_line(info.title or info.preview or "") or "(untitled)"
    marks = ("branch " if info.kind == "branch" else "") + ("here: " if here else "")
    return marks + title


async def branch(chat: Chat, given: str) -> None:
    """Goes on in a new conversation that begins with this one: with all of it, or up to a message
    (@12). This one stays as it is, and both may go on."""
    title, seq = _title_and_seq(given)
    left = await chat.conv.info()
    if not left.head:
        raise InputError("there is nothing here to branch; type a message first")
    uid = None if seq is None else await _shown(chat, seq)
    new = NewConversation(source=SOURCE, title=title or None)
    made = await chat.conv.branch(uid, new=new)
    await chat.open(made, recap=False)
    info = await made.info()
    chat.write(
        f"Branched at #{info.base}: {messages(info.message_count)}, now ",
        (short_id(info.id), "yellow"), ". Left: ",
        (f"/resume {short_id(left.id)}", "cyan"), ("  goes back", "dim"),
    )  # fmt: skip


async def _shown(chat: Chat, seq: int) -> str:
    """The uid of a message that is not taken out."""
    for cut in await chat.conv.cuts():
        if hidden((cut,), seq):
            command = chat.settings.command(
                f"branch {short_id(chat.conv.id)} --at-cut {cut.number}"
            )
            raise InputError(f"message {seq} is taken out; `{command}` branches from what was")
    return (await chat.conv.message(seq)).uid


def _title_and_seq(given: str) -> tuple[str, int | None]:
    """`A title @12`, either of them left out."""
    if found := _SEQ.search(given):
        return given[: found.start()].strip(), int(found[1])
    word, rest = first_word(given)
    if word.startswith("@") and word != "@":
        return rest, number(word.removeprefix("@"), "/branch TITLE @12")
    return given, None
