"""What goose's message content becomes. Results of tools stand in messages of the user there."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from clew.domain.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.importers.fields import (
    arguments,
    flag,
    ident,
    image,
    listed,
    mapping,
    text,
    unknown,
)

_ASIDE = (
    "toolConfirmationRequest",
    "actionRequired",
    "systemNotification",
    "conversationCompacted",
    "contextLengthExceeded",
    "summarizationRequested",
)
"""Types of content that are between the tool and the person."""


class Said(NamedTuple):
    """What a message says, the results in it, and what of it is not kept."""

    parts: tuple[Part, ...]
    results: tuple[ToolResult, ...]
    skipped: Counter[str]


def content(given: object, model: str | None, names: dict[str, str]) -> Said:
    """The content of a message. `names` are those of the calls so far, by their ids; the calls
    found here are added."""
    parts: list[Part] = []
    results: list[ToolResult] = []
    skipped: Counter[str] = Counter()
    for piece in listed(given):
        fields = mapping(piece)
        match fields.get("type"):
            case "toolResponse":
                results.append(_result(fields, names, skipped))
            case "toolRequest" | "frontendToolRequest":
                call = _call(fields)
                names[call.id] = call.name
                parts.append(call)
            case kind if kind in _ASIDE:
                skipped[str(kind)] += 1
            case _:
                if (part := _part(fields, piece, model)) is not None:
                    parts.append(part)
    return Said(tuple(parts), tuple(results), skipped)


def _part(fields: dict[str, Any], piece: object, model: str | None) -> Part | None:
    match fields.get("type"):
        case "text" if isinstance(fields.get("text"), str):
            return Text(fields["text"]) if fields["text"] else None
        case "thinking":
            thought = text(fields.get("thinking")) or ""
            signature = text(fields.get("signature")) or None
            if not (thought or signature):
                return None
            return Reasoning(thought, model=model, signature=signature)
        case "reasoning":
            return Reasoning(text(fields.get("text")) or "", model=model)
        case "redactedThinking":
            return Reasoning(model=model, data=text(fields.get("data")))
        case "image":
            return image(fields.get("data"), fields.get("mimeType")) or unknown(piece)
        case _:
            return unknown(piece)


def _call(fields: dict[str, Any]) -> ToolCall:
    """A call; one that goose could not read has the error in the place of its arguments."""
    asked = mapping(fields.get("toolCall"))
    value = mapping(asked.get("value"))
    id = ident(fields.get("id")) or "?"
    if not value:
        return ToolCall(id, "unreadable", arguments(asked.get("error")), kind="custom")
    return ToolCall(id, text(value.get("name")) or "unknown", arguments(value.get("arguments")))


def _result(fields: dict[str, Any], names: dict[str, str], skipped: Counter[str]) -> ToolResult:
    """A tool's answer: an error, or content of MCP (with its `isError` since 2026)."""
    id = ident(fields.get("id")) or "?"
    given = mapping(fields.get("toolResult"))
    if given.get("status") == "error":
        return ToolResult(id, text(given.get("error")) or "", names.get(id), is_error=True)
    value = given.get("value")
    about = mapping(value)
    found: list[Text | Image | Unknown] = []
    for piece in listed(value) or listed(about.get("content")):
        if not _for_model(mapping(piece)):
            skipped["content for the person only"] += 1
        elif isinstance(part := _part(mapping(piece), piece, None), Text | Image | Unknown):
            found.append(part)
    texts = [part.text for part in found if isinstance(part, Text)]
    plain = len(texts) == len(found)
    return ToolResult(
        id,
        "\n".join(texts) if plain else tuple(found),
        names.get(id),
        is_error=flag(about.get("isError")),
    )


def _for_model(piece: dict[str, Any]) -> bool:
    """Tools give some content twice, for the person and for the model."""
    audience = listed(mapping(piece.get("annotations")).get("audience"))
    return not audience or "assistant" in audience
