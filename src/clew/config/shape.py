"""From plain data, as TOML and JSON give it, to the values of values.py, and all that does not fit.

Errors name kinds and never repeat a text: what stands in the wrong place may be a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from clew.config.keylike import names_key, shown_name
from clew.config.nearest import meant, nearest
from clew.config.scan import Key

Say = Callable[[Key, str], None]
"""Reports that something is wrong at a place."""


class _Wrong:
    """In the place of a value that could not be read; said already."""


WRONG = _Wrong()
FOR_KEYS = (
    "a provider's key comes from the environment variable that `key_env` names, or from the "
    "keyring: `clew config key PROVIDER`"
)
_KINDS: Mapping[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text",
    list: "a list", dict: "a table",
}  # fmt: skip


def kind_of(value: object) -> str:
    """A value's kind in words."""
    return _KINDS.get(type(value), "a date or time")


@cache
def known_fields(kind: type[Struct]) -> dict[str, FieldInfo]:
    """The fields of a section by their names in the file."""
    return {field.encode_name: field for field in fields(kind)}


def table(kind: type[Struct], data: Mapping[str, Any], at: Key, say: Say) -> Any:
    """A section from its table: what fits is set, the rest said. WRONG when it cannot be made."""
    known, found = known_fields(kind), dict[str, Any]()
    for name, value in data.items():
        if name in known:
            found[name] = shaped(known[name].type, value, (*at, name), say)
        else:
            hint = FOR_KEYS if names_key(name) else meant(name, known)
            say((*at, name), f"there is no such key; {hint}")
    for name, field in known.items():
        if field.default is NODEFAULT and field.default_factory is NODEFAULT and name not in found:
            say((*at, name), f"is missing; give {wanted(field.type)}")
            found[name] = WRONG
    kept = {name: value for name, value in found.items() if value is not WRONG}
    missing = any(found.get(n) is WRONG and f.required for n, f in known.items())
    return WRONG if missing else kind(**kept)


def shaped(kind: Any, value: Any, at: Key, say: Say) -> Any:
    """A value as its field wants it; WRONG, and said, when it is something else."""
    kind = plain_kind(kind)
    origin = get_origin(kind)
    if origin is dict and isinstance(value, dict):
        return _dict(kind, cast(dict[str, Any], value), at, say)
    if origin is list and isinstance(value, list):
        items = [
            shaped(get_args(kind)[0], item, (*at, number), say)
            for number, item in enumerate(cast(list[Any], value))
        ]
        return [item for item in items if item is not WRONG]
    if origin is Literal:
        return _choice(get_args(kind), value, at, say)
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, dict):
        return table(kind, cast(dict[str, Any], value), at, say)
    if kind is Any:
        return _plain(value, at, say)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        say(at, f"is {kind_of(value)}; give {wanted(kind)}")
        return WRONG
    if kind is float and not isfinite(value):
        say(at, "is no finite number; give one that is")
        return WRONG
    return value


def _dict(kind: Any, value: dict[str, Any], at: Key, say: Say) -> dict[str, Any]:
    inner = get_args(kind)[1]
    items = {name: shaped(inner, item, (*at, name), say) for name, item in value.items()}
    return {name: item for name, item in items.items() if item is not WRONG}


def _choice(choices: tuple[str, ...], value: Any, at: Key, say: Say) -> Any:
    if isinstance(value, str) and value in choices:
        return value
    near = nearest(value, choices) if isinstance(value, str) else None
    hint = f"; did you mean {near}?" if near else ""
    say(at, f"is none of what is allowed: {', '.join(choices)}{hint}")
    return WRONG


def _plain(value: Any, at: Key, say: Say) -> Any:
    """Anything that JSON can say."""
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        return {name: _plain(item, (*at, name), say) for name, item in items}
    if isinstance(value, list):
        listed = cast(list[Any], value)
        return [_plain(item, (*at, number), say) for number, item in enumerate(listed)]
    if isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    say(at, f"is {'no finite number' if isinstance(value, float) else kind_of(value)}; give "
        "what JSON can say")  # fmt: skip
    return WRONG


def plain_kind(kind: Any) -> Any:
    """The type of a field without None."""
    if get_origin(kind) in (Union, UnionType):
        return next(each for each in get_args(kind) if each is not type(None))
    return kind


def wanted(kind: Any) -> str:
    """A type in words: a list of texts."""
    kind = plain_kind(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(args)}"
    if origin is list:
        return f"a list, each {wanted(args[0])}"
    if origin is dict:
        return "a table" if args[1] is Any else f"a table, each value {wanted(args[1])}"
    return _KINDS.get(kind, "a table")


def dotted(key: Key) -> str:
    """A place as TOML writes it: models."openai/gpt-5".window, fallback[0]."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            part = shown_name(part)
            plain = part.replace("-", "").replace("_", "")
            bare = plain.isascii() and plain.isalnum()
            text += ("." if text else "") + (part if bare else f'"{part}"')
    return text
