"""Builders of LangGraph's checkpoints, written as its serializer writes them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from strategies.chat import data_url
from strategies.conversations import SECOND, Talk

CLASSES = {"human": "Human", "ai": "AI", "tool": "Tool", "system": "System", "remove": "Remove"}
STARTED = 1_700_000_000


def message(kind: str, id: str | None, content: Any = "", **more: Any) -> msgspec.msgpack.Ext:
    """A message as an extension that names its class."""
    fields = {"content": content, "type": kind, "id": id, "name": None, "additional_kwargs": {},
              "response_metadata": {}} | more  # fmt: skip
    name = f"{CLASSES[kind]}Message"
    body = [f"langchain_core.messages.{kind}", name, fields, "model_validate_json"]
    return msgspec.msgpack.Ext(5, msgspec.msgpack.encode(body))


class Threads:
    """A file of checkpoints that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = STARTED
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = OFF")
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute(
            "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT DEFAULT '', "
            "checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, "
            "metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
        )
        self.db.execute(
            "CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT DEFAULT '', "
            "checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT, type TEXT, value BLOB)"
        )

    def put(
        self,
        id: Any,
        parent: Any,
        messages: Any,
        *,
        thread: Any = "t",
        space: str = "",
        kind: Any = "msgpack",
        data: Any = None,
        **channels: Any,
    ) -> None:
        """A checkpoint, a second after the one before."""
        self.clock += 1
        ts = datetime.fromtimestamp(self.clock, UTC).isoformat()
        value = {"v": 4, "ts": ts, "channel_values": {"messages": messages, **channels}}
        if data is None:
            data = json.dumps(value).encode() if kind == "json" else msgspec.msgpack.encode(value)
        self.db.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, NULL)",
            (thread, space, id, parent, kind, data),
        )

    def close(self) -> Path:
        self.db.close()
        return self.path


def write(talk: Talk, path: Path) -> Path:
    """A talk as a thread, a checkpoint for each message."""
    threads = Threads(path)
    threads.clock = talk.started // SECOND
    with closing(threads.db):
        found: list[Any] = []
        for each in messages(talk):
            found.append(each)
            at = len(found)
            threads.put(f"{at:06}", f"{at - 1:06}" if at > 1 else None, found, thread=talk.id)
    return path


def messages(talk: Talk) -> list[Any]:
    found: list[Any] = []
    for exchange in talk.exchanges:
        content: Any = exchange.text
        if exchange.image is not None:
            url = data_url(exchange.image)
            content = [
                {"type": "text", "text": exchange.text},
                {"type": "image_url", "image_url": {"url": url}},
            ]
        found.append(message("human", f"m{len(found)}", content))
        for step in exchange.steps:
            blocks: list[Any] = []
            if step.thinking:
                blocks.append({"type": "thinking", "thinking": step.thinking})
            if step.text:
                blocks.append({"type": "text", "text": step.text})
            calls = [{"name": c.name, "args": c.arguments, "id": c.id} for c in step.calls]
            usage = {
                "input_tokens": step.usage.input,
                "output_tokens": step.usage.output,
                "input_token_details": {"cache_read": step.usage.cached},
            }
            found.append(
                message("ai", f"m{len(found)}", blocks, tool_calls=calls, usage_metadata=usage)
            )
            for call in step.calls:
                status = "error" if call.is_error else "success"
                found.append(
                    message(
                        "tool", f"m{len(found)}", call.result, tool_call_id=call.id, status=status
                    )
                )
    return found
