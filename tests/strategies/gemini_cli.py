"""Builder of Gemini CLI's sessions: a document, or lines that write messages again as they grow."""

from __future__ import annotations

import base64
import json
from typing import Any

from strategies.conversations import SECOND, Call, Talk
from strategies.librechat import when


def document(talk: Talk) -> dict[str, Any]:
    """A talk as one document."""
    return header(talk) | {"messages": messages(talk)}


def lines(talk: Talk) -> list[dict[str, Any]]:
    """A talk as lines: an answer is written when it comes, with its tokens, and with its calls."""
    found = [header(talk)]
    for message in messages(talk):
        if message["type"] == "gemini":
            found.append({k: v for k, v in message.items() if k not in ("tokens", "toolCalls")})
            found.append({k: v for k, v in message.items() if k != "toolCalls"})
        found += [message, {"$set": {"lastUpdated": message["timestamp"]}}]
    return found


def jsonl(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def header(talk: Talk) -> dict[str, Any]:
    return {
        "sessionId": talk.id,
        "projectHash": "0" * 64,
        "startTime": when(talk.started),
        "lastUpdated": when(talk.started),
        "kind": "main",
    }


def messages(talk: Talk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def add(id: str, type: str, **fields: Any) -> None:
        at = when(talk.started + len(found) * SECOND)
        found.append({"id": id, "timestamp": at, "type": type, **fields})

    for number, exchange in enumerate(talk.exchanges):
        content: list[dict[str, Any]] = [{"text": exchange.text}]
        if exchange.image:
            data = base64.b64encode(exchange.image).decode()
            content.append({"inlineData": {"mimeType": "image/png", "data": data}})
        add(f"asked-{number}", "user", content=content)
        for step in exchange.steps:
            thoughts = [{"subject": "", "description": step.thinking}] if step.thinking else []
            tokens = {
                "input": step.usage.input,
                "output": step.usage.output,
                "cached": step.usage.cached,
                "thoughts": 0,
                "tool": 0,
                "total": step.usage.input + step.usage.output,
            }
            add(
                step.id,
                "gemini",
                content=step.text or "",
                thoughts=thoughts,
                tokens=tokens,
                model=talk.model,
                toolCalls=[_call(call) for call in step.calls],
            )
    return found


def _call(call: Call) -> dict[str, Any]:
    response = {"error" if call.is_error else "output": call.result}
    answer = {"id": call.id, "name": call.name, "response": response}
    return {
        "id": call.id,
        "name": call.name,
        "args": call.arguments,
        "status": "error" if call.is_error else "success",
        "result": [{"functionResponse": answer}],
        "resultDisplay": "shown",
    }
