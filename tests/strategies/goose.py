"""Builder of goose's sessions: a file of lines, and the database that replaced it."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from strategies.conversations import SECOND, Call, Talk

SCHEMA = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
    user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user',
    working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    schedule_id TEXT, provider_name TEXT, model_config_json TEXT, parent_session_id TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
    session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
    timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT
);
CREATE TABLE usage_ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL, model TEXT, input_tokens INTEGER, output_tokens INTEGER,
    total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL,
    cost_source TEXT, is_compaction INTEGER DEFAULT 0
);
"""


def messages(talk: Talk) -> list[dict[str, Any]]:
    """The messages of a talk; those of a step's results are in the user's name."""
    found: list[dict[str, Any]] = []

    def add(role: str, content: list[dict[str, Any]]) -> None:
        at = talk.started // SECOND + len(found)
        id = f"msg_{len(found)}_{talk.id}"
        found.append({"id": id, "role": role, "created": at, "content": content})

    for exchange in talk.exchanges:
        asked: list[dict[str, Any]] = [{"type": "text", "text": exchange.text}]
        if exchange.image:
            data = base64.b64encode(exchange.image).decode()
            asked.append({"type": "image", "data": data, "mimeType": "image/png"})
        add("user", asked)
        for step in exchange.steps:
            content: list[dict[str, Any]] = []
            if step.thinking:
                content.append({"type": "thinking", "thinking": step.thinking, "signature": "s"})
            if step.text:
                content.append({"type": "text", "text": step.text})
            add("assistant", content + [_call(call) for call in step.calls])
            if step.calls:
                add("user", [_result(call) for call in step.calls])
    return found


def _call(call: Call) -> dict[str, Any]:
    value = {"name": call.name, "arguments": call.arguments}
    return {
        "type": "toolRequest",
        "id": call.id,
        "toolCall": {"status": "success", "value": value},
    }


def _result(call: Call) -> dict[str, Any]:
    content = [{"type": "text", "text": call.result}]
    result: dict[str, Any] = {"status": "error", "error": call.result}
    if not call.is_error:
        result = {"status": "success", "value": {"content": content, "isError": False}}
    return {"type": "toolResponse", "id": call.id, "toolResult": result}


def jsonl(talk: Talk, stored: list[dict[str, Any]]) -> bytes:
    header = {"id": talk.id, "description": "Talk", "working_dir": talk.cwd, "message_count": 1}
    return b"".join(json.dumps(record).encode() + b"\n" for record in (header, *stored))


def write_database(path: Path, talk: Talk, stored: list[dict[str, Any]], **columns: Any) -> Path:
    """A session of its own database, or one more of one that is there."""
    model = json.dumps({"model_name": talk.model})
    fields = {
        "id": talk.id,
        "name": "Talk",
        "working_dir": talk.cwd,
        "model_config_json": model,
        "created_at": "2026-01-02 03:04:05",
        **columns,
    }
    with closing(sqlite3.connect(path)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            database.executescript(SCHEMA)
        marks = ", ".join("?" * len(fields))
        names = ", ".join(fields)
        database.execute(
            f"INSERT INTO sessions ({names}) VALUES ({marks})",
            tuple(fields.values()),
        )
        database.executemany(
            "INSERT INTO messages (message_id, session_id, role, content_json, "
            "created_timestamp, metadata_json) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (m["id"], talk.id, m["role"], json.dumps(m["content"]), m["created"],
                 json.dumps(m.get("metadata", {})))
                for m in stored
            ],
        )  # fmt: skip
        for at, usage in enumerate(s.usage for e in talk.exchanges for s in e.steps):
            database.execute(
                "INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, "
                "output_tokens, cache_read_tokens, cost) VALUES (?, ?, ?, ?, ?, ?, 0.25)",
                (talk.id, at + 1_700_000_000, talk.model, usage.input, usage.output, usage.cached),
            )
        database.commit()
    return path
