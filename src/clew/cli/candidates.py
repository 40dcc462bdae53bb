"""Ids that a shell offers while one is typed."""

from __future__ import annotations

from collections.abc import Iterator

from click.shell_completion import CompletionItem

from clew.cli.opening import open_existing
from clew.cli.settings import Settings
from clew.cli.text import one_line, short_ids
from clew.domain.conversations import ListFilter
from clew.errors import Ambiguous, ClewError, NotFound
from clew.store.profile import Profile

NEWEST = 20
PATIENCE = 2.0
"""Seconds: a person waits for the shell."""


def matching(settings: Settings, typed: str) -> list[CompletionItem]:
    """What the typed text may become, with titles. Never fails: a shell shows nothing then."""
    try:
        with open_existing(settings, PATIENCE) as store:
            found = _matching(store.profile(settings.profile), typed)
            return [CompletionItem(id, help=title) for id, title in found]
    except (ClewError, OSError):
        return []


def _matching(profile: Profile, typed: str) -> list[tuple[str, str]]:
    if not typed:
        page = profile.list(limit=NEWEST)
        short = short_ids(info.id for info in page.items)
        return [(short[info.id], one_line(info.title or "")) for info in page.items]
    try:
        found = [profile.resolve(typed).id]
    except Ambiguous as several:
        found = list(several.candidates)
    except NotFound:
        return []
    return [(id, one_line(profile.open(id).info().title or "")) for id in found]


def keys(settings: Settings, source: str, typed: str) -> list[CompletionItem]:
    """Keys of a source by which the newest conversations are found, with titles. Never fails."""
    try:
        with open_existing(settings, PATIENCE) as store:
            return [*_keys(store.profile(settings.profile), source, typed)]
    except (ClewError, OSError):
        return []


def _keys(profile: Profile, source: str, typed: str) -> Iterator[CompletionItem]:
    for info in profile.list(ListFilter(source=source), limit=NEWEST).items:
        for place in profile.open(info.id).bindings():
            if place.source == source and place.key.startswith(typed) and _plain(place.key):
                yield CompletionItem(place.key, help=one_line(info.title or ""))


def _plain(key: str) -> bool:
    """Whether a shell can be given it as it is."""
    return key.isprintable()
