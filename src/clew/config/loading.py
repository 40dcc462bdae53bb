"""The configuration: the file, the MCP servers beside it, the environment over both."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from clew.config import environ as variables
from clew.config.keylike import has_key, is_key, names_key
from clew.config.mcp import NAMES, ours, servers_of, unknown
from clew.config.place import config_path, placed
from clew.config.problems import ConfigError, Fault, Origin
from clew.config.quick import PASSWORD
from clew.config.reading import Document, json_file, toml
from clew.config.rules import judge
from clew.config.scan import Key
from clew.config.shape import WRONG, dotted, table
from clew.config.values import Config

MCP_FILE = "mcp.json"
REMEDY = (
    "a key does not belong into a file: put it into an environment variable, or into the keyring "
    "with `clew config key PROVIDER`"
)
IN_MCP = (
    "a key does not belong into a file: put it into an environment variable and write ${NAME} here"
)


class Loaded(Struct, frozen=True):
    """A configuration that is valid, and where its values come from."""

    config: Config
    path: Path
    """Of the file, whether it is there or not."""
    exists: bool = False
    mcp: Path | None = None
    """The mcp.json beside it, if there is one."""
    origins: Mapping[Key, Origin] = {}
    """Of each key that was given, tables included. What is not here has its default."""
    notes: tuple[Fault, ...] = ()
    """What is odd, but harms nothing."""

    def origin(self, *key: str | int) -> Origin | None:
        """Where a value comes from: a file and line, or a variable; None: it is the default."""
        return self.origins.get(key)


def load(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Loaded:
    """Read the configuration: `path`, or the file that CLEW_CONFIG or CLEW_HOME lead to. No file is
    an empty one. ConfigError with all that is wrong."""
    return _Loading(config_path(environ) if path is None else path, environ).load()


class _Loading:
    """One run of `load`."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.path, self.environ = path, environ
        self.data: dict[str, Any] = {}
        self.origins: dict[Key, Origin] = {}
        self.faults: list[Fault] = []
        self.said: list[Key] = []
        self.notes: list[Fault] = []

    def load(self) -> Loaded:
        document = self._open(toml, self.path)
        if document is not None:
            self._take(document)
        beside = self.path.parent / MCP_FILE
        others = self._open(json_file, beside)
        if others is not None:
            self._add_servers(others)
        self._rename_origins()
        self._variables()
        config = self._config()
        if self.faults:
            raise ConfigError(sorted(self.faults, key=_order))
        exists, mcp = document is not None, beside if others else None
        return Loaded(config, self.path, exists, mcp, self.origins, tuple(self.notes))

    def _open(self, read: Any, path: Path) -> Document | None:
        try:
            return cast("Document | None", read(path))
        except ConfigError as error:
            self.faults += error.problems
            return None

    def _say_new(self, key: Key, text: str) -> None:
        """Unless something in it is wrong already, so that it has a default instead."""
        if not any(each[: len(key)] == key for each in self.said):
            self._say(key, text)

    def _say(self, key: Key, text: str) -> None:
        self.said.append(key)
        self.faults.append(Fault(self._origin(key), dotted(key), text))

    def _origin(self, key: Key) -> Origin:
        while key and key not in self.origins:
            key = key[:-1]
        return self.origins.get(key) or Origin(str(self.path))

    def _take(self, document: Document) -> None:
        self.origins = {key: document.origin(key) for key in document.lines}
        self.data = _without_keys(document.data, (), self._say)
        servers = self.data.get("mcpServers")
        if isinstance(servers, dict):
            for name, server in cast(dict[str, Any], servers).items():
                if isinstance(server, dict):
                    servers[name] = ours(cast(dict[str, Any], server))

    def _add_servers(self, document: Document) -> None:
        """Those of mcp.json that the file has not. It is another program's as well: what is in it
        for others is left out."""
        table = "mcpServers" if "mcpServers" in document.data else "servers"
        mine = self.data.setdefault("mcpServers", {})
        for name, server in servers_of(document.data).items():
            if not isinstance(mine, dict) or name in mine:
                continue
            self._map_lines(document, table, name)
            if isinstance(server, dict):
                server = self._known_only(name, ours(cast(dict[str, Any], server)))
            mine[name] = server

    def _map_lines(self, document: Document, table: str, name: str) -> None:
        for key in document.lines:
            if key[:2] == (table, name):
                self.origins["mcpServers", *key[1:]] = document.origin(key)

    def _rename_origins(self) -> None:
        """What others call otherwise is where they wrote it."""
        for (section, *rest), origin in [*self.origins.items()]:
            if section == "mcpServers" and len(rest) == 2 and rest[1] in NAMES:
                self.origins.setdefault((section, rest[0], NAMES[str(rest[1])]), origin)

    def _known_only(self, name: str, server: dict[str, Any]) -> dict[str, Any]:
        for other in unknown(server):
            del server[other]
            self._note(("mcpServers", name, other), "means nothing to clew and is left out")
        for key, _ in _keys(server, ("mcpServers", name)):
            self._note(key, f"{IN_MCP}; clew reads it, and never shows it")
        nothing = {each for each, value in server.items() if value is None}
        return {each: value for each, value in server.items() if each not in nothing}

    def _note(self, key: Key, text: str) -> None:
        self.notes.append(Fault(self._origin(key), dotted(key), text))

    def _variables(self) -> None:
        for variable, text in variables.given(self.environ):
            self.origins[variable.key] = origin = Origin(variable.name, is_variable=True)
            value, wrong = variables.read(variable, text)
            if wrong:
                self.faults.append(Fault(origin, dotted(variable.key), wrong))
            else:
                _put(self.data, variable.key, value)
        for name, near in variables.misspelt(self.environ):
            hint = f"did you mean {near}?" if near else "docs/reference/configuration.md lists them"
            self.notes.append(
                Fault(Origin(name, is_variable=True), "", f"there is no such variable; {hint}")
            )

    def _config(self) -> Config:
        config: Any = table(Config, self.data, (), self._say)
        assert config is not WRONG
        judge(config, self._say_new)
        if config.store and ("store",) in self.origins and not self.environ.get("CLEW_STORE"):
            config = replace(config, store=placed(config.store, self.path.parent))
        return config


