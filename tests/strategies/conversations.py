"""A small model conversation, from which the builders of all formats make their files.

A builder writes `Talk` in its format; what its reader gives back, `heard`, has to be what the talk
says, `said`. What a format has no place for is named to both.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from clew.domain.messages import Role
from clew.domain.parts import Image, Part, Parts, Reasoning, Text, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.records import Event, Record

SECOND = 1_000_000
Line = tuple[Role, tuple[Any, ...]]


@dataclass(frozen=True)
class Call:
    """A tool call and its result."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str
    is_error: bool = False


@dataclass(frozen=True)
class Step:
    """One model call: what it thought, said and asked for. Never empty."""

    id: str
    thinking: str | None
    text: str | None
    calls: tuple[Call, ...]
    usage: Usage


@dataclass(frozen=True)
class Exchange:
    """What the user said, and the steps of the answer."""

    text: str
    image: bytes | None
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Talk:
    """A conversation. `started` is microseconds since 1970, a whole number of seconds; one may
    count a second for each record."""

    id: str
    """A UUID."""
    model: str
    cwd: str
    started: int
    exchanges: tuple[Exchange, ...]

    @property
    def usage(self) -> Usage:
        """Of all steps."""
        steps = [step.usage for exchange in self.exchanges for step in exchange.steps]
        return Usage(
            sum(each.input for each in steps),
            sum(each.output for each in steps),
            sum(each.cached for each in steps),
        )


# ---------------------------------------------------------------------- what it says


def said(talk: Talk) -> list[Line]:
    """One line for each message of the user, step, and tool result. Arguments are values."""
    lines: list[Line] = []
    for exchange in talk.exchanges:
        picture = (Image(data=exchange.image),) if exchange.image else ()
        lines.append((Role.USER, (Text(exchange.text), *picture)))
        for step in exchange.steps:
            parts: list[Any] = []
            if step.thinking:
                parts.append(Reasoning(step.thinking))
            if step.text:
                parts.append(Text(step.text))
            parts += [("call", call.id, call.name, call.arguments) for call in step.calls]
            if parts:
                lines.append((Role.ASSISTANT, tuple(parts)))
            lines += [
                (Role.TOOL, (ToolResult(call.id, call.result, is_error=call.is_error),))
                for call in step.calls
            ]
    return lines


def heard(events: Iterable[Event], chat: str | None = None) -> list[Line]:
    """What the records of a reader say (of one chat, or all), in the form of `said`."""
    return told(
        (event.role, event.parts, event.api_group)
        for event in events
        if isinstance(event, Record) and (chat is None or event.chat == chat)
    )


def told(messages: Iterable[tuple[Role, Parts, str | None]]) -> list[Line]:
    """What messages say, of which role, parts and API message are given, in the form of `said`:
    those of one API message joined, results apart, without what only a provider needs. Results
    that stand between the messages of one API message come after it."""
    lines: list[Line] = []
    group: str | None = None
    open_at = -1
    for role, said_parts, of_group in messages:
        parts = tuple(map(_plain, said_parts))
        if role is Role.TOOL:
            lines += [(Role.TOOL, (part,)) for part in parts]
        elif of_group is not None and of_group == group:
            lines[open_at] = (role, (*lines[open_at][1], *parts))
        else:
            group, open_at = of_group, len(lines)
            lines.append((role, parts))
    return lines


def _plain(part: Part) -> Any:
    match part:
        case ToolCall():
            return ("call", part.id, part.name, json.loads(part.arguments))
        case Reasoning():
            return Reasoning(part.text)
        case ToolResult():
            content = part.content
            if not isinstance(content, str) and all(isinstance(p, Text) for p in content):
                content = "".join(p.text for p in content if isinstance(p, Text))
            return ToolResult(part.call_id, content, is_error=part.is_error)
        case Image(data=data):
            return Image(data=data)
        case _:
            return part


def spent(events: Iterable[Event]) -> Usage:
    """What the records of a reader cost, each API message counted once, with its largest counts."""
    groups: dict[str, list[Usage]] = {}
    for at, event in enumerate(events):
        if isinstance(event, Record) and event.spent is not None:
            groups.setdefault(event.api_group or str(at), []).append(event.spent.usage)
    return Usage(
        sum(max(each.input for each in group) for group in groups.values()),
        sum(max(each.output for each in group) for group in groups.values()),
        sum(max(each.cached for each in group) for group in groups.values()),
    )


# ---------------------------------------------------------------------- strategies

LETTERS = st.characters(exclude_categories=("Cs",))
"""Everything but lone surrogates: NUL, controls, combining marks, right-to-left, emoji too."""
texts = st.text(LETTERS, min_size=1, max_size=30).filter(lambda text: bool(text.strip()))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(LETTERS, max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(LETTERS, max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
objects = st.dictionaries(st.text(LETTERS, max_size=8), values, max_size=3)
names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,9}", fullmatch=True)
uuids = st.uuids(version=4).map(str)
PNG = b"\x89PNG\r\n\x1a\n"


def _usage(counts: tuple[int, int, int]) -> Usage:
    cached, fresh, output = counts
    return Usage(input=cached + fresh, output=output, cached=cached)


usages = st.tuples(*[st.integers(0, 100_000)] * 3).map(_usage)


@st.composite
def steps(draw: st.DrawFn, thinking: bool, errors: bool) -> Step:
    """A step; the ids of its calls are unique everywhere."""
    mark = uuid.UUID(draw(uuids)).hex
    calls = tuple(
        Call(
            id=f"call_{mark[:20]}{at}",
            name=draw(names),
            arguments=draw(objects),
            result=draw(texts),
            is_error=draw(st.booleans()) if errors else False,
        )
        for at in range(draw(st.integers(0, 3)))
    )
    words = st.none() | texts if calls else texts
    thoughts = draw(st.none() | texts) if thinking else None
    return Step(f"msg_{mark[:24]}", thoughts, draw(words), calls, draw(usages))


@st.composite
def talks(
    draw: st.DrawFn, *, thinking: bool = True, images: bool = True, errors: bool = True
) -> Talk:
    """A conversation of one to four exchanges; the last may have no answer."""
    exchanges: list[Exchange] = []
    count = draw(st.integers(1, 4))
    for at in range(count):
        picture = st.none() | st.binary(max_size=20).map(lambda data: PNG + data)
        answer = st.lists(steps(thinking, errors), min_size=at < count - 1, max_size=3)
        exchanges.append(
            Exchange(draw(texts), draw(picture) if images else None, tuple(draw(answer)))
        )
    return Talk(
        id=draw(uuids),
        model=draw(st.sampled_from(("model-a", "model-b-1"))),
        cwd=draw(st.sampled_from(("/home/u/project", "/srv/データ"))),
        started=draw(st.integers(1_600_000_000, 1_900_000_000)) * SECOND,
        exchanges=tuple(exchanges),
    )
