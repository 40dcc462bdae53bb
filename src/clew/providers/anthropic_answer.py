"""The events of Anthropic's stream, put together to a reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from clew.domain.parts import Part, Reasoning, Text, ToolCall
from clew.domain.turns import Usage
from clew.providers.api import (
    CallDelta,
    Price,
    ReasoningDelta,
    Reply,
    Stop,
    StreamEvent,
    TextDelta,
)

_STOPS: dict[str, Stop] = {
    "end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "max_tokens": "length",
    "model_context_window_exceeded": "length", "tool_use": "tool_calls", "refusal": "refusal",
}  # fmt: skip
WRITING, WRITING_HOUR = 1.25, 2.0
"""What a token costs that the cache shall hold for five minutes, or an hour: so many of input."""


class Block(Struct):
    """A block of content while it comes."""

    kind: str
    text: str = ""
    id: str = ""
    name: str = ""
    signature: str = ""
    data: str = ""
    call: int = 0


class Answer:
    """Takes events, gives what a screen shows of each, and the reply at the end. `model`: as it was
    asked for, the one that may be given its thinking back."""

    def __init__(self, model: str, price: Price | None) -> None:
        self.complete = False
        """Whether the server said that this was all."""
        self.stop: str | None = None
        self._asked, self._price = model, price
        self._model: str | None = None
        self._id: str | None = None
        self._blocks: dict[int, Block] = {}
        self._usage: dict[str, int] = {}
        self._refused: str | None = None
        self._hour = 0

    def take(self, event: Any) -> Iterator[StreamEvent]:
        """One event."""
        match event.type:
            case "message_start":
                self._model, self._id = event.message.model, event.message.id
                self._count(event.message.usage)
            case "content_block_start":
                yield from self._begin(event.index, event.content_block)
            case "content_block_delta":
                yield from self._more(event.index, event.delta)
            case "message_delta":
                self.stop = event.delta.stop_reason or self.stop
                details = getattr(event.delta, "stop_details", None)
                self._refused = getattr(details, "explanation", None) or self._refused
                self._count(event.usage)
            case "message_stop":
                self.complete = True
            case _:
                pass

    @property
    def parts(self) -> tuple[Part, ...]:
        """What came so far."""
        made = (self._part(self._blocks[at]) for at in sorted(self._blocks))
        return tuple(part for part in made if part is not None)

    def reply(self) -> Reply:
        """All of it."""
        parts = self.parts
        if self.stop == "refusal" and not any(isinstance(part, Text) for part in parts):
            parts = (*parts, Text(self._refused or "The provider refused to answer that."))
        usage = self._usage
        read, wrote = usage.get("cache_read_input_tokens", 0), self._wrote
        return Reply(
            parts=parts, stop=_STOPS.get(self.stop or "", "other"), model=self._model, id=self._id,
            usage=Usage(
                input=usage.get("input_tokens", 0) + read + wrote,
                output=usage.get("output_tokens", 0), cached=read,
                reasoning=usage.get("thinking_tokens", 0),
            ),
            cost=self._cost(),
        )  # fmt: skip

    @property
    def _wrote(self) -> int:
        return self._usage.get("cache_creation_input_tokens", 0)

    def _cost(self) -> float | None:
        """US dollars; what is written into the cache costs more than other input."""
        if self._price is None:
            return None
        usage, hour = self._usage, min(self._hour, self._wrote)
        read = usage.get("cache_read_input_tokens", 0)
        plain = Usage(
            input=usage.get("input_tokens", 0) + read, output=usage.get("output_tokens", 0),
            cached=read,
        )  # fmt: skip
        written = (self._wrote - hour) * WRITING + hour * WRITING_HOUR
        return self._price.cost(plain) + written * self._price.input / 1e6

    def _count(self, usage: Any) -> None:
        """Counts grow; a later event says the whole, and None where it has nothing new."""
        for name in (
            "input_tokens", "output_tokens", "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ):  # fmt: skip
            value = getattr(usage, name, None)
            if isinstance(value, int):
                self._usage[name] = value
        thought = getattr(getattr(usage, "output_tokens_details", None), "thinking_tokens", None)
        if isinstance(thought, int):
            self._usage["thinking_tokens"] = thought
        hour = getattr(getattr(usage, "cache_creation", None), "ephemeral_1h_input_tokens", None)
        self._hour = hour if isinstance(hour, int) else self._hour

    def _begin(self, at: int, block: Any) -> Iterator[StreamEvent]:
        kind = block.type
        made = self._blocks[at] = Block(kind)
        if kind == "text" and block.text:
            made.text = block.text
            yield TextDelta(block.text)
        elif kind == "thinking":
            made.text, made.signature = block.thinking, block.signature or ""
        elif kind == "redacted_thinking":
            made.data = block.data
        elif kind == "tool_use":
            made.id, made.name = block.id, block.name
            made.call = sum(1 for each in self._blocks.values() if each.kind == kind) - 1
            yield CallDelta(made.call, block.id, block.name)

    def _more(self, at: int, delta: Any) -> Iterator[StreamEvent]:
        block = self._blocks.setdefault(at, Block("text"))
        match delta.type:
            case "text_delta":
                block.text += delta.text
                yield TextDelta(delta.text)
            case "thinking_delta":
                block.text += delta.thinking
                yield ReasoningDelta(delta.thinking)
            case "signature_delta":
                block.signature += delta.signature
            case "input_json_delta" if delta.partial_json:
                block.text += delta.partial_json
                yield CallDelta(block.call, arguments=delta.partial_json)
            case _:
                pass

    def _part(self, block: Block) -> Part | None:
        match block.kind:
            case "text":
                return Text(block.text) if block.text else None
            case "thinking":
                return Reasoning(block.text, self._asked, block.signature or None)
            case "redacted_thinking":
                return Reasoning(model=self._asked, data=block.data)
            case "tool_use":
                return ToolCall(block.id, block.name, block.text or "{}")
            case _:
                return None  # of tools that run at the provider, none of which were offered
