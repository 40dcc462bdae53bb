"""Builders of Chat Completions and Responses API files, of recordings of both, and of a database of
the Agents SDK.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clew.domain.messages import Role
from clew.domain.turns import Usage
from strategies import chat
from strategies.chat import Said
from strategies.conversations import SECOND, Line, Step, Talk

AGENTS = """
CREATE TABLE agent_sessions (
    session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
"""


def joined(lines: list[Line]) -> list[Line]:
    """Lines of the assistant that follow each other, as one: in lists of items nothing is between
    two answers."""
    found: list[Line] = []
    for role, parts in lines:
        if found and found[-1][0] is role is Role.ASSISTANT:
            found[-1] = (role, (*found[-1][1], *parts))
        else:
            found.append((role, parts))
    return found


# ---------------------------------------------------------------------- messages and items


def chat_messages(talk: Talk) -> Said:
    """As Chat Completions has them."""
    return [each for said, answer in chat_turns(talk) for each in (*said, *answer)]


def chat_turns(talk: Talk) -> Iterator[tuple[Said, Said]]:
    """For each call of the model what is new in its request, and its answer."""
    waiting: Said = []
    for exchange in talk.exchanges:
        waiting.append(chat.question(exchange))
        for step in exchange.steps:
            yield waiting, [chat.answer(step, reasoning_content=step.thinking)]
            waiting = chat.results(step)
    yield waiting, []


def items(talk: Talk) -> Said:
    """As the Responses API has them."""
    return [each for said, answer in item_turns(talk) for each in (*said, *answer)]


def item_turns(talk: Talk) -> Iterator[tuple[Said, Said]]:
    """As `chat_turns`."""
    waiting: Said = []
    for exchange in talk.exchanges:
        content: list[dict[str, Any]] = [{"type": "input_text", "text": exchange.text}]
        if exchange.image:
            content.append({"type": "input_image", "image_url": chat.data_url(exchange.image)})
        waiting.append({"type": "message", "role": "user", "content": content})
        for step in exchange.steps:
            yield waiting, list(_item_answer(step))
            waiting = [
                {"type": "function_call_output", "call_id": call.id, "output": call.result}
                for call in step.calls
            ]
    yield waiting, []


def _item_answer(step: Step) -> Iterator[dict[str, Any]]:
    if step.thinking:
        summary = [{"type": "summary_text", "text": step.thinking}]
        yield {"type": "reasoning", "id": f"rs_{step.id}", "summary": summary}
    if step.text:
        content: Said = [{"type": "output_text", "text": step.text, "annotations": []}]
        yield {"type": "message", "id": step.id, "role": "assistant", "content": content}
    for call in step.calls:
        yield {
            "type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name,
            "arguments": json.dumps(call.arguments), "status": "completed",
        }  # fmt: skip


# ---------------------------------------------------------------------- files


def write_json(value: Any, path: Path) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def write_lines(values: list[Any], path: Path) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return path


def write_har(talk: Talk, path: Path, api: str, *, streamed: bool, chained: bool = False) -> Path:
    """A talk as a recording. `chained`: requests name the response before, and hold only what is
    new; otherwise they hold all so far."""
    steps = [step for exchange in talk.exchanges for step in exchange.steps]
    entries: list[dict[str, Any]] = []
    so_far: Said = []
    before: str | None = None
    for at, (said, answer) in enumerate(chat_turns(talk) if api == "chat" else item_turns(talk)):
        if not said and not answer:
            continue
        so_far += said
        usage = steps[at].usage if at < len(steps) else None
        request: dict[str, Any] = {"model": talk.model}
        request["messages" if api == "chat" else "input"] = said if chained else list(so_far)
        if chained and before:
            request["previous_response_id"] = before
        before = f"resp_{at}"
        body = _body(api, before, answer, usage, streamed)
        entries.append(entry(api, request, body, talk.started + at * SECOND))
        so_far += answer
    return write_json({"log": {"version": "1.2", "entries": entries}}, path)


def entry(api: str, request: dict[str, Any], body: str, at: int) -> dict[str, Any]:
    """An entry of a recording."""
    path = "chat/completions" if api == "chat" else "responses"
    return {
        "startedDateTime": datetime.fromtimestamp(at / SECOND, UTC).isoformat(),
        "time": 1500.0,
        "request": {
            "method": "POST", "url": f"https://api.example.com/v1/{path}",
            "postData": {"mimeType": "application/json", "text": json.dumps(request)},
        },
        "response": {"status": 200, "content": {"mimeType": "x", "text": body}},
    }  # fmt: skip


def _body(api: str, id: str, answer: Said, usage: Usage | None, streamed: bool) -> str:
    if api == "chat":
        about = {
            "id": id,
            "created": 1_700_000_000,
            "usage": _counts(usage, "prompt", "completion"),
        }
        if not streamed:
            choices = [{"index": 0, "message": message} for message in answer]
            return json.dumps({**about, "choices": choices})
        events = [{"choices": [{"delta": delta}]} for m in answer for delta in _deltas(m)]
        return _stream([*events, {"choices": [], **about}])
    about = {"id": id, "usage": _counts(usage, "input", "output")}
    if not streamed:
        return json.dumps({**about, "output": answer})
    done = [
        {"type": "response.output_item.done", "output_index": at, "item": item}
        for at, item in enumerate(answer)
    ]
    return _stream([*done, {"type": "response.completed", "response": about}])


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A message in pieces: texts in two, each call's arguments in two."""
    for name in ("reasoning_content", "content"):
        words = message.get(name) or ""
        yield {name: words[:3]}
        yield {name: words[3:]}
    for at, call in enumerate(message.get("tool_calls", ())):
        asked = call["function"]
        first = {"name": asked["name"], "arguments": asked["arguments"][:2]}
        yield {"tool_calls": [{"index": at, "id": call["id"], "function": first}]}
        rest = {"arguments": asked["arguments"][2:]}
        yield {"tool_calls": [{"index": at, "function": rest}]}


def _stream(events: list[dict[str, Any]]) -> str:
    return "".join(f"event: e\ndata: {json.dumps(each)}\n\n" for each in events) + "data: [DONE]\n"


def _counts(usage: Usage | None, asked: str, said: str) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        f"{asked}_tokens": usage.input,
        f"{said}_tokens": usage.output,
        f"{asked}_tokens_details": {"cached_tokens": usage.cached},
    }


def write_agents(talks: list[Talk], path: Path) -> Path:
    """Talks as the sessions of a database."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(AGENTS)
        for talk in talks:
            started = datetime.fromtimestamp(talk.started / SECOND, UTC)
            database.execute(
                "INSERT INTO agent_sessions (session_id, created_at) VALUES (?, ?)",
                (talk.id, started.strftime("%Y-%m-%d %H:%M:%S")),
            )
            database.executemany(
                "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
                [(talk.id, json.dumps(item)) for item in items(talk)],
            )
    return path
