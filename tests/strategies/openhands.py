"""A builder of OpenHands' event streams."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from strategies import chat
from strategies.conversations import SECOND, Call, Step, Talk


def write(talk: Talk, path: Path) -> Path:
    """A talk as events; ids have gaps."""
    events: list[dict[str, Any]] = []
    ids = count(0, 3)

    def put(**event: Any) -> int:
        id = next(ids)
        at = datetime.fromtimestamp(talk.started / SECOND + id, UTC).replace(tzinfo=None)
        events.append({"id": id, "timestamp": at.isoformat(), **event})
        return id

    for exchange in talk.exchanges:
        pictures = None
        if exchange.image is not None:
            pictures = [chat.data_url(exchange.image)]
        said = {"content": exchange.text, "image_urls": pictures}
        put(source="user", action="message", args=said)
        for step in exchange.steps:
            if not step.calls:
                args = {"content": step.text, "image_urls": None}
                put(source="agent", action="message", args=args)
                continue
            for call in step.calls:
                about = _about(talk, step, call)
                cause = put(source="agent", action="run", args={}, tool_call_metadata=about)
                kind = "error" if call.is_error else "run"
                put(source="agent", observation=kind, content=call.result, extras={},
                    cause=cause, tool_call_metadata=about)  # fmt: skip
    path.write_text(json.dumps(events), "utf-8")
    return path


def _about(talk: Talk, step: Step, call: Call) -> dict[str, Any]:
    message = chat.answer(step, reasoning_content=step.thinking)
    return {
        "function_name": call.name,
        "tool_call_id": call.id,
        "total_calls_in_response": len(step.calls),
        "model_response": {
            "id": step.id,
            "model": talk.model,
            "choices": [{"message": message}],
            "usage": {
                "prompt_tokens": step.usage.input,
                "completion_tokens": step.usage.output,
                "prompt_tokens_details": {"cached_tokens": step.usage.cached},
            },
        },
    }


def write_new(talk: Talk, folder: Path) -> Path:
    """A talk as the folder of a conversation of version 1."""
    (folder / "events").mkdir(parents=True)
    state = {"id": talk.id, "agent": {"llm": {"model": talk.model}}}
    state["workspace"] = {"working_dir": talk.cwd}
    (folder / "base_state.json").write_text(json.dumps(state), "utf-8")
    ids = count()

    def put(kind: str, source: str, **event: Any) -> None:
        number = next(ids)
        at = datetime.fromtimestamp(talk.started / SECOND + number, UTC).isoformat()
        given = {"id": f"{talk.id}-{number}", "kind": kind, "source": source, "timestamp": at}
        path = folder / f"events/event-{number:05}-{talk.id}.json"
        path.write_text(json.dumps(given | event), "utf-8")

    for exchange in talk.exchanges:
        said: list[dict[str, Any]] = [{"type": "text", "text": exchange.text}]
        if exchange.image is not None:
            said.append({"type": "image", "image_urls": [chat.data_url(exchange.image)]})
        put("MessageEvent", "user", llm_message={"role": "user", "content": said})
        for step in exchange.steps:
            words = [{"type": "text", "text": step.text}] if step.text else []
            thought: dict[str, Any] = {"reasoning_content": step.thinking}
            if not step.calls:
                message = {"role": "assistant", "content": words} | thought
                put("MessageEvent", "agent", llm_message=message, llm_response_id=step.id)
            for at, call in enumerate(step.calls):
                first = {"thought": words} | thought if at == 0 else {"thought": []}
                asked = {"id": call.id, "name": call.name, "arguments": json.dumps(call.arguments)}
                put("ActionEvent", "agent", tool_call=asked, llm_response_id=step.id, **first)
            for call in step.calls:
                answer: dict[str, Any] = {"tool_call_id": call.id}
                if call.is_error:
                    put("AgentErrorEvent", "agent", error=call.result, **answer)
                else:
                    seen = {"content": [{"type": "text", "text": call.result}]}
                    put("ObservationEvent", "environment", observation=seen, **answer)
    return folder
