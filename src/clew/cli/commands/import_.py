"""clew import."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from clew.cli import importing, jsonout
from clew.cli.failures import OK, PROBLEMS
from clew.cli.params import json_option, yes_option
from clew.cli.progress import progress
from clew.cli.registry import load
from clew.cli.settings import Settings, settings_of
from clew.importers.bring import bring, find
from clew.importers.run import Options
from clew.store.opening import open_parts
from clew.store.store import Store


@click.command("import")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--discover", is_flag=True, help="Look in the usual places under your home folder.")
@click.option(
    "--archive",
    is_flag=True,
    help="Bring them in archived: out of lists and searches.",
)
@click.option("--again", is_flag=True, help="Also what was deleted here after an earlier import.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--watch", is_flag=True, help="Then watch, and import what comes; Ctrl-C ends.")
@click.option("--no-index", is_flag=True, help="Leave the search index to the next search.")
@yes_option
@json_option
@click.pass_context
def command(ctx: click.Context, paths: tuple[str, ...], **given: Any) -> int:
    """Import other tools' conversations.

    PATH is a file, a folder or a ZIP archive as it was exported. The format is told by its
    content. Importing again adds only what is new.

    \b
    clew import ~/.claude/projects
    clew import chatgpt-export.zip --archive
    clew import --discover
    clew import --watch ~/.claude/projects
    """
    settings = settings_of(ctx)
    if given["discover"] and paths:
        ctx.fail("--discover looks for paths itself; give one or the other")
    if not (given["discover"] or paths):
        ctx.fail("there is nothing to import; give a path, or --discover")
    if given["watch"] and given["dry_run"]:
        ctx.fail("--watch stores what comes; leave out --dry-run")
    if given["watch"]:
        return _watch(settings, paths, given)
    if given["discover"]:
        paths = importing.discovered(settings, given["yes"], given["as_json"])
        if not paths:
            return OK
    sources, walk = find(paths)
    options = Options(archive=given["archive"], again=given["again"], dry_run=given["dry_run"])
    with _opened(settings, options.dry_run) as store:
        with progress(settings.notes, "Importing", "bytes") as report:
            meter = importing.Meter([source for source, _ in sources], report)
            done = bring(store.profile(settings.profile), sources, walk, options, meter)
        if done.totals.messages and not (options.dry_run or given["no_index"]):
            importing.index(settings, store)
    if given["as_json"]:
        jsonout.write(settings.screen.stream, done)
    else:
        importing.describe(settings, done, options)
    return PROBLEMS if done.totals.failed or done.failed or not done.sources else OK


def _watch(settings: Settings, paths: tuple[str, ...], given: dict[str, Any]) -> int:
    watching: Any = load("clew.cli.watching")
    wanted = None
    if given["discover"]:
        paths, wanted = watching.discovered(settings, given["yes"], given["as_json"])
        if not paths:
            return OK
    options = Options(archive=given["archive"], again=given["again"])
    with _opened(settings, dry_run=False) as store:
        return watching.follow(
            settings, store, paths, options, wanted=wanted, as_json=given["as_json"],
            index=not given["no_index"],
        )  # fmt: skip


@contextmanager
def _opened(settings: Settings, dry_run: bool) -> Generator[Store, None, None]:
    """The store, made if there is none: an import is how most begin. A dry run makes none."""
    place = settings.place
    if dry_run and isinstance(place, Path) and not place.exists():
        with (
            tempfile.TemporaryDirectory() as folder,
            Store(open_parts(Path(folder) / "clew.db", None, None, None)) as store,
        ):
            yield store
        return
    with Store(open_parts(settings.store, None, None, None)) as store:
        yield store
