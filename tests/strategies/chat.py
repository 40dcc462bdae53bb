"""Messages of Chat Completions, which many tools keep."""

from __future__ import annotations

import base64
import json
from typing import Any

from strategies.conversations import Exchange, Step

Said = list[dict[str, Any]]


def question(exchange: Exchange) -> dict[str, Any]:
    """What the user said."""
    if not exchange.image:
        return {"role": "user", "content": exchange.text}
    image = {"type": "image_url", "image_url": {"url": data_url(exchange.image)}}
    return {"role": "user", "content": [{"type": "text", "text": exchange.text}, image]}


def answer(step: Step, **thinking: Any) -> dict[str, Any]:
    """What the model said; `thinking` stands where the tool keeps it, if there is any."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text}
    if step.thinking:
        message |= thinking
    if step.calls:
        message["tool_calls"] = calls(step)
    return message


def calls(step: Step) -> Said:
    """What the model asked for."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in step.calls
    ]


def results(step: Step) -> Said:
    """What its tools gave."""
    return [
        {"role": "tool", "tool_call_id": call.id, "content": call.result} for call in step.calls
    ]


def data_url(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"
