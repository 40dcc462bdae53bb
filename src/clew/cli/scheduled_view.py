"""`clew backup --scheduled`: what a timer calls."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.cli import jsonout
from clew.cli.opening import open_existing
from clew.cli.progress import progress
from clew.cli.settings import Settings, home_short
from clew.config import load
from clew.errors import InputError
from clew.store.findings import size_text
from clew.store.scheduled import Made, run_for, schedule_of

INSTEAD = (
    "[backup] does not back it up; use the server's tools (pg_dump, point-in-time recovery): "
    "docs/operating/scale.md"
)


def run(settings: Settings, as_json: bool) -> None:
    """Back up and test, if it is due."""
    settings.file(INSTEAD)
    loaded = load()
    schedule = schedule_of(loaded.config.backup)
    if schedule is None:
        raise InputError(
            f"{home_short(loaded.path)} names no `folder` in [backup]; `clew config edit` adds it"
        )
    with open_existing(settings) as store, progress(settings.notes, "Backing up") as report:
        made = run_for(store, schedule, report)
    if as_json:
        jsonout.write(settings.screen.stream, _fields(made))
    elif made is None:
        settings.screen.line("No backup is due, or another process is making it.")
    else:
        settings.screen.line(
            (settings.screen.sign("✓", "ok"), "green"),
            f" {home_short(made.folder)}@{made.point.id}, {size_text(made.point.added)} new of "
            f"{size_text(made.point.size)}, restored and verified.",
        )


def _fields(made: Made | None) -> dict[str, Any]:
    if made is None:
        return {"made": False}
    fields: dict[str, Any] = msgspec.to_builtins(made.point)
    return {"made": True, "folder": str(made.folder), **fields}
