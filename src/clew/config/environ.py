"""Environment variables that stand for keys of the file: CLEW_MODEL, CLEW_LIMITS_STEPS."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct

from clew.config.nearest import nearest
from clew.config.scan import Key
from clew.config.shape import known_fields, plain_kind, wanted
from clew.config.values import Config

PREFIX = "CLEW_"
_BOOLS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False,
}  # fmt: skip


class Variable(Struct, frozen=True):
    """A variable and the key that it stands for."""

    name: str
    key: Key
    kind: Any


@cache
def variables() -> dict[str, Variable]:
    """All, by name: of the texts at the top, `fallback`, and the plain values of the sections."""
    found: dict[str, Variable] = {}
    for name, field in known_fields(Config).items():
        kind = plain_kind(field.type)
        if kind is str or get_origin(kind) is list:
            found |= _variable((name,), kind)
        elif isinstance(kind, type) and issubclass(kind, Struct):
            for inner, each in known_fields(kind).items():
                plain = plain_kind(each.type)
                if plain in (bool, int, float, str) or get_origin(plain) is Literal:
                    found |= _variable((name, inner), plain)
    return found


def _variable(key: tuple[str, ...], kind: Any) -> dict[str, Variable]:
    name = PREFIX + "_".join(key).upper()
    return {name: Variable(name, key, kind)}


def given(environ: Mapping[str, str]) -> list[tuple[Variable, str]]:
    """Those that are set and not empty."""
    return [(each, environ[name]) for name, each in variables().items() if environ.get(name)]


def misspelt(environ: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Variables that begin like those of a section and are none, with the nearest that is."""
    known = variables()
    sections = {f"{PREFIX}{each.key[0]}_".upper() for each in known.values() if len(each.key) > 1}
    return [
        (name, nearest(name, known)) for name in sorted(environ)
        if name.startswith(tuple(sections)) and name not in known
    ]  # fmt: skip


def read(variable: Variable, text: str) -> tuple[Any, str | None]:
    """The value that a variable's text means; or what is wrong with it."""
    kind, text = variable.kind, text if variable.kind is str else text.strip()
    if kind is bool:
        value: Any = _BOOLS.get(text.lower())
    elif kind in (int, float):
        value = _number(kind, text)
    elif get_origin(kind) is Literal:
        value = text if text in get_args(kind) else None
    elif get_origin(kind) is list:
        value = [part.strip() for part in text.split(",") if part.strip()]
    else:
        value = text
    return value, None if value is not None else f"cannot be read; give {wanted(kind)}"


def _number(kind: type[int] | type[float], text: str) -> int | float | None:
    try:
        return kind(text) if len(text) < 40 else None
    except ValueError:
        return None