def _order(fault: Fault) -> tuple[bool, str, int]:
    """Files before variables, from top to bottom."""
    return fault.origin.line is None, fault.origin.name, fault.origin.line or 0


def _put(data: dict[str, Any], key: Key, value: Any) -> None:
    """Set a value in plain data. A section that is no table stays: it is said later."""
    *sections, last = map(str, key)
    for name in sections:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            return
    data[last] = value


def _without_keys(data: dict[str, Any], at: Key, say: Any) -> dict[str, Any]:
    """Plain data without what is a key, each said: nothing that comes later sees them."""
    for key, remedy in _keys(data, at):
        say(key, remedy)
        inner: Any = data
        for part in key[len(at) : -1]:
            inner = inner[part]
        if isinstance(inner, dict):
            del inner[key[-1]]
        else:
            inner[key[-1]] = ""
    return data


def _keys(value: Any, at: Key) -> list[tuple[Key, str]]:
    """All places of keys in plain data, with the remedy of each."""
    return [(key, _remedy(key)) for key in _places(value, at)]


def _places(value: Any, at: Key) -> Iterator[Key]:
    name = str(at[-1]) if at else ""
    if isinstance(value, dict):
        for inner, item in cast(dict[str, Any], value).items():
            if has_key(inner):
                yield (*at, inner)
            else:
                yield from _places(item, (*at, inner))
    elif isinstance(value, list):
        for number, item in enumerate(cast(list[Any], value)):
            yield from _places(item, (*at, number))
    elif isinstance(value, str) and (is_key(name, value) if _may_name(at) else has_key(value)):
        yield at


def _may_name(at: Key) -> bool:
    """Whether the last name says what the value is: not where it is our own, such as key_env, nor
    where it names a tool or a model's setting, such as prompt_cache_key."""
    if at[:2] == ("tools", "policy") or at[0] == "models" or isinstance(at[-1], int):
        return False
    own = {"providers": "key_env keyring", "mcpServers": ""}.get(str(at[0]), "").split()
    return not (len(at) == 3 and at[2] in own) and names_key(str(at[-1]))


def _remedy(key: Key) -> str:
    if key == ("store",):
        return PASSWORD
    if key[0] == "mcpServers" or "headers" in key:
        return IN_MCP
    return REMEDY
