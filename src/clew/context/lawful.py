"""Entries as every provider takes them, whatever the log holds.

Results stand in messages of tools, right behind the calls they answer; calls in messages of the
assistant; each call has an id and a name of the allowed characters that nothing else has. What this
decides about an entry depends only on the entries before it, so that what was rendered once is
rendered the same when more follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec
from msgspec import structs

from clew.context.entries import Entry
from clew.context.media import dumps, label, translated, utf8, words
from clew.context.shown import seen
from clew.context.wire import closed_calls, for_model
from clew.domain.chat import SHAPE, is_function_result
from clew.domain.messages import Role
from clew.domain.parts import (
    File,
    Image,
    Part,
    Parts,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

LONGEST_NAME = 64
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")


def lawful(entries: Iterable[Entry], model: str | None, longest: int) -> Iterator[Entry]:
    """The entries for a request to `model`; ids of calls have at most `longest` characters."""
    closed = closed_calls(_settled(_modern(map(seen, entries))))
    shown = (entry.having(for_model(entry.parts, model)) for entry in closed)
    return _distinct(shown, longest)


# ---------------------------------------------------------------------- Chat Completions of old


def _modern(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Calls and refusals that only the fields of a Chat Completions message told, as parts."""
    waiting: dict[str, str] = {}
    """Ids that were given to calls without one, by the name of the function."""
    for number, entry in enumerate(entries):
        if entry.meta is None:
            yield entry
            continue
        fields = _fields(entry.meta)
        fields.pop(SHAPE, None)
        parts = entry.parts
        if entry.role is Role.ASSISTANT:
            call: object = fields.pop("function_call", None)
            if isinstance(call, dict):
                made = _old_call(cast(dict[str, Any], call), number)
                waiting[made.name] = made.id
                parts = (*parts, made)
            refusal = fields.pop("refusal", None)
            if refusal and isinstance(refusal, str):
                parts = (*parts, Unknown({"type": "refusal", "refusal": refusal}))
        elif is_function_result(entry.meta):
            parts = tuple(_old_result(part, waiting) for part in parts)
        meta = {"chat": fields} if fields else None
        yield entry._replace(parts=parts, meta=meta)


def _fields(meta: Any) -> dict[str, Any]:
    """What a Chat Completions message had besides its parts, where it says anything."""
    chat: Any = cast(dict[str, Any], meta).get("chat") if isinstance(meta, dict) else None
    given = cast(dict[str, Any], chat) if isinstance(chat, dict) else {}
    return {name: value for name, value in given.items() if value not in (None, "", [], {})}


def _old_call(call: dict[str, Any], number: int) -> ToolCall:
    arguments = call.get("arguments")
    text = arguments if isinstance(arguments, str) else dumps(arguments or {})
    return ToolCall(f"function_{number}", str(call.get("name") or ""), text)


def _old_result(part: Part, waiting: dict[str, str]) -> Part:
    if isinstance(part, ToolResult):
        return structs.replace(part, call_id=waiting.pop(part.name or part.call_id, ""))
    return part


# ---------------------------------------------------------------------- parts in their places


