"""Claude Code session files of a model conversation."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from strategies.conversations import SECOND, Exchange, Step, Talk, talks

Row = dict[str, Any]


class Writer:
    """Writes one session: `rows`, each following the one before it."""

    def __init__(self, talk: Talk, *, split: bool, noise: bool) -> None:
        self.talk, self._split, self._noise = talk, split, noise
        self.rows: list[Row] = []
        self.parent: str | None = None

    def row(self, kind: str, **fields: Any) -> Row:
        """A record with the envelope that all have."""
        at = datetime.fromtimestamp(self.talk.started // SECOND + len(self.rows), UTC)
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.talk.cwd,
            "sessionId": self.talk.id,
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            "uuid": str(uuid.uuid5(uuid.UUID(self.talk.id), str(len(self.rows)))),
            "timestamp": stamp,
            **fields,
        }
        self.rows.append(row)
        self.parent = row["uuid"]
        return row

    def say(self, content: Any, **fields: Any) -> Row:
        """A user's record."""
        return self.row("user", message={"role": "user", "content": content}, **fields)

    def exchange(self, exchange: Exchange) -> None:
        if self._noise:
            self.rows.append({"type": "file-history-snapshot", "isSnapshotUpdate": False})
            self.row("attachment", attachment={"type": "task_reminder", "content": []})
        if exchange.image is None:
            self.say(exchange.text)
        else:
            data = base64.b64encode(exchange.image).decode()
            source = {"type": "base64", "media_type": "image/png", "data": data}
            self.say([{"type": "text", "text": exchange.text}, {"type": "image", "source": source}])
        for step in exchange.steps:
            self.step(step)

    def step(self, step: Step) -> None:
        blocks = _blocks(step)
        for group in [[block] for block in blocks] if self._split else [blocks]:
            self.row("assistant", requestId="req_1", message=self._reply(step, group))
        for call in step.calls:
            if self._noise:
                self.row("progress", data={"type": "hook_progress"})
            block: Row = {"type": "tool_result", "tool_use_id": call.id, "content": call.result}
            if call.is_error:
                block["is_error"] = True
            self.say([block], toolUseResult={"stdout": call.result})
        if self._noise:
            self.row("system", subtype="turn_duration", durationMs=5)

    def _reply(self, step: Step, blocks: list[Row]) -> Row:
        usage = step.usage
        return {
            "id": step.id,
            "type": "message",
            "role": "assistant",
            "model": self.talk.model,
            "content": blocks,
            "stop_reason": None,
            "usage": {
                "input_tokens": usage.input - usage.cached,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": usage.cached,
                "output_tokens": usage.output,
            },
        }


def _blocks(step: Step) -> list[Row]:
    blocks: list[Row] = []
    if step.thinking:
        blocks.append({"type": "thinking", "thinking": step.thinking, "signature": "c2ln"})
    if step.text:
        blocks.append({"type": "text", "text": step.text})
    for call in step.calls:
        blocks.append(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        )
    return blocks


def lines(rows: list[Row], *, ascii_only: bool = False) -> bytes:
    """The bytes of a session file."""
    texts = (json.dumps(row, ensure_ascii=ascii_only, separators=(",", ":")) for row in rows)
    return "".join(text + "\n" for text in texts).encode()


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Talk, bytes]:
    """A conversation and its file: messages split or whole, with other records between or not."""
    talk = draw(talks())
    writer = Writer(talk, split=draw(st.booleans()), noise=draw(st.booleans()))
    for exchange in talk.exchanges:
        writer.exchange(exchange)
    return talk, lines(writer.rows, ascii_only=draw(st.booleans()))
