"""The store, the host and the model of a chat, from the configuration."""

from __future__ import annotations

from clew import startup
from clew.cli.chat.starting import Started, opened
from clew.cli.hosting import make
from clew.cli.settings import Settings
from clew.config.values import Config
from clew.store.profile import Profile
from clew.store.store import Store


async def start(settings: Settings, config: Config) -> Started:
    """Open the store, made if it is not there, and make the host. No model is looked for yet."""
    store, parts = await opened(settings)
    startup.report("loading the host")
    profile = store.profile(settings.profile)
    host = make(profile, config)

    def blocking() -> Profile:
        return Store(parts).profile(settings.profile)

    return Started(
        store=store, blocking=blocking, profile=profile, host=host, config=config,
        model=host.default_model,
    )  # fmt: skip
