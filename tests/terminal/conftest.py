"""Chats in tmux, ended with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .tmux import Tmux

Open = Callable[..., Tmux]
CONFIG = "[chat]\ntitles = false\n[tools]\nbuiltin = false\n"


@pytest.fixture
def chat(fast_dir: Path) -> Iterator[Open]:
    """Open a chat: `chat(*args, columns=80, rows=24, **env)`. All of a test share a home."""
    opened: list[Tmux] = []

    def open(*args: str, config: str = "", columns: int = 80, rows: int = 24, **env: str) -> Tmux:
        (fast_dir / "config.toml").write_text(CONFIG + config)
        home = fast_dir / f"tmux{len(opened)}"
        home.mkdir()
        env = {"CLEW_CONFIG": str(fast_dir / "config.toml"), "CLEW_HOME": str(fast_dir),
               "CLEW_STORE": str(fast_dir / "clew.db")} | env  # fmt: skip
        opened.append(Tmux(home, *args, columns=columns, rows=rows, folder=fast_dir, **env))
        return opened[-1]

    yield open
    for each in opened:
        each.close()
