"""clew show: a conversation as a person, a model or the log has it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, TextIO

import click
from msgspec import Struct

from clew.cli import following, jsonout, timeline
from clew.cli.heading import heading
from clew.cli.lines import BLANK, Line, line, writer
from clew.cli.opening import open_profile
from clew.cli.pager import paged
from clew.cli.params import id_argument, json_option
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line
from clew.cli.transcript import STYLES, Look, parts_lines
from clew.clock import SystemClock
from clew.domain.chat import draft_of
from clew.domain.messages import Message
from clew.store.conversation import Conversation
from clew.store.findings import counted
from clew.store.profile import Profile


class Options(Struct, frozen=True):
    """What the command line asks for."""

    context: bool
    log: bool
    follow: bool
    full: bool
    limit: int | None
    last: int | None
    model: str | None
    pager: bool
    as_json: bool


@click.command("show")
@id_argument
@click.option("--full", is_flag=True, help="Fold nothing: tool outputs, arguments, thinking.")
@click.option("--context", is_flag=True, help="What a model would see.")
@click.option("--model", metavar="NAME", help="Which model, for --context. [the conversation's]")
@click.option(
    "--log", is_flag=True, help="Everything: hidden messages too, cuts and compactions as dividers."
)
@click.option("--follow", "-f", is_flag=True, help="Show new messages as they come; Ctrl-C ends.")
@click.option("--last", metavar="N", type=click.IntRange(min=1), help="Only the newest messages.")
@click.option(
    "--limit", "-n", metavar="N", type=click.IntRange(min=1), help="Only the first messages."
)
@click.option("--pager/--no-pager", default=True, help="Whether to use a pager on a terminal.")
@json_option
@click.pass_context
def command(ctx: click.Context, id: str, **given: Any) -> None:
    """Show a conversation.

    On a terminal in a pager (CLEW_PAGER, PAGER, or less), long tool outputs folded.
    """
    options = Options(**given)
    _check(ctx, options)
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        if options.follow:
            _follow(settings, profile, conversation, options)
        elif options.as_json:
            _print_json(settings.screen.stream, conversation, options)
        else:
            with paged(settings.screen, options.pager) as stream:
                lines = _lines(conversation, options, _look(settings, options))
                writer(settings.screen, stream).write(lines)


def _check(ctx: click.Context, options: Options) -> None:
    chosen = [n for n in ("context", "log", "follow") if getattr(options, n)]
    if len(chosen) > 1:
        ctx.fail(f"--{chosen[0]} and --{chosen[1]} exclude each other; give one of them")
    if options.last is not None and options.limit is not None:
        ctx.fail("--last and --limit exclude each other; give one of them")
    if options.model is not None and not options.context:
        ctx.fail("--model says for whom --context is; give both")


def _look(settings: Settings, options: Options) -> Look:
    return Look(options.full, settings.screen.unicode)


def _follow(
    settings: Settings, profile: Profile, conversation: Conversation, options: Options
) -> None:
    screen, look = settings.screen, _look(settings, options)
    out = writer(screen)
    for event in following.events(profile, conversation, options.last or following.TAIL):
        if not options.as_json:
            out.write(following.lines(event, look))
        elif isinstance(event, Message):
            jsonout.write(screen.stream, {"message": event.to_dict()})
        else:
            jsonout.write(screen.stream, {"change": event})
        screen.stream.flush()


# ---------------------------------------------------------------- for people


def _lines(conversation: Conversation, options: Options, look: Look) -> Iterator[Line]:
    info, now = conversation.info(), SystemClock().now()
    yield from heading(info, now)
    if options.context:
        yield from _context_lines(conversation, options, look)
        return
    cuts = conversation.cuts()
    dividers = list(
        timeline.compaction_dividers(conversation.compactions(), cuts, every=options.log)
    )
    mark = timeline.no_mark
    if options.log:
        dividers += timeline.cut_dividers(cuts, now)
        mark = timeline.log_mark(cuts)
    if options.last is not None and options.last < info.message_count:
        yield line(0, (f"the newest {options.last} of {info.message_count:,}:", "dim"))
        yield BLANK
    if options.limit is not None:
        dividers = [place for place in dividers if place[0] < options.limit]
    yield from timeline.lines(_messages(conversation, options), dividers, mark, look)
    if not info.head:
        yield line(0, ("It has no messages yet.", "dim"))


def _messages(conversation: Conversation, options: Options) -> Iterator[Message]:
    if options.last is not None:
        return iter(timeline.newest(conversation, options.last, options.log))
    return islice(conversation.messages(hidden=options.log), options.limit)


def _context(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    found = conversation.context(options.model or conversation.info().model)
    if options.last is not None:
        return found[-options.last :]
    return found[: options.limit]


def _context_lines(conversation: Conversation, options: Options, look: Look) -> Iterator[Line]:
    found = _context(conversation, options)
    model = options.model or conversation.info().model or "a model"
    yield line(0, (f"what {one_line(model)} would see: {counted(len(found), 'message')}", "dim"))
    yield BLANK
    for message in found:
        draft = draft_of(message)
        yield line(0, (str(draft.role), STYLES[draft.role]))
        yield from parts_lines(draft.parts, look)
        yield BLANK


# ---------------------------------------------------------------- for programs


def _print_json(stream: TextIO, conversation: Conversation, options: Options) -> None:
    if options.context:
        jsonout.write_list(stream, _context(conversation, options))
        return
    fields: dict[str, object] = {"conversation": conversation.info()}
    if options.log:
        fields |= {"cuts": conversation.cuts(), "compactions": conversation.compactions()}
    messages = (message.to_dict() for message in _messages(conversation, options))
    jsonout.write_object(stream, fields, "messages", messages)
