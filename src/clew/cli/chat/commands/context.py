"""/context and /compact: what the model sees of the conversation, and making it shorter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.cli import receipts, tokenbar
from clew.cli.chat.api import Chat
from clew.cli.chat.commands.showing import alone, show
from clew.cli.lines import WIDEST, Line, line
from clew.cli.text import one_line
from clew.cli.tokenbar import Section
from clew.compaction.aio import AsyncCompactor
from clew.compaction.engine import Compactor
from clew.compaction.outcome import Outcome
from clew.config.values import CompactionConfig
from clew.context.build import Context
from clew.context.sections import NAMES
from clew.domain.turns import ModelCall
from clew.errors import ContextTooLarge, InputError
from clew.providers.api import Model
from clew.store.aio.conversation import AsyncConversation
from clew.store.findings import counted

CALLS = 20
"""Newest calls among which is the last answer."""


async def context(chat: Chat, given: str) -> None:
    """Shows how much room the conversation takes of the model's window, by section; what of it a
    compaction stands for; and how much of the last request the provider had in its cache. `clew
    context` shows each message."""
    alone(given, "context")
    model = await chat.host.model_of(chat.conv)
    try:
        seen = await chat.host.context(chat.conv)
    except ContextTooLarge as error:
        chat.write(("It does not fit: ", "red"), one_line(str(error)))
        chat.write(("/compact makes it shorter, and so does the next message", "dim"))
        return
    show(chat, _bar(chat, model, seen))
    show(chat, _due(chat.config.compaction, model, seen))
    show(chat, [line(0, await _covered(chat.conv, seen))])
    if cached := _cached(await chat.conv.calls(CALLS)):
        show(chat, [line(0, cached)])


def _bar(chat: Chat, model: Model, seen: Context) -> Iterator[Line]:
    screen = chat.settings.screen
    share = tokenbar.percent(seen.tokens, model.window)
    yield line(
        0, (one_line(model.shown), "bold"),
        (f"  {seen.tokens:,} of {model.window:,} tokens ({share}), "
         f"{counted(len(seen.items), 'message')}", "dim"),
    )  # fmt: skip
    found = tokenbar.sections(_sections(seen), seen.limit, max(0, model.window - seen.limit))
    width = min(screen.width, WIDEST)
    yield tokenbar.bar(found, width, screen.color, screen.unicode)
    yield from tokenbar.legend(found, model.window, screen.color, screen.unicode)


def _sections(seen: Context) -> list[Section]:
    return [
        Section(name, seen.section(name), sum(item.section == name for item in seen.items))
        for name in NAMES
    ]


def _due(config: CompactionConfig, model: Model, seen: Context) -> Iterator[Line]:
    left = min(int(model.window * config.high), seen.limit) - seen.tokens
    if left > 0:
        yield line(0, f"A compaction is due in {left:,} tokens.")
    else:
        yield line(0, ("A compaction is due: the next message makes it, or /compact", "yellow"))
    if seen.shortened:
        yield line(0, f"{counted(seen.shortened, 'message')} shown shorter, to fit.")


async def _covered(conv: AsyncConversation, seen: Context) -> str:
    if not seen.generation:
        return "Nothing is compacted: the model sees every message."
    record = next(c for c in await conv.compactions() if c.generation == seen.generation)
    return (
        f"Compaction {record.generation} stands for what is up to #{record.covers_to}; the log, "
        "/search and the model's recall have all of it."
    )


def _cached(calls: Sequence[ModelCall]) -> str | None:
    """How much of the last request the provider had."""
    done = [call for call in calls if call.purpose == "turn" and call.state == "done"]
    if not done or not done[-1].usage.input:
        return None
    usage = done[-1].usage
    share = tokenbar.percent(usage.cached, usage.input)
    return f"Of the last request {usage.cached:,} of {usage.input:,} tokens ({share}) were cached."


async def compact(chat: Chat, given: str) -> None:
    """Puts a ledger in the place of the old part of the conversation: rules, requests, decisions,
    exact values, files, each with the number of its message. For the model only: you see, search
    and export everything as before. `/compact undo` takes the newest one back."""
    if given == "undo":
        await _undo(chat)
        return
    if given:
        raise InputError(f"/compact does not know {one_line(given)!r}; type /compact, or undo")
    show(chat, _outcome(await chat.host.compact(chat.conv)))


async def complete_compact(chat: Chat, typed: str) -> Sequence[str]:
    """The one word it knows."""
    return [word for word in ("undo",) if word.startswith(typed)]


async def _undo(chat: Chat) -> None:
    record = await AsyncCompactor(Compactor()).undo(chat.conv)
    chat.write(f"Undid compaction {record.generation}: the model sees what stood there before.")


def _outcome(outcome: Outcome) -> Iterator[Line]:
    if outcome.receipt is None or outcome.compaction is None:
        said = "Nothing to compact" if outcome.state == "refused" else "Not compacted"
        yield line(0, f"{said}: {one_line(outcome.reason).rstrip('.')}. Nothing was changed.")
        return
    before, after = outcome.receipt.tokens["before"], outcome.receipt.tokens["after"]
    freed = receipts.freed(before, after)
    yield line(0, ("Compacted", "green"), f": {before:,} tokens became {after:,} ({freed} freed).")
    yield from receipts.receipt_lines(outcome.receipt)
    if outcome.notice:
        yield line(0, (one_line(outcome.notice), "yellow"))
    yield line(0, ("Nothing is deleted. /compact undo takes it back", "dim"))
