"""What is known of models: data/models.json, whose entries name their sources and dates, and what
the configuration and a server know better."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.config.known import KNOWN
from clew.config.values import Config, ModelConfig, ProviderConfig
from clew.context.families import family_of
from clew.providers.api import Model, Price

DATA = Path(__file__).parent / "data" / "models.json"
_VERSION = re.compile(r"(-(\d{4}-\d\d-\d\d|20\d{6}|00\d|latest))?(-v\d+(:\d+)?)?")
"""What may stand behind a known name without its being another model."""
_HOME = {
    "openai": "api.openai.com",
    "openai-responses": "api.openai.com",
    "anthropic": "api.anthropic.com",
}
"""Where a kind goes without a base URL."""
_MAKERS = ("openai", "anthropic", "gemini", "mistral", "deepseek", "xai", "moonshot", "zai")
"""Providers of models of their own, which others serve under the same names."""


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Where facts come from, and of which day they are."""

    url: str
    date: str
    note: str = ""


class Choice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a known provider: which model is asked when nobody chose one."""

    name: str
    model: str
    source: str
    affinity_header: str | None = None


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a model. `by`: the known provider that asks `price` for it."""

    name: str
    by: str
    window: int
    source: str
    reply: int = 0
    price: Price | None = None
    tools: bool = True
    images: bool = True
    dearer_above: int | None = None
    """Tokens from which on the provider asks more than `price`."""


class Shipped(Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    about: str
    sources: dict[str, Source]
    defaults: tuple[Choice, ...]
    models: tuple[Fact, ...]


@cache
def shipped() -> Shipped:
    """The file, read once."""
    return msgspec.json.decode(DATA.read_bytes(), type=Shipped)


def choice_of(provider: str | None) -> Choice | None:
    """What is asked of a known provider when nobody chose."""
    return next((each for each in shipped().defaults if each.name == provider), None)


def section_of(provider: str, config: Config) -> ProviderConfig | None:
    """The section of a provider, completed by what is known of its name; None of an unknown one."""
    given, named = config.providers.get(provider), KNOWN.get(provider)
    if named is None:
        return given
    choice = choice_of(provider)
    header = None if choice is None else choice.affinity_header
    section = given or ProviderConfig(kind=named.kind)
    if section.kind != named.kind or section.base_url not in (None, named.base_url):
        return section
    return replace(
        section, base_url=named.base_url, affinity_header=section.affinity_header or header
    )


def vendor_of(provider: str, config: Config) -> str | None:
    """The known provider whose server a provider asks; None of a server that nobody knows."""
    section = section_of(provider, config)
    if section is not None and section.kind == "archivist":
        return "archivist"
    host = None if section is None else _host(section.kind, section.base_url)
    return next(
        (name for name, each in KNOWN.items() if each.keys
         and host == _host(each.kind, each.base_url)), None,
    )  # fmt: skip


def _host(kind: str, base_url: str | None) -> str | None:
    return urlsplit(base_url).hostname if base_url else _HOME.get(kind)


def fact_of(model: str, vendor: str | None) -> Fact | None:
    """What the data has of a model, by the longest name that it is a version of. What a host serves
    of others' models is known for that host alone."""
    found = [
        fact for fact in shipped().models
        if (fact.by in _MAKERS or fact.by == vendor) and _is_version(model, fact)
    ]  # fmt: skip
    return max(found, key=lambda fact: (fact.by == vendor, len(fact.name)), default=None)


def _is_version(model: str, fact: Fact) -> bool:
    made = fact.by in _MAKERS
    name, begin = (_plain(model), _plain(fact.name)) if made else (model, fact.name)
    rest = name[len(begin) :]
    return name.startswith(begin) and _VERSION.fullmatch(rest) is not None


def _plain(model: str) -> str:
    """A name without its maker, and with one way to write 4.5."""
    return re.sub(r"(?<=\d)\.(?=\d)", "-", model.lower().rsplit("/", 1)[-1])


def model_of(provider: str, name: str, config: Config, described: Model | None = None) -> Model:
    """A model, each fact from the first who says it: the configuration, the server that described
    it, the shipped data, the family of its name. `source` is who gave the window."""
    said = config.models.get(f"{provider}/{name}", ModelConfig())
    vendor = vendor_of(provider, config)
    fact = fact_of(name, vendor)
    basis = described or _of_data(provider, name, fact)
    price = _price(said) or basis.price or _sold(fact, vendor)
    window = said.window or basis.window
    reply = min(basis.reply, _kept(window)) if said.reply is None else said.reply
    return Model(
        name=name, provider=provider, window=window, reply=min(reply, window // 2),
        price=price,
        tools=basis.tools if said.tools is None else said.tools,
        images=basis.images if said.images is None else said.images,
        source="config" if said.window else basis.source,
    )  # fmt: skip


def _kept(window: int) -> int:
    """Of a window, what is kept free for a reply at most. Models can say more in one go than
    anybody waits for; room that is kept for it is not there for the conversation."""
    return max(window // 8, min(16_000, window // 4))


def _of_data(provider: str, name: str, fact: Fact | None) -> Model:
    if fact is None:
        return Model(name=name, provider=provider, window=family_of(name).window)
    date = shipped().sources[fact.source].date
    return Model(
        name=name, provider=provider, window=fact.window, reply=fact.reply,
        tools=fact.tools, images=fact.images, source=f"data {date}",
    )  # fmt: skip


def _sold(fact: Fact | None, vendor: str | None) -> Price | None:
    """The price, where it is this vendor's."""
    return fact.price if fact is not None and fact.by == vendor else None


def _price(said: ModelConfig) -> Price | None:
    if said.price is None:
        return None
    return Price(input=said.price.input, output=said.price.output, cached=said.price.cached)
