"""clew verify."""

from __future__ import annotations

import click

from clew.cli import jsonout
from clew.cli.failures import OK, PROBLEMS
from clew.cli.opening import open_existing
from clew.cli.params import json_option
from clew.cli.progress import progress
from clew.cli.settings import settings_of
from clew.cli.text import one_line, short_id
from clew.store.findings import counted


@click.command("verify")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Check every invariant of the store.

    Reads every message of every profile. Exits with 1 when something does not hold.
    """
    settings = settings_of(ctx)
    with open_existing(settings) as store, progress(settings.notes, "Verifying") as report:
        problems = store.verify(report)
    screen = settings.screen
    if as_json:
        jsonout.write_list(screen.stream, problems)
    elif not problems:
        screen.line((screen.sign("✓", "ok"), "green"), " Every invariant holds.")
    else:
        for problem in problems:
            where = short_id(problem.conversation) if problem.conversation else "store"
            screen.line(
                (problem.invariant, "bold red"), "  ", (where, "yellow"),
                f"  {one_line(problem.detail)}",
            )  # fmt: skip
        settings.notes.line(
            f"{counted(len(problems), 'problem')} found. Run clew doctor, and take a copy of the "
            f"store before anything else; docs/invariants.md says what each number means."
        )
    return PROBLEMS if problems else OK
