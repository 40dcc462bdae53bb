"""Parts of Gemini's API, and of the records in which Gemini CLI keeps calls with their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.domain.parts import File, Image, Part, Reasoning, Text, ToolCall, ToolResult
from clew.importers.fields import (
    arguments,
    decoded,
    flag,
    ident,
    image,
    listed,
    mapping,
    media,
    text,
    unknown,
)

_FAILED = ("error", "cancelled")


class Said(NamedTuple):
    """What a record says, and apart from it the results of tools that stand in it."""

    parts: tuple[Part, ...]
    results: tuple[ToolResult, ...]


class Content:
    """Reads the records of one session. Calls without ids get ids that depend on their place, and
    a result without one answers the oldest open call of its name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._answered: set[str] = set()
        self._waiting: dict[str, deque[str]] = {}
        """Ids of the calls of a name, oldest first; those that have their answer may be among."""

    def of(self, message: dict[str, Any], place: str) -> Said:
        """A record of a session file, or a turn of the API. `place` names it in its chat."""
        given = message.get("content")
        found = list(self._pieces(given if given else message.get("parts"), place, message))
        in_content = any(isinstance(part, ToolCall | Reasoning) for part in found)
        thoughts = () if in_content else tuple(_thoughts(message))
        known = {part.id for part in found if isinstance(part, ToolCall)}
        results = [part for part in found if isinstance(part, ToolResult)]
        parts: list[Part] = [part for part in found if not isinstance(part, ToolResult)]
        for number, call in enumerate(map(mapping, listed(message.get("toolCalls"))), 1):
            id = ident(call.get("id")) or f"{place}/call{number}"
            if id not in known:
                parts.append(self._called(id, call.get("name"), call.get("args"), None))
            results.extend(self._embedded(id, call))
        return Said((*thoughts, *parts), tuple(results))

    def _pieces(self, given: object, place: str, message: dict[str, Any]) -> Iterator[Part]:
        for number, piece in enumerate(_each(given), 1):
            if isinstance(piece, str):
                if piece:
                    yield Text(piece)
            elif piece is not None:
                yield from self._piece(mapping(piece), piece, f"{place}/call{number}", message)

    def _piece(
        self, fields: dict[str, Any], piece: object, place: str, message: dict[str, Any]
    ) -> Iterator[Part]:
        if isinstance(said := fields.get("text"), str):
            signature = text(fields.get("thoughtSignature"))
            if flag(fields.get("thought")):
                yield Reasoning(said, model=text(message.get("model")), signature=signature)
            elif said:
                yield Text(said)
        elif call := mapping(fields.get("functionCall")):
            id = ident(call.get("id")) or place
            signature = fields.get("thoughtSignature")
            yield self._called(id, call.get("name"), call.get("args"), signature)
        elif answer := mapping(fields.get("functionResponse")):
            yield from self._answer(answer, (), failed=False)
        else:
            yield blob(fields) or unknown(piece)

    def _called(self, id: str, name: object, args: object, signature: object) -> ToolCall:
        extra = {"thoughtSignature": signature} if isinstance(signature, str) else None
        called = text(name) or "unknown"
        self._names[id] = called
        self._waiting.setdefault(called, deque()).append(id)
        return ToolCall(id, called, arguments(args), extra=extra)

    def _embedded(self, id: str, call: dict[str, Any]) -> Iterator[ToolResult]:
        """The result in a call's own record: functionResponse parts, with images beside them."""
        failed = call.get("status") in _FAILED
        given = call.get("result")
        pieces = _each(given)
        beside = tuple(found for piece in pieces if (found := blob(mapping(piece))))
        answers = [mapping(mapping(piece).get("functionResponse")) for piece in pieces]
        for answer in answers:
            if answer and ident(answer.get("id")) in (None, id):
                yield from self._answer({**answer, "id": id}, beside, failed)
                return
        shown = text(call.get("result")) or text(call.get("resultDisplay"))
        if shown and call.get("status") in ("success", *_FAILED):
            yield from self._answer({"id": id, "response": {"output": shown}}, beside, failed)

    def _answer(
        self, answer: dict[str, Any], beside: tuple[Image | File, ...], failed: bool
    ) -> Iterator[ToolResult]:
        """Nothing when the call has its answer: a history holds it again, as a turn of its own."""
        name = text(answer.get("name"))
        id = ident(answer.get("id")) or self._oldest(name)
        if id in self._answered:
            return
        self._answered.add(id)
        response = mapping(answer.get("response"))
        said = _output(response)
        content: tuple[Text | Image | File, ...] = (*((Text(said),) if said else ()), *beside)
        yield ToolResult(
            call_id=id,
            content=content if beside else said,
            name=name or self._names.get(id),
            is_error=failed or (len(response) == 1 and "error" in response),
        )

    def _oldest(self, name: str | None) -> str:
        waiting = self._waiting.get(name or "", deque())
        while waiting:
            if (id := waiting.popleft()) not in self._answered:
                return id
        return f"unasked{len(self._answered) + 1}"


def _each(given: object) -> list[Any]:
    """The pieces of what may be one piece or a list of them."""
    return listed(given) or ([given] if given else [])


def _output(response: dict[str, Any]) -> str:
    """What a tool said: plain where the tool gave nothing but text."""
    if len(response) == 1:
        word, value = next(iter(response.items()))
        if word in ("output", "error", "content") and isinstance(value, str):
            return value
    return arguments(response) if response else ""


def _thoughts(message: dict[str, Any]) -> Iterator[Reasoning]:
    model = text(message.get("model"))
    for thought in map(mapping, listed(message.get("thoughts"))):
        both = (text(thought.get("subject")), text(thought.get("description")))
        if said := "\n".join(line for line in both if line):
            yield Reasoning(said, model=model)


def blob(fields: dict[str, Any]) -> Image | File | None:
    """An image or file, in the record or by its address."""
    if inline := mapping(fields.get("inlineData")):
        kind = media(inline.get("mimeType"), "application/octet-stream")
        if kind.startswith("image/"):
            return image(inline.get("data"), kind)
        data = decoded(inline.get("data"))
        return None if data is None else File(media_type=kind, data=data)
    if named := mapping(fields.get("fileData")):
        kind = media(named.get("mimeType"), "application/octet-stream")
        url = text(named.get("fileUri"))
        if url is None:
            return None
        is_image = kind.startswith("image/")
        return Image(media_type=kind, url=url) if is_image else File(media_type=kind, url=url)
    return None
