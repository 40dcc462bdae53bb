"""clew resume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from clew.cli import jsonout
from clew.cli.elsewhere import Name, names_of
from clew.cli.empty import opening_lines
from clew.cli.heading import heading, title_of
from clew.cli.lines import BLANK, Line, line, writer
from clew.cli.opening import open_profile
from clew.cli.params import id_argument, json_option
from clew.cli.settings import Settings, quoted, settings_of
from clew.cli.text import fit, one_line, short_id
from clew.cli.times import ago
from clew.clock import SystemClock
from clew.domain.conversations import ConversationInfo
from clew.domain.cuts import Cut
from clew.domain.turns import Turn
from clew.store.conversation import Conversation
from clew.store.findings import counted

SHOWN = 5
"""Branches and waiting messages that are named."""


@click.command("resume")
@id_argument
@json_option
@click.pass_context
def command(ctx: click.Context, id: str, as_json: bool) -> None:
    """Say how to go on with a conversation.

    The command that talks on, its ids, how to open it from Python and where it was imported from,
    what is open or waiting in it, and its branches.
    """
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        if as_json:
            jsonout.write(settings.screen.stream, _facts(settings, conversation))
        else:
            writer(settings.screen).write(_lines(settings, conversation))


def _open_turn(conversation: Conversation, info: ConversationInfo) -> Turn | None:
    if info.turn is None:
        return None
    return next((t for t in conversation.turns(5) if t.number == info.turn), None)


def _python(settings: Settings, info: ConversationInfo) -> list[str]:
    model = "" if info.model is None else f"model={info.model!r}"
    lines = [
        *opening_lines(settings, info.profile),
        f"conversation = profile.open({info.id!r})",
    ]
    if info.ended:
        lines.append(f"conversation.reopen()  # it ended: {info.end_reason}")
    if info.archived:
        lines.append("conversation.archive(False)  # it is archived: out of lists")
    return [
        *lines,
        f"context = clew.Compactor({model}).context(conversation)  # fits the model's window",
        "messages = context.chat(conversation.blob)  # what to send",
        'conversation.add({"role": "user", "content": "..."})',
    ]


def _chat(settings: Settings, info: ConversationInfo) -> str:
    """The command that goes on here."""
    return settings.command(f"chat --resume {quoted(short_id(info.id))}")


def _facts(settings: Settings, conversation: Conversation) -> dict[str, Any]:
    info = conversation.info()
    return {
        "conversation": info, "command": _chat(settings, info),
        "elsewhere": [name._asdict() for name in names_of(conversation, info)],
        "open_turn": _open_turn(conversation, info),
        "waiting": [
            {"number": w.number, "uid": w.uid, "role": str(w.role), "received_at": w.received_at}
            for w in conversation.inbox()
        ],
        "branches": [child.id for child in conversation.children() if child.kind == "branch"],
        "cuts_in_force": [cut for cut in conversation.cuts() if cut.in_force],
        "python": _python(settings, info),
    }  # fmt: skip


def _lines(settings: Settings, conversation: Conversation) -> Iterator[Line]:
    info, now = conversation.info(), SystemClock().now()
    names = names_of(conversation, info)
    yield from heading(info, now, names=names)
    last = next(iter(conversation.log(limit=1, order="newest").items), None)
    if last is not None:
        said = fit(one_line(last.text), 72) or "(no text)"
        yield line(0, (f"Last, {ago(last.created_at, now)}, {last.role}: ", "dim"), said)
        yield BLANK
    yield line(0, "Go on talking:")
    yield BLANK
    yield line(4, (_chat(settings, info), "cyan"))
    yield BLANK
    yield line(0, "Go on from Python:")
    yield BLANK
    for code in _python(settings, info):
        yield line(4, (code, "cyan"))
    yield BLANK
    yield from _there(info, names)
    yield from _open_things(conversation, info, now)
    yield from _branches(settings, conversation, now)


def _there(info: ConversationInfo, names: Sequence[Name]) -> Iterator[Line]:
    """How to go on in the tool it came from: with the newest of its sessions."""
    known = [name for name in names if name.command is not None]
    if known:
        last = known[-1]
        where = f", in {one_line(info.cwd)}" if info.cwd else ""
        yield line(0, f"Go on in {one_line(last.source)}{where}:")
        yield BLANK
        yield line(4, (last.command or "", "cyan"))
        yield BLANK


def _open_things(conversation: Conversation, info: ConversationInfo, now: int) -> Iterator[Line]:
    turn = _open_turn(conversation, info)
    if turn is not None:
        state, remedy = (
            f"is running since {ago(turn.started_at, now)}. ",
            "If its host is gone: conversation.resume_turn(), or .interrupt_turn()",
        )
        if turn.state == "waiting":
            state, remedy = (
                "waits for a person. ", "When it may go on: conversation.resume_turn()",
            )  # fmt: skip
        yield line(0, (f"Turn {turn.number} {state}", "yellow"), remedy)
    waiting = conversation.inbox()
    if waiting:
        yield line(0, (f"{counted(len(waiting), 'message')} waiting for the next turn:", "yellow"))
        for message in waiting[:SHOWN]:
            text = " ".join(getattr(part, "text", "") for part in message.parts)
            yield line(4, (f"{message.role}: ", "dim"), fit(one_line(text), 72))
    if turn is not None or waiting:
        yield BLANK


def _branches(settings: Settings, conversation: Conversation, now: int) -> Iterator[Line]:
    short = short_id(conversation.id)
    branches = [child for child in conversation.children() if child.kind == "branch"]
    if branches:
        yield line(0, "Branches of it:")
        for child in branches[:SHOWN]:
            yield line(
                4, (short_id(child.id), "yellow"), f"  {fit(title_of(child), 60)}",
                (f"  from #{child.base}, {ago(child.active_at, now)}", "dim"),
            )  # fmt: skip
        if len(branches) > SHOWN:
            yield line(4, (f"and {len(branches) - SHOWN:,} more", "dim"))
        yield BLANK
    branch = settings.command("branch")
    yield line(0, "To go on from an earlier message: ",
               (f"{branch} {short} --at SEQ", "cyan"))  # fmt: skip
    for cut in _lines_cut_away(conversation):
        many = counted(cut.to_seq - cut.from_seq + 1, "message")
        yield line(0, f"To go on with the {many} that cut {cut.number} hides: ",
                   (f"{branch} {short} --at-cut {cut.number}", "cyan"))  # fmt: skip


def _lines_cut_away(conversation: Conversation) -> list[Cut]:
    """The newest cuts in force: each hides a line that a branch can open."""
    return [cut for cut in conversation.cuts() if cut.in_force][-SHOWN:]
