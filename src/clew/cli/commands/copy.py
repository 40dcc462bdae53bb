"""clew copy."""

from __future__ import annotations

from contextlib import ExitStack

import click

from clew.cli import jsonout
from clew.cli.failures import OK, PROBLEMS
from clew.cli.params import json_option
from clew.cli.progress import Report, progress
from clew.cli.screen import Screen
from clew.cli.settings import Settings, home_short, settings_of
from clew.cli.text import one_line
from clew.store.copy import CopyReport, copy
from clew.store.findings import counted


@click.command("copy")
@click.argument("src", metavar="SRC")
@click.argument("dest", metavar="DEST")
@click.option("--move", is_flag=True, help="Then seal SRC: DEST is the store from now on.")
@json_option
@click.pass_context
def command(ctx: click.Context, src: str, dest: str, move: bool, as_json: bool) -> int:
    """Copy or move a store between files and servers.

    SRC and DEST are paths or postgresql:// URLs. DEST is empty, or an earlier or unfinished copy
    of SRC, which is brought up to date. Others may use SRC meanwhile. Both are compared row by row
    at the end, and every invariant is checked. What is interrupted goes on where it stopped.

    With --move SRC takes no writes for a moment at the end, and is sealed: whoever has it open, or
    opens it, is told that it is in DEST.

    \b
    clew copy agent.db postgresql://clew@db.example/agents
    clew copy --move agent.db postgresql://clew@db.example/agents
    clew copy postgresql://clew@db.example/agents today.db
    """
    settings = settings_of(ctx)
    bars = _Bars(settings.notes)
    try:
        with bars:
            report = copy(src, dest, move=move, progress=bars.tell)
    except KeyboardInterrupt:
        settings.notes.line("Interrupted. The same command again goes on where this one stopped.")
        raise
    if as_json:
        jsonout.write(settings.screen.stream, report)
    else:
        _describe(settings, report, move)
    return PROBLEMS if report.problems else OK


def _describe(settings: Settings, report: CopyReport, move: bool) -> None:
    screen, source, dest = settings.screen, home_short(report.source), home_short(report.dest)
    held = f"{counted(report.conversations, 'conversation')}, {counted(report.messages, 'message')}"
    new = "" if report.copied == report.messages else f" ({report.copied:,} of them new)"
    screen.line(
        (screen.sign("✓", "ok"), "green"), f" {dest}: {held}{new}. Compared with {source}: equal."
    )
    for problem in report.problems:
        where = problem.conversation or "store"
        screen.line((problem.invariant, "bold red"), f"  {where}  {one_line(problem.detail)}")
    if report.problems:
        said = f"{counted(len(report.problems), 'problem')} found, in {source} as in the copy."
        settings.notes.line(f"{said} It was not moved." if move else said)
    elif report.moved:
        screen.line(
            f"  {source} took no writes for {report.pause:.2f} s and is sealed: who opens it is "
            f"told to open {dest}."
        )


class _Bars:
    """One progress bar after another."""

    def __init__(self, notes: Screen) -> None:
        self._notes, self._what = notes, ""
        self._open = ExitStack()
        self._report: Report | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tell(self, what: str, done: int, of: int) -> None:
        """The progress of a copy."""
        if self._report is None or what != self._what:
            self._open.close()
            self._what = what
            self._report = self._open.enter_context(progress(self._notes, what))
        self._report(done, of)
