"""clew spool: messages that the store could not take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from clew.cli import jsonout
from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.opening import open_existing
from clew.cli.params import json_option, yes_option
from clew.cli.screen import Column
from clew.cli.settings import Settings, home_short, settings_of
from clew.cli.text import one_line
from clew.cli.times import moment
from clew.domain.parts import plain_text
from clew.errors import NotFound
from clew.exporters.saving import Write, save
from clew.exporters.spooled import lines
from clew.store.findings import counted
from clew.store.spool.messages import drafts
from clew.store.spool.place import spools_at
from clew.store.spool.record import Entry, Record
from clew.store.spool.replay import Brought
from clew.store.spool.spool import Spool

PREVIEW = 60
"""Characters."""


@click.group("spool", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show, bring in, export or discard messages that the store could not take.

    Each write to the store brings them in by itself, as soon as the store takes messages again.
    """
    if ctx.invoked_subcommand is None:
        _list(settings_of(ctx), as_json)


@command.command("list")
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """List what is in the spool, in its order. The store is not opened."""
    _list(settings_of(ctx), as_json)


def _list(settings: Settings, as_json: bool) -> None:
    found = [entry for spool in _spools(settings) for entry in spool.contents().entries]
    if as_json:
        jsonout.write_list(settings.screen.stream, map(_fields, found))
        return
    screen = settings.screen
    if not found:
        screen.line(("The spool is empty: every accepted message is in the store.", "dim"))
        return
    columns = [
        Column("STATE"), Column("ACCEPTED"), Column("CONVERSATION"), Column("MESSAGES"),
        Column("TEXT", flexible=True),
    ]  # fmt: skip
    screen.table(columns, [_row(entry) for entry in found])
    last = next((e.record.cause for e in reversed(found) if e.record), "")
    screen.line()
    screen.line((f"The newest went there because: {one_line(last)}", "dim"))


def _row(entry: Entry) -> list[str]:
    record = entry.record
    if record is None:
        return [entry.state, "", "", "", f"{entry.length} bytes that cannot be read"]
    return [
        entry.state, moment(record.at), one_line(record.conversation),
        str(len(record.messages)), one_line(_text(record))[:PREVIEW],
    ]  # fmt: skip


def _text(record: Record) -> str:
    return " / ".join(plain_text(draft.parts) for draft in drafts(record.messages))


def _fields(entry: Entry) -> dict[str, Any]:
    record = entry.record
    if record is None:
        return {"state": entry.state, "bytes": entry.length}
    return {
        "state": entry.state, "at": record.at, "conversation": record.conversation,
        "profile": record.profile, "store": record.store, "turn": record.turn,
        "messages": len(record.messages), "bytes": entry.length, "cause": record.cause,
        "uids": [message.uid.hex() for message in record.messages],
    }  # fmt: skip


@command.command("replay")
@json_option
@click.pass_context
def replay(ctx: click.Context, as_json: bool) -> int:
    """Bring in all of it now, what is held too where that is possible.

    Exits with 1 when something stays in the spool.
    """
    settings = settings_of(ctx)
    with open_existing(settings) as store:
        report = store.bring_in()
    left = [each for each in report.brought if each.state != "done"]
    if as_json:
        jsonout.write(settings.screen.stream, {
            "brought": [_brought(each) for each in report.brought],
            "stopped": None if report.stopped is None else str(report.stopped),
        })  # fmt: skip
        return PROBLEMS if left or report.stopped else OK
    screen = settings.screen
    done = sum(len(e.entry.record.messages) for e in report.brought if e.entry.record) - sum(
        len(e.entry.record.messages) for e in left if e.entry.record
    )
    screen.line(f"{counted(done, 'message')} brought in.")
    for each in report.brought:
        if each.why is not None and each.entry.record is not None:
            where = f"in {each.conversation}" if each.conversation else f"held ({each.state})"
            screen.line(f"  {each.entry.record.conversation}: {where}: {one_line(each.why)}")
    if report.stopped is not None:
        screen.line(f"The rest stays in the spool: {one_line(str(report.stopped))}")
    return PROBLEMS if left or report.stopped else OK


def _brought(each: Brought) -> dict[str, Any]:
    record = each.entry.record
    return {
        "state": each.state, "into": each.conversation, "why": each.why,
        "conversation": None if record is None else record.conversation,
        "messages": 0 if record is None else len(record.messages),
    }  # fmt: skip


@command.command("export")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@json_option
@click.pass_context
def export(ctx: click.Context, file: Path, force: bool, as_json: bool) -> None:
    """Write what is in the spool to a file, one message a line as JSON. It stays in the spool."""
    settings = settings_of(ctx)
    written = list(lines(e for spool in _spools(settings) for e in spool.contents().entries))

    def make(write: Write) -> None:
        for text in written:
            write(text.encode())

    save(file, force, make)
    if as_json:
        jsonout.write(settings.screen.stream, {"path": str(file), "messages": len(written)})
        return
    settings.screen.line(f"{home_short(file)}: {counted(len(written), 'message')}.")


@command.command("discard")
@click.argument("ids", metavar="ID...", nargs=-1)
@yes_option
@json_option
@click.pass_context
def discard(ctx: click.Context, ids: Sequence[str], yes: bool, as_json: bool) -> int:
    """Take messages out of the spool for good: those of the conversations named, or all.

    They were accepted and are nowhere else. You are asked.
    """
    settings = settings_of(ctx)
    can_ask(yes, "discard")
    spools = _spools(settings)
    chosen = list(_chosen(spools, ids))
    if ids and not chosen:
        raise NotFound("message in the spool of conversation", ", ".join(ids))
    count = sum(len(record.messages) for record in chosen)
    if count and not agreed(f"Discard {counted(count, 'message')}? They are nowhere else.", yes):
        return PROBLEMS
    gone = sum(spool.remove(lambda record: _is_named(record, ids)) for spool in spools)
    if as_json:
        jsonout.write(settings.screen.stream, {"discarded": gone})
    else:
        settings.screen.line(f"{counted(gone, 'message')} discarded.")
    return OK


def _chosen(spools: Sequence[Spool], ids: Sequence[str]) -> Iterator[Record]:
    for spool in spools:
        for entry in spool.contents().entries:
            if entry.record is not None and _is_named(entry.record, ids):
                yield entry.record


def _is_named(record: Record, ids: Sequence[str]) -> bool:
    return not ids or record.conversation in ids


def _spools(settings: Settings) -> list[Spool]:
    place = settings.place
    return spools_at(place if isinstance(place, Path) else None)
