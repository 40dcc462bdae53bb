"""clew delete."""

from __future__ import annotations

from collections.abc import Sequence

import click

from clew.cli.asking import agreed, can_ask
from clew.cli.failures import OK, PROBLEMS
from clew.cli.heading import title_of
from clew.cli.opening import open_profile
from clew.cli.params import ids_argument, yes_option
from clew.cli.settings import settings_of
from clew.cli.text import short_id
from clew.store.findings import counted


@click.command("delete")
@ids_argument
@yes_option
@click.pass_context
def command(ctx: click.Context, ids: Sequence[str], yes: bool) -> int:
    """Delete conversations.

    Asks first. Branches keep all that they show. This cannot be undone; archiving can.
    """
    can_ask(yes, "delete")
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        found = {c.id: c.info() for c in (profile.resolve(id) for id in ids)}
        if not yes:
            for info in found.values():
                settings.notes.line(
                    "  ", (short_id(info.id), "yellow"), f"  {title_of(info)}",
                    (f"  {counted(info.message_count, 'message')}", "dim"),
                )  # fmt: skip
        question = f"Delete {counted(len(found), 'conversation')} for good?"
        if not agreed(question, yes):
            return PROBLEMS
        for id, info in found.items():
            profile.delete(id)
            settings.screen.line("Deleted ", (short_id(id), "yellow"), f"  {title_of(info)}")
    return OK
