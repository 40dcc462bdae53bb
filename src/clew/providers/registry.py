"""Which providers there are, and which model is meant. No SDK is imported by choosing one."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from clew.config.values import Config, ProviderConfig
from clew.providers.api import Model, Provider
from clew.providers.deferred import Deferred
from clew.providers.errors import NotConfigured, ProviderError
from clew.providers.models import choice_of, fact_of, model_of, vendor_of
from clew.providers.places import ARCHIVIST, KINDS, Place, Places, Secrets

Find = Callable[[], Awaitable[Sequence[Any]]]
"""Gives servers, each with `kind`, `base_url` and `models`."""

LOCAL = "clew.providers.local"
"""Looks for servers on this machine; loaded when nothing else is there."""
_LOOKING, _DESCRIBING, _LISTING = 3.0, 3.0, 10.0
"""Seconds that a local look-up, a description and a list may take."""


class Providers:
    """The providers of a configuration, each made at its first use. `secrets` gives keys; this
    class reads neither environment nor keyring. `find` looks for servers on this machine; None:
    providers/local.py does."""

    def __init__(self, config: Config, secrets: Secrets, *, find: Find | None = None) -> None:
        self._config, self._find = config, find
        self._places = Places(config, secrets)
        self._made: dict[str, Provider] = {}
        self._added: list[str] = []
        self._found: dict[str, tuple[ProviderConfig, tuple[str, ...]]] | None = None
        self._described: dict[tuple[str, str], Model | None] = {}

    def add(self, provider: Provider) -> None:
        """A ready provider, under its name. The first that was added is the default one, unless the
        configuration names a model."""
        self._made[provider.name] = provider
        if provider.name not in self._added:
            self._added.append(provider.name)

    async def resolve(self, name: str | None = None) -> tuple[Provider, Model]:
        """The model that is meant: PROVIDER/NAME, a NAME where one provider is meant, or None for
        `model` of the configuration, else the first that can be used: what was added, the sections
        of the configuration, keys in the environment, a server on this machine, the archivist.

        Raises NotConfigured, with what to do."""
        if name is None and self._config.model is None:
            return await self._first()
        provider, model = await self._named(name or self._config.model or ARCHIVIST)
        return await self._pair(provider, model)

    def known_models(self) -> tuple[str, ...]:
        """Names that are known without asking anybody, of providers that can be used."""
        usable = [place.name for place in self._places.usable()]
        chosen = (f"{name}/{choice.model}" for name in usable if (choice := choice_of(name)))
        return tuple(dict.fromkeys((*self._written(), *chosen, f"{ARCHIVIST}/{ARCHIVIST}")))

    async def all_models(self) -> tuple[str, ...]:
        """These, and what each server lists. A server that fails or is slow is left out."""
        names = [*self._added, *(place.name for place in self._places.usable())]
        listed = await asyncio.gather(*map(self._listed, dict.fromkeys(names)))
        local = await self._look() if not names else {}
        found = (f"{name}/{each}" for name, (_, models) in local.items() for each in models)
        served = (each for names in listed for each in names)
        return tuple(dict.fromkeys((*self.known_models(), *served, *found)))

    async def close(self) -> None:
        """Close all that were used."""
        for provider in self._made.values():
            await provider.close()

    # ------------------------------------------------------------------ choosing

    async def _first(self) -> tuple[Provider, Model]:
        if self._added:
            names = await self._made[self._added[0]].models()
            return await self._pair(self._added[0], names[0] if names else "default")
        undecided: list[str] = []
        for place in self._places.usable():
            if model := await self._default(place):
                return await self._pair(place.name, model)
            undecided.append(place.name)
        if undecided:
            text = f"{undecided[0]} can be used, but no model of it is chosen; " + _choose(
                f"{undecided[0]}/NAME"
            )
            raise NotConfigured(text, provider=undecided[0])
        for name, (_, models) in (await self._look()).items():
            if models:
                return await self._pair(name, models[0])
        if half := self._places.half_made():
            raise NotConfigured(half.trouble or "", provider=half.name)
        return await self._pair(ARCHIVIST, ARCHIVIST)

    async def _default(self, place: Place) -> str | None:
        """The model of a place when nobody chose: one the configuration speaks of, the usual one of
        a known provider, the first that a server on this machine lists."""
        for each in self._written():
            if each.startswith(f"{place.name}/"):
                return each.removeprefix(f"{place.name}/")
        if place.section.kind == ARCHIVIST:
            return ARCHIVIST
        if choice := choice_of(vendor_of(place.name, self._config)):
            return choice.model
        if not place.is_local:
            return None
        listed = await self._listed(place.name)
        return listed[0].removeprefix(f"{place.name}/") if listed else None

    # ------------------------------------------------------------------ names

    async def _named(self, name: str) -> tuple[str, str]:
        """(provider, model) of a name as a person writes it."""
        first, slash, rest = name.partition("/")
        if first == ARCHIVIST and not rest:
            return ARCHIVIST, ARCHIVIST
        if slash and rest:
            if first in self._made or self._places.has(first):
                return first, rest
            if first in await self._look():
                return first, rest
            raise NotConfigured(self._places.unknown(first), provider=first)
        if (
            not slash
            and self._places.has(name)
            and not any(_is_of(each, name) for each in self._written())
        ):
            return name, await self._usual(name)
        meant = self._meant(name)
        if len(meant) != 1:
            said = "several providers could be meant" if meant else "no provider is meant by it"
            some = ", ".join(f"{each}/{name}" for each in meant) or "such as openai/gpt-5.4"
            raise NotConfigured(
                f"{name!r} names no provider, and {said}; write PROVIDER/NAME: {some}",
                provider=name,
            )
        return meant[0], name

    async def _usual(self, provider: str) -> str:
        """The model of a provider that is named without one."""
        model = await self._default(self._places.place(provider))
        if model is None:
            raise NotConfigured(
                f"{provider} is a provider; write which of its models: {provider}/NAME",
                provider=provider,
            )
        return model

    def _meant(self, model: str) -> list[str]:
        """Providers that a bare name can mean: the one that is written with it, the maker of the
        model, the only one there is."""
        written = [each.partition("/")[0] for each in self._written() if _is_of(each, model)]
        if written:
            return list(dict.fromkeys(written))
        usable = [*self._added, *(place.name for place in self._places.usable())]
        makers = [
            name for name in usable
            if (vendor := vendor_of(name, self._config)) is not None
            and (fact := fact_of(model, vendor)) is not None and fact.by == vendor
        ]  # fmt: skip
        return makers or list(dict.fromkeys(usable))

    def _written(self) -> tuple[str, ...]:
        """Models that the configuration speaks of."""
        config = self._config
        first = () if config.model is None else (config.model,)
        named = (*first, *config.fallback, *config.models)
        return tuple(dict.fromkeys(name for name in named if "/" in name))

    # ------------------------------------------------------------------ making

    async def _pair(self, provider: str, model: str) -> tuple[Provider, Model]:
        made = self._made.get(provider) or self._make(provider)
        return made, await self._model(made, model)

    def _make(self, name: str) -> Provider:
        found = None if self._found is None else self._found.get(name)
        place = self._places.place(name) if found is None else Place(name, found[0])
        if place.trouble is not None:
            raise NotConfigured(place.trouble, provider=name)
        made = Deferred(KINDS[place.section.kind], name, place.section, place.key)
        self._made[name] = made
        return made

    async def _model(self, provider: Provider, name: str) -> Model:
        """What is known of a model. The server is asked when nobody else knows its window."""
        known = model_of(provider.name, name, self._config)
        if known.source != "default" and provider.name not in self._added:
            return known
        at = provider.name, name
        if at not in self._described:
            self._described[at] = await _within(_DESCRIBING, provider.describe(name), None)
        return model_of(provider.name, name, self._config, self._described[at])

    async def _listed(self, name: str) -> tuple[str, ...]:
        provider = self._made.get(name) or self._make(name)
        listed = await _within(_LISTING, provider.models(), ())
        return tuple(f"{name}/{each}" for each in listed)

    async def _look(self) -> dict[str, tuple[ProviderConfig, tuple[str, ...]]]:
        """Servers on this machine, by their kind: how to reach each, and its models."""
        if self._found is None:
            find: Any = self._find or importlib.import_module(LOCAL).find
            servers = await _within(_LOOKING, find(), ())
            self._found = {
                server.kind: (ProviderConfig(base_url=server.base_url), tuple(server.models))
                for server in servers
            }
        return self._found


async def _within(seconds: float, asked: Any, otherwise: Any) -> Any:
    """What was asked for, or something else when it does not come in time or not at all."""
    try:
        async with asyncio.timeout(seconds):
            return await asked
    except (ProviderError, TimeoutError):
        return otherwise


def _is_of(written: str, model: str) -> bool:
    return written.partition("/")[2] == model


def _choose(name: str) -> str:
    return f'write model = "{name}" at the top of the configuration (`clew config edit`)'
