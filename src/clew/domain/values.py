"""JSON values from outside: checked before they are written, and the same when read back."""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

import msgspec

from clew.errors import InputError

MAX_DEPTH = 100
"""Lists and dictionaries inside each other: what every JSON reader on any stack can read."""

MAX_BITS = 1024

KEPT_APART = " "
"""First character of a JSON text in which a high surrogate stands right before a low one.

Every JSON reader makes one character of two such escapes. In a text marked like this only
surrogates are escaped that are characters of their own; other characters are as they are.
"""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([dD][89a-fA-F][0-9a-fA-F]{2})|.)")
_quick = msgspec.json.Encoder().encode
_encode_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_PLAIN = frozenset((str, bool, type(None)))

_Path = tuple[Any, object] | None
"""The path above, and the last step."""


def check_json(what: str, value: object) -> None:
    """Refuse what JSON cannot hold unchanged, naming the place."""
    rest: list[tuple[object, int, _Path]] = [(value, 0, None)]
    while rest:
        item, depth, path = rest.pop()
        if type(item) in _PLAIN:
            continue
        if isinstance(item, dict):
            for key, inner in cast(dict[object, object], item).items():
                if not isinstance(key, str):
                    raise _refusal(what, path, f"has the key {key!r}; keys are texts in JSON")
                rest.append((inner, depth + 1, (path, key)))
        elif isinstance(item, list | tuple):
            pieces = cast(list[object], item)
            rest.extend((inner, depth + 1, (path, i)) for i, inner in enumerate(pieces))
        elif problem := _problem(item):
            raise _refusal(what, path, problem)
        if depth > MAX_DEPTH:
            problem = f"is nested more than {MAX_DEPTH} deep, or holds itself; pass a flatter value"
            raise _refusal(what, None, problem)


def _problem(item: object) -> str | None:
    """Why this is no text or number of JSON."""
    if isinstance(item, float):
        return None if math.isfinite(item) else f"is {item}, which JSON lacks; pass None or a text"
    if isinstance(item, int):
        digits = "is a number of too many digits; pass it as a text"
        return digits if item.bit_length() > MAX_BITS else None
    if isinstance(item, str):
        return None
    kind = type(item).__name__
    return f"is a {kind}, which is no JSON value; pass texts, numbers, lists or dictionaries"


def _refusal(what: str, path: _Path, problem: str) -> InputError:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step!r}]")
    return InputError(f"{what}{''.join(reversed(steps))} {problem}")


def json_text(value: Any, what: str = "value") -> str | None:
    """A JSON value for a TEXT column (meta, settings, receipts); None stays None.

    Escaped, so that a NUL or lone surrogate inside never reaches the column as such.
    """
    return None if value is None else escape_text(value, what)


def escape_text(value: Any, what: str = "value") -> str:
    """As `json_text`, of None too. ASCII unless surrogates have to be kept apart."""
    check_json(what, value)
    try:
        quick = _quick(value)
        if quick.isascii():  # most: what the other makes of it, in a tenth of the time
            return quick.decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    try:
        text = _encode_ascii(value)
        if "\\ud" not in text:
            return text
        raw = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not a JSON value: {error}") from None
    if _PAIR.search(raw) is None:
        return text
    return KEPT_APART + _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", raw)


def json_value(text: str | None) -> Any:
    """Back from `json_text`."""
    if text is None:
        return None
    if text.startswith(KEPT_APART):
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[0], text)
    return json.loads(text)
