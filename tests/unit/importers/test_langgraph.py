"""LangGraph's checkpoints."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.domain.messages import Role
from clew.domain.parts import Reasoning, Text, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.formats.langgraph import FORMAT
from clew.importers.records import (
    ROOT,
    Chat,
    Damaged,
    Event,
    Record,
    Rewound,
    Skipped,
    Spent,
    Warned,
)
from readings import read as read_as
from readings import records
from strategies.conversations import Talk, heard, said, spent, talks
from strategies.langgraph import STARTED, Threads, message, write

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/langgraph/checkpoints.sqlite"
A, B, C, D = (message("human", name, name.upper()) for name in "abcd")


def links(events: list[Event]) -> list[tuple[str | None, str | None]]:
    return [(record.id, record.parent) for record in records(events)]


@pytest.fixture
def threads(tmp_path: Path) -> Threads:
    return Threads(tmp_path / "checkpoints.sqlite")


def test_the_sample_is_a_thread_with_a_fork() -> None:
    events = read(SAMPLE)
    assert events[0] == Chat(id="t1")
    found = records(events)
    assert len(events) == 9
    assert [each.role.value for each in found] == [
        "user", "assistant", "tool", "tool", "assistant", "user", "user", "assistant",
    ]  # fmt: skip
    assert found[1].parts == (
        ToolCall("c1", "w", '{"city":"Oslo"}'), ToolCall("c2", "w", '{"city":"Bergen"}'),
    )  # fmt: skip
    assert [each.parts for each in found[2:4]] == [
        (ToolResult("c1", "sun", "w"),), (ToolResult("c2", "sun", "w"),),
    ]  # fmt: skip
    assert [each.parts for each in found[4:]] == [
        (Text("answer to: sun"),),
        (Text("edited question"),),
        (Text("こんにちは"),),
        (Text("answer to: こんにちは"),),
    ]
    assert [each.parent for each in found] == [None] * 6 + [found[4].id, found[6].id]
    assert found[0].created_at == 1795951081227094
    assert found[0].id == "fa31591f-10c4-46d7-adb3-de603bdf3612"


def test_what_is_removed_from_the_end_is_taken_back_and_the_rest_stays(threads: Threads) -> None:
    threads.put("1", None, [A, B, C])
    threads.put("2", "1", [A, B])
    threads.put("3", "2", [B, D])
    events = read(threads.close())
    assert [getattr(each, "first", getattr(each, "id", None)) for each in events[1:5]] == [
        "a", "b", "c", "c",
    ]  # fmt: skip
    assert events[4] == Rewound(chat="t", first="c")
    assert links(events)[3] == ("d", "b")
    assert records(events)[3].created_at == (STARTED + 3) * 1_000_000
    (warned,) = (event for event in events if isinstance(event, Warned))
    assert "1 messages were removed" in warned.text


def test_a_message_that_was_changed_on_the_way_is_as_it_was_in_the_end(threads: Threads) -> None:
    threads.put("1", None, [A, B])
    threads.put("2", "1", [A, message("human", "b", "changed")])
    threads.put("3", "1", [A, B, C])
    threads.put("4", "2", [A, message("human", "b", "changed"), D])
    events = read(threads.close())
    assert links(events) == [("a", None), ("b", None), ("d", None), ("c", "b")]
    assert records(events)[1].parts == (Text("changed"),)


def test_a_fork_that_changes_a_message_has_one_of_its_own(threads: Threads) -> None:
    threads.put("1", None, [A, B])
    threads.put("2", "1", [A, message("human", "b", "else"), C])
    threads.put("3", "1", [A, B, D])
    events = read(threads.close())
    found = records(events)
    assert links(events)[:3] == [("a", None), ("b", None), ("d", None)]
    other = found[3]
    assert other.id is not None
    assert other.id.startswith("b:")
    assert (other.parent, other.parts) == ("a", (Text("else"),))
    assert links(events)[4] == ("c", other.id)


def test_a_fork_of_a_fork_and_one_that_shares_nothing(threads: Threads) -> None:
    threads.put("1", None, [A])
    threads.put("2", "1", [A, B])
    threads.put("3", "2", [A, B, C])
    threads.put("4", "2", [A, B, D])
    threads.put("5", None, [message("human", "x", "alone")])
    threads.put("6", "1", [A, message("human", "y", "newest")])
    assert links(read(threads.close())) == [
        ("a", None), ("y", None), ("x", ROOT), ("b", "a"), ("d", "b"), ("c", "b"),
    ]  # fmt: skip


def test_a_subgraph_with_messages_of_its_own_is_a_delegate(threads: Threads) -> None:
    threads.put("1", None, [A, B])
    threads.put("1", None, [A, B], space="same:1")
    threads.put("1", None, [C], space="other:2")
    events = read(threads.close())
    assert [event for event in events if isinstance(event, Chat)] == [
        Chat(id="t"),
        Chat(id="t:other:2", origin="t", meta={"checkpoint_ns": "other:2"}),
    ]
    assert [(each.chat, each.id) for each in records(events)] == [
        ("t", "a"), ("t", "b"), ("t:other:2", "c"),
    ]  # fmt: skip
    assert Skipped("checkpoint_ns that says what the thread says") in events


def test_an_answer_with_thinking_its_own_arguments_and_usage(threads: Threads) -> None:
    answer = message(
        "ai", "a",
        [{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "text", "text": "so"},
         {"type": "tool_use", "id": "c1", "name": "f", "input": {}}],
        tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c1"}],
        invalid_tool_calls=[{"name": "g", "args": "{bad", "id": "c2", "error": "no"}],
        additional_kwargs={"tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}]},
        response_metadata={"model_name": "m", "finish_reason": "tool_calls", "id": "r"},
        usage_metadata={"input_tokens": 9, "output_tokens": 4, "total_tokens": 13,
                        "input_token_details": {"cache_read": 5},
                        "output_token_details": {"reasoning": 2}},
    )  # fmt: skip
    threads.put("1", None, [answer], other=1)
    events = read(threads.close())
    assert events[1] == Record(
        chat="t",
        role=Role.ASSISTANT,
        parts=(
            Reasoning("hm", "m", "sig"),
            Text("so"),
            ToolCall("c1", "f", '{"x": 1}'),
            ToolCall("c2", "g", "{bad"),
        ),
        id="a",
        created_at=(STARTED + 1) * 1_000_000,
        model="m",
        spent=Spent(model="m", usage=Usage(9, 4, 5, 2)),
        meta={"finish_reason": "tool_calls", "response": "r"},
    )
    assert events[2:] == [Skipped("channels other than messages")]


def test_the_json_of_older_versions_and_plain_messages(threads: Threads) -> None:
    made = {
        "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"],
        "kwargs": {"content": "made", "id": "x"},
    }  # fmt: skip
    threads.put("1", None, [made, {"role": "user", "content": "plain"}, "bare"], kind="json")
    found = records(read(threads.close()))
    assert [(each.role.value, each.parts) for each in found] == [
        ("assistant", (Text("made"),)), ("user", (Text("plain"),)), ("user", (Text("bare"),)),
    ]  # fmt: skip
    assert found[0].id == "x"
    assert (found[1].id or "").startswith("message:1:")


def test_nothing_that_a_file_names_is_made(threads: Threads, tmp_path: Path) -> None:
    trap = tmp_path / "made"
    call = msgspec.msgpack.encode(["os", "system", [f"touch {trap}"]])
    threads.put("1", None, [A, msgspec.msgpack.Ext(1, call), msgspec.msgpack.Ext(0, call)])
    threads.put("2", "1", None, kind="pickle", data=f"cos\nsystem\n(S'touch {trap}'\ntR.".encode())
    events = read(threads.close())
    assert [each.id for each in records(events)] == ["a"]
    assert [each for each in events if isinstance(each, Damaged)] == [
        Damaged("checkpoint 2", "of the type 'pickle', which is not decoded")
    ]
    assert not trap.exists()


def nested(levels: int) -> bytes:
    data = b"\xc0"
    for _ in range(levels):
        data = msgspec.msgpack.encode(msgspec.msgpack.Ext(5, b"\x91" + data))
    return data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
        nested(5000),
        b"\x81\x80\x01",
        b"\xa2\xff\xfe",
        b"\xc9\x7f\xff\xff\xff\x05",
    ],
)
def test_blobs_that_are_no_value_are_named(threads: Threads, data: bytes) -> None:
    threads.put("1", None, [A], thread="s")
    threads.put("1", None, None, data=data)
    events = read(threads.close())
    assert [each.id for each in records(events)] == ["a"]
    assert [each.where for each in events if isinstance(each, Damaged)] == ["checkpoint 1"]


def test_circles_odd_ids_and_a_step_that_was_not_finished(threads: Threads) -> None:
    threads.put("1", "2", [A])
    threads.put("2", "1", [A, B])
    threads.put(b"\xff", None, [C], thread=None)
    threads.put("9", "gone", {"not": "a list"}, thread="u")
    threads.db.execute("INSERT INTO writes VALUES ('t', '', '9', 'x', 0, 'messages', '', '')")
    events = read(threads.close())
    assert links(events) == [("c", None), ("a", None), ("b", None)]
    assert events[-1] == Skipped("writes of an unfinished step")


EXTENSIONS = st.builds(msgspec.msgpack.Ext, st.integers(0, 7), st.binary(max_size=4))
JUNK = st.recursive(
    st.none() | st.integers(-9, 2**63) | st.floats() | st.text(max_size=3) | EXTENSIONS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["content", "type", "id", "tool_calls", "usage_metadata", "name", "role",
                         "additional_kwargs", "response_metadata", "tool_call_id", "status"]),
        JUNK | st.sampled_from(["ai", "tool", "human", "chat"]),
    ),
    JUNK,
)  # fmt: skip
def test_any_value_may_stand_in_any_place(fields: dict[str, Any], junk: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        threads = Threads(Path(folder) / "x.sqlite")
        body = msgspec.msgpack.encode(["m", "AIMessage", fields, "f"])
        threads.put("1", None, [msgspec.msgpack.Ext(5, body), fields, junk, A])
        threads.put("2", None, junk)
        events = read(threads.close())
    assert "a" in [each.id for each in records(events)]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks())
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write(talk, Path(folder) / "checkpoints.sqlite"))
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage
    assert events[0] == Chat(id=talk.id)
