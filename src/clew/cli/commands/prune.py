"""clew prune."""

from __future__ import annotations

import click

from clew.cli import jsonout
from clew.cli.empty import no_store
from clew.cli.heading import title_of
from clew.cli.opening import open_existing
from clew.cli.params import Age, json_option
from clew.cli.progress import progress
from clew.cli.screen import Column, Piece
from clew.cli.settings import Settings, settings_of
from clew.cli.text import short_ids
from clew.cli.times import DAY, ago
from clew.clock import SystemClock
from clew.errors import NotFound
from clew.store.engines import NoStore
from clew.store.findings import counted
from clew.store.profile import Profile

PAGE = 1000
SHOWN = 50
Prunable = tuple[str, int, int]
"""(id, active_at, messages)"""


@click.command("prune")
@click.option(
    "--older-than",
    metavar="AGE",
    type=Age(),
    default=90 * DAY,
    help="Without activity for this long, such as 12w. [90d]",
)
@click.option("--yes", "-y", is_flag=True, help="Do it. Without this, only say what would go.")
@json_option
@click.pass_context
def command(ctx: click.Context, older_than: int, yes: bool, as_json: bool) -> None:
    """Delete conversations that ended long ago.

    Only says what would go unless --yes is given. What is pinned, imported or not ended stays, and
    so does what has an open turn or waiting messages.
    """
    settings = settings_of(ctx)
    try:
        with open_existing(settings) as store:
            _prune(settings, store.profile(settings.profile), older_than, yes, as_json)
    except NoStore:
        if as_json:
            jsonout.write_list(settings.screen.stream, ())
        else:
            no_store(settings)


def _prune(settings: Settings, profile: Profile, age: int, yes: bool, as_json: bool) -> None:
    before = SystemClock().now() - age
    found = _delete(settings, profile, before) if yes else _all(profile, before)
    if as_json:
        items = ({"id": i, "active_at": at, "messages": n, "deleted": yes} for i, at, n in found)
        jsonout.write_list(settings.screen.stream, items)
    elif yes:
        settings.screen.line(f"Deleted {_counted(found)}.")
    else:
        _would_go(settings, profile, found)


def _all(profile: Profile, before: int) -> list[Prunable]:
    """What would go: as many as one look gives, which is as many as one run deletes at a time."""
    return list(profile.prunable(before, PAGE))


def _delete(settings: Settings, profile: Profile, before: int) -> list[Prunable]:
    gone: list[Prunable] = []
    with progress(settings.notes, "Deleting") as report:
        while found := _all(profile, before):
            for one in found:
                try:
                    profile.delete(one[0])
                except NotFound:
                    continue  # another process was faster
                gone.append(one)
                report(len(gone), len(gone) + len(found))
    return gone


def _counted(found: list[Prunable]) -> str:
    messages = counted(sum(count for _, _, count in found), "message")
    return f"{counted(len(found), 'conversation')} with {messages}"


def _would_go(settings: Settings, profile: Profile, found: list[Prunable]) -> None:
    if not found:
        settings.screen.line("There is nothing to prune.")
        return
    now, short = SystemClock().now(), short_ids(id for id, _, _ in found)
    rows: list[list[Piece | str]] = [
        [short[id], title_of(profile.open(id).info()), ago(at, now), f"{count:,}"]
        for id, at, count in found[:SHOWN]
    ]
    columns = [
        Column("ID", "yellow"), Column("TITLE", flexible=True), Column("ACTIVITY", "dim"),
        Column("MESSAGES", right=True),
    ]  # fmt: skip
    settings.screen.table(columns, rows)
    if len(found) > SHOWN:
        settings.screen.line((f"and {len(found) - SHOWN:,} more", "dim"))
    more = " at least" if len(found) == PAGE else ""
    settings.screen.line()
    settings.screen.line(
        f"This would delete{more} {_counted(found)}. Nothing was deleted: give --yes to do it."
    )
