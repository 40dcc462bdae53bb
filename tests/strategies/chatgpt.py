"""Builder of ChatGPT's export, and what its reader makes of a talk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clew.domain.messages import Role
from clew.domain.parts import Image, Reasoning, Text, ToolResult
from strategies.conversations import Line, Talk


def lines_of(talk: Talk) -> list[Line]:
    """A node for each thought, text, call and result. The export has no ids of calls."""
    found: list[Line] = []
    for exchange in talk.exchanges:
        picture = (Image(data=exchange.image),) if exchange.image else ()
        found.append((Role.USER, (*picture, Text(exchange.text))))
        for step in exchange.steps:
            if step.thinking:
                found.append((Role.ASSISTANT, (Reasoning(step.thinking),)))
            if step.text:
                found.append((Role.ASSISTANT, (Text(step.text),)))
            for call in step.calls:
                id = f"call_{call.id}"
                found.append((Role.ASSISTANT, (("call", id, call.name, call.arguments),)))
                found.append((Role.TOOL, (ToolResult(id, call.result, is_error=call.is_error),)))
    return found


def conversation(talk: Talk, folder: Path) -> dict[str, Any]:
    """A talk as a conversation; its images are written beside it."""
    tree = _Tree(talk)
    tree.node("system", {"content_type": "text", "parts": [""]}, weight=0)
    for at, exchange in enumerate(talk.exchanges):
        parts: list[Any] = [exchange.text]
        if exchange.image:
            (folder / f"file-{at}abc-picture.png").write_bytes(exchange.image)
            pointer = f"file-service://file-{at}abc"
            parts.insert(0, {"content_type": "image_asset_pointer", "asset_pointer": pointer})
        tree.node("user", {"content_type": "multimodal_text", "parts": parts})
        for step in exchange.steps:
            if step.thinking:
                thought = {"summary": "", "content": step.thinking}
                tree.node("assistant", {"content_type": "thoughts", "thoughts": [thought]})
            if step.text:
                tree.node("assistant", {"content_type": "text", "parts": [step.text]})
            for call in step.calls:
                tree.call(call.id, call.name, call.arguments)
                tree.result(call.name, call.result, call.is_error)
    return {
        "title": "Talk",
        "create_time": talk.started / 1e6,
        "mapping": tree.mapping,
        "current_node": tree.last,
        "conversation_id": talk.id,
    }


class _Tree:
    def __init__(self, talk: Talk) -> None:
        self.mapping: dict[str, Any] = {
            "root": {"id": "root", "message": None, "parent": None, "children": []}
        }
        self.last = "root"
        self._talk = talk

    def node(
        self, role: str, content: dict[str, Any], *, id: str | None = None, weight: float = 1,
        name: str | None = None, recipient: str = "all", **metadata: Any,
    ) -> None:  # fmt: skip
        id = id or f"node-{len(self.mapping)}"
        self.mapping[self.last]["children"].append(id)
        message: dict[str, Any] = {
            "id": id,
            "author": {"role": role, "name": name, "metadata": {}},
            "create_time": self._talk.started / 1e6 + len(self.mapping),
            "content": content,
            "weight": weight,
            "metadata": metadata | ({"model_slug": self._talk.model} if role != "user" else {}),
            "recipient": recipient,
        }
        self.mapping[id] = {"id": id, "message": message, "parent": self.last, "children": []}
        self.last = id

    def call(self, id: str, name: str, arguments: dict[str, Any]) -> None:
        said = {"content_type": "code", "language": "unknown", "text": json.dumps(arguments)}
        self.node("assistant", said, id=id, recipient=name)

    def result(self, name: str, said: str, failed: bool) -> None:
        status = "failed_with_in_kernel_exception" if failed else "success"
        content = {"content_type": "execution_output", "text": said}
        self.node("tool", content, name=name, weight=0, aggregate_result={"status": status})
