"""clew cut and clew undo: hiding the end of a conversation, and taking that back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click

from clew.cli import jsonout
from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.heading import title_of
from clew.cli.messages import message_of
from clew.cli.opening import open_profile
from clew.cli.params import id_argument, json_option, yes_option
from clew.cli.screen import Screen
from clew.cli.settings import settings_of
from clew.cli.text import fit, one_line, short_id
from clew.cli.transcript import STYLES
from clew.domain.conversations import ConversationInfo
from clew.domain.cuts import hidden
from clew.domain.messages import Message
from clew.store.conversation import Conversation
from clew.store.findings import counted

SHOWN = 8
"""Messages that are named before the question."""


@click.command("cut")
@id_argument
@click.argument("message", metavar="SEQ|UID")
@yes_option
@json_option
@click.pass_context
def cut(ctx: click.Context, id: str, message: str, yes: bool, as_json: bool) -> int:
    """Hide a message and all after it (rewind).

    Shows what would be hidden and asks. Nothing is deleted: `clew undo` brings it back, `clew
    branch --at-cut` goes on with it elsewhere. An open turn is ended, and what waits is withdrawn.
    """
    can_ask(yes, "cut")
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        info = conversation.info()
        target = message_of(conversation, message)
        if not yes:
            _preview(settings.notes, conversation, info, target)
        if not agreed("Hide them?", yes):
            return PROBLEMS
        outcome = conversation.cut(target.uid, head=info.head, view=info.view, by="clew")
    if as_json:
        jsonout.write(settings.screen.stream, outcome)
        return OK
    many = counted(outcome.to_seq - outcome.from_seq + 1, "message")
    settings.screen.line(
        f"Hid {many} of ", (short_id(conversation.id), "yellow"),
        f" from #{outcome.from_seq} on (cut {outcome.number}). ",
        (f"To take it back: {settings.command('undo')} {short_id(conversation.id)}", "dim"),
    )  # fmt: skip
    return OK


def _preview(
    notes: Screen, conversation: Conversation, info: ConversationInfo, target: Message
) -> None:
    """What would be hidden, the newest folded."""
    notes.line((title_of(info), "bold"))
    shown = list(islice(_from(conversation, target.seq, info.head), SHOWN))
    for message in shown:
        said = fit(one_line(message.text), 60) or "(no text)"
        notes.line((f"  #{message.seq} ", "dim"), (f"{message.role}  ", STYLES[message.role]), said)
    more = info.head - shown[-1].seq if shown else 0
    if more > 0:
        notes.line((f"  and all after them, to #{info.head}", "dim"))
    if info.turn is not None:
        notes.line((f"Turn {info.turn} is open; it will be ended.", "yellow"))
    if info.waiting:
        notes.line((f"{counted(info.waiting, 'message')} waiting; withdrawn with it.", "yellow"))


def _from(conversation: Conversation, seq: int, head: int) -> Iterator[Message]:
    """The visible messages from a seq on."""
    cuts = conversation.cuts()
    for place in range(seq, head + 1):
        if not hidden(cuts, place):
            yield conversation.message(place)


@click.command("undo")
@id_argument
@json_option
@click.pass_context
def undo(ctx: click.Context, id: str, as_json: bool) -> None:
    """Undo the newest cut.

    As long as no message has followed it; after that, `clew branch --at-cut` opens what it hides.
    """
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        info = conversation.info()
        outcome = conversation.undo_cut(head=info.head, view=info.view)
    if as_json:
        jsonout.write(settings.screen.stream, outcome)
        return
    settings.screen.line(
        f"Undid cut {outcome.number}: ", (short_id(conversation.id), "yellow"),
        f" shows #{outcome.from_seq} to #{outcome.to_seq} again",
    )  # fmt: skip
