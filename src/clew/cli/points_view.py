"""Incremental backups on the command line."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from clew.cli import jsonout
from clew.cli.progress import progress
from clew.cli.settings import Settings, home_short
from clew.cli.times import moment
from clew.errors import InputError
from clew.store import backup_chain
from clew.store.backup_chain import Point
from clew.store.findings import counted, size_text


def add(settings: Settings, store: Path, folder: Path, keep: int | None, as_json: bool) -> None:
    """Make a point."""
    with progress(settings.notes, "Backing up") as report:
        point = backup_chain.backup_point(store, folder, keep, report)
    if as_json:
        jsonout.write(settings.screen.stream, _fields(folder, point))
        return
    settings.screen.line(
        (settings.screen.sign("✓", "ok"), "green"),
        f" {home_short(folder)}@{point.id}, {size_text(point.added)} new of "
        f"{size_text(point.size)}, read back and complete.",
    )


def show_all(settings: Settings, folder: Path, as_json: bool) -> None:
    """List the points, oldest first."""
    points = backup_chain.points(folder)
    if as_json:
        jsonout.write_list(settings.screen.stream, [_fields(folder, point) for point in points])
        return
    for point in points:
        settings.screen.line(
            (point.id, "bold"), f"  {moment(point.created_at)}  {size_text(point.size)}, "
            f"{counted(point.conversations, 'conversation')}, "
            f"{counted(point.messages, 'message')}, {size_text(point.added)} new",
        )  # fmt: skip
    if not points:
        settings.notes.line("No point yet; `clew backup --incremental` makes one.")


def test(settings: Settings, dest: Path, as_json: bool) -> None:
    """Restore a point into a scratch place and verify it."""
    folder, point = _named(dest)
    with progress(settings.notes, "Testing") as report:
        backup_chain.rehearse(folder, point, report)
    if as_json:
        jsonout.write(settings.screen.stream, _fields(folder, point))
        return
    settings.screen.line(
        (settings.screen.sign("✓", "ok"), "green"),
        f" {home_short(folder)}@{point.id} was restored into a scratch place; every invariant "
        f"holds.",
    )


@contextmanager
def source(settings: Settings, store: Path, src: Path) -> Generator[Path, None, None]:
    """The file to restore: `src`, or the point that it names, rebuilt beside the store."""
    if src.is_file() or (backup_chain.parse_place(src) is None and not src.is_dir()):
        yield src
        return
    folder, point = _named(src)
    name = store.with_name(f"{store.name}.restore-{os.urandom(4).hex()}")
    with backup_chain.scratch(name) as file:
        with progress(settings.notes, "Rebuilding") as report:
            backup_chain.extract(folder, point, file, report)
        yield file


def _named(text: Path) -> tuple[Path, Point]:
    found = backup_chain.parse_place(text)
    if found is None:
        raise InputError(
            f"{text} holds no incremental backups; give FOLDER or FOLDER@POINT, or a backup file"
        )
    return found[0], backup_chain.find(*found)


def _fields(folder: Path, point: Point) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(point)
    return {"folder": str(folder), **fields}
