"""The start of a command that is left running: `clew.startup`, with what the command line knows."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from clew import startup
from clew.cli.settings import Settings
from clew.config.place import home

DUMP = "start-hung.txt"
"""In CLEW_HOME: where all threads stood when a start hung."""


@contextmanager
def starting(settings: Settings, *, quiet: bool = False) -> Generator[None, None, None]:
    """Around all that the command does: it begins with a start, which `startup.ready` ends.
    `quiet`: nothing is told of a slow one, because a screen is drawn, or because a machine reads.
    """
    notes = settings.notes

    def tell(phase: str) -> None:
        notes.line((f"{phase} …" if notes.unicode else f"{phase} ...", "dim"))

    watched = not quiet and sys.stderr.isatty()
    startup.arm(str(home() / DUMP), tell if watched else None)
    try:
        yield
    finally:
        startup.ending()