def _settled(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, each part in a message of the role that may hold it."""
    for entry in entries:
        parts = tuple(map(_encodable, entry.parts))
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        others = tuple(part for part in parts if not isinstance(part, ToolResult))
        match entry.role:
            case Role.TOOL:
                yield entry.having(_within(results, others))
            case Role.ASSISTANT:
                yield entry.having(tuple(map(_named, others)))
                if results:
                    yield Entry(Role.TOOL, results, messages=entry.messages)
            case _:
                if results:
                    yield Entry(Role.TOOL, results, messages=entry.messages)
                if others or not results:
                    yield entry.having(_of_a_person(others, entry.role))


def _within(results: tuple[ToolResult, ...], others: Parts) -> Parts:
    """The results; what stood beside them goes into the last."""
    inside = tuple(part for part in others if isinstance(part, Text | Image | File | Unknown))
    if not inside or not results:
        return results
    *before, last = results
    content = (Text(last.content),) if isinstance(last.content, str) else last.content
    return (*before, structs.replace(last, content=(*content, *inside)))


def _of_a_person(parts: Parts, role: Role) -> Parts:
    """Of users and systems: no thinking, and calls only as text. Of systems no images either."""
    kept: list[Part] = []
    for part in parts:
        match part:
            case Reasoning():
                continue
            case ToolCall():
                kept.append(Text(dumps(msgspec.to_builtins(part))))
            case _ if role is Role.USER:
                kept.append(part)
            case Unknown(value=value):
                kept.append(Text(words(value)))
            case _:
                kept.append(_named(part))
    return tuple(kept)


def _named(part: Part) -> Part:
    """No provider takes images or files from any but users and tools."""
    return Text(label(part)) if isinstance(part, Image | File) else part


def _encodable(part: Part) -> Part:
    """A part that UTF-8 can hold, of a kind that clew knows where it is another API's."""
    match part:
        case Text(text=text) if not text.isascii():
            return Text(utf8(text))
        case ToolCall():
            arguments = utf8(part.arguments)
            return (
                part if arguments == part.arguments else structs.replace(part, arguments=arguments)
            )
        case ToolResult(content=str(content)) if not content.isascii():
            return structs.replace(part, content=utf8(content))
        case ToolResult(content=()):  # no API takes an empty list
            return structs.replace(part, content="")
        case ToolResult(content=tuple(pieces)):
            return structs.replace(part, content=cast(Any, tuple(map(_encodable, pieces))))
        case Reasoning(text=text) if not text.isascii():
            return structs.replace(part, text=utf8(text))
        case File(name=str(name)) if not name.isascii():
            return structs.replace(part, name=utf8(name))
        case Unknown(value=value):
            known = translated(value)
            return part if known is None else _encodable(known)
        case _:
            return part


# ---------------------------------------------------------------------- ids


def _distinct(entries: Iterable[Entry], longest: int) -> Iterator[Entry]:
    """The entries of `closed_calls`, each call and its result under an id of its own."""
    ids = _Ids(longest)
    waiting: dict[str, list[tuple[str, str]]] = {}
    """(id, name) that the calls of the message before were given, by the id they had."""
    for entry in entries:
        if entry.role is Role.ASSISTANT:
            waiting = {}
            entry = entry.having(tuple(_called(part, ids, waiting) for part in entry.parts))
        elif entry.role is Role.TOOL:
            entry = entry.having(tuple(_answered(part, waiting) for part in entry.parts))
        yield entry


def _called(part: Part, ids: _Ids, waiting: dict[str, list[tuple[str, str]]]) -> Part:
    if not isinstance(part, ToolCall):
        return part
    id, name = ids.of(part.id), tool_name(part.name)
    waiting.setdefault(part.id, []).append((id, name))
    arguments = part.arguments or ("" if part.kind == "custom" else "{}")
    if (id, name, arguments) == (part.id, part.name, part.arguments):
        return part
    return structs.replace(part, id=id, name=name, arguments=arguments)


def _answered(part: Part, waiting: dict[str, list[tuple[str, str]]]) -> Part:
    if not isinstance(part, ToolResult):
        return part
    id, name = waiting[part.call_id].pop(0)
    if id == part.call_id and part.name in (None, name):
        return part
    return structs.replace(part, call_id=id, name=None if part.name is None else name)


def tool_name(name: str) -> str:
    """A name of a tool with the characters that providers allow."""
    return _NOT_ALLOWED.sub("_", name)[:LONGEST_NAME] or "unknown"


class _Ids:
    """Ids that were given out. The first that asks for one gets it, the next gets it numbered."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, id: str) -> str:
        wanted = _NOT_ALLOWED.sub("_", id)[: self._longest] or "call"
        found, number = wanted, self._next.get(wanted, 2)
        while found in self._used:
            end = f"_{number}"
            found, number = wanted[: self._longest - len(end)] + end, number + 1
        self._next[wanted] = number
        self._used.add(found)
        return found
