"""The size of messages for a model: tokens, and bytes of a request.

A message's text is counted once, in the unit, and the count is stored with it; a model's own tokens
are that count times a scale. The scale of a family begins as a guess and is corrected by the usage
that providers report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import ceil
from statistics import median
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from clew.context.families import Family, family_of
from clew.context.images import file_tokens, image_tokens
from clew.context.shown import seen_parts
from clew.context.tokens import UNIT, count_parts, count_text
from clew.context.unknowns import in_data_url, opened
from clew.domain.messages import Message
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

FRAME = 4
"""Tokens around each message, call and result: who speaks, where it begins and ends."""
FRAME_BYTES = 100
"""Of JSON around each part of a request: keys, types, braces."""
UNSIZED = 512 * 1024
"""Bytes of an image or file of unknown size."""

FEWEST, NEWEST = 3, 20
"""Readings that make a scale, and how many of the newest do."""
LEAST, MOST, STEP = 0.5, 3.0, 0.05
SMALLEST = 200
"""Expected tokens of a request that says something about the scale; in a smaller one the schemas
of the tools, which are not counted, weigh more than the messages."""


class Reading(NamedTuple):
    """What a provider reported for a request. `expected`: what a measure of the family with scale
    1 makes of the same request; `reported`: the provider's input tokens, cached ones included;
    `after_attempt`: number of the last attempt at a compaction before the call, 0 if none."""

    model: str
    expected: int
    reported: int
    after_attempt: int = 0


class Measure(Struct, frozen=True):
    """Counts in tokens of a model: those of its texts times `scale`, and of its images."""

    family: Family
    scale: float

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self._scaled(count_text(text, self._encoding))

    def parts(self, parts: Parts) -> int:
        """Tokens of parts, images and files included."""
        return self._whole(count_parts(parts, self._encoding), parts)

    def message(self, message: Message) -> int:
        """Tokens of a message, with its frame. Its stored count is used where it is the one."""
        stored = message.tokens if self._encoding == UNIT else None
        parts = message.parts
        counted = count_parts(parts, self._encoding) if stored is None else stored
        return self._whole(counted + FRAME, parts)

    @property
    def _encoding(self) -> str:
        return self.family.encoding or UNIT

    def _scaled(self, counted: int) -> int:
        return ceil(counted * self.scale - 1e-9)

    def _whole(self, counted: int, parts: Parts) -> int:
        frames = FRAME * sum(isinstance(part, ToolCall | ToolResult) for part in parts)
        media = sum(self._medium(part) for part in _media(parts))
        return self._scaled(counted + frames) + media

    def _medium(self, part: Image | File | Reasoning) -> int:
        match part:
            case Image():
                return image_tokens(part, self.family.images)
            case File():
                return file_tokens(part)
            case Reasoning(data=data):  # encrypted: four bytes a token, in base64
                return ceil(len(data or "") * 3 / 16)


def _media(parts: Parts) -> Iterator[Image | File | Reasoning]:
    """All that costs something besides its text."""
    for part in parts:
        match part:
            case Image(url=str(url), width=None) if isinstance(
                there := in_data_url(url, part.detail), Image
            ):
                yield there
            case Image() | File() | Reasoning(data=str()):
                yield part
            case ToolResult(content=tuple(content)):
                yield from _media(content)
            case Unknown(value=value):
                yield from opened(value).media
            case _:
                pass


def measure_for(model: str | None, readings: Sequence[Reading] = ()) -> Measure:
    """The measure of a model, corrected by readings of its family, oldest first.

    The scale is the median of the newest: one odd report does not move it. It moves in steps, so
    that what the model sees does not change from one call to the next for a token.
    """
    family = family_of(model)
    ratios = [
        reading.reported / reading.expected for reading in readings
        if reading.expected >= SMALLEST and reading.reported > 0
        and family_of(reading.model).name == family.name
    ]  # fmt: skip
    if len(ratios) < FEWEST:
        return Measure(family, family.scale)
    scale = min(MOST, max(LEAST, median(ratios[-NEWEST:])))
    return Measure(family, round(round(scale / STEP) * STEP, 2))


def bytes_of(parts: Parts) -> int:
    """Bytes that parts take in the JSON of a request, images and files as base64, results as far as
    they are shown."""
    return sum(FRAME_BYTES + _bytes(part) for part in seen_parts(parts))


def _bytes(part: Part) -> int:
    match part:
        case Text(text=text):
            return _json(text)
        case Reasoning():
            return sum(_json(t) for t in (part.text, part.signature, part.data, part.id))
        case ToolCall():
            texts = (part.id, part.name, part.arguments, part.kind, part.kind)
            return sum(map(_json, texts)) + _json(part.extra)
        case ToolResult(content=str(content)):
            return _json(content) + _json(part.call_id) + _json(part.name)
        case ToolResult(content=content):
            pieces = bytes_of(content) if isinstance(content, tuple) else 0
            return pieces + _json(part.call_id) + _json(part.name)
        case Image():
            return _carried(part) + _json(part.detail)
        case File():
            return _carried(part) + _json(part.name) + _json(part.file_id)
        case Unknown(value=value):
            return _json(value)


def _carried(part: Image | File) -> int:
    """What is inside a request: the address, or else the bytes as base64."""
    if part.url is not None:
        return _json(part.url) + _json(part.media_type)
    size = len(part.data) if part.data is not None else part.size
    if size is None:  # a stored one whose draft named it by its hash alone, or a provider's file
        size = 0 if part.hash is None else UNSIZED
    return ceil(size / 3) * 4 + _json(part.media_type)


def _json(value: Any) -> int:
    """Bytes of a value as JSON in UTF-8; nothing for None."""
    if value is None:
        return 0
    try:
        return len(msgspec.json.encode(value))
    except (UnicodeEncodeError, TypeError, OverflowError, RecursionError):  # a lone surrogate, ...
        return len(json.dumps(value, default=str))
