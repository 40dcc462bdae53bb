"""clew usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from clew.cli import jsonout, usage_rows
from clew.cli.empty import no_store
from clew.cli.opening import open_existing
from clew.cli.params import Moment, json_option, limit_option
from clew.cli.screen import Cell, Column
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_ids
from clew.cli.times import DAY, moment
from clew.cli.tokenbar import percent
from clew.cli.usage_chart import chart, dollars, short
from clew.cli.usage_rows import Sum
from clew.clock import SystemClock
from clew.domain.turns import UsageRow
from clew.store.engines import NoStore

SPAN = 30
"""Days that are counted unless said otherwise."""
DAYS = 31
"""Bars of the chart."""
WIDE = 90
"""Columns from which on numbers are written out."""


@click.command("usage")
@click.option(
    "--by",
    type=click.Choice(("model", "day", "conversation")),
    default="model",
    help="What a row stands for. [model]",
)
@click.option("--since", metavar="TIME", type=Moment(), help=f"Count from here on. [{SPAN}d]")
@limit_option(30)
@json_option
@click.pass_context
def command(
    ctx: click.Context, by: str, since: int | None, limit: int, as_json: bool
) -> None:  # fmt: skip
    """Show tokens, cost and cache hits of model calls.

    A row for each model, local day or conversation; what was spent on summaries and titles by
    itself; on a terminal a bar for each day.
    """
    settings, now = settings_of(ctx), SystemClock().now()
    since = max(0, now - SPAN * DAY) if since is None else since
    try:
        with open_existing(settings) as store:
            profile = store.profile(settings.profile)
            times = profile.usage_by("time", since)
            rows = profile.usage_by("conversation", since) if by == "conversation" else times
    except NoStore:
        if as_json:
            jsonout.write(settings.screen.stream, {})
        else:
            no_store(settings)
        return
    if as_json:
        _write(settings, by, since, rows, limit)
    elif rows:
        _print(settings, by, since, rows, limit)
        _chart(settings, times)
    else:
        _nothing(settings, since)


def _write(settings: Settings, by: str, since: int, rows: Sequence[UsageRow], limit: int) -> None:
    sums = usage_rows.by(by, rows)
    facts: dict[str, Any] = {
        "profile": settings.profile, "since": since, "by": by,
        "total": usage_rows.total(rows).fields(None),
        "purposes": [each.fields("purpose") for each in usage_rows.by_purpose(rows)],
    }  # fmt: skip
    listed = (each.fields(by) for each in _shown(by, sums, limit))
    jsonout.write_object(settings.screen.stream, facts, "rows", listed)


def _shown(by: str, sums: list[Sum], limit: int) -> list[Sum]:
    """As many as wanted: the newest days, else those with most tokens."""
    return sums[-limit:] if by == "day" else sums[:limit]


def _print(settings: Settings, by: str, since: int, rows: Sequence[UsageRow], limit: int) -> None:
    sums, whole = usage_rows.by(by, rows), usage_rows.total(rows)
    shown = _shown(by, sums, limit)
    names = _names(by, shown)
    _table(settings, by.upper(), [*zip(names, shown, strict=True), ("total", whole)])
    purposes = usage_rows.by_purpose(rows)
    if [each.key for each in purposes] != ["turn"]:
        settings.screen.line()
        _table(settings, "PURPOSE", [(each.key, each) for each in purposes])
    _remarks(settings, since, whole, len(sums) - len(shown))


def _names(by: str, shown: list[Sum]) -> list[str]:
    if by != "conversation":
        return [one_line(each.key) for each in shown]
    ids = short_ids(each.key for each in shown)
    return [f"{ids[each.key]}  {one_line(each.title or '')}".rstrip() for each in shown]


def _table(settings: Settings, title: str, rows: Sequence[tuple[str, Sum]]) -> None:
    screen = settings.screen
    number = short if screen.is_terminal and screen.width < WIDE else "{:,}".format
    columns = [
        Column(title, flexible=True), Column("CALLS", right=True), Column("IN", right=True),
        Column("CACHED", right=True), Column("OUT", right=True),
        Column("COST", right=True), Column("REASONING", "dim", right=True, spare=True),
        Column("FAILED", "dim", right=True, spare=True),
    ]  # fmt: skip
    lines: list[list[Cell]] = [
        [
            name, number(each.calls), number(each.input), percent(each.cached, each.input),
            number(each.output), dollars(each.cost, each.priced), number(each.reasoning),
            number(each.failed),
        ]
        for name, each in rows
    ]  # fmt: skip
    screen.table(columns, lines)


def _remarks(settings: Settings, since: int, whole: Sum, hidden: int) -> None:
    screen = settings.screen
    screen.line()
    screen.line((f"Since {moment(since)}. CACHED is the share of IN that a provider still had.",
                 "dim"))  # fmt: skip
    if whole.priced < whole.calls:
        unknown = whole.calls - whole.priced
        screen.line((f"COST is without {unknown:,} of {whole.calls:,} calls: nobody knows their "
                     'price. `[models."PROVIDER/NAME"] price` sets one.', "dim"))  # fmt: skip
    if hidden:
        settings.notes.line(f"{hidden:,} more; --limit N shows them.")


def _chart(settings: Settings, times: Sequence[UsageRow]) -> None:
    """For people only: a program has the rows."""
    screen = settings.screen
    days = usage_rows.filled(usage_rows.by_day(times), DAYS)
    if not screen.is_terminal or len(days) < 2:
        return
    screen.line()
    for line in chart(days, screen.width, screen.unicode):
        screen.line(*line)


def _nothing(settings: Settings, since: int) -> None:
    settings.notes.line(f"No model was called since {moment(since)}.")
    earlier = settings.command("usage --since 10y")
    settings.notes.line("All there is: ", (earlier, "cyan"))
