"""Gemini CLI's sessions."""

from __future__ import annotations

import base64
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.formats.gemini_cli import FORMAT
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Rewound,
    Skipped,
    Spent,
)
from readings import read as read_as
from readings import records
from strategies.conversations import PNG, Talk, heard, said, spent, talks
from strategies.gemini_cli import document, jsonl, lines

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/gemini-cli/session-large.json"
HEAD = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-02T03:04:05Z"}


def written(folder: Path, *rows: dict[str, Any]) -> list[Event]:
    path = folder / "session-x.jsonl"
    path.write_bytes(jsonl([HEAD, *rows]))
    return read(path)


def told(events: list[Event]) -> list[tuple[str | None, str]]:
    """Ids and texts."""
    return [
        (each.id, "".join(part.text for part in each.parts if isinstance(part, Text)))
        for each in records(events)
    ]


def user(id: str, text: str) -> dict[str, Any]:
    return {"id": id, "type": "user", "content": text}


def answer(id: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "type": "gemini", "content": text, "model": "g", **fields}


def test_the_sample() -> None:
    events = read(SAMPLE)
    assert events[0] == Chat(
        id="session-2025-12-16T23-47-b4f17607",
        created_at=1765928820000000,
        meta={
            "project_hash": "205016864bd110904e9ad8314192344ab398d043e779da15bedbb9ee9be00da2",
            "kind": "chat",
        },
    )
    found = records(events)
    assert [(each.id, each.role.value) for each in found] == [
        ("m1", "user"),
        ("m2", "assistant"),
        ("m2/result", "tool"),
        ("m2b", "assistant"),
        ("m2b/result", "tool"),
        ("m4", "assistant"),
        ("m5", "user"),
        ("m6", "assistant"),
    ]
    assert [event for event in events if not isinstance(event, Record)][1:] == [Skipped("info")]
    assert found[1].parts == (
        Reasoning("Placeholder thoughts for schema coverage.", model="gemini-3-flash-preview"),
        ToolCall(
            "run_shell_command-1",
            "run_shell_command",
            '{"command":"printf \'line1\\\\nline2\\\\nline3\\\\n\'","cwd":"/tmp"}',
        ),
    )
    result = found[2].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name) == ("run_shell_command-1", "run_shell_command")
    assert str(result.content).startswith("Command: printf")
    assert str(result.content).endswith("Process Group PGID: 12345")
    assert found[1].spent == Spent(
        model="gemini-3-flash-preview", usage=Usage(input=100, output=10)
    )
    assert [each.spent for each in found].count(None) == 7
    assert found[5].parts == (Text("Captured multiline output."),)
    assert (found[0].created_at, found[-1].created_at) == (1765928821000000, 1765928827000000)


def test_a_message_written_again_is_told_once_as_it_last_was(tmp_path: Path) -> None:
    call: dict[str, Any] = {"id": "t", "name": "ls", "args": {}, "status": "success"}
    answered = {**call, "result": [{"functionResponse": {"id": "t", "response": {"output": "x"}}}]}
    events = written(
        tmp_path,
        user("a", "go"),
        answer("b", "I look"),
        {"$set": {"summary": "A look", "lastUpdated": "x"}},
        answer("b", "I look", toolCalls=[call]),
        user("c", "quick"),
        answer("b", "I look", toolCalls=[answered], tokens={"input": 3, "thoughts": 2, "tool": 1}),
    )
    assert told(events) == [("a", "go"), ("b", "I look"), ("b/result", ""), ("c", "quick")]
    assert records(events)[1].spent == Spent(model="g", usage=Usage(input=4, output=2, reasoning=2))
    assert events[0] == Chat(
        id="s",
        title="A look",
        created_at=1767323045000000,
        meta={"project_hash": "p"},
    )


