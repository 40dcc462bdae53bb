"""clew backup and clew restore."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli import jsonout, points_view, scheduled_view
from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.params import json_option, yes_option
from clew.cli.progress import progress
from clew.cli.settings import Settings, home_short, settings_of
from clew.cli.times import moment
from clew.store.backup import Restoration
from clew.store.backup import backup as copy_store
from clew.store.engines import NoStore
from clew.store.findings import counted, size_text

BACKUP_INSTEAD = (
    "use the server's tools (pg_dump, pg_basebackup, point-in-time recovery), or `clew copy` for a "
    "copy in a file: docs/operating/scale.md"
)
RESTORE_INSTEAD = (
    "restore it with the server's tools, then `clew migrate --restored` where that was a dump, or "
    "`clew copy` a file into an empty database: docs/operating/scale.md"
)


@click.command("backup")
@click.argument("dest", metavar="DEST", required=False, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace DEST if it is there.")
@click.option(
    "--incremental", is_flag=True, help="DEST is a folder: add a point to it, of what is new."
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --incremental: the newest N points stay, older ones go.",
)
@click.option("--list", "listed", is_flag=True, help="List the points in the folder DEST.")
@click.option(
    "--test",
    "tested",
    is_flag=True,
    help="Restore a point (DEST or DEST@POINT) into a scratch place and verify it.",
)
@click.option(
    "--scheduled",
    is_flag=True,
    help="For a timer: what [backup] of the configuration says, if it is due.",
)
@json_option
@click.pass_context
def backup(
    ctx: click.Context, dest: Path | None, force: bool, incremental: bool, keep: int | None,
    listed: bool, tested: bool, scheduled: bool, as_json: bool,
) -> None:  # fmt: skip
    """Copy the store while it is in use.

    Others may read and write meanwhile. The copy is one moment of the store, is read back before
    it gets its name, and can be read by you only. For stores in files; a database of a server has
    the tools of the server.
    """
    settings = settings_of(ctx)
    if incremental + listed + tested + scheduled > 1:
        raise click.UsageError(
            "--incremental, --list, --test and --scheduled are four things; give one"
        )
    if keep is not None and not incremental:
        raise click.UsageError("--keep is for --incremental")
    if scheduled:
        if dest is not None or force:
            raise click.UsageError("--scheduled takes its folder from the configuration alone")
        scheduled_view.run(settings, as_json)
        return
    if dest is None:
        raise click.UsageError("give DEST, where to; or --scheduled")
    if listed:
        points_view.show_all(settings, dest, as_json)
        return
    if tested:
        points_view.test(settings, dest, as_json)
        return
    store = settings.file(BACKUP_INSTEAD)
    if not store.exists():
        raise NoStore(f"there is no store at {home_short(store)}; --store PATH names one")
    if incremental:
        points_view.add(settings, store, dest, keep, as_json)
        return
    _whole(settings, store, dest, force, as_json)


def _whole(settings: Settings, store: Path, dest: Path, force: bool, as_json: bool) -> None:
    """A copy in one file."""
    if dest.exists() and not force:
        raise click.UsageError(
            f"{dest} exists already; give another name, or --force to replace it"
        )
    with progress(settings.notes, "Copying") as report:
        made = copy_store(store, dest, force=force, progress=report)
    size = made.stat().st_size
    if as_json:
        jsonout.write(settings.screen.stream, {"path": str(made), "bytes": size})
        return
    settings.screen.line(
        (settings.screen.sign("✓", "ok"), "green"),
        f" {home_short(made)}, {size_text(size)}, read back and complete.",
    )


@click.command("restore")
@click.argument("src", metavar="SRC", type=click.Path(path_type=Path))
@yes_option
@json_option
@click.pass_context
def restore(ctx: click.Context, src: Path, yes: bool, as_json: bool) -> int:
    """Put a backup in the place of the store.

    SRC is a file, or a folder of incremental backups (FOLDER: its newest point; FOLDER@POINT). It
    is verified before anything is touched, then you are asked. What is there now is kept as a
    file beside the store. Other processes may have the store open: they stop at their next write
    and must open it again.
    """
    settings = settings_of(ctx)
    store = settings.file(RESTORE_INSTEAD)
    can_ask(yes, "restore")
    with points_view.source(settings, store, src) as file:
        with progress(settings.notes, "Verifying") as report:
            ready = Restoration(store, file, report)
        with ready:
            return _apply(settings, ready, src, yes, as_json)


def _apply(
    settings: Settings, ready: Restoration, src: Path, yes: bool, as_json: bool
) -> int:  # fmt: skip
    store = ready.path
    if not yes:
        _describe(settings, store, src, ready)
    if not agreed(f"Restore into {home_short(store)}?", yes):
        return PROBLEMS
    with progress(settings.notes, "Restoring") as report:
        done = ready.apply(report)
    if as_json:
        jsonout.write(settings.screen.stream, {
            "path": str(done.path), "kept": None if done.kept is None else str(done.kept),
            "conversations": done.conversations, "messages": done.messages,
        })  # fmt: skip
        return OK
    screen = settings.screen
    held = f"{counted(done.conversations, 'conversation')}, {counted(done.messages, 'message')}"
    screen.line((screen.sign("✓", "ok"), "green"), f" {home_short(done.path)} restored: {held}.")
    if done.kept is not None:
        screen.line((f"  What was there is kept as {home_short(done.kept)}", "dim"))
    return OK


def _describe(settings: Settings, store: Path, src: Path, ready: Restoration) -> None:
    held = ready.contents
    newest = "" if held.active_at is None else f", the newest of {moment(held.active_at)}"
    what = f"{counted(held.conversations, 'conversation')}, {counted(held.messages, 'message')}"
    settings.notes.line(f"{home_short(src)} is in order: {what}{newest}.")
    if store.exists():
        settings.notes.line("The store that is there now is kept as a file beside it.")
