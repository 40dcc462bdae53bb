"""What a provider's prompt cache can hold of a request: a label of its beginning, and whether the
next request begins alike.

The beginning is the model, the tools, the system prompt and all messages but the last. How a model
is to answer (temperature, effort, tokens) is no part of it, nor are the marks that tell Anthropic
where to cache. Pure; takes time in the size of the request, and copies no image.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from clew.domain.values import MAX_DEPTH

FIELDS = ("model", "tools", "system", "instructions")
"""What of a payload stands before its messages. Another model has another cache."""
MARK = "cache_control"
_LONG = 4_096
"""Characters from which on a text is hashed by itself, in pieces, and not copied into JSON."""
_PIECE = 1 << 16
_HEX = 40


def prefix_of(payload: Mapping[str, Any], messages: str) -> str:
    """The label of what a cache can hold of a request: "N:hex", N messages and a hash over them and
    what stands before them. `messages`: the key of the list that grows, as `Body.messages`."""
    count = max(0, len(_listed(payload, messages)) - 1)
    return f"{count}:{_hash(payload, messages, count)}"


def continues(earlier: str, payload: Mapping[str, Any], messages: str) -> bool:
    """Whether a request begins as the one did that this label is of. False for what is no label."""
    number, colon, digest = earlier.partition(":")
    if not colon or not number.isascii() or not number.isdigit() or len(number) > 9:
        return False
    count = int(number)
    if count > len(_listed(payload, messages)):
        return False
    return _hash(payload, messages, count) == digest


def _listed(payload: Mapping[str, Any], messages: str) -> Sequence[Any]:
    """The messages. A request may also hold one text in their place."""
    found = payload.get(messages)
    if found is None:
        return ()
    return cast(list[Any], found) if isinstance(found, list) else (found,)


def _hash(payload: Mapping[str, Any], messages: str, count: int) -> str:
    """Over what stands before the messages, then over each of the first `count`. A line end parts
    them: JSON on one line holds none."""
    digest = hashlib.sha256()
    for value in ([payload.get(name) for name in FIELDS], *_listed(payload, messages)[:count]):
        text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
        digest.update(text.encode())
        digest.update(b"\n")
    return digest.hexdigest()[:_HEX]


def _plain(value: Any, depth: int = 0) -> Any:
    """A value without marks, long texts as what they hash to. What is nested deeper than a store
    takes (arguments that a model made up) stays as it is."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, str):
        return value if len(value) < _LONG else [len(value), _digest(value)]
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {name: _plain(inner, depth + 1) for name, inner in fields.items() if name != MARK}
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1) for inner in cast(Sequence[Any], value)]
    return value


def _digest(text: str) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(text), _PIECE):
        digest.update(text[start : start + _PIECE].encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