def test_a_rewind_is_one(tmp_path: Path) -> None:
    events = written(
        tmp_path,
        user("a", "1"),
        answer("b", "2"),
        user("c", "3"),
        answer("d", "4"),
        {"$rewindTo": "c"},
        user("e", "5"),
        {"$rewindTo": "nowhere"},
        user("f", "6"),
    )
    assert [event for event in events if not isinstance(event, Chat)][4] == Rewound(
        chat="s", first="c"
    )
    assert told(events) == [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5"), ("f", "6")]
    assert [event for event in events if isinstance(event, Rewound)][1] == Rewound(
        chat="s", first="a"
    )


def test_a_compression_is_a_compaction(tmp_path: Path) -> None:
    kept = {**user("c", "3"), "content": [{"text": "3"}]}
    summary = {**user("s1", "<state_snapshot>"), "content": [{"text": "<state_snapshot>"}]}
    events = written(
        tmp_path,
        user("a", "1"),
        answer("b", "2"),
        {"id": "i", "type": "info", "content": "note"},
        user("c", "3"),
        {"$set": {"messages": [summary, answer("s2", "Got it."), kept]}},
        answer("d", "4"),
    )
    compacted = next(event for event in events if isinstance(event, Compacted))
    assert compacted == Compacted(
        chat="s",
        id="checkpoint1",
        after="c",
        body=(
            Inline(role=Role.USER, parts=(Text("<state_snapshot>"),)),
            Inline(role=Role.ASSISTANT, parts=(Text("Got it."),)),
            Kept("c", "c"),
        ),
        receipt={"removed": 2},
    )
    assert told(events) == [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]


def test_a_list_that_only_shortens_outputs_changes_nothing(tmp_path: Path) -> None:
    response = {"id": "t", "name": "ls", "response": {"output": "long output"}}
    call: dict[str, Any] = {"id": "t", "name": "ls", "args": {}, "status": "success"}
    call["result"] = [{"functionResponse": response}]
    masked = {"functionResponse": {"id": "t", "name": "ls", "response": {"output": "masked"}}}
    called: list[Any] = [{"functionCall": {"id": "t", "name": "ls", "args": {}}}]
    rows = [user("a", "1"), answer("b", "", toolCalls=[call])]
    checkpoint: list[dict[str, Any]] = [
        {**user("a", "1"), "content": [{"text": "1"}]},
        {**answer("b", "", toolCalls=[call]), "content": called},
        {**user("b_response", ""), "content": [masked]},
    ]
    events = written(tmp_path, *rows, {"$set": {"messages": checkpoint}}, user("c", "2"))
    assert [each.parts for each in records(events)] == [
        (Text("1"),),
        (ToolCall("t", "ls", "{}"),),
        (ToolResult("t", "long output", "ls"),),
        (Text("2"),),
    ]
    assert [event.kind for event in events if isinstance(event, Skipped)] == ["empty message"]


def test_parts_of_the_api(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
    linked = {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://x"}}
    odd = {"executableCode": {"code": "1"}}
    history = [
        {"role": "user", "parts": [{"text": "go"}, picture, linked, odd]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": True, "thoughtSignature": "sig"},
            {"functionCall": {"name": "ls", "args": {"p": "."}}, "thoughtSignature": "s2"},
            {"functionCall": {"name": "ls", "args": {"p": "/"}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "ls", "response": {"output": "one"}}},
            {"functionResponse": {"name": "ls", "response": {"error": "two"}}},
            {"functionResponse": {"name": "cat", "response": {"a": 1, "b": 2}}},
        ]},
        {"role": "model", "parts": [{"text": "done"}]},
    ]  # fmt: skip
    path = tmp_path / "checkpoint-x.json"
    path.write_text(json.dumps(history), "utf-8")
    events = read(path)
    found = records(events)
    assert [each.id for each in found] == [None] * 4
    assert len({each.content for each in found}) == 4
    assert [each.parts for each in found] == [
        (
            Text("go"),
            Image(media_type="image/png", data=PNG),
            File(media_type="application/pdf", url="gs://x"),
            Unknown(odd),
        ),
        (
            Reasoning("hm", signature="sig"),
            ToolCall("1/call2", "ls", '{"p":"."}', extra={"thoughtSignature": "s2"}),
            ToolCall("1/call3", "ls", '{"p":"/"}'),
        ),
        (
            ToolResult("1/call2", "one", "ls"),
            ToolResult("1/call3", "two", "ls", is_error=True),
            ToolResult("unasked3", '{"a":1,"b":2}', "cat"),
        ),
        (Text("done"),),
    ]
    path.write_text(json.dumps({"history": history, "authType": "oauth"}), "utf-8")
    assert records(read(path)) == found


def test_a_sub_agent_names_the_session_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "chats/parent-id/child.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(jsonl([{**HEAD, "sessionId": "child", "kind": "subagent"}, user("a", "go")]))
    chat = read(path)[0]
    assert isinstance(chat, Chat)
    assert (chat.id, chat.origin) == ("child", "parent-id")


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "session-x.jsonl"
    good = jsonl([HEAD, user("a", "1"), user("b", "2")]).splitlines()
    rows = [b"\xef\xbb\xbf" + good[0], b"\0\0\0", good[1] + b"\r", b'{"id": "x", "ty', b"[1]",
            b'{"some": "thing"}', good[2], b"{" + b'"a":{' * 600]  # fmt: skip
    path.write_bytes(b"\n".join(rows))
    events = read(path)
    assert [event.where for event in events if isinstance(event, Damaged)] == [
        "line 2",
        "line 4",
        "line 8",
    ]
    assert told(events) == [("a", "1"), ("b", "2")]
    assert Skipped("unknown record", 2) in events


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks(), st.booleans(), st.sampled_from((None, 2)))
def test_a_talk_comes_back(talk: Talk, in_lines: bool, indent: int | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "session-x.json"
        whole = json.dumps(document(talk), indent=indent).encode()
        path.write_bytes(jsonl(lines(talk)) if in_lines else whole)
        events = read(path)
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage
