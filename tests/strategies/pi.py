"""pi session files of a model conversation, in its first version or its third."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from strategies.conversations import SECOND, Exchange, Step, Talk, talks

Row = dict[str, Any]


class Writer:
    """Writes one session: `rows`, each following the one before it."""

    def __init__(self, talk: Talk, version: int) -> None:
        self.talk, self._version = talk, version
        self.parent: str | None = None
        header: Row = {"type": "session", "id": talk.id, "timestamp": self._stamp(0)}
        header["cwd"] = talk.cwd
        if version == 1:
            header |= {"provider": "p", "modelId": talk.model, "thinkingLevel": "off"}
        else:
            header["version"] = version
        self.rows = [header]

    def _stamp(self, second: int) -> str:
        at = datetime.fromtimestamp(self.talk.started // SECOND + second, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def entry(self, kind: str, **fields: Any) -> Row:
        """An entry with what all have."""
        row: Row = {"type": kind, "timestamp": self._stamp(len(self.rows)), **fields}
        if self._version > 1:
            row |= {"id": f"{len(self.rows):08x}", "parentId": self.parent}
            self.parent = row["id"]
        self.rows.append(row)
        return row

    def message(self, role: str, content: Any, **fields: Any) -> Row:
        return self.entry("message", message={"role": role, "content": content, **fields})

    def exchange(self, exchange: Exchange) -> None:
        blocks: list[Row] = [{"type": "text", "text": exchange.text}]
        if exchange.image is not None:
            data = base64.b64encode(exchange.image).decode()
            blocks.append({"type": "image", "data": data, "mimeType": "image/png"})
        self.message("user", blocks)
        for step in exchange.steps:
            self.step(step)

    def step(self, step: Step) -> None:
        blocks: list[Row] = []
        if step.thinking:
            blocks.append({"type": "thinking", "thinking": step.thinking, "thinkingSignature": "s"})
        if step.text:
            blocks.append({"type": "text", "text": step.text})
        for call in step.calls:
            block = {"type": "toolCall", "id": call.id, "name": call.name}
            blocks.append({**block, "arguments": call.arguments})
        usage = step.usage
        counts: Row = {"input": usage.input - usage.cached, "cacheRead": usage.cached}
        counts |= {"output": usage.output, "cacheWrite": 0, "cost": {"total": 0.5}}
        self.message(
            "assistant", blocks, provider="p", model=self.talk.model, usage=counts,
            stopReason="stop",
        )  # fmt: skip
        for call in step.calls:
            self.message(
                "toolResult", [{"type": "text", "text": call.result}], toolCallId=call.id,
                toolName=call.name, isError=call.is_error,
            )  # fmt: skip


def lines(rows: list[Row]) -> bytes:
    """The bytes of a session file."""
    texts = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return "".join(text + "\n" for text in texts).encode()


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Talk, bytes]:
    """A conversation and its file, with entries of other types between or not."""
    talk = draw(talks())
    writer = Writer(talk, draw(st.sampled_from((1, 2, 3))))
    noise = draw(st.booleans())
    for exchange in talk.exchanges:
        if noise:
            writer.entry("thinking_level_change", thinkingLevel="high")
        writer.exchange(exchange)
    return talk, lines(writer.rows)
