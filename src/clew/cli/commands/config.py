"""clew config: what is configured, and keys in the keyring."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from clew.cli import jsonout
from clew.cli.config_edit import edit as run_editor
from clew.cli.config_edit import editor, ensure
from clew.cli.config_rows import KeyRow, Row, key_rows, rows
from clew.cli.failures import PROBLEMS
from clew.cli.params import json_option
from clew.cli.screen import Column
from clew.cli.settings import Settings, home_short, settings_of
from clew.cli.text import one_line
from clew.config.known import KNOWN
from clew.config.loading import Loaded, load
from clew.config.nearest import meant
from clew.config.place import config_path
from clew.config.problems import ConfigError, Fault, Origin
from clew.config.references import unset
from clew.config.secrets import held, remove, store
from clew.config.shape import dotted
from clew.config.values import Config, ProviderConfig
from clew.store.findings import counted


@click.group("config")
def command() -> None:
    """Show, check and edit the configuration.

    It is one file, config.toml, and the environment over it; a mcp.json beside it is read, too.
    """


@command.command("show")
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show each value and where it comes from."""
    settings, loaded = settings_of(ctx), load()
    found = [*_places(settings, loaded), *(r for r in rows(loaded) if r.key not in PLACES)]
    keys = key_rows(loaded.config, os.environ)
    if as_json:
        jsonout.write(settings.screen.stream, {
            **_file(loaded), "values": [_row_fields(row) for row in found],
            "keys": [_key_fields(row) for row in keys],
            "notes": [_fault_fields(note) for note in loaded.notes],
        })  # fmt: skip
        return
    screen, none = settings.screen, "" if loaded.exists else " (not there: `clew config edit`)"
    screen.line((f"{home_short(loaded.path)}{none}", "dim"))
    columns = [Column("KEY"), Column("VALUE", flexible=True), Column("FROM", "dim")]
    screen.table(columns, [[one_line(r.key), _text(r.value), _from(r.origin)] for r in found])
    if keys:
        screen.line()
        columns = [Column("PROVIDER"), Column("KEY", flexible=True)]
        screen.table(columns, [[one_line(row.provider), row.held.shown] for row in keys])
    _print_notes(settings, loaded.notes)


PLACES = ("store", "profile")


def _places(settings: Settings, loaded: Loaded) -> Iterable[Row]:
    """As the commands use them: an option is over all."""
    options = {"store": settings.store, "profile": settings.chosen_profile}
    values = {"store": settings.where, "profile": settings.profile}
    for name in PLACES:
        given = options[name] is not None
        yield Row(name, values[name], Origin(f"--{name}") if given else loaded.origin(name))


