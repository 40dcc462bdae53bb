"""What to say when there is nothing: what it means, and what to do next."""

from __future__ import annotations

from pathlib import Path

from clew.cli.screen import Screen
from clew.cli.settings import Settings, home_short
from clew.config import default_path


def no_store(settings: Settings) -> None:
    """Nobody has added a conversation yet, or the path is another one."""
    notes = settings.notes
    notes.line(f"There is no store at {home_short(settings.path)} yet.")
    _first_lines(notes, settings.path, settings.profile)
    notes.line("If you have one elsewhere: clew --store PATH, or CLEW_STORE=PATH.")


def no_conversations(settings: Settings, profiles: tuple[tuple[str, int], ...]) -> None:
    """The profile is empty; maybe another was meant."""
    notes = settings.notes
    notes.line(f"There are no conversations in profile {settings.profile!r} yet.")
    if profiles:
        names = ", ".join(f"{name} ({count})" for name, count in profiles)
        notes.line(f"Profiles of this store: {names}. Choose one with --profile NAME.")
    else:
        _first_lines(notes, settings.path, settings.profile)


def nothing_passes(settings: Settings, what: str = "conversation") -> None:
    settings.notes.line(f"No {what} passes these filters.")


def opening_lines(path: Path, profile: str) -> list[str]:
    """Python that opens a profile of the store."""
    given = "" if path == default_path() else repr(str(path))
    return ["import clew", f"profile = clew.open({given}).profile({profile!r})"]


def _first_lines(notes: Screen, path: Path, profile: str) -> None:
    notes.line("Add the first conversation from Python:")
    notes.line()
    for line in opening_lines(path, profile):
        notes.line("    ", (line, "cyan"))
    for line in (
        'conversation = profile.conversation("first")',
        'conversation.add({"role": "user", "content": "Hello"})',
    ):
        notes.line("    ", (line, "cyan"))
    notes.line()
