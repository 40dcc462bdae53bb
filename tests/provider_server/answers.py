"""What a scripted model answers, as values."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

Fault = Literal[
    "cut", "cut-done", "no-finish", "done-only", "malformed", "empty", "error", "silent", "html"
]
_numbers = count(1)


@dataclass(frozen=True)
class Call:
    """A tool call. `id` None: the server sends none. `extra`: fields beside the call's own."""

    name: str
    arguments: str
    id: str | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """A request is taken, and never answered."""


HANG = Hang()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer. `usage`: as the API has it, instead of what the server counts by itself."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    model: str | None = None
    """As the server names what answered; None: as it was asked for."""
    encrypted: str | None = None
    """Of a reasoning item (Responses)."""
    refusal: str | None = None
    finish: str | None = None
    """None: what fits."""
    usage: dict[str, Any] | None = None
    cached: int | None = None
    """Tokens from the cache; None: as much as the request shares with the one before."""
    cost: float | None = None
    """As OpenRouter puts it into the usage."""
    piece: int = 8
    delay: float = 0.0
    gate: threading.Event | None = None
    hold_at: int = 1
    fault: Fault | None = None

    @property
    def finish_reason(self) -> str:
        """As Chat Completions says it."""
        return self.finish or ("tool_calls" if self.calls else "stop")


def say(text: str = "", **more: Any) -> Answer:
    """A text."""
    return Answer(text=text, **more)


def use(*calls: Call, text: str = "", **more: Any) -> Answer:
    """Tool calls, after a text if there is one."""
    return Answer(text=text, calls=calls, **more)


def refuse(text: str, **more: Any) -> Answer:
    """A refusal."""
    return Answer(refusal=text, **more)


def call(
    name: str, arguments: Mapping[str, Any] | str = "{}", id: str | None = "", **extra: Any
) -> Call:
    """A tool call, with a new id where none is given."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Call(name, text, f"call_{next(_numbers)}" if id == "" else id, extra)


def pieces(text: str, size: int) -> list[str]:
    """A text in pieces of so many characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]
