"""What the global options say: which store, which profile, colours or not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from clew.cli.screen import Screen
from clew.config import default_profile
from clew.errors import InputError
from clew.store.address import Address, parse


class Settings:
    """One for each invocation: `ctx.ensure_object(Settings)`."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.chosen_profile: str | None = None
        self.no_color = False

    @property
    def place(self) -> Address | Path:
        """Where the store is: --store, CLEW_STORE, CLEW_HOME, ~/.clew/clew.db."""
        return parse(self.store)

    @property
    def where(self) -> str:
        """The place for people: a URL without its password."""
        place = self.place
        return home_short(place) if isinstance(place, Path) else place.shown

    def file(self, instead: str) -> Path:
        """The place for a command that works on files; for others InputError, which says what to
        do instead."""
        place = self.place
        if isinstance(place, Path):
            return place
        raise InputError(f"{place.shown} is a database of a server, and no file; {instead}")

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

    def command(self, rest: str) -> str:
        """A command line for a text to propose, with the global options that were given. A URL
        may hold a password, so only CLEW_STORE is named for it."""
        words = ["clew"]
        if self.store is not None:
            if isinstance(self.place, Path):
                words += ["--store", quoted(self.store)]
            else:
                words.insert(0, "CLEW_STORE=URL")
        if self.chosen_profile is not None:
            words += ["--profile", quoted(self.chosen_profile)]
        return " ".join((*words, rest))


def quoted(text: str) -> str:
    """A word for a shell, quoted if it needs to be."""
    plain = text.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    if plain.isascii() and plain.isalnum():
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def home_short(path: Path | str) -> str:
    """A path as a person writes it: ~/.clew/clew.db."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text[len(home) :]}" if text.startswith(home + os.sep) else text


def settings_of(ctx: click.Context) -> Settings:
    return ctx.ensure_object(Settings)
