"""clew migrate."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from clew.cli import jsonout
from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.params import json_option, yes_option
from clew.cli.settings import Settings, settings_of
from clew.errors import InputError
from clew.store.findings import counted
from clew.store.migrations import Progress
from clew.store.upgrading import State, upgrade_of


@click.command("migrate")
@click.option(
    "--partitions",
    metavar="N",
    type=click.IntRange(min=1),
    help="PostgreSQL, when the store is made: message and blob in so many partitions.",
)
@click.option(
    "--restored",
    is_flag=True,
    help="PostgreSQL: the store was restored from a dump into another server.",
)
@click.option(
    "--check", is_flag=True, help="Only say what would be done; exits with 1 if anything."
)
@click.option(
    "--wal", is_flag=True, help="A file: back into WAL mode, if another program has changed that."
)
@yes_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, partitions: int | None, restored: bool, check: bool, wal: bool,
    yes: bool, as_json: bool,
) -> int:  # fmt: skip
    """Bring the store up to date, or make one.

    On PostgreSQL as the owner of the tables. Opening a store does what older hosts do not notice;
    this does all of it, and asks before what stops them. Several at once do no harm.
    """
    settings = settings_of(ctx)
    if wal:
        return _to_wal(settings, as_json)
    upgrade = upgrade_of(settings.place)
    before = upgrade.state()
    if check:
        return _check(settings, before, as_json)
    _refuse(before, partitions, restored)
    if before.breaks:
        can_ask(yes, "migrate")
        _warn(settings, before.breaks)
        if not agreed("Apply them?", yes):
            return PROBLEMS
    schema = upgrade.apply(partitions or 0, _telling(settings, before, as_json))
    if restored:
        upgrade.restored()
    if as_json:
        jsonout.write(settings.screen.stream, {
            "store": settings.where, "before": before.schema, "schema": schema,
            "applied": [step.name for step in before.pending], "restored": restored,
        })  # fmt: skip
    else:
        _say(settings, before, schema, restored)
    return OK


def _to_wal(settings: Settings, as_json: bool) -> int:
    if not isinstance(settings.place, Path):
        raise InputError("--wal is for a store in a file; this one is on a server")
    changed = import_module("clew.store.sqlite_wal").to_wal(settings.place)
    if as_json:
        jsonout.write(settings.screen.stream, {"store": settings.where, "changed": changed})
    else:
        what = "is in WAL mode again" if changed else "is in WAL mode; nothing to do"
        settings.screen.line(f"{settings.where} {what}.")
    return OK


def _refuse(before: State, partitions: int | None, restored: bool) -> None:
    """What does not go together with what is there, before anything is done."""
    if partitions and before.schema:
        raise InputError(
            "partitions are chosen when a store is made, and this one is there already; `clew "
            "copy` it into one that has them"
        )
    if restored and not before.schema:
        raise InputError("there is no store in it; restore the dump first")
    if before.foreign and not restored:
        raise InputError(
            "the store comes from another server, by a dump; give --restored to have its numbers "
            "go on where they ended there"
        )


def _check(settings: Settings, before: State, as_json: bool) -> int:
    needed = bool(before.pending) or before.foreign
    if as_json:
        jsonout.write(settings.screen.stream, {
            "store": settings.where, "schema": before.schema,
            "pending": [step.name for step in before.pending], "breaks": before.breaks,
            "restored_needed": before.foreign,
        })  # fmt: skip
        return PROBLEMS if needed else OK
    line = settings.screen.line
    if not before.schema:
        line(f"There is no store yet in {settings.where}; `clew migrate` makes it.")
    elif not needed:
        line(f"{settings.where}: schema {before.schema}, up to date.")
    else:
        line(f"{settings.where}: schema {before.schema}; to be done:")
    if before.schema:
        for step in before.pending:
            line(f"  {step.name}", ("  stops older hosts" if step.breaks else "", "yellow"))
        if before.foreign:
            line("  --restored: it comes from another server, by a dump")
    return PROBLEMS if needed else OK


def _telling(settings: Settings, before: State, as_json: bool) -> Progress | None:
    """Each step on standard error before it begins: one may take minutes, and says nothing."""
    if as_json or not before.schema:
        return None
    return lambda number, of, name: settings.notes.line(f"Step {number} of {of}: {name} …")


def _warn(settings: Settings, steps: Sequence[str]) -> None:
    settings.notes.line((
        f"{', '.join(steps)}: hosts of an older clew that still run stop at their next write with "
        f"SchemaTooNew, and lose nothing.",
        "yellow",
    ))  # fmt: skip


def _say(settings: Settings, before: State, schema: int, restored: bool) -> None:
    screen = settings.screen
    if not before.schema:
        what = f"a new store, schema {schema}"
    elif before.pending:
        steps = counted(len(before.pending), "step")
        what = f"from schema {before.schema} to {schema}, {steps}"
    else:
        what = f"up to date, schema {schema}"
    screen.line((screen.sign("✓", "ok"), "green"), f" {settings.where}: {what}.")
    if restored:
        screen.line("  Its numbers go on where they ended on the other server.")
