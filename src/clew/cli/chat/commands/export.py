"""/export: this conversation as a file."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from clew.cli.chat.api import Chat
from clew.cli.chat.commands.showing import first_word
from clew.cli.commands.export import CLEW, EXTENSIONS, HTML, TEXTS, version
from clew.cli.settings import home_short
from clew.cli.text import one_line
from clew.errors import InputError
from clew.exporters import clew_jsonl, html
from clew.exporters.saving import Write, file_name, save
from clew.exporters.transcript import transcript
from clew.store.aio.database import hop
from clew.store.aio.handles import blocking
from clew.store.findings import size_text

READABLE = "markdown"
SHORT = {"md": READABLE, "jsonl": CLEW}
HERE = "-"
"""As a file: show it, write none."""


async def export(chat: Chat, given: str) -> None:
    """Writes this conversation to a file: markdown or html for people, clew (lossless), chat,
    responses and atif for programs. Without FILE it gets a name after the title, in the folder you
    are in; `-` shows it. No file is replaced."""
    format, file = _asked(given)
    make = _maker(chat, format)
    if file == HERE:
        shown = io.BytesIO()
        await hop(make, shown.write)
        await chat.page(shown.getvalue().decode("utf-8", "replace"))
        return
    title = (await chat.conv.info()).title or ""
    name = file_name(title, chat.conv.id, EXTENSIONS[format])
    path = Path(file).expanduser() if file else Path(name)
    if path.is_dir():
        path = path / name
    size = await hop(save, path, False, make)
    chat.write("Wrote ", (home_short(path), "bold"), f", {size_text(size)}.")


async def complete_export(chat: Chat, typed: str) -> Sequence[str]:
    """Formats."""
    return [name for name in EXTENSIONS if name.startswith(typed)]


def _asked(given: str) -> tuple[str, str]:
    """Format and file. A file alone tells its format by its ending."""
    first, rest = first_word(given)
    first = SHORT.get(first, first)
    if first in EXTENSIONS:
        return first, rest
    if not given or given == HERE:
        return READABLE, given
    by_ending = {".md": READABLE, ".html": HTML, ".jsonl": CLEW}
    format = by_ending.get(Path(given).suffix)
    if format is None:
        raise InputError(
            f"{one_line(first)!r} is no format; give {', '.join(EXTENSIONS)}, or a file that ends "
            f"in {', '.join(by_ending)}"
        )
    return format, given


def _maker(chat: Chat, format: str) -> Callable[[Write], None]:
    """What writes the conversation in a format; blocking."""
    conv, profile, now = blocking(chat.conv), chat.profile, chat.conv.clock.now()

    def lossless(write: Write) -> None:
        write(clew_jsonl.header(profile.name, now, version(), False))
        clew_jsonl.write(
            cast(Any, profile), [conv.id], write
        )  # of it only transfer(), which blocks

    def readable(write: Write) -> None:
        source = transcript(conv)
        pieces = html.text(source, {}) if format == HTML else TEXTS[format](source)
        for piece in pieces:
            write(piece.encode("utf-8", "backslashreplace"))

    return lossless if format == CLEW else readable
