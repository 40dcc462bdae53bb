"""clew show: a conversation as a person, a model or the log has it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, TextIO

import click
from msgspec import Struct
from msgspec.structs import replace

from clew.cli import dividers, following, jsonout, outline
from clew.cli.elsewhere import names_of
from clew.cli.family import Family, family_of, inherited_calls, summary
from clew.cli.heading import heading
from clew.cli.lines import BLANK, WIDEST, Line, line, writer
from clew.cli.opening import open_profile
from clew.cli.pager import paged
from clew.cli.params import Seq, id_argument, json_option
from clew.cli.parts import Look
from clew.cli.selection import Selection, messages, target_of
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_id
from clew.cli.timeline import END, Facts, Timeline, log_mark
from clew.clock import SystemClock
from clew.context.entries import Entry, entry_of, joined
from clew.domain.chat import draft_of
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Message, Role
from clew.store.conversation import Conversation
from clew.store.findings import counted
from clew.store.profile import Profile


class Options(Struct, frozen=True):
    """What the command line asks for."""

    context: bool
    log: bool
    follow: bool
    outline: bool
    full: bool
    first: int | None
    to: int | None
    around: str | None
    limit: int | None
    last: int | None
    role: tuple[str, ...]
    model: str | None
    pager: bool
    as_json: bool


@click.command("show")
@id_argument
@click.option("--full", is_flag=True, help="Fold nothing: tool outputs, arguments, thinking.")
@click.option("--outline", is_flag=True, help="Its turns, branches, sub-agents, cuts, as a tree.")
@click.option("--from", "first", metavar="SEQ", type=Seq(), help="Only from this message on.")
@click.option("--to", metavar="SEQ", type=Seq(), help="Only up to this message.")
@click.option("--around", metavar="SEQ|UID", help="Only this message and some beside it.")
@click.option(
    "--role",
    metavar="ROLE",
    multiple=True,
    type=click.Choice([str(role) for role in Role]),
    help="Only messages of this role; may be given several times.",
)
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
            _print_json(settings.screen.stream, profile, conversation, options)
        else:
            with paged(settings.screen, options.pager) as stream:
                lines = _lines(profile, conversation, options, _look(settings, options))
                writer(settings.screen, stream).write(lines)


_FLAGS = {"first": "--from"}
_STRETCH = ("first", "to", "around")
_EXCLUDES = {
    "context": ("log", "follow", "outline", *_STRETCH),
    "log": ("follow", "outline"),
    "follow": ("outline", "limit", *_STRETCH),
    "outline": ("last", "limit", "role", *_STRETCH),
    "around": ("first", "to", "last", "limit"),
    "last": ("limit",),
}
"""What makes no sense together."""


def _check(ctx: click.Context, options: Options) -> None:
    given = [
        name
        for name in Options.__struct_fields__
        if getattr(options, name) not in (None, False, ())
    ]
    for one in given:
        for other in _EXCLUDES.get(one, ()):
            if other in given:
                pair = f"{_flag(one)} and {_flag(other)}"
                ctx.fail(f"{pair} exclude each other; give one of them")
    if options.model is not None and not options.context:
        ctx.fail("--model says for whom --context is; give both")
    if options.first is not None and options.to is not None and options.first > options.to:
        ctx.fail(f"--from {options.first} is behind --to {options.to}; give the smaller one first")


def _flag(name: str) -> str:
    return _FLAGS.get(name, f"--{name}")


def _look(settings: Settings, options: Options) -> Look:
    screen = settings.screen
    width = min(screen.width, WIDEST) if screen.is_terminal else WIDEST
    return Look(options.full, screen.unicode, width, opening=settings.command("show"))


def _selection(conversation: Conversation, options: Options) -> tuple[Selection, int | None]:
    """The messages asked for, and the seq of the one to point at."""
    target = place = None
    if options.around is not None:
        target, place = target_of(conversation, options.around, conversation.cuts(), options.log)
    roles = frozenset(map(Role, options.role))
    return Selection(
        first=options.first, last=options.to, limit=options.limit, newest=options.last,
        around=place, roles=roles, hidden=options.log,
    ), target  # fmt: skip


def _follow(
    settings: Settings, profile: Profile, conversation: Conversation, options: Options
) -> None:
    screen, look = settings.screen, _look(settings, options)
    out = writer(screen)
    want = Selection(roles=frozenset(map(Role, options.role)))
    for event in following.events(profile, conversation, options.last or following.TAIL, want):
        if not options.as_json:
            out.write(following.lines(event, look))
        elif isinstance(event, Message):
            jsonout.write(screen.stream, {"message": event.to_dict()})
        else:
            jsonout.write(screen.stream, {"change": event})
        screen.stream.flush()


# ---------------------------------------------------------------- for people


def _lines(
    profile: Profile, conversation: Conversation, options: Options, look: Look
) -> Iterator[Line]:
    info, now = conversation.info(), SystemClock().now()
    want, target = _selection(conversation, options)
    family = family_of(conversation)
    cuts = sum(cut.in_force for cut in conversation.cuts())
    inside = "" if options.outline else summary(family, cuts)
    yield from heading(info, now, inside, names_of(conversation, info))
    if options.context:
        yield from _context_lines(conversation, options, look)
    elif options.outline:
        yield from outline.lines(outline.of(profile, conversation), replace(look, opening=""), now)
    else:
        pointing = replace(look, target=target)
        inherited = inherited_calls(profile, info)
        family = family._replace(inherited=inherited)
        yield from _log_lines(conversation, info, family, want, pointing, now)


def _log_lines(
    conversation: Conversation, info: ConversationInfo, family: Family, want: Selection,
    look: Look, now: int,
) -> Iterator[Line]:  # fmt: skip
    cuts = conversation.cuts()
    if not want.roles or Role.ASSISTANT in want.roles:
        calls = {**family.inherited, **family.called}
        look = replace(look, under=dividers.under_calls(calls, look))
    between = [
        *dividers.of_compactions(conversation.compactions(), cuts, want.hidden, look),
        *(dividers.of_cuts(cuts, now, look) if want.hidden else dividers.of_hidden(cuts)),
        *dividers.of_branches(family.branches, look),
        *dividers.of_agents(family.others, look),
        *dividers.of_origin(info, look),
    ]
    facts = Facts(info.model, info.cwd, info.git_branch)
    mark = log_mark(cuts) if want.hidden else None
    told = Timeline(look, between, mark, facts, family.called if look.under else ())
    found = messages(conversation, want)
    first = next(found, None)
    start = None if want.newest or want.around else (want.first or 1) - 1
    end = END if want.to_end else want.last
    if first is None:
        yield line(0, (_nothing(info, want), "dim"))
        return
    opening = f"{look.opening} {short_id(info.id)}"
    yield from _earlier(want, info, first, opening)
    entries = map(entry_of, chain((first,), found))
    yield from told.lines(entries if want.hidden else joined(entries), start, end)
    yield from _later(want, info, told.shown, opening)


def _nothing(info: ConversationInfo, want: Selection) -> str:
    if not info.head:
        return "It has no messages yet."
    if want.whole and not want.roles:
        return "All its messages are hidden; --log shows them."
    return f"Nothing of it is asked for; it has #1 to #{info.head}."


def _earlier(
    want: Selection, info: ConversationInfo, first: Message, opening: str
) -> Iterator[Line]:
    """What is left out before the first message that is shown."""
    if want.newest is not None and want.newest < info.message_count:
        yield line(0, (f"the newest {want.newest:,} of {info.message_count:,}:", "dim"))
        yield BLANK
    elif want.around is not None and first.seq > 1:
        yield line(0, (f"before: {opening} --to {first.seq - 1}", "dim"))
        yield BLANK


def _later(want: Selection, info: ConversationInfo, shown: int, opening: str) -> Iterator[Line]:
    """What is left out behind the last."""
    if not want.to_end and shown < info.head:
        yield BLANK
        yield line(0, (f"behind: {opening} --from {shown + 1}", "dim"))


def _context(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    found = conversation.context(options.model or conversation.info().model)
    if options.role:
        found = [message for message in found if message["role"] in options.role]
    if options.last is not None:
        return found[-options.last :]
    return found[: options.limit]


def _context_lines(conversation: Conversation, options: Options, look: Look) -> Iterator[Line]:
    found = _context(conversation, options)
    model = options.model or conversation.info().model or "a model"
    yield line(0, (f"what {one_line(model)} would see: {counted(len(found), 'message')}", "dim"))
    yield BLANK
    drafts = map(draft_of, found)
    yield from Timeline(look).lines(Entry(d.role, d.parts, d.author) for d in drafts)


# ---------------------------------------------------------------- for programs


def _print_json(
    stream: TextIO, profile: Profile, conversation: Conversation, options: Options
) -> None:
    if options.context:
        jsonout.write_list(stream, _context(conversation, options))
        return
    want, target = _selection(conversation, options)
    fields: dict[str, object] = {"conversation": conversation.info()}
    if options.outline:
        nodes = outline.of(profile, conversation)
        jsonout.write_object(stream, fields, "outline", nodes)
        return
    if options.log:
        fields |= {"cuts": conversation.cuts(), "compactions": conversation.compactions()}
    if target is not None:
        fields["around"] = target
    found = (message.to_dict() for message in messages(conversation, want))
    jsonout.write_object(stream, fields, "messages", found)
