"""${NAME} in a configuration: a variable of the environment, so that no file need have the key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import cast

from msgspec.structs import replace

from clew.config.scan import Key
from clew.config.values import Config, McpConfig, ProviderConfig
from clew.errors import InputError

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""${NAME}, or ${NAME:-otherwise}."""


def filled(
    name: str, provider: ProviderConfig, environ: Mapping[str, str] = os.environ
) -> ProviderConfig:
    """A provider whose headers have what they refer to. Never shown: they may be keys. InputError
    that names the variable, for one that is not set."""

    def value(header: str, found: re.Match[str]) -> str:
        given = environ.get(found[1], cast(str | None, found[2]))
        if given is None:
            raise InputError(
                f"providers.{name}.headers.{header} names ${{{found[1]}}}, which is not set in the "
                f"environment; set {found[1]}"
            )
        return given

    headers = {
        header: REFERENCE.sub(lambda found, header=header: value(header, found), text)
        for header, text in provider.headers.items()
    }
    return replace(provider, headers=headers)


def unset(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[Key, str]]:
    """Places that refer to a variable that is not set, with its name."""
    for key, text in texts(config):
        for found in REFERENCE.finditer(text):
            if found[1] not in environ and found[2] is None:
                yield key, found[1]


def texts(config: Config) -> Iterator[tuple[Key, str]]:
    """Every text of a configuration that may refer to the environment, with its place."""
    for name, provider in config.providers.items():
        for header, text in provider.headers.items():
            yield ("providers", name, "headers", header), text
    for name, server in config.mcpServers.items():
        if server.enabled:
            yield from ((("mcpServers", name, *key), text) for key, text in _server(server))


def _server(server: McpConfig) -> Iterator[tuple[Key, str]]:
    for key in ("command", "cwd", "url"):
        text: str | None = getattr(server, key)
        if text is not None:
            yield (key,), text
    yield from ((("args", number), text) for number, text in enumerate(server.args))
    yield from ((("env", name), text) for name, text in server.env.items())
    yield from ((("headers", name), text) for name, text in server.headers.items())
