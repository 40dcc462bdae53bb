"""Real sessions of tests/data, as Chat Completions messages with their tool calls."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import clew
from benchmarks.envs import ROOT
from clew.domain.messages import Message
from clew.domain.parts import Reasoning, ToolCall, ToolResult, result_text
from clew.importers.bring import import_paths

_FOLDER = ROOT / "tests/data/transcripts"
PI = "pi/real-large-session.jsonl"
CLAUDE_CODE = "claude-code/real-long-sidechains-summary.jsonl"


@cache
def chat(name: str) -> list[dict[str, Any]]:
    """All messages of a file, those of sub-agents after those of their conversation."""
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder, "clew.db")) as store:
        profile = store.profile("bench")
        import_paths(profile, _FOLDER / name)
        main = profile.open(profile.list().items[0].id)
        found = [main, *(profile.open(child.id) for child in reversed(main.children()))]
        return [
            said
            for conversation in found
            for message in conversation.messages()
            for said in chat_of(message)
        ]


def chat_of(message: Message) -> list[dict[str, Any]]:
    """Texts, calls and results: what a model is given, pictures left out. A message per result."""
    if results := [part for part in message.parts if isinstance(part, ToolResult)]:
        return [
            {"role": "tool", "tool_call_id": result.call_id, "content": result_text(result)}
            for result in results
        ]
    said: dict[str, Any] = {"role": str(message.role), "content": message.text}
    calls = [
        {"id": p.id, "type": "function", "function": {"name": p.name, "arguments": p.arguments}}
        for p in message.parts
        if isinstance(p, ToolCall)
    ]
    if calls:
        said["tool_calls"] = calls
    only_thinking = all(isinstance(part, Reasoning) for part in message.parts)
    return [] if only_thinking else [said]
