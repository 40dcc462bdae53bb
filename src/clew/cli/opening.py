"""Opening the store for a command. A command never makes a store: a forgotten path must not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from clew.cli.failures import NoStore
from clew.cli.settings import Settings, home_short
from clew.store.profile import Profile
from clew.store.store import Store, open_store


@contextmanager
def open_existing(path: Path) -> Generator[Store, None, None]:
    """The store at a path, which must be there."""
    if not path.exists():
        raise NoStore(
            f"there is no store at {home_short(path)}; `clew list` says how to begin, "
            f"--store PATH names another"
        )
    with open_store(path) as store:
        yield store


@contextmanager
def open_profile(settings: Settings) -> Generator[Profile, None, None]:
    """The profile that the options name."""
    with open_existing(settings.path) as store:
        yield store.profile(settings.profile)
