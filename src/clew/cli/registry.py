"""All commands by name, and the group that loads them: only the module of the one called for.

Nothing else is imported by name, so what `clew list` costs is what it needs.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, cast

import click

from clew.cli.settings import settings_of

TALK, READ, TRANSFER, CHANGE, KEEP, OTHER = (
    "Talk", "Read", "In and out", "Change", "Keep", "Other"
)  # fmt: skip


class Entry(NamedTuple):
    """Where a command is. `module` lies in clew.cli.commands; `summary` is its first line."""

    section: str
    module: str
    summary: str
    attribute: str = "command"


COMMANDS = {
    "chat": Entry(TALK, "chat", "Talk with a model, in a conversation that is kept."),
    "ask": Entry(TALK, "ask", "Ask one question and print the answer, for scripts."),
    "list": Entry(READ, "list", "List conversations, newest activity first."),
    "show": Entry(READ, "show", "Show a conversation."),
    "search": Entry(READ, "search", "Find messages by their words."),
    "context": Entry(READ, "context", "Show what a model would see."),
    "compactions": Entry(READ, "compactions", "Show the receipts of a conversation's compactions."),
    "resume": Entry(READ, "resume", "Say how to go on with a conversation."),
    "stats": Entry(READ, "stats", "Count what a profile holds."),
    "usage": Entry(READ, "usage", "Show tokens, cost and cache hits of model calls."),
    "profiles": Entry(READ, "stats", "List the profiles of the store.", "profiles"),
    "import": Entry(TRANSFER, "import_", "Import other tools' conversations."),
    "export": Entry(
        TRANSFER, "export", "Write conversations to files, for clew, other tools and people."
    ),
    "rename": Entry(CHANGE, "label", "Give a conversation a title.", "rename"),
    "pin": Entry(CHANGE, "label", "Keep conversations on top of the list.", "pin"),
    "unpin": Entry(CHANGE, "label", "Take a pin off again.", "unpin"),
    "archive": Entry(CHANGE, "label", "Take conversations out of the list.", "archive"),
    "unarchive": Entry(CHANGE, "label", "Put archived conversations back.", "unarchive"),
    "branch": Entry(CHANGE, "branch", "Go on from an earlier message in a new conversation."),
    "cut": Entry(CHANGE, "cut", "Hide a message and all after it (rewind).", "cut"),
    "undo": Entry(CHANGE, "cut", "Undo the newest cut.", "undo"),
    "compact": Entry(CHANGE, "compact", "Compact a conversation, for the model only."),
    "delete": Entry(CHANGE, "delete", "Delete conversations."),
    "bin": Entry(CHANGE, "bin", "Show, restore or delete what is in the bin."),
    "erase": Entry(CHANGE, "erase", "Erase messages, or everything of a person, and prove it."),
    "prune": Entry(KEEP, "prune", "Close and delete what the retention policy names."),
    "backup": Entry(KEEP, "backup", "Copy the store while it is in use.", "backup"),
    "restore": Entry(KEEP, "backup", "Put a backup in the place of the store.", "restore"),
    "copy": Entry(KEEP, "copy", "Copy or move a store between files and servers."),
    "migrate": Entry(KEEP, "migrate", "Bring the store up to date, or make one."),
    "verify": Entry(KEEP, "verify", "Check every invariant of the store."),
    "spool": Entry(
        KEEP, "spool", "Show, bring in, export or discard messages that the store could not take."
    ),
    "repair": Entry(KEEP, "repair", "Save what is left of a damaged store."),
    "doctor": Entry(KEEP, "doctor", "Say what is wrong with the store and what to do."),
    "config": Entry(OTHER, "config", "Show, check and edit the configuration."),
    "demo": Entry(OTHER, "demo", "Show what clew does, in a scratch folder."),
    "completion": Entry(OTHER, "completion", "Complete commands and ids in your shell."),
}

PROGRESS = "clew.cli.progress"
STYLED = "clew.cli.styled"
CANDIDATES = "clew.cli.candidates"
EMPTY = "clew.cli.empty"
VERSION = "clew.cli.version"
HOSTING = "clew.cli.hosting"


def load(module: str) -> ModuleType:
    """A module that only some invocations need."""
    return import_module(module)


def global_options(hidden: bool) -> list[click.Parameter]:
    """The options that stand before or after any command."""
    return [
        click.Option(
            ["--store"], metavar="PATH|URL", hidden=hidden, expose_value=False, callback=_set_store,
            help="The store to use: a file, or postgresql://user@host/database. "
            "[CLEW_STORE, or clew.db in CLEW_HOME, or ~/.clew/clew.db]",
        ),
        click.Option(
            ["--profile"], metavar="NAME", hidden=hidden, expose_value=False,
            callback=_set_profile, help="The profile to use. [CLEW_PROFILE, or default]",
        ),
        click.Option(
            ["--no-color"], is_flag=True, hidden=hidden, expose_value=False, callback=_set_color,
            help="No colours; NO_COLOR in the environment does the same.",
        ),
    ]  # fmt: skip


def _set_store(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        settings_of(ctx).store = value


def _set_profile(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        settings_of(ctx).chosen_profile = value


def _set_color(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        settings_of(ctx).no_color = True


class Commands(click.Group):
    """A group whose commands are the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        known = self.commands.get(cmd_name)
        if known is None:
            module: Any = load(f"clew.cli.commands.{entry.module}")
            known = cast(click.Command, getattr(module, entry.attribute))
            known.params.extend(global_options(hidden=True))
            self.commands[cmd_name] = known
        return known

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            if "://" in name:
                ctx.fail("a store is no command; --store URL names one, and so does CLEW_STORE")
            near = [known for known in COMMANDS if _near(known, name)]
            hint = f"did you mean {' or '.join(near)}?" if near else "`clew --help` lists them"
            ctx.fail(f"there is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in (TALK, READ, TRANSFER, CHANGE, KEEP, OTHER):
            rows = [(n, e.summary) for n, e in COMMANDS.items() if e.section == section]
            with formatter.section(section):
                formatter.write_dl(rows)


def _near(known: str, typed: str) -> bool:
    """The same beginning, or the same letters with one more, less or swapped."""
    return known[:2] == typed[:2] or len(set(known) ^ set(typed)) <= 1
