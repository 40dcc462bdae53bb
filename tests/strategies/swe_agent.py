"""Builders of the files of SWE-agent and mini-swe-agent, with tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from strategies import chat
from strategies.conversations import Talk


def write_traj(talk: Talk, path: Path) -> Path:
    """A talk as the history of a run."""
    history: list[dict[str, Any]] = [{"role": "system", "content": "You fix.", "agent": "main"}]
    for message in messages(talk):
        message["message_type"] = "action" if message["role"] == "assistant" else "observation"
        if "tool_call_id" in message:
            message["tool_call_ids"] = [message.pop("tool_call_id")]
        history.append(message | {"agent": "main"})
    path.write_text(json.dumps({"history": history, "trajectory": [], "info": {}}), "utf-8")
    return path


def write_mini(talk: Talk, path: Path) -> Path:
    """A talk as a trajectory of the newer form, with what each call cost."""
    found = [{"role": "system", "content": "You fix."}, *messages(talk)]
    steps = iter([step for exchange in talk.exchanges for step in exchange.steps])
    for message in found:
        if message["role"] == "assistant":
            usage = next(steps).usage
            counts = {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.cached},
            }
            message["extra"] = {"response": {"model": talk.model, "usage": counts}}
    document = {"info": {}, "messages": found, "trajectory_format": "mini-swe-agent-1.1"}
    path.write_text(json.dumps(document), "utf-8")
    return path


def messages(talk: Talk) -> list[dict[str, Any]]:
    """As Chat Completions has them."""
    found: list[dict[str, Any]] = []
    for exchange in talk.exchanges:
        found.append({"role": "user", "content": exchange.text})
        for step in exchange.steps:
            blocks = [{"type": "thinking", "thinking": step.thinking}]
            found += [chat.answer(step, thinking_blocks=blocks), *chat.results(step)]
    return found
