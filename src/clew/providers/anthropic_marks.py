"""Where Anthropic's prompt cache is told to remember a request.

A mark stands on a block and covers all before it: tools, system prompt, messages. Three of the four
that a request may have are used: behind the system prompt; on the last thing said, before what
stands beside it (todos, notices); and where the request before had its mark, since the server looks
back over only twenty blocks. Marks are set when a request is sent, not when it is rendered: they
move from request to request, and what they mark stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from clew.context.sections import Item

Json = dict[str, Any]
_UNMARKABLE = ("thinking", "redacted_thinking")


def aside(items: Sequence[Item]) -> int:
    """How many parts at the end of a context no message of the log holds: those may be others, or
    gone, in the next request."""
    count = 0
    for at in range(len(items) - 1, -1, -1):
        entry = items[at].entry
        if not entry.messages:
            if not any(item.section == "tail" for item in items[:at]):
                break  # what a compaction wrote, for good
            count += len(entry.parts)
            continue
        own = tuple(part for message in entry.messages for part in message.parts)
        if entry.parts[: len(own)] == own:
            count += len(entry.parts) - len(own)
        break
    return count


def marked(payload: Json, beside: int, ttl: str | None = None) -> Json:
    """The payload with its marks; `beside`: blocks at its end that are not marked. The given one
    is left as it is."""
    mark = {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})
    made = dict(payload)
    for name in ("system", "tools"):  # a mark on the prompt covers the tools, which stand first
        if payload.get(name):
            blocks = cast(list[Json], payload[name])
            made[name] = [*blocks[:-1], blocks[-1] | {"cache_control": mark}]
            break
    messages: list[Json] = payload["messages"]
    places = _markable(messages)
    places = places[: len(places) - beside] if beside else places
    chosen = places[-1:]
    before = [
        place for place in places
        if chosen and place[0] < chosen[0][0] and messages[place[0]]["role"] == "user"
    ]  # fmt: skip
    for at, block in (*chosen, *before[-1:]):
        made["messages"] = _with_mark(made["messages"], at, block, mark)
    return made


def _markable(messages: Sequence[Json]) -> list[tuple[int, int]]:
    return [
        (at, number)
        for at, message in enumerate(messages)
        for number, block in enumerate(message["content"])
        if block["type"] not in _UNMARKABLE
    ]


def _with_mark(messages: list[Json], at: int, block: int, mark: Json) -> list[Json]:
    content = list(messages[at]["content"])
    content[block] = content[block] | {"cache_control": mark}
    return [*messages[:at], messages[at] | {"content": content}, *messages[at + 1 :]]
