"""Builders of Hermes' files: `state.db` with just the columns that are asked for, and its JSON."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from strategies import chat
from strategies.conversations import SECOND, Talk

SESSIONS = (
    "source", "model", "model_config", "system_prompt", "parent_session_id", "started_at",
    "ended_at", "end_reason", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "cwd",
    "git_branch", "git_repo_root", "title", "session_key", "profile_name", "archived",
)  # fmt: skip
MESSAGES = (
    "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
    "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
    "codex_reasoning_items", "codex_message_items", "platform_message_id", "observed", "active",
    "compacted", "api_content",
)  # fmt: skip
USAGE = (
    "session_id", "model", "task", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "actual_cost_usd",
)  # fmt: skip
OLD = ("reasoning_content", "observed", "active", "compacted", "api_content", "codex_message_items")
"""Columns that an early version did not have."""


class State:
    """A `state.db` that is being written."""

    def __init__(self, path: Path, *, without: tuple[str, ...] = ()) -> None:
        self.path = path
        self.clock = 1_700_000_000.0
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = OFF")
        self.db.execute("PRAGMA synchronous = OFF")
        sessions = ", ".join(name for name in SESSIONS if name not in without)
        messages = ", ".join(name for name in MESSAGES if name not in without)
        self.db.execute("CREATE TABLE schema_version (version)")
        self.db.execute(f"CREATE TABLE sessions (id TEXT PRIMARY KEY, {sessions})")
        self.db.execute(f"CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, {messages})")
        if "usage" not in without:
            self.db.execute(f"CREATE TABLE session_model_usage ({', '.join(USAGE)})")

    def put(self, table: str, **values: Any) -> int:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        made = self.db.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values())
        )
        return made.lastrowid or 0

    def session(self, id: str, parent: str | None = None, **values: Any) -> str:
        given = {"source": "cli", "started_at": self.clock, "parent_session_id": parent} | values
        self.clock += 1
        self.put("sessions", id=id, **given)
        return id

    def rotated(self, id: str, parent: str | None = None, **values: Any) -> str:
        return self.session(id, parent, ended_at=self.clock, end_reason="compression", **values)

    def say(self, session: str, role: str, content: Any = None, **values: Any) -> str:
        """A message, a second after the one before; its id."""
        self.clock += 1
        given = {"timestamp": self.clock} | values
        return str(self.put("messages", session_id=session, role=role, content=content, **given))

    def compact(self, session: str, *rows: tuple[str, str]) -> list[str]:
        """In place, as Hermes does it: all rows at once."""
        self.db.execute(
            "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1",
            (session,),
        )
        self.clock += 1
        return [
            self.say(session, role, content, active=1, timestamp=self.clock + at / 1e6)
            for at, (role, content) in enumerate(rows)
        ]

    def rewind(self, first: str) -> None:
        self.db.execute("UPDATE messages SET active = 0 WHERE id >= ? AND active = 1", (first,))

    def close(self) -> Path:
        self.db.close()
        return self.path


def write_state(talk: Talk, path: Path, *, without: tuple[str, ...] = ()) -> Path:
    """A talk as a session."""
    state = State(path, without=without)
    with closing(state.db):
        _session(talk, state)
        for message in messages(talk):
            images = message.get("content")
            if isinstance(images, list):
                message["content"] = "\0json:" + json.dumps(images)
            if calls := message.get("tool_calls"):
                message["tool_calls"] = json.dumps(calls)
            more = {k: v for k, v in message.items() if k not in without}
            state.say(talk.id, **more)
    return path


def _session(talk: Talk, state: State) -> None:
    spent = talk.usage
    state.session(
        talk.id,
        model=talk.model,
        cwd=talk.cwd,
        started_at=talk.started / SECOND,
        input_tokens=spent.input - spent.cached,
        cache_read_tokens=spent.cached,
        output_tokens=spent.output,
    )


def messages(talk: Talk) -> list[dict[str, Any]]:
    """As Hermes holds them: Chat Completions with reasoning."""
    found: list[dict[str, Any]] = []
    for exchange in talk.exchanges:
        found.append(chat.question(exchange))
        for step in exchange.steps:
            found += [chat.answer(step, reasoning=step.thinking), *chat.results(step)]
    return found


def write_json(talk: Talk, path: Path) -> Path:
    """A talk as `sessions/session_*.json`."""
    document = {
        "session_id": talk.id,
        "model": talk.model,
        "platform": "cli",
        "session_start": "2026-01-02T03:04:05.000006",
        "last_updated": "2026-01-02T03:05:00",
        "system_prompt": "You help.",
        "tools": [],
        "message_count": len(messages(talk)),
        "messages": messages(talk),
    }
    path.write_text(json.dumps(document, indent=2), "utf-8")
    return path
