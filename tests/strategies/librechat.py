"""Builder of LibreChat's exports: as a tree, or as a list."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from strategies.conversations import SECOND, Talk

ROOT = "00000000-0000-0000-0000-000000000000"


def when(at: int) -> str:
    """A time as JavaScript writes it."""
    return datetime.fromtimestamp(at // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def conversation(talk: Talk, *, recursive: bool) -> dict[str, Any]:
    """A talk, which has no errors and images."""
    messages = _messages(talk)
    if recursive:
        for above, below in pairwise(messages):
            above["children"] = [below]
        messages[-1]["children"] = []
    return {
        "conversationId": talk.id,
        "endpoint": "openAI",
        "title": "Talk",
        "exportAt": "now",
        "branches": True,
        "recursive": recursive,
        "options": {"model": talk.model, "promptPrefix": "Be brief."},
        "messages": messages[:1] if recursive else messages,
    }


def _messages(talk: Talk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def add(id: str, by_user: bool, **fields: Any) -> None:
        at = talk.started + len(found) * SECOND
        found.append(
            {
                "messageId": id,
                "parentMessageId": found[-1]["messageId"] if found else ROOT,
                "conversationId": talk.id,
                "isCreatedByUser": by_user,
                "createdAt": when(at),
                **fields,
            }
        )

    for number, exchange in enumerate(talk.exchanges):
        add(f"asked-{number}", True, text=exchange.text, sender="User")
        for step in exchange.steps:
            content: list[dict[str, Any]] = []
            if step.thinking:
                content.append({"type": "think", "think": step.thinking})
            if step.text:
                content.append({"type": "text", "text": step.text})
            for call in step.calls:
                tool = {"id": call.id, "name": call.name, "args": json.dumps(call.arguments)}
                tool |= {"output": call.result, "type": "tool_call"}
                content.append({"type": "tool_call", "tool_call": tool})
            counts = {"promptTokens": step.usage.input, "tokenCount": step.usage.output}
            add(step.id, False, content=content, text="", model=talk.model, **counts)
    return found
