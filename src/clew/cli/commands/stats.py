"""clew stats and clew profiles."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from clew.cli import jsonout
from clew.cli.empty import no_conversations, no_store
from clew.cli.opening import open_existing
from clew.cli.params import Moment, json_option
from clew.cli.screen import Column, Screen
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line
from clew.domain.turns import ModelUsage
from clew.store.address import Address
from clew.store.engines import NoStore
from clew.store.findings import size_text
from clew.store.profile import Stats
from clew.store.sizes import sizes


@click.command("stats")
@click.option(
    "--since", metavar="TIME", type=Moment(), default=0, help="Count usage from here on. [all]"
)
@json_option
@click.pass_context
def command(ctx: click.Context, since: int, as_json: bool) -> None:
    """Count what a profile holds.

    Conversations and messages, by source; usage by model; bytes on disk.
    """
    settings = settings_of(ctx)
    try:
        with open_existing(settings) as store:
            profile = store.profile(settings.profile)
            stats, usage = profile.stats(), profile.usage(since)
            profiles = store.profiles()
    except NoStore:
        if as_json:
            jsonout.write(settings.screen.stream, {})
        else:
            no_store(settings)
        return
    if as_json:
        jsonout.write(settings.screen.stream, _facts(settings, stats, usage))
    elif not stats.conversations:
        no_conversations(settings, profiles)
    else:
        _print(settings, stats, usage)


def _facts(settings: Settings, stats: Stats, usage: tuple[ModelUsage, ...]) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(stats)
    facts["sources"] = [
        {"source": name, "conversations": count, "messages": messages}
        for name, count, messages in stats.sources
    ]
    place = settings.place
    path = place.shown if isinstance(place, Address) else str(place)
    facts |= {"usage": usage, "profile": settings.profile, "path": path}
    return facts | {"bytes": sizes(place)._asdict()}


def _print(settings: Settings, stats: Stats, usage: tuple[ModelUsage, ...]) -> None:
    screen, taken = settings.screen, sizes(settings.place)
    rows = (
        ("profile", settings.profile), ("conversations", f"{stats.conversations:,}"),
        ("messages", f"{stats.messages:,}"), ("pinned", f"{stats.pinned:,}"),
        ("archived", f"{stats.archived:,}"), ("ended", f"{stats.ended:,}"),
        ("open turns", f"{stats.open_turns:,}"), ("waiting", f"{stats.waiting:,}"),
        ("store", f"{size_text(taken.store)}  {settings.where}"),
        ("search", size_text(taken.search)),
    )  # fmt: skip
    for name, value in rows:
        screen.line((f"{name:15}", "dim"), one_line(value))
    screen.line()
    screen.table(
        [Column("SOURCE"), Column("CONVERSATIONS", right=True), Column("MESSAGES", right=True)],
        [[one_line(name), f"{count:,}", f"{many:,}"] for name, count, many in stats.sources],
    )
    if usage:
        _print_usage(screen, usage)


def _print_usage(screen: Screen, usage: tuple[ModelUsage, ...]) -> None:
    screen.line()
    names = ("CALLS", "INPUT", "OUTPUT", "CACHED", "REASONING", "COST")
    columns = [Column("MODEL", flexible=True), *(Column(name, right=True) for name in names)]
    screen.table(columns, [
        [
            one_line(used.model), f"{used.calls:,}", f"{used.usage.input:,}",
            f"{used.usage.output:,}", f"{used.usage.cached:,}", f"{used.usage.reasoning:,}",
            _cost(used.cost),
        ]
        for used in usage
    ])  # fmt: skip


def _cost(dollars: float) -> str:
    """Of a model of which no call says what it cost, it is not known."""
    if not dollars:
        return "-"
    return f"${dollars:,.2f}" if dollars >= 0.01 else "<$0.01"


@click.command("profiles")
@json_option
@click.pass_context
def profiles(ctx: click.Context, as_json: bool) -> None:
    """List the profiles of the store."""
    settings = settings_of(ctx)
    found: tuple[tuple[str, int], ...] = ()
    try:
        with open_existing(settings) as store:
            found = store.profiles()
        if not found and not as_json:
            no_conversations(settings, ())
    except NoStore:
        if not as_json:
            no_store(settings)
    screen = settings.screen
    if as_json:
        items = ({"profile": name, "conversations": count} for name, count in found)
        jsonout.write_list(screen.stream, items)
    elif screen.is_terminal and found:
        columns = [Column("PROFILE"), Column("CONVERSATIONS", right=True)]
        screen.table(columns, [[one_line(name), f"{count:,}"] for name, count in found])
    else:
        for name, count in found:
            screen.stream.write(f"{one_line(name)}\t{count}\n")
