"""Builder of OpenCode's storage: as a folder, and as the database that replaced it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from strategies.chat import data_url
from strategies.conversations import SECOND, Call, Talk

Stored = tuple[dict[str, Any], list[dict[str, Any]]]
SCHEMA = """
CREATE TABLE session (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL,
    directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL, revert TEXT,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL
);
CREATE TABLE message (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE TABLE part (
    id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE TABLE todo (session_id TEXT NOT NULL, content TEXT NOT NULL);
"""


def session(talk: Talk, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"ses_{talk.id}",
        "projectID": "p",
        "directory": talk.cwd,
        "title": "Talk",
        "version": "1.3.17",
        "slug": "talk",
        "time": {"created": talk.started // 1000, "updated": talk.started // 1000},
        **fields,
    }


def messages(talk: Talk) -> list[Stored]:
    """The messages of a talk and their parts."""
    found: list[Stored] = []

    def add(role: str, parts: list[dict[str, Any]], **fields: Any) -> None:
        id = f"msg_{len(found):04}{talk.id}"
        info = {
            "id": id,
            "sessionID": f"ses_{talk.id}",
            "role": role,
            "time": {"created": (talk.started + len(found) * SECOND) // 1000},
            **fields,
        }
        found.append(
            (info, [{"id": f"prt_{n:04}{id}", "messageID": id, **p} for n, p in enumerate(parts)])
        )

    for exchange in talk.exchanges:
        asked: list[dict[str, Any]] = [{"type": "text", "text": exchange.text}]
        if exchange.image:
            url = data_url(exchange.image)
            asked.append({"type": "file", "mime": "image/png", "url": url})
        add("user", asked, model={"providerID": "p", "modelID": talk.model})
        for step in exchange.steps:
            usage = step.usage
            parts: list[dict[str, Any]] = [{"type": "step-start"}]
            if step.thinking:
                parts.append({"type": "reasoning", "text": step.thinking})
            if step.text:
                parts.append({"type": "text", "text": step.text})
            parts += [_tool(call) for call in step.calls]
            cache = {"read": usage.cached, "write": 0}
            tokens = {"input": usage.input - usage.cached, "output": usage.output, "cache": cache}
            parts.append({"type": "step-finish", "tokens": {**tokens, "reasoning": 0}, "cost": 0.5})
            add("assistant", parts, modelID=talk.model, providerID="p")
    return found


def _tool(call: Call) -> dict[str, Any]:
    said = {"error": call.result} if call.is_error else {"output": call.result}
    status = "error" if call.is_error else "completed"
    state = {"status": status, "input": call.arguments, **said}
    return {"type": "tool", "callID": call.id, "tool": call.name, "state": state}


def write_folder(folder: Path, info: dict[str, Any], stored: list[Stored]) -> Path:
    """As files, below `storage`."""
    _write(folder / "session/p" / f"{info['id']}.json", info)
    for message, parts in stored:
        _write(folder / "message" / info["id"] / f"{message['id']}.json", message)
        for part in parts:
            _write(folder / "part" / message["id"] / f"{part['id']}.json", part)
    (folder / "part").mkdir(exist_ok=True)
    return folder


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def write_database(path: Path, info: dict[str, Any], stored: list[Stored]) -> Path:
    """As rows; all but the ids and times is in `data`."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA)
        created = info["time"]["created"]
        revert = json.dumps(info["revert"]) if "revert" in info else None
        database.execute(
            "INSERT INTO session VALUES (?, 'p', ?, 'talk', ?, ?, ?, ?, ?, ?)",
            (info["id"], info.get("parentID"), info["directory"], info["title"],
             info["version"], revert, created, created),
        )  # fmt: skip
        for message, parts in stored:
            at = message["time"]["created"]
            data = json.dumps({k: v for k, v in message.items() if k not in ("id", "sessionID")})
            database.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
                (message["id"], info["id"], at, at, data),
            )
            for part in parts:
                data = json.dumps({k: v for k, v in part.items() if k not in ("id", "messageID")})
                database.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                    (part["id"], message["id"], info["id"], at, at, data),
                )
        database.commit()
    return path
