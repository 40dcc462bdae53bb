"""clew repair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import click
import msgspec

from clew.cli import jsonout
from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.params import json_option, yes_option
from clew.cli.progress import Report, progress
from clew.cli.settings import Settings, home_short, settings_of
from clew.cli.text import one_line, short_id
from clew.store.findings import counted, size_text
from clew.store.repair import Repair, RepairReport
from clew.store.repair_swap import Swapped

INSTEAD = (
    "a database of a server is repaired with the server's tools, or restored from a backup: "
    "docs/operating/scale.md"
)
_SHOWN = 20
"""Conversations with lost messages that are named one by one."""


@click.command("repair")
@click.option("--apply", "swap", is_flag=True, help="Put the result in the place of the store.")
@yes_option
@json_option
@click.pass_context
def command(ctx: click.Context, swap: bool, yes: bool, as_json: bool) -> int:
    """Save what is left of a damaged store.

    The store is read and not changed. A new store beside it gets every row that can be read, and a
    report says what is missing. --apply then asks, and puts it in the store's place; the old file
    is kept. Exits with 1 when something is missing.
    """
    settings = settings_of(ctx)
    store = settings.file(INSTEAD)
    if swap:
        can_ask(yes, "repair --apply")

    def bar(label: str) -> AbstractContextManager[Report]:
        return progress(settings.notes, label)

    with Repair(store, bar) as repair:
        report = repair.report
        if not as_json:
            for line in _lines(report):
                settings.screen.line(line)
        done: Swapped | None = None
        if swap and agreed(f"Put it in the place of {home_short(store)}?", yes):
            with bar("Replacing") as step:
                done = repair.apply(step)
    if as_json:
        fields = msgspec.to_builtins(report)
        kept = None if done is None or done.kept is None else str(done.kept)
        fields |= {"whole": report.is_whole, "applied": done is not None, "kept": kept}
        jsonout.write(settings.screen.stream, fields)
    else:
        _end(settings, report, done)
    return OK if report.is_whole and not report.problems else PROBLEMS


def _lines(report: RepairReport) -> Iterator[str]:
    yield (
        f"{counted(report.pages, 'page')} read ({size_text(report.pages * report.page_size)}), "
        f"{counted(report.damaged_pages, 'page')} of tables and indexes damaged or missing."
    )
    if report.lost_wal_frames:
        yield f"{counted(report.lost_wal_frames, 'frame')} of the -wal damaged."
    if report.unread_bytes:
        yield f"{size_text(report.unread_bytes)} could not be read from the disk."
    yield f"{counted(report.messages, 'message')} saved, {report.lost_messages:,} lost."
    for table in report.tables:
        if table.lost and table.table != "message":
            yield f"{table.table}: {counted(table.read, 'row')} saved, {table.lost:,} or more lost."
    for lost in report.conversations[:_SHOWN]:
        spans = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in lost.ranges)
        yield f"  {short_id(lost.conversation)}: messages {spans} are lost"
    if len(report.conversations) > _SHOWN:
        yield f"  and {len(report.conversations) - _SHOWN:,} more; --json names all"
    for what, count in report.mended.items():
        yield f"  {count:,} × {what}"
    for problem in report.problems:
        yield f"  {problem.invariant}  {one_line(problem.detail)}"


def _end(settings: Settings, report: RepairReport, done: Swapped | None) -> None:
    screen = settings.screen
    if done is None:
        screen.line(
            (screen.sign("✓", "ok"), "green"),
            f" The store was not changed. The repaired one: {home_short(report.result)}",
        )
        settings.notes.line(
            "Look at it with --store, then `clew repair --apply` or `clew restore` it."
        )
        return
    screen.line((screen.sign("✓", "ok"), "green"), f" {home_short(done.path)} is repaired.")
    if done.kept is not None:
        screen.line((f"  The damaged file is kept as {home_short(done.kept)}", "dim"))
