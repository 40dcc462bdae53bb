"""clew context: what a model would see of a conversation, and how much of its window that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from clew.cli import jsonout, tokenbar
from clew.cli.lines import BLANK, WIDEST, Line, line, writer
from clew.cli.opening import open_profile
from clew.cli.pager import paged
from clew.cli.params import id_argument, json_option
from clew.cli.parts import INDENT, Look, folded_text, kinds, parts_lines
from clew.cli.screen import Piece, Screen
from clew.cli.settings import Settings, settings_of
from clew.cli.text import cells, one_line, pad, short_id
from clew.cli.tokenbar import Section
from clew.cli.transcript import STYLES, numbers
from clew.compaction.engine import Compactor
from clew.compaction.view import View, look
from clew.context.budget import Budget
from clew.context.build import Context
from clew.context.sections import NAMES, Item
from clew.domain.messages import Role
from clew.domain.parts import Parts, plain_text
from clew.errors import ContextTooLarge
from clew.store.conversation import Conversation
from clew.store.findings import counted, size_text

ROLE = max(map(len, Role))
FORMATS = ("chat", "responses", "anthropic")


class Options(Struct, frozen=True):
    """What the command line asks for."""

    window: int | None
    model: str | None
    format: str | None
    full: bool
    pager: bool
    as_json: bool


class Seen(Struct, frozen=True, kw_only=True):
    """A context, the budget that it should keep to, and, when it does not, why it cannot."""

    view: View
    context: Context | None
    error: ContextTooLarge | None

    @property
    def items(self) -> tuple[Item, ...]:
        """As they would be sent; as they are when that would not fit."""
        return (self.context or self.view.layout).items

    @property
    def tokens(self) -> int:
        return (self.context or self.view.layout).tokens

    @property
    def bytes(self) -> int:
        return (self.context or self.view.layout).bytes

    @property
    def generation(self) -> int:
        """The compaction in effect; 0: none."""
        record = self.view.inputs.compaction
        return 0 if record is None else record.generation

    @property
    def sections(self) -> list[Section]:
        """In the order in which a model reads them."""
        found: list[Section] = []
        for name in NAMES:
            sizes = [item.tokens for item in self.items if item.section == name]
            tokens = self.view.layout.system if name == "system" else sum(sizes)
            found.append(Section(name, tokens, len(sizes)))
        return [each for each in found if each.tokens]


@click.command("context")
@id_argument
@click.option(
    "--window",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tokens of the model's window. [of its family]",
)
@click.option("--model", metavar="NAME", help="Which model. [the conversation's]")
@click.option(
    "--format",
    metavar="FORMAT",
    type=click.Choice(FORMATS),
    help="Print the messages of a request as JSON: chat, responses or anthropic.",
)
@click.option("--full", is_flag=True, help="All of each message.")
@click.option("--pager/--no-pager", default=True, help="Whether to use a pager on a terminal.")
@json_option
@click.pass_context
def command(ctx: click.Context, id: str, **given: Any) -> None:
    """Show what a model would see.

    A bar of its window by section, then each message with its tokens. Nothing is changed: when it
    would not fit, that is said, and how to make it fit.
    """
    options = Options(**given)
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        seen = _seen(conversation, options)
        if options.format is not None:
            request = _request(conversation, seen, options.format)
            jsonout.write(settings.screen.stream, request)
        elif options.as_json:
            jsonout.write(settings.screen.stream, _facts(conversation, seen))
        else:
            with paged(settings.screen, options.pager) as stream:
                lines = _lines(settings, conversation, seen, options)
                writer(settings.screen, stream).write(lines)


def _seen(conversation: Conversation, options: Options) -> Seen:
    """The context as it is now; it is never compacted here."""
    budget = None if options.window is None else Budget(window=options.window)
    view = look(conversation, budget, options.model)
    compactor = Compactor(view.budget, model=view.model)
    try:
        return Seen(view=view, context=compactor.peek(conversation), error=None)
    except ContextTooLarge as error:
        return Seen(view=view, context=None, error=error)


# ---------------------------------------------------------------- for people


def _lines(
    settings: Settings, conversation: Conversation, seen: Seen, options: Options
) -> Iterator[Line]:
    screen = settings.screen
    width = min(screen.width, WIDEST) if screen.is_terminal else WIDEST
    yield line(0, (f"what {_model(seen)} would see", "bold"), (f"  {_totals(seen)}", "dim"))
    yield BLANK
    yield from _bar(seen, screen, width)
    yield BLANK
    yield from _verdict(settings, conversation, seen)
    yield from _messages(seen.items, Look(full=options.full, unicode=screen.unicode, width=width))


def _model(seen: Seen) -> str:
    return one_line(seen.view.model) if seen.view.model else "a model"


def _totals(seen: Seen) -> str:
    share = tokenbar.percent(seen.tokens, seen.view.budget.window)
    return (
        f"{seen.tokens:,} of {seen.view.budget.window:,} tokens ({share}), "
        f"{counted(len(seen.items), 'message')}, {size_text(seen.bytes)}"
    )


def _bar(seen: Seen, screen: Screen, width: int) -> Iterator[Line]:
    budget = seen.view.budget
    found = tokenbar.sections(seen.sections, budget.room, budget.window - budget.room)
    yield tokenbar.bar(found, width, screen.color, screen.unicode)
    yield from tokenbar.legend(found, budget.window, screen.color, screen.unicode)


def _verdict(settings: Settings, conversation: Conversation, seen: Seen) -> Iterator[Line]:
    """Whether it fits, and what to do when it does not, or soon will not."""
    compact = settings.command(f"compact {short_id(conversation.id)}")
    left = seen.view.budget.high_tokens - seen.tokens
    if seen.error is not None:
        yield line(0, ("It would not fit: ", "red"), _why_not(seen, seen.error))
        yield line(
            0, "A Compactor compacts it before it gives the context. Now: ", (compact, "cyan")
        )
    elif left > 0:
        yield line(0, (f"It fits. A compaction is due in {left:,} tokens.", "green"))
    else:
        yield line(0, ("It fits, and a compaction is due: ", "yellow"), (compact, "cyan"))
    if seen.context is not None and seen.context.shortened:
        many = counted(seen.context.shortened, "message")
        yield line(0, (f"{many} would be shortened to fit.", "yellow"))


def _why_not(seen: Seen, error: ContextTooLarge) -> str:
    """What no compaction mends the error itself says."""
    room = seen.view.budget.room
    if error.seq is not None or error.tokens <= room or seen.view.layout.system > room:
        return one_line(str(error))
    return f"{seen.tokens - room:,} tokens are more than there is room for."


def _messages(items: Sequence[Item], look: Look) -> Iterator[Line]:
    """The messages by section."""
    widths = (
        max((cells(_where(item)) for item in items), default=0),
        max((len(f"{item.tokens:,}") for item in items), default=0),
    )
    for section, members in groupby(items, lambda item: item.section):
        yield BLANK
        yield line(0, (section, tokenbar.KINDS[section].style))
        for item in members:
            yield from _item_lines(item, widths, look)


def _where(item: Item) -> str:
    return numbers(item.entry.messages) or "-"


def _item_lines(item: Item, widths: tuple[int, int], look: Look) -> Iterator[Line]:
    """One message: its number, role, tokens and first line; with `full` all of it."""
    entry = item.entry
    tokens = f"{item.tokens:,}"
    head = f"{pad(_where(item), widths[0])}  ", f"{entry.role:{ROLE}} ", f"{tokens:>{widths[1]}}  "
    pieces = (head[0], "dim"), (head[1], STYLES[entry.role]), (head[2], "dim")
    if look.full:
        yield line(INDENT, *pieces)
        for row in parts_lines(entry.parts, look):
            yield row._replace(indent=row.indent + INDENT)
    else:
        rest = replace(look, width=look.width - sum(map(cells, head)))
        yield line(INDENT, *pieces, *_first_line(entry.parts, rest), hang=2)


def _first_line(parts: Parts, look: Look) -> tuple[Piece, ...]:
    """What is said; else what is called or answered."""
    text = plain_text(parts)
    if text.strip():
        shown, more = folded_text(text, look)
        return (shown, ""), (more, "dim")
    row = next(parts_lines(parts, look), None)
    return ((kinds(parts), "dim"),) if row is None else row.pieces


# ---------------------------------------------------------------- for programs


def _facts(conversation: Conversation, seen: Seen) -> dict[str, Any]:
    budget = seen.view.budget
    return {
        "conversation": conversation.id, "model": seen.view.model,
        "generation": seen.generation, "tokens": seen.tokens, "bytes": seen.bytes,
        "limit": budget.room, "window": budget.window, "fits": seen.context is not None,
        "error": None if seen.error is None else str(seen.error),
        "sections": {
            each.name: {"tokens": each.tokens, "messages": each.messages} for each in seen.sections
        },
        "messages": [_message(item) for item in seen.items],
    }  # fmt: skip


def _message(item: Item) -> dict[str, Any]:
    return {
        "section": item.section, "role": str(item.entry.role), "first": item.first,
        "last": item.last, "tokens": item.tokens, "bytes": item.bytes,
        "text": plain_text(item.entry.parts),
    }  # fmt: skip


def _request(conversation: Conversation, seen: Seen, format: str) -> object:
    """What a request holds. Where the system prompt stands apart, under its name there."""
    context = seen.context
    if context is None:
        raise seen.error or AssertionError
    match format:
        case "responses":
            items = context.responses(conversation.blob)
            return {"instructions": context.prompt, "input": items}
        case "anthropic":
            return {"system": context.prompt, "messages": context.anthropic(conversation.blob)}
        case _:
            return context.chat(conversation.blob)
