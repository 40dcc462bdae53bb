"""What to say when there is nothing: what it means, and what to do next."""

from __future__ import annotations

from clew.cli.settings import Settings
from clew.store.address import Address, parse
from clew.store.findings import counted


def no_store(settings: Settings) -> None:
    """Nobody has added a conversation yet, or the place is another one."""
    notes = settings.notes
    if isinstance(settings.place, Address):
        notes.line(f"There is no store in {settings.where} yet.")
        notes.line("Make one: ", (settings.command("migrate"), "cyan"))
    else:
        notes.line(f"There is no store at {settings.where} yet.")
    _first_lines(settings)
    notes.line("If you have one elsewhere: clew --store PATH, or CLEW_STORE=PATH.")


def no_conversations(settings: Settings, profiles: tuple[tuple[str, int], ...]) -> None:
    """The profile is empty; maybe another was meant."""
    notes = settings.notes
    notes.line(f"There are no conversations in profile {settings.profile!r} yet.")
    if profiles:
        names = ", ".join(f"{name} ({count:,})" for name, count in profiles)
        notes.line(f"Profiles of this store: {names}. Choose one with --profile NAME.")
    else:
        _first_lines(settings)


def only_others(settings: Settings, count: int, archived: bool) -> None:
    """The profile is not empty, but a list of it is: all are archived, or are sub-agents."""
    if archived:
        listing = settings.command("list --archived")
        settings.notes.line("Every conversation here is archived: ", (listing, "cyan"))
        return
    settings.notes.line(
        f"No conversation is left here but {counted(count, 'sub-agent')} of deleted ones, which no "
        "list has."
    )
    finding, removing = settings.command("search WORDS"), settings.command("delete ID")
    settings.notes.line(
        "Their messages are found: ", (finding, "cyan"), "; ", (removing, "cyan"), " removes one."
    )


def nothing_passes(settings: Settings, what: str = "conversation") -> None:
    settings.notes.line(f"No {what} passes these filters.")


def opening_lines(settings: Settings, profile: str) -> list[str]:
    """Python that opens a profile of the store. It shows no URL, which may hold a password."""
    place = settings.place
    given, remark = "", ""
    if place != parse(None):
        if isinstance(place, Address):
            remark = "  # with the URL in CLEW_STORE"
        else:
            given = repr(str(place))
    return ["import clew", f"profile = clew.open({given}).profile({profile!r}){remark}"]


def _first_lines(settings: Settings) -> None:
    notes = settings.notes
    importing = settings.command("import --discover")
    notes.line("Bring in what other tools have on this machine: ", (importing, "cyan"))
    notes.line("Or add the first conversation from Python:")
    notes.line()
    for line in opening_lines(settings, settings.profile):
        notes.line("    ", (line, "cyan"))
    for line in (
        'conversation = profile.conversation("first")',
        'conversation.add({"role": "user", "content": "Hello"})',
    ):
        notes.line("    ", (line, "cyan"))
    notes.line()
