"""A builder of ATIF trajectories, which the format's own package accepts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strategies.chat import data_url
from strategies.conversations import SECOND, Step, Talk


def write(talk: Talk, path: Path) -> Path:
    path.write_text(json.dumps(document(talk)), "utf-8")
    return path


def document(talk: Talk) -> dict[str, Any]:
    """A talk as a trajectory."""
    steps: list[dict[str, Any]] = []

    def put(**step: Any) -> None:
        number = len(steps) + 1
        at = datetime.fromtimestamp(talk.started / SECOND + number, UTC)
        steps.append({"step_id": number, "timestamp": at.isoformat(), **step})

    for exchange in talk.exchanges:
        message: Any = exchange.text
        if exchange.image is not None:
            url = data_url(exchange.image)
            source = {"media_type": "image/png", "path": url}
            message = [
                {"type": "text", "text": exchange.text},
                {"type": "image", "source": source},
            ]
        put(source="user", message=message)
        for step in exchange.steps:
            put(source="agent", **_step(step))
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "trajectory_id": talk.id,
        "agent": {"name": "tester", "version": "1", "model_name": talk.model},
        "steps": steps,
    }


def _step(step: Step) -> dict[str, Any]:
    found: dict[str, Any] = {
        "message": step.text or "",
        "metrics": {
            "prompt_tokens": step.usage.input,
            "completion_tokens": step.usage.output,
            "cached_tokens": step.usage.cached,
        },
    }
    if step.thinking:
        found["reasoning_content"] = step.thinking
    if step.calls:
        found["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": call.arguments}
            for call in step.calls
        ]
        found["observation"] = {
            "results": [{"source_call_id": c.id, "content": c.result} for c in step.calls]
        }
    return found
