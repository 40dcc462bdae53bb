"""Opening the store for a command. A command never makes a store: a forgotten path must not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from clew.cli.settings import Settings
from clew.store.engines import PATIENCE
from clew.store.opening import open_parts
from clew.store.profile import Profile
from clew.store.store import Store


@contextmanager
def open_existing(settings: Settings, patience: float = PATIENCE) -> Generator[Store, None, None]:
    """The store that the options name. NoStore if there is none."""
    place = settings.store
    parts = open_parts(place, None, None, None, create=False, patience=patience, wait=False)
    with Store(parts) as store:
        yield store


@contextmanager
def open_profile(settings: Settings) -> Generator[Profile, None, None]:
    """The profile that the options name."""
    with open_existing(settings) as store:
        yield store.profile(settings.profile)
