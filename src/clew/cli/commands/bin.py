"""clew bin: what was deleted and can be restored."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clew.cli import jsonout
from clew.cli.asking import agreed, can_ask
from clew.cli.empty import no_store
from clew.cli.failures import OK, PROBLEMS
from clew.cli.opening import open_existing, open_profile
from clew.cli.params import json_option, yes_option
from clew.cli.progress import progress
from clew.cli.screen import Column, Piece
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_id, short_ids
from clew.cli.times import ago
from clew.clock import SystemClock
from clew.domain.retention import Binned
from clew.errors import Ambiguous
from clew.store.engines import NoStore
from clew.store.findings import counted, size_text
from clew.store.profile import Profile

PAGE = 1000
"""The latest that are shown, and found by the beginning of their id."""


@click.group("bin", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show, restore or delete what is in the bin.

    What `clew delete` and the retention policy put there goes for good after 30 days.
    """
    if ctx.invoked_subcommand is None:
        _list(settings_of(ctx), as_json)


@command.command("list")
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """List what is in the bin, the latest first."""
    _list(settings_of(ctx), as_json)


@command.command("restore")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_context
def restore(ctx: click.Context, ids: Sequence[str]) -> None:
    """Bring conversations back, with their sub-agents that are in the bin.

    All is as it was, but for the keys of channels, which may be another conversation's by now.
    """
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        found = profile.binned(PAGE)
        for id in [_named(found, text) for text in ids]:
            conversation = profile.unbin(id)
            others = _sub_agents(profile, found, id)
            title = conversation.info().title or "untitled"
            more = f"  and {counted(others, 'sub-agent')}" if others else ""
            settings.screen.line(
                "Restored ", (short_id(id), "yellow"), f"  {one_line(title)}", (more, "dim")
            )


@command.command("empty")
@yes_option
@click.pass_context
def empty(ctx: click.Context, yes: bool) -> int:
    """Delete all that is in the bin for good. Asks first."""
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        found = profile.binned(PAGE)
        if not found:
            settings.screen.line(("The bin is empty.", "dim"))
            return OK
        can_ask(yes, "bin empty")
        least = "at least " if len(found) == PAGE else ""
        if not agreed(f"Delete {least}{counted(len(found), 'conversation')} for good?", yes):
            return PROBLEMS
        with progress(settings.notes, "Deleting") as report:
            gone = profile.empty_bin(report)
        size = size_text(sum(item.bytes for item in gone))
        settings.screen.line(f"Deleted {counted(len(gone), 'conversation')}, {size}.")
    return OK


def _list(settings: Settings, as_json: bool) -> None:
    try:
        with open_existing(settings) as store:
            found = store.profile(settings.profile).binned(PAGE)
    except NoStore:
        if as_json:
            jsonout.write_list(settings.screen.stream, ())
        else:
            no_store(settings)
        return
    if as_json:
        jsonout.write_list(settings.screen.stream, found)
        return
    if not found:
        settings.screen.line(("The bin is empty.", "dim"))
        return
    now, short = SystemClock().now(), short_ids(one.id for one in found)
    rows: list[list[Piece | str]] = [
        [short[one.id], one_line(one.title or "untitled"), ago(one.binned_at, now),
         f"{one.messages:,}"]
        for one in found
    ]  # fmt: skip
    columns = [
        Column("ID", "yellow"), Column("TITLE", flexible=True), Column("DELETED", "dim"),
        Column("MESSAGES", right=True),
    ]  # fmt: skip
    settings.screen.table(columns, rows)
    settings.screen.line()
    settings.screen.line(("To bring one back: ", "dim"), ("clew bin restore ID", "cyan"))


def _named(found: Sequence[Binned], text: str) -> str:
    """The id that a text begins; the text itself where none does: it may be older."""
    text = text.strip()
    ids = [one.id for one in found if one.id.startswith(text)]
    if text in ids or not ids:
        return text
    if len(ids) > 1:
        raise Ambiguous(text, sorted(ids)[:20], len(ids) > 20)
    return ids[0]


def _sub_agents(profile: Profile, found: Sequence[Binned], origin: str) -> int:
    """Restore what comes from a conversation as its sub-agents, to any depth; how many."""
    inside = [one.id for one in found if one.kind == "delegate" and one.origin == origin]
    for id in inside:
        profile.unbin(id)
    return len(inside) + sum(_sub_agents(profile, found, id) for id in inside)
