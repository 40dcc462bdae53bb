"""clew demo."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import monotonic

import click

from clew.cli import jsonout
from clew.cli.demo.crash import Killed
from clew.cli.demo.steps import Checked, Listed, Searched, Step, fill, steps, went_well
from clew.cli.demo.telling import HOW, Teller, proposals
from clew.cli.failures import OK, PROBLEMS
from clew.cli.params import json_option
from clew.cli.settings import Settings, settings_of
from clew.importers.bring import Imported


@click.command("demo")
@click.option("--remove", is_flag=True, help="Remove the scratch folder at the end.")
@json_option
@click.pass_context
def command(ctx: click.Context, remove: bool, as_json: bool) -> int:
    """Show what clew does, in a scratch folder.

    Imports conversations that come with clew, lists and searches them, kills a process while it
    writes, and looks whether all that was acknowledged is there. Touches nothing outside the
    folder, which stays so that you can try more. Exits with 1 when something is gone.
    """
    settings = settings_of(ctx)
    if settings.store is not None:
        ctx.fail("clew demo makes a store of its own; leave out --store")
    folder = Path(tempfile.mkdtemp(prefix="clew-demo-"))
    settings.store = str(folder / "clew.db")
    try:
        done, well = _run(settings, folder, None if as_json else Teller(settings), remove)
    finally:
        if remove:
            shutil.rmtree(folder)
    if as_json:
        _write(settings, folder, done, well, remove)
    return OK if well else PROBLEMS


def _run(
    settings: Settings, folder: Path, teller: Teller | None, remove: bool
) -> tuple[list[Step], bool]:
    """Do all steps, and say each as it is done; gives them and whether all went well."""
    began, done = monotonic(), list[Step]()
    if teller is not None:
        teller.begun(folder)
        settings.screen.stream.flush()
    for step in steps(fill(folder), settings.profile):
        done.append(step)
        if teller is not None:
            teller.did(step)
            settings.screen.stream.flush()
    well = went_well(done)
    if teller is not None:
        teller.ended(well, monotonic() - began)
        if not remove:
            teller.proposed(proposals(settings, done), folder)
    return done, well


def _write(settings: Settings, folder: Path, done: list[Step], well: bool, remove: bool) -> None:
    """The same as one object."""
    said: dict[str, object] = {
        "folder": str(folder), "removed": remove, "store": settings.store, "ok": well,
        "searches": [step for step in done if isinstance(step, Searched)],
        "next": [] if remove else proposals(settings, done),
    }  # fmt: skip
    for step in done:
        said |= _fields(step)
    jsonout.write(settings.screen.stream, said)


def _fields(step: Step) -> dict[str, object]:
    match step:
        case Imported(totals=totals):
            return {"imported": totals}
        case Listed(conversations=found):
            return {"conversations": found}
        case Searched():
            return {}
        case Killed():
            return {
                "writer": {
                    "pid": step.pid, "killed_with": HOW, "ended_itself": step.ended_itself,
                    "seconds": step.seconds, "acknowledged": step.acks,
                }
            }  # fmt: skip
        case Checked():
            return {"after": step}