def _text(value: Any) -> str:
    return "" if value is None else one_line(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return jsonout.dumps(value)


def _from(origin: Origin | None) -> str:
    return "default" if origin is None else one_line(home_short(origin.shown))


def _row_fields(row: Row) -> dict[str, Any]:
    origin = row.origin
    if origin is None:
        return {"key": row.key, "value": row.value, "from": "default"}
    if origin.name.startswith("--"):
        where: dict[str, Any] = {"from": "option", "option": origin.name}
    elif origin.is_variable:
        where = {"from": "environment", "variable": origin.name}
    else:
        where = {"from": "file", "file": origin.name, "line": origin.line}
    return {"key": row.key, "value": row.value, **where}


def _key_fields(row: KeyRow) -> dict[str, Any]:
    return {"provider": row.provider, "key": row.held.state, "variable": row.held.variable}


def _file(loaded: Loaded) -> dict[str, Any]:
    mcp = None if loaded.mcp is None else str(loaded.mcp)
    return {"path": str(loaded.path), "exists": loaded.exists, "mcp": mcp}


@command.command("path")
@click.pass_context
def path(ctx: click.Context) -> None:
    """Print where the file is, whether it is there or not."""
    settings_of(ctx).screen.stream.write(f"{one_line(str(config_path()))}\n")


@command.command("check")
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> int:
    """Say all that is wrong with the configuration.

    Exits with 1 when something is. No provider is asked.
    """
    settings, found = settings_of(ctx), _checked()
    problems = found.problems if isinstance(found, ConfigError) else ()
    notes = () if isinstance(found, ConfigError) else (*found.notes, *_missing(found))
    if as_json:
        jsonout.write(settings.screen.stream, {
            "ok": not problems, "path": str(config_path()),
            "problems": [_fault_fields(each) for each in problems],
            "notes": [_fault_fields(each) for each in notes],
        })  # fmt: skip
    else:
        _print_problems(settings, problems)
        _print_notes(settings, notes)
    return PROBLEMS if problems else 0


def _checked() -> Loaded | ConfigError:
    try:
        return load()
    except ConfigError as error:
        return error


def _missing(loaded: Loaded) -> Iterable[Fault]:
    """Keys and variables that are not here: harmless where others have them."""
    for key, variable in unset(loaded.config, os.environ):
        where = loaded.origin(*key) or Origin(str(loaded.path))
        yield Fault(where, dotted(key), f"{variable} is not set in the environment")
    for row in key_rows(loaded.config, os.environ):
        if row.held.state == "missing":
            origin = loaded.origin("providers", row.provider) or loaded.origin("model")
            where = origin or Origin(str(loaded.path))
            yield Fault(where, f"providers.{row.provider}", f"its key is {row.held.shown}")


def _print_problems(settings: Settings, problems: Iterable[Fault]) -> None:
    screen, listed = settings.screen, list(problems)
    for each in listed:
        screen.line(one_line(home_short(each.shown)))
    where = home_short(config_path())
    if listed:
        screen.line((counted(len(listed), "problem"), "red"))
    else:
        there = "" if config_path().exists() else " is not there;"
        screen.line(f"{one_line(where)}:{there} no problems")


def _print_notes(settings: Settings, notes: Iterable[Fault]) -> None:
    for note in notes:
        settings.screen.line((f"note: {one_line(home_short(note.shown))}", "dim"))


def _fault_fields(fault: Fault) -> dict[str, Any]:
    at = fault.origin
    return {
        "file": None if at.is_variable else at.name, "line": at.line, "column": at.column,
        "variable": at.name if at.is_variable else None, "key": fault.key, "text": fault.text,
    }  # fmt: skip


@command.command("edit")
@click.pass_context
def edit(ctx: click.Context) -> int:
    """Open the file in your editor, and check it afterwards.

    The editor is VISUAL or EDITOR. A file that is not there is made, with everything in comments.
    """
    settings, program, where = settings_of(ctx), editor(os.environ), config_path()
    if ensure(where):
        settings.notes.line(f"Made {home_short(where)}.")
    while True:
        run_editor(program, where)
        found = _checked()
        if not isinstance(found, ConfigError):
            _print_problems(settings, ())
            _print_notes(settings, found.notes)
            return 0
        _print_problems(settings, found.problems)
        if not sys.stdin.isatty() or not click.confirm("Edit again?", default=True, err=True):
            return PROBLEMS


@command.command("key")
@click.argument("provider")
@click.option("--remove", "removing", is_flag=True, help="Take the key out of the keyring.")
@click.pass_context
def key(ctx: click.Context, provider: str, removing: bool) -> None:
    """Put the key of PROVIDER into the system's keyring.

    It is asked for and not shown; in a pipe it is the first line.
    """
    notes = settings_of(ctx).notes
    if removing:
        gone = remove(provider)
        notes.line("Removed." if gone else f"The keyring has no key of {one_line(provider)}.")
        return
    section = _section(provider)
    store(provider, _ask(provider))
    notes.line(f"The keyring has the key of {provider}.")
    where = held(provider, section)
    if where.state == "environment":
        notes.line(f"{where.variable} is set, and comes first.")


def _ask(provider: str) -> str:
    if sys.stdin.isatty():
        given: str = click.prompt(f"Key of {provider}", hide_input=True, err=True)
        return given
    return sys.stdin.readline()


def _section(provider: str) -> ProviderConfig:
    """Of a provider that there is, also in a file that has faults elsewhere."""
    found = _checked()
    config = Config() if isinstance(found, ConfigError) else found.config
    if provider in config.providers:
        return config.providers[provider]
    if provider in KNOWN:
        return ProviderConfig(kind=KNOWN[provider].kind, base_url=KNOWN[provider].base_url)
    known = [*config.providers, *(name for name, each in KNOWN.items() if each.keys)]
    hint = meant(provider, known)
    raise click.UsageError(f"there is no such provider; {hint}; [providers.NAME] makes another")
