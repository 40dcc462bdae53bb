"""What the global options say: which store, which profile, colours or not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from clew.cli.screen import Screen
from clew.config import default_path, default_profile


class Settings:
    """One for each invocation: `ctx.ensure_object(Settings)`."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.chosen_profile: str | None = None
        self.no_color = False

    @property
    def path(self) -> Path:
        """Where the store is: --store, CLEW_STORE, CLEW_HOME, ~/.clew/clew.db."""
        return default_path() if self.store is None else Path(self.store).expanduser()

    @property
    def profile(self) -> str:
        """--profile, CLEW_PROFILE, or "default": the only place where a profile has a default."""
        return default_profile() if self.chosen_profile is None else self.chosen_profile

    @property
    def screen(self) -> Screen:
        """Standard output."""
        return Screen(sys.stdout, not self.no_color)

    @property
    def notes(self) -> Screen:
        """Standard error: hints, progress, questions."""
        return Screen(sys.stderr, not self.no_color)

    @property
    def options(self) -> str:
        """The global options that repeat these settings, for commands that a text proposes."""
        words: list[str] = []
        if self.store is not None:
            words += ["--store", quoted(self.store)]
        if self.chosen_profile is not None:
            words += ["--profile", quoted(self.chosen_profile)]
        return "".join(f" {word}" for word in words)


def quoted(text: str) -> str:
    """A word for a shell, quoted if it needs to be."""
    plain = text.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    if plain.isascii() and plain.isalnum():
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def home_short(path: Path) -> str:
    """A path as a person writes it: ~/.clew/clew.db."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text[len(home) :]}" if text.startswith(home + os.sep) else text


def settings_of(ctx: click.Context) -> Settings:
    return ctx.ensure_object(Settings)
