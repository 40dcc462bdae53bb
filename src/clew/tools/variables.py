"""`${NAME}` in the configuration of a server, and what of it must never be shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import msgspec

from clew.config.values import McpConfig
from clew.errors import InputError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SHORTEST = 6
"""Characters of a value that is hidden; shorter ones stand in every text."""
_PLACES = ("HOME", "USER", "PWD", "TMPDIR", "PATH")
"""Variables that are no secret, and help to see what is wrong."""


def expand(
    server: str, config: McpConfig, environment: Mapping[str, str]
) -> tuple[McpConfig, tuple[str, ...]]:
    """The configuration with its variables filled in, and the values that are secret: those of
    variables, of `env` and of `headers`.

    `${NAME:-default}` has a value when NAME has none. Raises InputError that names the place and
    the variable, for one that is not set.
    """
    hidden: set[str] = set()

    def fill(text: str, where: str) -> str:
        def value(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            found = environment.get(name, cast(str | None, default))
            if found is None:
                raise InputError(
                    f"mcpServers.{server}.{where} names ${{{name}}}, which is not set in the "
                    f"environment; set {name}, or write ${{{name}:-}} to do without"
                )
            if name in environment and name not in _PLACES:
                hidden.add(found)
            return found

        return _VARIABLE.sub(value, text)

    def fill_all(values: Mapping[str, str], where: str) -> dict[str, str]:
        filled = {name: fill(text, f"{where}.{name}") for name, text in values.items()}
        hidden.update(filled.values())
        return filled

    expanded = msgspec.structs.replace(
        config,
        command=None if config.command is None else fill(config.command, "command"),
        args=[fill(text, f"args[{number}]") for number, text in enumerate(config.args)],
        env=fill_all(config.env, "env"),
        cwd=None if config.cwd is None else fill(config.cwd, "cwd"),
        url=None if config.url is None else fill(config.url, "url"),
        headers=fill_all(config.headers, "headers"),
    )
    return expanded, tuple(sorted(filter(_worth, hidden), key=len, reverse=True))


def _worth(value: str) -> bool:
    return len(value) >= _SHORTEST


def hide(text: str, secrets: tuple[str, ...]) -> str:
    """The text without these values."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
