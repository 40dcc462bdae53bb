"""Which conversation was open last in this terminal and folder: what `--continue` goes by.

A small file in clew's home, one line for each terminal and folder, newest first. It is a
convenience: a file that cannot be read or written is as good as none.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from clew.config.place import home

MOST = 500
"""Places that are remembered."""
LONGEST = 4096
"""Characters of a place: a name that is longer is cut."""
LARGEST = 4 * 1024 * 1024
"""Bytes of the file that are read."""
TERMINALS = (
    "TMUX_PANE", "STY", "ZELLIJ_PANE_ID", "KITTY_WINDOW_ID", "WEZTERM_PANE", "TERM_SESSION_ID",
    "WT_SESSION", "ALACRITTY_WINDOW_ID", "WINDOWID", "SSH_TTY",
)  # fmt: skip
"""Variables that name a terminal, the innermost first: one in tmux is its pane, wherever shown."""


def terminal(environ: Mapping[str, str], tty: str | None) -> str:
    """Names the terminal we are on; "" when nothing does."""
    for name in TERMINALS:
        if value := environ.get(name):
            server = environ.get("TMUX", "").rsplit(",", 1)[0] if name == "TMUX_PANE" else ""
            return f"{name}={server}{value}"
    return f"tty={tty}" if tty else ""


def place(environ: Mapping[str, str] = os.environ) -> str:
    """This terminal and folder, as a key."""
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted under us
        folder = ""
    return f"{terminal(environ, _tty())} {folder}"[:LONGEST]


def _tty() -> str | None:
    with suppress(OSError, ValueError, AttributeError):
        return os.ttyname(sys.stdin.fileno())
    return None


class Places:
    """The file. A place belongs to a store and a profile: `scope` names both."""

    def __init__(self, scope: str, path: Path | None = None) -> None:
        self._scope = scope
        self.path = path or home() / "places.json"

    def last(self, place: str) -> str | None:
        """Id of the conversation that was open last at a place."""
        found = (id for scope, at, id in self._read() if (scope, at) == (self._scope, place))
        return next(found, None)

    def remember(self, place: str, id: str) -> None:
        """Note that a conversation is open at a place. The file is replaced whole."""
        rows = [row for row in self._read() if row[:2] != (self._scope, place)]
        text = json.dumps([(self._scope, place, id), *rows][:MOST], ensure_ascii=True)
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(new, text)
            os.replace(new, self.path)

    def _read(self) -> list[tuple[str, str, str]]:
        try:
            with self.path.open("rb") as file:
                rows: Any = json.loads(file.read(LARGEST))
        except (OSError, ValueError, RecursionError):
            return []
        return [*map(_row, cast("list[object]", rows))] if _are_rows(rows) else []


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)


def _are_rows(rows: object) -> bool:
    def is_row(row: object) -> bool:
        return isinstance(row, list) and [*map(type, cast("list[object]", row))] == [str] * 3

    return isinstance(rows, list) and all(map(is_row, cast("list[object]", rows)))


def _row(row: object) -> tuple[str, str, str]:
    scope, at, id = cast("list[str]", row)
    return scope, at, id
