"""Hermes' JSON: snapshots of sessions, and archival exports."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.conversations import Workspace
from clew.domain.parts import Reasoning, Text, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.formats.hermes_json import FORMAT
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
    Used,
)
from readings import read as read_as
from strategies.conversations import Talk, heard, said, talks
from strategies.hermes import write_json

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/hermes/archival-export-v1.json"
ID = "hermes-session-example-001"
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted: fine."


def snapshot(tmp_path: Path, *messages: Any, **more: Any) -> list[Event]:
    path = tmp_path / "session_x.json"
    document = {"session_id": "x", "session_start": "2026-01-01T00:00:00", "last_updated": "now"}
    path.write_text(json.dumps(document | {"messages": messages} | more), "utf-8")
    return read(path)


def test_the_archival_sample() -> None:
    events = read(SAMPLE)
    chat = events[0]
    assert isinstance(chat, Chat)
    assert (chat.id, chat.created_at) == (ID, 1783674000_000_000)
    assert chat.workspace == Workspace(
        cwd="/realm/project/example-repo",
        git_root="https://example.invalid/example-repo",
        git_branch="feature/fix-parser",
    )
    assert chat.meta is not None
    assert chat.meta["parent_relationship"] == "resume"
    records = [event for event in events if isinstance(event, Record)]
    assert [(each.role.value, each.id) for each in records] == [
        ("system", f"{ID}:msg-0"),
        ("user", f"{ID}:msg-1"),
        ("assistant", f"{ID}:msg-2"),
        ("tool", f"{ID}:msg-3"),
        ("assistant", f"{ID}:msg-4"),
        ("assistant", f"{ID}:msg-5"),
    ]
    asked, answered = records[2:4]
    assert asked.parts[0] == Reasoning(
        "The user wants a targeted fix; start by reading the failing test to scope the change."
    )
    assert asked.parts[1:] == (
        Text("I'll look at the failing test first."),
        ToolCall("call-1", "read_file", '{"path": "tests/test_parser.py"}'),
    )
    assert answered.parts == (ToolResult("call-1", "def test_parse_empty(): ..."),)
    assert answered.created_at == 1783674021_000_000
    assert records[5].meta == {"observed": True, "tokens": 22}
    assert [event for event in events if not isinstance(event, Record | Chat)] == [
        Compacted(
            chat=ID,
            id=f"compaction:{ID}:msg-3",
            body=(Kept(f"{ID}:msg-0", f"{ID}:msg-0"), Kept(f"{ID}:msg-1", f"{ID}:msg-1")),
        ),
        Rewound(chat=ID, first=f"{ID}:msg-4"),
        Used(
            chat=ID,
            group="session",
            spent=Spent(model="unknown", usage=Usage(5520, 640, 2100, 96)),
            at=1783676531_000_000,
        ),
    ]
    assert [each.parent for each in records] == [None] * 5 + [f"{ID}:msg-3"]
    assert events.index(records[4]) == events.index(Rewound(chat=ID, first=f"{ID}:msg-4")) - 1


def test_a_snapshot_has_prompt_tools_and_records_known_by_what_they_say(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "ls"}}
    events = snapshot(
        tmp_path,
        {"role": "user", "content": "hi", "_db_persisted": True},
        {"role": "assistant", "content": "ho", "finish_reason": "stop"},
        system_prompt="Help.", tools=[tool], model="m", platform="cli",
    )  # fmt: skip
    assert events[0] == Chat(
        id="x", created_at=1767225600_000_000, model="m", prompt="Help.", tools=(tool,),
        meta={"platform": "cli"},
    )  # fmt: skip
    first, second = (event for event in events if isinstance(event, Record))
    assert (first.id, first.content) == (None, b'{"content":"hi","role":"user"}')
    assert (second.model, second.meta) == ("m", {"finish_reason": "stop"})


def test_a_summary_in_a_snapshot_is_a_compaction_behind_what_stands_before_it(
    tmp_path: Path,
) -> None:
    task, summary, after = (
        {"role": "user", "content": content} for content in ("task", SUMMARY, "more")
    )
    events = snapshot(tmp_path, task, summary, after)
    assert [type(event) for event in events] == [Chat, Record, Compacted, Record]
    compacted = events[2]
    assert isinstance(compacted, Compacted)
    assert [item.parts for item in compacted.body if not isinstance(item, Kept)] == [
        (Text("task"),), (Text(SUMMARY),),
    ]  # fmt: skip
    alone = snapshot(tmp_path, summary, after)
    first = alone[1]
    assert isinstance(first, Record)
    assert first.meta == {"compaction_summary": True}


def test_what_is_no_message_is_counted_or_named(tmp_path: Path) -> None:
    events = snapshot(tmp_path, 5, {"role": "session_meta"}, {"role": "tool"}, {"role": "user"})
    assert events[1:3] == [Damaged("message 1", "no object"), Skipped("message/session_meta")]
    assert [event.parts for event in events if isinstance(event, Record)] == [
        (ToolResult(""),), (),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b'{"session_id": "x", "session_start": 1, "last_updated": 2, "messages": ',
        b'{"session_id": "x", "session_start": 1, "last_updated": 2, "m": ' + b"[" * 10_000,
    ],
)
def test_a_document_that_is_cut_off_or_too_deep_is_damaged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "session_x.json"
    path.write_bytes(data)
    assert [type(event) for event in read(path)] == [Damaged]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks(errors=False))
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write_json(talk, Path(folder) / "session_x.json"))
    assert heard(events) == said(talk)
