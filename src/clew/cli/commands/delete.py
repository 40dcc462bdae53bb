"""clew delete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import click

from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.family import sub_agents
from clew.cli.heading import title_of
from clew.cli.opening import open_profile
from clew.cli.params import ids_argument, yes_option
from clew.cli.screen import Screen
from clew.cli.settings import settings_of
from clew.cli.text import short_id
from clew.domain.conversations import ConversationInfo
from clew.errors import NotFound
from clew.store.conversation import Conversation
from clew.store.findings import counted
from clew.store.profile import Profile

Doomed = Mapping[str, Sequence[str]]
"""The ids of the sub-agents that go with each conversation, the innermost first."""


@click.command("delete")
@ids_argument
@click.option("--keep-sub-agents", is_flag=True, help="Leave the conversations of sub-agents.")
@click.option("--now", is_flag=True, help="For good, past the bin.")
@yes_option
@click.pass_context
def command(
    ctx: click.Context, ids: Sequence[str], keep_sub_agents: bool, now: bool, yes: bool
) -> int:
    """Delete conversations.

    Asks first. Those of their sub-agents go too. Branches keep all that they show.
    They go into the bin, from which `clew bin restore` brings them back for 30 days.
    """
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        named = {c.id: c for c in (profile.resolve(id) for id in ids)}
        can_ask(yes, "delete")
        found = {id: conversation.info() for id, conversation in named.items()}
        doomed = dict.fromkeys(named, ()) if keep_sub_agents else _doomed(profile, named.values())
        if not yes:
            _list(settings.notes, found.values(), doomed)
        if not agreed(_question(len(found), sum(map(len, doomed.values())), now), yes):
            return PROBLEMS
        act = profile.delete if now else profile.bin
        for id, info in found.items():
            others = _delete(act, doomed[id])
            act(id)
            settings.screen.line(
                "Deleted " if now else "In the bin: ", (short_id(id), "yellow"),
                f"  {title_of(info)}",
                (f"  and {counted(others, 'sub-agent')}" if others else "", "dim"),
            )  # fmt: skip
    return OK


def _doomed(profile: Profile, named: Collection[Conversation]) -> Doomed:
    """Each sub-agent once, and none that is named itself."""
    seen = {conversation.id for conversation in named}
    doomed: dict[str, Sequence[str]] = {}
    for conversation in named:
        inside = [info.id for info in sub_agents(profile, conversation) if info.id not in seen]
        seen.update(inside)
        doomed[conversation.id] = inside[::-1]
    return doomed


def _list(notes: Screen, found: Collection[ConversationInfo], doomed: Doomed) -> None:
    for info in found:
        notes.line("  ", (short_id(info.id), "yellow"), *_facts(info, len(doomed[info.id])))


def _facts(info: ConversationInfo, others: int) -> Iterator[tuple[str, str]]:
    yield f"  {title_of(info)}", ""
    yield f"  {counted(info.message_count, 'message')}", "dim"
    if others:
        yield f", {counted(others, 'sub-agent')}", "dim"


def _question(many: int, others: int, now: bool) -> str:
    what = counted(many, "conversation")
    if others:
        whose = "its" if many == 1 else "their"
        what += f" and {whose} {counted(others, 'sub-agent')}"
    return f"Delete {what} for good?" if now else f"Put {what} into the bin?"


def _delete(act: Callable[[str], object], ids: Sequence[str]) -> int:
    """Delete sub-agents before the conversation by which they are found: an interrupted command
    can be given again. How many were there."""
    deleted = 0
    for id in ids:
        try:
            act(id)
            deleted += 1
        except NotFound:  # by somebody else, meanwhile
            pass
    return deleted
