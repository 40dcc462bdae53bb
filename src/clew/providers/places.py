"""The places where models answer: the sections of the configuration, and what is known by name;
which of them can be used, and what the others lack. Asks no server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from clew.config.known import KNOWN
from clew.config.references import filled
from clew.config.secrets import variables
from clew.config.values import Config, ProviderConfig
from clew.errors import InputError
from clew.providers.deferred import Maker, missing_extra
from clew.providers.errors import NotConfigured
from clew.providers.models import section_of

Secrets = Callable[[str, ProviderConfig], str | None]
"""The key of a provider, by its name and section: from the environment or the keyring."""
ARCHIVIST = "archivist"
KINDS: dict[str, Maker] = {
    "openai": Maker("clew.providers.openai_chat", "OpenAIChat", "openai"),
    "openai-responses": Maker("clew.providers.openai_responses", "OpenAIResponses", "openai"),
    "anthropic": Maker("clew.providers.anthropic", "Anthropic", "anthropic", "anthropic"),
    "archivist": Maker("clew.providers.archivist", "Archivist"),
}
"""The class of each kind, loaded when a model is first asked."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class Place(NamedTuple):
    """A provider that could be used. `trouble`: why it cannot."""

    name: str
    section: ProviderConfig
    key: str | None = None
    trouble: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether its server is on this machine."""
        url = self.section.base_url
        return url is not None and urlsplit(url).hostname in _LOOPBACK


class Places:
    """Those of a configuration. Keys are asked for anew each time: one that was set meanwhile
    counts."""

    def __init__(self, config: Config, secrets: Secrets) -> None:
        self._config, self._secrets = config, secrets

    def __iter__(self) -> Iterator[Place]:
        """All that could be used: sections first, then those that are known by their keys."""
        for name in self._config.providers:
            yield self.place(name)
        for name, known in KNOWN.items():
            if known.keys and name not in self._config.providers:
                yield self.place(name)

    def usable(self) -> Iterator[Place]:
        """Those without trouble."""
        return (place for place in self if place.trouble is None)

    def has(self, name: str) -> bool:
        """Whether there is one of this name."""
        return section_of(name, self._config) is not None

    def place(self, name: str) -> Place:
        """One by its name. Raises NotConfigured for an unknown one."""
        section = section_of(name, self._config)
        if section is None:
            raise NotConfigured(self.unknown(name), provider=name)
        try:
            key = self._secrets(name, section)
            section = filled(name, section)
        except InputError as error:  # no keyring, or a header names a variable that is not set
            return Place(name, section, None, str(error))
        return Place(name, section, key, _trouble(name, section, key))

    def half_made(self) -> Place | None:
        """The first that somebody has configured, or given a key, and that cannot be used."""
        return next(
            (place for place in self if place.trouble
             and (place.key is not None or place.name in self._config.providers)), None,
        )  # fmt: skip

    def unknown(self, name: str) -> str:
        """What to say of a name that is no provider's."""
        there = dict.fromkeys((*self._config.providers, *KNOWN))
        return (
            f"there is no provider {name!r}; there are {', '.join(there)}. Write a section "
            f"[providers.{name}] with its base_url (`clew config edit`)"
        )


def _trouble(name: str, section: ProviderConfig, key: str | None) -> str | None:
    command = KINDS[section.kind].missing()
    needs_key = section.keyring or variables(name, section)
    if section.kind != ARCHIVIST and needs_key and key is None:
        return _no_key(name, section, command)
    return missing_extra(name, command) if command else None


def _no_key(name: str, section: ProviderConfig, command: str | None) -> str:
    """What to do about a missing key, and about what else is missing."""
    also = f", and install what it needs: {command}" if command else ""
    if section.keyring:
        return (
            f"the keyring has no key of {name}; run `clew config key {name}`, or name a variable "
            f"in key_env of [providers.{name}]{also}"
        )
    return f"{name} has no key; run: export {variables(name, section)[0]}=...{also}"
