"""A whole answer as the pieces that a stream would have brought, and back. For providers that have
the answer at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from clew.domain.parts import Parts, Reasoning, Text, ToolCall
from clew.providers.api import CallDelta, ReasoningDelta, Reply, StreamEvent, TextDelta

_WORD = re.compile(r"\s*\S+\s*|\s+")


def words(text: str) -> list[str]:
    """A text in pieces of about a word, which joined are the text."""
    return _WORD.findall(text)


def pieces(reply: Reply) -> Iterator[StreamEvent]:
    """The deltas of a reply, in its order, the reply itself last."""
    calls = 0
    for part in reply.parts:
        match part:
            case Text(text=text):
                yield from map(TextDelta, words(text))
            case Reasoning(text=text):
                yield from map(ReasoningDelta, words(text))
            case ToolCall(id=id, name=name, arguments=arguments):
                yield CallDelta(calls, id, name)
                yield CallDelta(calls, arguments=arguments)
                calls += 1
            case _:
                pass
    yield reply


def gathered(events: Iterable[StreamEvent]) -> Parts:
    """The parts that these deltas make: the thinking, the text, the calls."""
    text = thought = ""
    calls: dict[int, ToolCall] = {}
    for event in events:
        match event:
            case TextDelta(text=piece):
                text += piece
            case ReasoningDelta(text=piece):
                thought += piece
            case CallDelta(index=index, id=id, name=name, arguments=arguments):
                before = calls.get(index, ToolCall("", "", ""))
                calls[index] = ToolCall(
                    id or before.id, name or before.name, before.arguments + arguments
                )
            case Reply():
                pass
    said = (Reasoning(thought),) if thought else ()
    return (*said, *((Text(text),) if text else ()), *calls.values())
