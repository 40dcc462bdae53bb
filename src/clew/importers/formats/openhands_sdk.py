"""OpenHands' events of version 1, which its SDK writes: each names its `kind`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.messages import Role, known_role
from clew.domain.parts import Part, Parts, Reasoning, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.fields import (
    compact,
    ident,
    image_at,
    listed,
    mapping,
    meta,
    moment,
    number,
    text,
    whole,
)
from clew.importers.formats.openhands_context import Level, condensed
from clew.importers.pieces import Piece, calls, content, thoughts
from clew.importers.records import Event, Record, Skipped, Spent, Used

_FAILED = {"UserRejectObservation": "rejection_reason", "AgentErrorEvent": "error"}


def take(level: Level, event: dict[str, Any], kind: str, model: str | None) -> Iterator[Event]:
    """What an event says."""
    id = ident(event.get("id"))
    if id is None:
        yield Skipped("event without an id")
        return
    at = moment(event.get("timestamp"))
    if kind == "Condensation":
        yield condensed(level, event, id, at)
        return
    said = _said(event, kind, model)
    if said is None:
        yield Skipped(kind)
        return
    role, parts = said
    is_agents = role is Role.ASSISTANT
    level.records.append((id, False))
    yield Record(
        chat=level.chat,
        role=role,
        parts=parts,
        id=id,
        created_at=at,
        api_group=ident(event.get("llm_response_id")) if is_agents else None,
        model=model if is_agents else None,
        meta=meta(kind=kind, source=text(event.get("source")), summary=text(event.get("summary"))),
    )
    if kind == "SystemPromptEvent" and (tools := listed(event.get("tools"))):
        yield Skipped("SystemPromptEvent.tools", len(tools))


def _said(event: dict[str, Any], kind: str, model: str | None) -> tuple[Role, Parts] | None:
    """Who said what; None of an event that says nothing."""
    match kind:
        case "MessageEvent":
            message = mapping(event.get("llm_message"))
            role = message.get("role")
            if not known_role(role) or role == "tool":
                return None
            thinking = _thinking(message, model) if role == "assistant" else []
            more = pieces(event.get("extended_content"))
            return Role(role), (*thinking, *pieces(message.get("content")), *more)
        case "ActionEvent":
            call = next(iter(calls([event.get("tool_call")])), None)
            asked = call or ToolCall(
                ident(event.get("tool_call_id")) or "",
                ident(event.get("tool_name")) or "",
                compact(event.get("action")),
            )
            thought = pieces(event.get("thought"))
            return Role.ASSISTANT, (*_thinking(event, model), *thought, asked)
        case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
            return Role.TOOL, (_result(event, kind),)
        case "SystemPromptEvent":
            given = [event.get("system_prompt"), event.get("dynamic_context")]
            return Role.SYSTEM, pieces(given)
        case _:
            return None


def _result(event: dict[str, Any], kind: str) -> ToolResult:
    seen = mapping(event.get("observation"))
    failed = kind in _FAILED or seen.get("is_error") is True or bool(seen.get("error"))
    said = event.get(_FAILED[kind]) if kind in _FAILED else seen.get("content", seen.get("output"))
    found: list[Piece] = [
        *pieces(said or seen.get("error")),
        *pieces(event.get("extended_content")),
    ]
    only = text(said) if isinstance(said, str) and len(found) == 1 else None
    return ToolResult(
        ident(event.get("tool_call_id")) or "",
        only if only is not None else tuple(found) or "",
        ident(event.get("tool_name")),
        failed,
    )


def pieces(given: object) -> tuple[Piece, ...]:
    """Content; an image may have several URLs."""
    found: list[Piece] = []
    for each in () if given == [] else listed(given) or [given]:
        urls = listed(mapping(each).get("image_urls"))
        images = [image for url in urls if (image := image_at(url)) is not None]
        found += images or content(each if isinstance(each, str) else [each])
    return tuple(found)


def _thinking(given: dict[str, Any], model: str | None) -> list[Part]:
    item = given.get("responses_reasoning_item")
    details = listed(given.get("thinking_blocks")) or listed(given.get("reasoning_details"))
    found: list[Reasoning] = thoughts(
        details or ([item] if item else []), text(given.get("reasoning_content")), model
    )
    return [*found]


def usages(state: dict[str, Any], chat: str) -> Iterator[Used]:
    """What the conversation cost, by the purpose of the calls, as its state counts it."""
    for name, each in mapping(mapping(state.get("stats")).get("usage_to_metrics")).items():
        metrics = mapping(each)
        given = mapping(metrics.get("accumulated_token_usage"))
        usage = Usage(
            input=whole(given.get("prompt_tokens")) or 0,
            output=whole(given.get("completion_tokens")) or 0,
            cached=whole(given.get("cache_read_tokens")) or 0,
            reasoning=whole(given.get("reasoning_tokens")) or 0,
        )
        cost = number(metrics.get("accumulated_cost"))
        if usage != Usage() or cost:
            model = ident(metrics.get("model_name")) or "unknown"
            spent = Spent(model=model, usage=usage, cost=cost or None)
            yield Used(chat=chat, group=f"usage:{name[:100]}", spent=spent)
