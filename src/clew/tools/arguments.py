"""The arguments of a call, from the text that the model wrote."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from clew.errors import InputError

_SHOWN = 200
"""Characters of a wrong text that are shown."""


def decode(text: str) -> dict[str, Any]:
    """The object that `text` is; none at all is an empty one.

    Raises InputError, with a text that tells a model how to mend the call.
    """
    if not text.strip():
        return {}
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the arguments are no JSON ({error}); send one JSON object, with all quotes and "
            f"braces closed. They began with: {text[:_SHOWN]}"
        ) from None
    if not isinstance(value, dict):
        kind = _KINDS.get(type(cast(object, value)), "null")
        raise InputError(
            f'the arguments are {kind}; send one JSON object, as {{}} or {{"name": "value"}}'
        )
    return cast(dict[str, Any], value)


_KINDS: dict[type, str] = {
    str: "a string", list: "an array", bool: "a boolean", int: "a number", float: "a number",
}  # fmt: skip
