"""Builder of Open WebUI's export of a chat: texts and images of a talk."""

from __future__ import annotations

from typing import Any

from clew.domain.messages import Role
from clew.domain.parts import Image, Text
from strategies.chat import data_url
from strategies.conversations import SECOND, Line, Talk


def lines_of(talk: Talk) -> list[Line]:
    """The format has a place for texts and images alone."""
    found: list[Line] = []
    for exchange in talk.exchanges:
        picture = (Image(data=exchange.image),) if exchange.image else ()
        found.append((Role.USER, (Text(exchange.text), *picture)))
        found += [(Role.ASSISTANT, (Text(step.text),)) for step in exchange.steps if step.text]
    return found


def row(talk: Talk) -> dict[str, Any]:
    """A talk as a row of the table of chats."""
    messages: dict[str, dict[str, Any]] = {}

    def add(id: str, role: str, text: str, **fields: Any) -> None:
        messages[id] = {
            "id": id,
            "parentId": list(messages)[-1] if messages else None,
            "childrenIds": [],
            "role": role,
            "content": text,
            "timestamp": talk.started // SECOND + len(messages),
            **fields,
        }

    for number, exchange in enumerate(talk.exchanges):
        files: list[dict[str, Any]] = []
        if exchange.image:
            files = [{"type": "image", "url": data_url(exchange.image)}]
        add(f"asked-{number}", "user", exchange.text, files=files)
        for step in exchange.steps:
            if step.text:
                usage = {
                    "prompt_tokens": step.usage.input,
                    "completion_tokens": step.usage.output,
                    "prompt_tokens_details": {"cached_tokens": step.usage.cached},
                }
                add(step.id, "assistant", step.text, model=talk.model, done=True, usage=usage)
    history = {"messages": messages, "currentId": list(messages)[-1]}
    return {
        "id": talk.id,
        "user_id": "u",
        "title": "Talk",
        "chat": {"title": "Talk", "models": [talk.model], "history": history, "messages": []},
        "created_at": talk.started // SECOND,
        "updated_at": talk.started // SECOND,
        "archived": False,
        "meta": {},
    }
