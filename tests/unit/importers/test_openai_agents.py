"""Sessions of the OpenAI Agents SDK."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.messages import Role
from clew.domain.parts import Reasoning, Text, ToolCall, ToolResult
from clew.errors import ClewError
from clew.importers.fields import moment
from clew.importers.formats.openai_agents import FORMAT
from clew.importers.records import ROOT, Chat, Damaged, Skipped
from readings import read as read_as
from readings import records
from strategies.conversations import Talk, heard, said, talks, values
from strategies.openai import AGENTS, joined, write_agents

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/openai-agents/sqlite_session.db"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


def database(folder: Path, *rows: Any) -> Path:
    """A session "s" with these items."""
    path = folder / "x.db"
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.executescript(AGENTS)
        opened.execute("INSERT INTO agent_sessions (session_id) VALUES ('s')")
    add(path, *rows)
    return path


def add(path: Path, *rows: Any) -> None:
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES ('s', ?)",
            [(row if isinstance(row, str | bytes) else json.dumps(row),) for row in rows],
        )


def user(words: str) -> dict[str, str]:
    return {"role": "user", "content": words}


def test_the_sample() -> None:
    events = read(SAMPLE)
    at = moment("2026-11-29T11:17:58Z")
    one, two = f"{SAMPLE}#conv-1", f"{SAMPLE}#conv-2"
    chats = [event for event in events if isinstance(event, Chat)]
    assert chats == [
        Chat(id=one, created_at=at, meta={"session_id": "conv-1"}),
        Chat(id=two, created_at=at, meta={"session_id": "conv-2"}),
    ]
    found = records(events)
    assert [(each.chat, each.role, each.parts) for each in found] == [
        (one, Role.USER, (Text("Weather in Oslo and Bergen?"),)),
        (one, Role.ASSISTANT, (Reasoning("call both", id="rs_1"),)),
        (one, Role.ASSISTANT, (ToolCall("call_1", "get_weather", '{"city":"Oslo"}'),)),
        (one, Role.ASSISTANT, (ToolCall("call_2", "get_weather", '{"city":"Bergen"}'),)),
        (one, Role.TOOL, (ToolResult("call_2", "rain"),)),
        (one, Role.TOOL, (ToolResult("call_1", "sun"),)),
        (one, Role.ASSISTANT, (Text("Oslo sun, Bergen rain."),)),
        (two, Role.USER, (Text("日本語でお願いします"),)),
        (two, Role.ASSISTANT, (Text("はい。"),)),
    ]
    assert {each.created_at for each in found} == {at}
    assert [each.parent for each in found] == [
        ROOT, *(each.id for each in found[:6]), ROOT, found[7].id,
    ]  # fmt: skip
    assert len({each.api_group for each in found[1:4]}) == 1
    assert len(events) == 11


def test_what_was_taken_out_is_followed_by_what_came_instead(tmp_path: Path) -> None:
    path = database(tmp_path, user("a"), user("b"), user("c"))
    before = records(read(path))
    change(path, "DELETE FROM agent_messages WHERE id > 1")
    add(path, user("b"))
    after = records(read(path))
    assert [each.id for each in after[:1]] == [before[0].id]
    assert after[1].id not in {each.id for each in before}
    assert after[1].parent == before[0].id


def test_a_new_database_in_the_same_place_has_other_ids(tmp_path: Path) -> None:
    path = database(tmp_path, user("a"))
    before = records(read(path))
    path.unlink()
    after = records(read(database(tmp_path, user("b"))))
    assert before[0].id != after[0].id
    assert after[0].parent == ROOT


def test_rows_of_any_kind_are_read_or_named(tmp_path: Path) -> None:
    reference = {"type": "item_reference", "id": "x"}
    path = database(tmp_path, user("a"), "{", "[]", b"\xff", reference, {"id": 1}, user("b"))
    change(
        path,
        "INSERT INTO agent_messages (session_id, message_data) VALUES ('gone', '{}')",
        "INSERT INTO agent_sessions (session_id, created_at) VALUES (NULL, 'when')",
    )
    events = read(path)
    found = records(events)
    assert [each.parts for each in found] == [(Text("a"),), (Text("b"),)]
    assert found[1].parent == found[0].id
    assert [each.where for each in events if isinstance(each, Damaged)] == [
        "agent_messages row 2", "agent_messages row 3", "agent_messages row 4", "agent_sessions",
    ]  # fmt: skip
    assert [each.kind for each in events if isinstance(each, Skipped)] == [
        "item_reference", "item of no type", "agent_messages of no session",
    ]  # fmt: skip


def test_a_database_of_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("CREATE TABLE agent_sessions (a)")
        opened.execute("CREATE TABLE agent_messages (a)")
    with pytest.raises(ClewError, match="cannot be read"):
        read(path)


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(talks(errors=False), talks(errors=False))
def test_talks_come_back(one: Talk, two: Talk) -> None:
    both = [one] if one.id == two.id else [one, two]
    with tempfile.TemporaryDirectory() as folder:
        path = write_agents(both, Path(folder) / "x.db")
        events = read(path)
    for talk in both:
        assert heard(events, f"{path}#{talk.id}") == joined(said(talk))


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(values)
def test_items_of_any_value_are_read_or_named(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(database(Path(folder), {"role": "user", "content": value}))
    assert len(records(events)) == 1
