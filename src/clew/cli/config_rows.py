"""The effective configuration as rows: key, value, where it comes from. Pure, but for asking the
environment whether a key is there.

No key is ever in a row: what may be one is "(hidden)".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import fields

from clew.config.keylike import has_key, is_key, names_key
from clew.config.known import KNOWN
from clew.config.loading import Loaded
from clew.config.problems import Origin
from clew.config.scan import Key
from clew.config.secrets import Held, held
from clew.config.shape import dotted
from clew.config.values import Config, ProviderConfig

HIDDEN = "(hidden)"


class Row(NamedTuple):
    """One value. `origin` None: it is the default."""

    key: str
    value: Any
    origin: Origin | None


class KeyRow(NamedTuple):
    """Where the key of a provider is."""

    provider: str
    held: Held


def rows(loaded: Loaded) -> Iterator[Row]:
    """All plain values of the sections, and of what has a name of its own those that were given."""
    for key, value in _walk((), loaded.config):
        yield Row(dotted(key), shown(key, value), loaded.origin(*key))


def _walk(at: Key, value: Any, given_only: bool = False) -> Iterator[tuple[Key, Any]]:
    if isinstance(value, Struct):
        for field in fields(value):
            inner = getattr(value, field.name)
            default = field.default == inner or inner in ({}, [])
            if not given_only or field.required or not default:
                yield from _walk((*at, field.encode_name), inner, given_only)
    elif isinstance(value, dict):
        for name, inner in cast(dict[str, Any], value).items():
            if isinstance(inner, Struct) and inner == type(inner)():
                yield (*at, name), {}
            else:
                yield from _walk((*at, name), inner, True)
    else:
        yield at, value


def shown(key: Key, value: Any) -> Any:
    """The value, unless it may be a key."""
    if isinstance(value, str):
        name = str(key[-1]) if key else ""
        own = key[:1] == ("providers",) and name == "key_env"
        held_by_name = names_key(name) and not own and "${" not in value
        return HIDDEN if not own and (is_key(name, value) or held_by_name) else value
    if isinstance(value, list):
        return [HIDDEN if isinstance(i, str) and has_key(i) else i for i in cast(list[Any], value)]
    return value


def key_rows(config: Config, environ: Mapping[str, str]) -> list[KeyRow]:
    """Of the providers that are configured, that models are asked of, and whose key is there."""
    models = (config.model, *config.fallback, config.compaction.model)
    named = {name.partition("/")[0] for name in models if name}
    found: list[KeyRow] = []
    for name in dict.fromkeys((*config.providers, *KNOWN)):
        provider = config.providers.get(name) or ProviderConfig(
            kind=KNOWN[name].kind, base_url=KNOWN[name].base_url
        )
        where = held(name, provider, environ)
        wanted = name in config.providers or name in named
        if wanted or where.state in ("environment", "keyring"):
            found.append(KeyRow(name, where))
    return found
