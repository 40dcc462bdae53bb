"""A progress bar on standard error; nothing where that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from clew.cli.screen import Screen

Report = Callable[[int, int], None]
"""Called with (done, of)."""


@contextmanager
def progress(
    notes: Screen, label: str, unit: Literal["items", "bytes"] = "items"
) -> Generator[Report, None, None]:
    """A bar for the time of the block; it is gone afterwards."""
    if not notes.is_terminal:
        yield lambda done, total: None
        return
    console = Console(
        file=notes.stream,
        no_color=not notes.color,
        color_system="standard" if notes.color else None,
    )
    columns = (
        TextColumn("{task.description}"), BarColumn(40, complete_style="cyan"),
        DownloadColumn(binary_units=True) if unit == "bytes" else MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
