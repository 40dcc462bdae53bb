"""The secrets of this configuration, for taking them out of what others see."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from clew.config.keylike import names_key
from clew.config.known import KNOWN
from clew.config.references import REFERENCE, texts
from clew.config.secrets import KeyringUnavailable, secret, variables
from clew.config.values import Config, ProviderConfig

_STORE = "CLEW_STORE"


def own_secrets(
    config: Config, environ: Mapping[str, str] = os.environ
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(secrets, names of providers whose key is in a keyring that cannot be asked).

    Keys of all providers, configured or only set; what the configuration takes from the environment
    under a name that says so; the password of the store's URL."""
    found: set[str] = set()
    unknown: list[str] = []
    providers = {name: ProviderConfig() for name in KNOWN} | config.providers
    for name, provider in providers.items():
        found.update(environ.get(variable, "").strip() for variable in variables(name, provider))
        try:
            found.add(secret(name, provider, environ) or "")
        except KeyringUnavailable:
            unknown.append(name)
    found.update(_referred(config, environ))
    found.update(_passwords(environ.get(_STORE, ""), config.store or ""))
    return tuple(sorted(found - {""})), tuple(unknown)


def _referred(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    for key, text in texts(config):
        for name, _ in REFERENCE.findall(text):
            if names_key(name) or names_key(str(key[-1])) or "headers" in key:
                yield environ.get(name, "").strip()


def _passwords(*urls: str) -> Iterator[str]:
    for url in urls:
        try:
            password = urlsplit(url).password
        except ValueError:
            continue
        if password:
            yield from (password, unquote(password))
