"""What the parts of an OpenCode message become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from clew.domain.parts import File, Image, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.fields import (
    arguments,
    file_at,
    flag,
    ident,
    image_at,
    listed,
    mapping,
    media,
    number,
    text,
    unknown,
    whole,
)
from clew.importers.records import Spent


class Read:
    """The parts of one message: what it says, results of its tools, and what is beside it."""

    def __init__(self, model: str | None) -> None:
        self._model = model
        self.parts: list[Part] = []
        self.results: list[ToolResult] = []
        self.skipped: Counter[str] = Counter()
        self.compaction: dict[str, Any] | None = None
        self.children: dict[str, str] = {}
        """Sessions that a tool call began, and the calls' ids."""
        self.synthetic: list[int] = []
        """Positions of texts that the tool put in."""
        self.steps: list[dict[str, Any]] = []

    def take(self, parts: Iterable[dict[str, Any]]) -> Read:
        for part in parts:
            self._take(part)
        return self

    def _take(self, part: dict[str, Any]) -> None:
        match part.get("type"):
            case "text":
                self._text(part)
            case "reasoning":
                self._reasoning(part)
            case "tool":
                self._tool(part)
            case "file":
                self.parts.append(_file(part))
            case "subtask":
                self.parts.append(unknown(part))
            case "compaction":
                self.compaction = part
            case "step-finish":
                self.steps.append(part)
            case kind:
                self.skipped[f"part {text(kind)}"[:80]] += 1

    def _text(self, part: dict[str, Any]) -> None:
        if said := text(part.get("text")):
            if flag(part.get("synthetic")):
                self.synthetic.append(len(self.parts))
            self.parts.append(Text(said))

    def _reasoning(self, part: dict[str, Any]) -> None:
        about = mapping(part.get("metadata"))
        anthropic, openai = mapping(about.get("anthropic")), mapping(about.get("openai"))
        thought = Reasoning(
            text(part.get("text")) or "",
            model=self._model,
            signature=text(anthropic.get("signature")),
            data=text(anthropic.get("redactedData"))
            or text(openai.get("reasoningEncryptedContent")),
            id=text(openai.get("itemId")),
        )
        if thought.text or thought.signature or thought.data:
            self.parts.append(thought)

    def _tool(self, part: dict[str, Any]) -> None:
        """A call and, once it has run, its result."""
        id = ident(part.get("callID")) or ident(part.get("id"))
        name = text(part.get("tool"))
        if id is None or not name:
            self.parts.append(unknown(part))
            return
        state = mapping(part.get("state"))
        given = state.get("input")
        asked = text(state.get("raw")) if not given else None
        self.parts.append(ToolCall(id, name, asked or arguments(given)))
        about = mapping(state.get("metadata"))
        if child := ident(about.get("sessionId")) or ident(about.get("sessionID")):
            self.children[child] = id
        if (result := _result(id, name, state, about)) is not None:
            self.results.append(result)


def _result(id: str, name: str, state: dict[str, Any], about: dict[str, Any]) -> ToolResult | None:
    failed = state.get("status") == "error"
    if not failed and state.get("status") != "completed":
        return None
    said = text(state.get("output"))
    if failed:
        said = text(state.get("error")) or text(about.get("output"))
    files = tuple(_file(each) for each in map(mapping, listed(state.get("attachments"))))
    if not files:
        return ToolResult(id, said or "", name, failed)
    return ToolResult(id, (*((Text(said),) if said else ()), *files), name, failed)


def _file(part: dict[str, Any]) -> Image | File | Unknown:
    """A file by its address, which may be a data URL."""
    kind = media(part.get("mime"), "application/octet-stream")
    if kind.startswith("image/"):
        return image_at(part.get("url")) or unknown(part)
    found = file_at(part.get("url"), part.get("filename"))
    if found is None:
        return unknown(part)
    return File(media_type=kind, name=found.name, data=found.data, url=found.url)


def spent(info: dict[str, Any], steps: list[dict[str, Any]], model: str | None) -> Spent | None:
    """What a message cost: of its steps together, or as the message says where it has none. The
    tool counts cached tokens apart from input and reasoning apart from output."""
    counted = [each for each in steps if mapping(each.get("tokens"))] or [info]
    usages = [_usage(mapping(each.get("tokens"))) for each in counted]
    usage = Usage(
        input=sum(each.input for each in usages),
        output=sum(each.output for each in usages),
        cached=sum(each.cached for each in usages),
        reasoning=sum(each.reasoning for each in usages),
    )
    costs = [cost for each in counted if (cost := number(each.get("cost"))) is not None]
    if usage == Usage():
        return None
    return Spent(model=model or "unknown", usage=usage, cost=sum(costs) if costs else None)


def _usage(tokens: dict[str, Any]) -> Usage:
    cache = mapping(tokens.get("cache"))
    cached = whole(cache.get("read")) or 0
    reasoning = whole(tokens.get("reasoning")) or 0
    return Usage(
        input=(whole(tokens.get("input")) or 0) + cached + (whole(cache.get("write")) or 0),
        output=(whole(tokens.get("output")) or 0) + reasoning,
        cached=cached,
        reasoning=reasoning,
    )
