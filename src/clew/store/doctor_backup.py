"""What the doctor says of scheduled backups. Reads small files, and changes none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from clew.clock import SECOND
from clew.errors import InputError, StoreError
from clew.store.address import Address
from clew.store.backup_points import find, is_chain
from clew.store.findings import Finding
from clew.store.scheduled import SERVER, Result, Schedule, last

LATE = 2
"""Of `every`: a good backup that is older is too old."""
_RUN = "`clew backup --scheduled` tries again"
_HOST = "Let a running host or a timer make them (docs/operating/backup.md); " + _RUN


def look(store: Path | Address, schedule: Schedule | None, now: int) -> Iterator[Finding]:
    """Findings about the backups of a store; `now` in microseconds."""
    if isinstance(store, Address):
        what = f"the store {SERVER}"
        level = "ok" if schedule is None else "warn"
        yield Finding(level, "backup", what, code="backup.server")
    elif schedule is None:
        yield Finding(
            "ok", "backup", "none are scheduled",
            "`folder` of [backup] in the configuration makes and tests one each day",
            code="backup.none",
        )  # fmt: skip
    else:
        try:
            yield from _scheduled(schedule.place(store), schedule, now)
        except (OSError, StoreError) as error:
            yield Finding(
                "error", "backup", f"cannot look at {schedule.place(store)}: {error}",
                "Mount its disk, or mend its permissions", code="backup.unreadable",
            )  # fmt: skip


def _scheduled(place: Path, schedule: Schedule, now: int) -> Iterator[Finding]:
    folder = schedule.folder
    existing = folder if folder.exists() else folder.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(
            "error", "backup", f"no backup can be made: {existing} is no folder that takes files",
            "Mount its disk, mend its permissions, or change `folder` of [backup]",
            code="backup.folder",
        )  # fmt: skip
        return
    result = last(place)
    if result is None:
        foreign = place.exists() and not is_chain(place)
        yield Finding(
            "warn", "backup", f"{place} holds other files" if foreign else
            f"no scheduled backup has been made yet into {place}", _HOST, code="backup.missing",
        )  # fmt: skip
        return
    yield from _result(place, result, schedule.every, now)


def _result(place: Path, result: Result, every: int, now: int) -> Iterator[Finding]:
    good = "there is no good one" if result.good_at is None else (
        f"the last good one is {_age(now - result.good_at)} old: {place}@{result.good_point}"
    )  # fmt: skip
    if result.error is not None:
        yield Finding(
            "error", "backup", f"the last backup failed: {result.error}. And {good}",
            f"Mend what the message names; {_RUN}", code="backup.failed",
        )  # fmt: skip
    if result.good_at is None:
        return
    try:
        find(place, result.good_point)
    except InputError:
        yield Finding(
            "error", "backup", f"the last good backup is gone: {place}@{result.good_point}",
            f"`clew backup --list {place}` shows what is left; {_RUN}", code="backup.lost",
        )  # fmt: skip
        return
    if now - result.good_at > LATE * every:
        yield Finding("warn", "backup", good, _HOST, code="backup.old")
    elif result.error is None:
        yield Finding("ok", "backup", f"{good}, restored and verified", code="backup.good")


def _age(span: int) -> str:
    """A time for people."""
    minutes = max(0, span) // (60 * SECOND)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"
