"""Builders of Codex rollouts and of what `codex exec --json` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clew.domain.turns import Usage
from strategies.chat import data_url
from strategies.conversations import SECOND, Step, Talk

ENVIRONMENT = "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"


def write_codex(talk: Talk, folder: Path, **head: Any) -> Path:
    """A talk as a rollout. `head` is added to its session_meta."""
    path = folder / f"rollout-2026-01-02T03-04-05-{talk.id}.jsonl"
    rows = [meta(talk, **head), *turns(talk)]
    path.write_text("".join(line(row, at, talk) + "\n" for at, row in enumerate(rows)), "utf-8")
    return path


def line(row: tuple[str, dict[str, Any]], at: int, talk: Talk) -> str:
    """A line, written `at` seconds after the beginning."""
    written = datetime.fromtimestamp(talk.started / SECOND + at, UTC)
    stamp = written.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"timestamp": stamp, "type": row[0], "payload": row[1]})


def meta(talk: Talk, **more: Any) -> tuple[str, dict[str, Any]]:
    """The head of a rollout."""
    head = {
        "id": talk.id, "cwd": talk.cwd, "originator": "codex_cli_rs", "cli_version": "0.150.0",
        "source": "cli", "git": {"branch": "main", "commit_hash": "0" * 40},
    }  # fmt: skip
    return "session_meta", head | more


def turns(talk: Talk) -> Iterator[tuple[str, dict[str, Any]]]:
    """All that follows the head."""
    total = Usage()
    for exchange in talk.exchanges:
        yield "turn_context", {"cwd": talk.cwd, "model": talk.model, "effort": "high"}
        yield message("user", exchange.text, exchange.image)
        yield "event_msg", {"type": "user_message", "message": exchange.text}
        for step in exchange.steps:
            yield from answer(step)
            used = step.usage
            total = Usage(
                total.input + used.input, total.output + used.output, total.cached + used.cached
            )
            yield tokens(used, total)
            for call in step.calls:
                yield result(call.id, call.result, call.is_error)


def message(role: str, words: str, image: bytes | None = None) -> tuple[str, dict[str, Any]]:
    """A message of the history."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words}]
    if image:
        content.append({"type": "input_image", "image_url": data_url(image)})
    return "response_item", {"type": "message", "role": role, "content": content}


def answer(step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    """One answer of the model."""
    if step.thinking:
        summary = [{"type": "summary_text", "text": step.thinking}]
        yield "response_item", {"type": "reasoning", "summary": summary, "encrypted_content": "x"}
    if step.text:
        yield message("assistant", step.text)
    for call in step.calls:
        asked = json.dumps(call.arguments)
        yield "response_item", {
            "type": "function_call", "name": call.name, "arguments": asked, "call_id": call.id,
        }  # fmt: skip


def result(call: str, words: str, is_error: bool = False) -> tuple[str, dict[str, Any]]:
    """What a tool answered."""
    output: Any = {"content": words, "success": False} if is_error else words
    return "response_item", {"type": "function_call_output", "call_id": call, "output": output}


def tokens(last: Usage, total: Usage) -> tuple[str, dict[str, Any]]:
    """What a call of the model cost, and all so far."""
    info = {"last_token_usage": _counts(last), "total_token_usage": _counts(total)}
    return "event_msg", {"type": "token_count", "info": info}


def _counts(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input, "cached_input_tokens": usage.cached,
        "output_tokens": usage.output, "reasoning_output_tokens": 0,
    }  # fmt: skip


def write_exec(talk: Talk, path: Path) -> Path:
    """A talk as what a run prints, one turn for each step. The user's words are not in it."""
    rows: list[dict[str, Any]] = [{"type": "thread.started", "thread_id": talk.id}]
    for exchange in talk.exchanges:
        for step in exchange.steps:
            rows += [{"type": "turn.started"}, *_printed(step)]
            rows.append({"type": "turn.completed", "usage": _counts(step.usage)})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _printed(step: Step) -> Iterator[dict[str, Any]]:
    if step.thinking:
        yield _item({"type": "reasoning", "text": step.thinking})
    if step.text:
        yield _item({"type": "agent_message", "text": step.text})
    for call in step.calls:
        item = {"type": "mcp_tool_call", "server": "s", "tool": call.name}
        yield {"type": "item.started", "item": {"id": "item_0", **item}}
        said = {"content": [{"type": "text", "text": call.result}]}
        answer = {"error": {"message": call.result}} if call.is_error else {"result": said}
        yield _item(item | answer | {"arguments": call.arguments, "status": "completed"})


def _item(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "item_0", **item}}
