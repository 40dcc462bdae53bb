"""Keys of providers: from the environment, or from the system's keyring. Never from a file, never
in a log, an error or a repr."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from clew.config.known import KNOWN
from clew.config.place import home
from clew.config.values import ProviderConfig
from clew.errors import InputError

SERVICE = "clew"
"""In the keyring; the user is the provider's name."""
STORED = "keyring"
"""File in the home of clew with the names of the providers whose key is in the keyring, so that the
others need not ask it: it takes a tenth of a second to load, and may ask the person to unlock."""
_NAME = re.compile(r"[\w.-]{1,40}", re.ASCII)


class KeyringUnavailable(InputError):
    """There is no keyring that can be used."""


class Secret:
    """Holds a key without showing it; `reveal` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The key, for the one call that sends it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


class Held(Struct, frozen=True):
    """Where a provider's key is."""

    state: Literal["environment", "keyring", "missing", "none"]
    """`none`: the provider needs no key."""
    variable: str | None = None
    """The variable that has it, or the one that could."""

    @property
    def shown(self) -> str:
        """For people."""
        if self.state == "environment":
            return f"set in {self.variable}"
        if self.state == "missing":
            return f"missing (set {self.variable}, or `clew config key`)"
        return "in the keyring" if self.state == "keyring" else "not needed"


def variables(name: str, config: ProviderConfig) -> tuple[str, ...]:
    """Environment variables that may hold a provider's key, in this order."""
    known = KNOWN[name].keys if name in KNOWN else ()
    if config.key_env is not None and config.key_env not in known:
        return (config.key_env,)
    if name in KNOWN:
        return known
    if config.base_url is None:  # the kind's own server
        return {
            "openai": KNOWN["openai"].keys, "openai-responses": KNOWN["openai"].keys,
            "anthropic": KNOWN["anthropic"].keys,
        }.get(config.kind, ())  # fmt: skip
    return ()


def secret(
    name: str, config: ProviderConfig, environ: Mapping[str, str] = os.environ
) -> str | None:
    """The key of a provider; None when there is none. KeyringUnavailable when it should be in the
    keyring, and that cannot be asked."""
    for variable in variables(name, config):
        if value := environ.get(variable, "").strip():
            return value
    if config.keyring or name in stored(environ):
        return _ask(name)
    return None


def held(name: str, config: ProviderConfig, environ: Mapping[str, str] = os.environ) -> Held:
    """Where the key of a provider is, without asking the keyring."""
    names = variables(name, config)
    for variable in names:
        if environ.get(variable, "").strip():
            return Held("environment", variable)
    if config.keyring or name in stored(environ):
        return Held("keyring")
    local = config.kind == "archivist" or (not names and config.key_env is None)
    return Held("none") if local else Held("missing", names[0])


def stored(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Providers whose key `clew config key` has put into the keyring."""
    try:
        return frozenset(_list(environ).read_text("utf-8").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def store(name: str, key: str, environ: Mapping[str, str] = os.environ) -> None:
    """Put a key into the keyring. KeyringUnavailable; InputError for what can be no key."""
    _check(name)
    key = key.strip()
    if not key or not key.isprintable() or any(sign.isspace() for sign in key):
        raise InputError("that is no key: it is empty, or has blanks or line breaks in it")
    _keyring("set_password", SERVICE, name, key)
    if _ask(name) != key:
        raise KeyringUnavailable(
            "the keyring took the key and does not have it: it is one that keeps nothing; choose "
            "another (`keyring --list-backends`), or put the key into the environment"
        )
    _remember(stored(environ) | {name}, environ)


def remove(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Take a key out of the keyring; False when there was none. KeyringUnavailable."""
    _check(name)
    there = _ask(name) is not None
    if there:
        _keyring("delete_password", SERVICE, name)
    if name in stored(environ):
        _remember(stored(environ) - {name}, environ)
    return there


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError("that is no name of a provider; it has letters, digits, '-', '_' and '.'")


def _ask(name: str) -> str | None:
    return _keyring("get_password", SERVICE, name)


def _keyring(function: str, *given: str) -> Any:
    """Call the keyring. Its errors may repeat what they were given, and are not chained."""
    failed = ""
    try:
        module: Any = import_module("keyring")
        errors: Any = import_module("keyring.errors")
    except ImportError:
        failed = "the package is not installed (pip install keyring)"
    else:
        try:
            return getattr(module, function)(*given)
        except errors.NoKeyringError:
            failed = "this system has none that can be used"
        except (errors.KeyringError, RuntimeError, OSError) as error:
            failed = f"it refused ({type(error).__name__}); unlock it"
    variable = (KNOWN[given[1]].keys if given[1] in KNOWN else ()) or ("a variable",)
    raise KeyringUnavailable(
        f"the keyring cannot be used: {failed}; or put the key of {given[1]} into the environment "
        f"({variable[0]}, or what `key_env` of providers.{given[1]} names)"
    )


def _list(environ: Mapping[str, str]) -> Path:
    return home(environ) / STORED


def _remember(names: frozenset[str], environ: Mapping[str, str]) -> None:
    path = _list(environ)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(f"{name}\n" for name in sorted(names)))
    fresh.replace(path)
