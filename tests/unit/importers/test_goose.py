"""goose's files of lines and its database."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.formats.goose import FORMAT
from clew.importers.probe import probe
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Skipped,
    Spent,
    Used,
)
from clew.importers.source import Source
from readings import of, records
from readings import read as read_as
from strategies.conversations import PNG, Exchange, Step, Talk, heard, said, talks
from strategies.damage import dumped
from strategies.goose import jsonl, messages, write_database

read = partial(read_as, FORMAT)


DATA = Path(__file__).parents[2] / "data/transcripts"
SAMPLE = DATA / "goose/legacy-session-20250724_1.jsonl"
STEP = Step("x", None, "a", (), Usage(input=9, output=2, cached=4))
TALK = Talk("chat", "gpt-x", "/w", 1_700_000_000_000_000, (Exchange("q", None, (STEP,)),))
HIDDEN = {"userVisible": True, "agentVisible": False}
AGENT = {"userVisible": False, "agentVisible": True}
NEITHER = {"userVisible": False, "agentVisible": False}
NOTE = "The previous message is a structured summary of an earlier portion. Continue."


@pytest.fixture(params=["lines", "database"])
def form(request: pytest.FixtureRequest) -> str:
    return request.param


def written(form: str, folder: Path, *stored: dict[str, Any]) -> list[Event]:
    if form == "lines":
        path = folder / "20260101.jsonl"
        path.write_bytes(jsonl(TALK, list(stored)))
        return read(path)
    return read(write_database(folder / "sessions.db", TALK, list(stored)))


def message(id: str, role: str, *content: dict[str, Any], **metadata: bool) -> dict[str, Any]:
    about = {"metadata": metadata} if metadata else {}
    return {"id": id, "role": role, "created": 1_700_000_000, "content": list(content), **about}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_the_sample() -> None:
    assert read(SAMPLE) == [
        Chat(
            id="20250724_1",
            title="Synthetic Goose session",
            created_at=1784887200000000,
            workspace=Workspace(cwd="/workspace/demo"),
        ),
        Record(
            chat="20250724_1",
            id="msg1",
            role=Role.USER,
            parts=(Text("Say hello"),),
            created_at=1784278801000000,
        ),
        Record(
            chat="20250724_1",
            id="msg2",
            role=Role.ASSISTANT,
            parts=(Text("Hello from Goose!"),),
            created_at=1784278802000000,
        ),
    ]


def test_content_of_all_kinds(form: str, tmp_path: Path) -> None:
    called = {"status": "success", "value": {"name": "ls", "arguments": {"p": 1}}}
    for_person = {"type": "text", "text": "shown", "annotations": {"audience": ["user"]}}
    picture = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    odd = {"type": "new", "x": 1}
    events = written(
        form,
        tmp_path,
        message("a", "user", text("look"), picture, odd),
        message(
            "b",
            "assistant",
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redactedThinking", "data": "xx"},
            {"type": "toolRequest", "id": "1", "toolCall": called},
            {"type": "toolRequest", "id": "2", "toolCall": {"status": "error", "error": "bad"}},
            {"type": "toolConfirmationRequest", "id": "1"},
        ),
        message(
            "c",
            "user",
            {"type": "toolResponse", "id": "1", "toolResult": {
                "status": "success", "value": [text("one"), for_person, picture]}},
            {"type": "toolResponse", "id": "2", "toolResult": {"status": "error", "error": "no"}},
            {"type": "toolResponse", "id": "3", "toolResult": {
                "status": "success", "value": {
                    "content": [text("x"), text("y")], "isError": True}}},
            text("and this"),
        ),
        message("d", "user"),
        message("e", "robot", text("?")),
    )  # fmt: skip
    model = None if form == "lines" else "gpt-x"
    assert [(each.id, each.role, each.parts) for each in records(events)] == [
        ("a", Role.USER, (Text("look"), Image(data=PNG), Unknown(odd))),
        (
            "b",
            Role.ASSISTANT,
            (
                Reasoning("hm", model=model, signature="sig"),
                Reasoning(model=model, data="xx"),
                ToolCall("1", "ls", '{"p":1}'),
                ToolCall("2", "unreadable", "bad", kind="custom"),
            ),
        ),
        (
            "c",
            Role.TOOL,
            (
                ToolResult("1", (Text("one"), Image(data=PNG)), "ls"),
                ToolResult("2", "no", "unreadable", is_error=True),
                ToolResult("3", "x\ny", is_error=True),
            ),
        ),
        ("c/rest", Role.USER, (Text("and this"),)),
    ]
    assert [event.kind for event in of(Skipped, events)] == [
        "toolConfirmationRequest",
        "content for the person only",
        "empty message",
        "role robot",
    ]


def test_a_compaction(form: str, tmp_path: Path) -> None:
    """As goose leaves them: the question that was open is copied behind the summary."""
    events = written(
        form,
        tmp_path,
        message("a", "user", text("1"), **HIDDEN),
        message("b", "assistant", text("2"), **HIDDEN),
        message("c", "user", text("3"), **NEITHER),
        message("s", "user", text("Summary."), **AGENT),
        message("n", "assistant", text(NOTE), **AGENT),
        message("c2", "user", text("3")),
        message("d", "assistant", text("4")),
    )
    assert [each.id for each in records(events)] == ["a", "b", "c", "d"]
    assert of(Compacted, events) == [
        Compacted(
            chat="chat",
            id="s",
            after="c",
            body=(
                Inline(role=Role.USER, parts=(Text("Summary."),)),
                Inline(role=Role.ASSISTANT, parts=(Text(NOTE),)),
                Kept("c", "c"),
            ),
            at=1_700_000_000_000_000,
        )
    ]
    assert of(Skipped, events) == [Skipped("copy behind a compaction")]


def test_a_second_compaction_leaves_the_first_as_it_was(form: str, tmp_path: Path) -> None:
    first = written(
        form,
        tmp_path,
        message("a", "user", text("1"), **HIDDEN),
        message("s", "user", text("S1"), **AGENT),
        message("n", "assistant", text(NOTE), **AGENT),
        message("b", "assistant", text("2")),
    )
    (tmp_path / "later").mkdir()
    events = written(
        form,
        tmp_path / "later",
        message("a", "user", text("1"), **HIDDEN),
        message("s", "user", text("S1"), **NEITHER),
        message("n", "assistant", text(NOTE), **NEITHER),
        message("b", "assistant", text("2"), **HIDDEN),
        message("t", "user", text("S2"), **AGENT),
        message("o", "assistant", text(NOTE), **AGENT),
        message("x", "user", text("only for the model"), **AGENT),
    )
    assert records(events) == records(first)
    one, two = of(Compacted, events)
    assert [one] == of(Compacted, first)
    assert (two.id, two.after) == ("t", "b")
    assert of(Skipped, events) == [Skipped("message for the model only")]


def test_messages_for_the_model_are_no_compaction_while_it_sees_others(
    form: str, tmp_path: Path
) -> None:
    events = written(
        form,
        tmp_path,
        message("a", "user", text("1")),
        message("x", "user", text("context"), **AGENT),
    )
    assert of(Compacted, events) == []
    assert of(Skipped, events) == [Skipped("message for the model only")]


def test_what_a_database_says_of_sessions(tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "sessions.db", TALK, messages(TALK), user_set_name=1, provider_name="openai"
    )
    child = Talk("a-child", "m", "/w", TALK.started, ())
    write_database(path, child, [], parent_session_id="chat", session_type="sub_agent")
    nightly = Talk("nightly", "m", "/w", TALK.started, ())
    write_database(path, nightly, [], schedule_id="s1", name="", description="Backup")
    events = read(path)
    assert of(Chat, events) == [
        Chat(
            id="nightly",
            title="Backup",
            created_at=1767323045000000,
            workspace=Workspace(cwd="/w"),
            model="m",
            automation=True,
            meta={"kind": "user", "schedule": "s1"},
        ),
        Chat(
            id="chat",
            title="Talk",
            title_origin="user",
            created_at=1767323045000000,
            workspace=Workspace(cwd="/w"),
            model="gpt-x",
            meta={"kind": "user", "provider": "openai"},
        ),
        Chat(
            id="a-child",
            title="Talk",
            created_at=1767323045000000,
            workspace=Workspace(cwd="/w"),
            model="m",
            origin="chat",
            meta={"kind": "sub_agent"},
        ),
    ]
    assert of(Used, events) == [
        Used(
            chat="chat",
            group="ledger1",
            spent=Spent(model="gpt-x", usage=Usage(input=9, output=2, cached=4), cost=0.25),
            at=1_700_000_000_000_000,
        )
    ]


def test_the_first_schema_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("""
            CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT);
            CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
                content_json TEXT NOT NULL, created_timestamp INTEGER);
            INSERT INTO sessions VALUES ('s', 'Old', '/w'), ('', 'no id', '/w');
            INSERT INTO messages VALUES
                (1, 's', 'user', '[{"type":"text","text":"q"}]', 1700000000),
                (2, 's', 'user', '{bad', 0), (3, 's', 'user', NULLIF(x'5bff5d', 1), 'x');
        """)
    events = read(path)
    assert [(each.id, each.parts) for each in records(events)] == [("#1", (Text("q"),))]
    assert [event.where for event in of(Damaged, events)] == [
        "a session",
        "message 2",
        "message 3",
    ]


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "20260101_9.jsonl"
    header = {"description": "D", "working_dir": "/w"}
    good = {"role": "user", "created": 1, "content": [text("q")]}
    rows = [
        dumped(header),
        b"\0\0",
        dumped(good) + b"\r",
        b'{"role": "us',
        b'{"x": 1}',
        dumped(good),
    ]
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(rows))
    events = read(path)
    assert events[0] == Chat(id="20260101_9", title="D", workspace=Workspace(cwd="/w"))
    assert [event.where for event in of(Damaged, events)] == ["line 2", "line 4"]
    assert of(Skipped, events) == [Skipped("unknown record")]
    assert [(each.id, each.content) for each in records(events)] == [(None, dumped(good))] * 2


def test_other_databases_are_not_taken() -> None:
    for name in ("hermes/state-v0.19.0.db", "openai-agents/sqlite_session.db"):
        assert not FORMAT.matches(probe(Source(DATA / name)))


@pytest.mark.parametrize("form", ["lines", "database"])
@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talk=talks())
def test_a_talk_comes_back(talk: Talk, form: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x"
        if form == "lines":
            path.write_bytes(jsonl(talk, messages(talk)))
        else:
            write_database(path, talk, messages(talk))
        events = read(path)
    assert heard(events) == said(talk)
    if form == "database":
        used = [event.spent.usage for event in of(Used, events)]
        assert sum(each.input for each in used) == talk.usage.input
        assert sum(each.cached for each in used) == talk.usage.cached
