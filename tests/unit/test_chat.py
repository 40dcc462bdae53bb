"""Chat Completions messages <-> drafts: everything comes back, nothing in the wrong place."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import (
    Draft,
    File,
    Image,
    InputError,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from clew.context.entries import Entry
from clew.context.wire import closed_calls
from clew.domain.chat import chat_of, draft_of, split_results

CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"x":1}'}}


def no_blob(digest: str) -> bytes:
    raise AssertionError(digest)


def back(draft: Draft) -> dict[str, Any]:
    return chat_of(draft.role, draft.parts, no_blob, draft.author, draft.meta)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hi"},
        {"role": "system", "content": ""},
        {"role": "developer", "content": "x", "name": "Ada"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": "both", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {**CALL, "extra_content": {"google": {"thought_signature": "sig"}}}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]},
        {"role": "assistant", "reasoning_content": "hm", "content": "x"},
        {"role": "assistant", "content": "x", "refusal": None, "audio": {"id": "a"}},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
        {"role": "assistant"}, {"role": "assistant", "content": None},
        {"role": "assistant", "content": [], "tool_calls": []},
        {"role": "assistant", "content": None, "tool_calls": None, "name": None},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "x", "reasoning_content": ""},
        {"role": "assistant", "content": "x", "reasoning_content": None},
        {"role": "assistant", "content": "x", "reasoning_content": ["a"]},
        {"role": "assistant", "tool_calls": [
            CALL, {"id": "d", "function": {"name": "f", "arguments": {"a": "x"}, "strict": True}}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": ["a"]}, {"role": "user", "content": ["a", {"type": "b"}, "c"]},
        {"role": "user", "content": {"odd": 1}}, {"role": "user", "content": 5},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]},
        {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "u", "detail": None}}]},
        {"role": "tool", "tool_call_id": "c1", "content": None, "name": None},
        {"role": "tool", "tool_call_id": "c1"},
        {"role": "tool", "tool_call_id": "c1", "content": [], "reasoning_content": "x"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]},
        {"role": "tool", "tool_call_id": "c1", "content": {"a": 1}},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "tool", "tool_call_id": "c1", "name": "run", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=",
                                                "detail": "high"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,bad="}},
            {"type": "image_url", "image_url": {"url": "x", "more": 1}},
            {"type": "file", "file": {"file_id": "f"}},
            "plain",
        ][:-1]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_message_comes_back(message: dict[str, Any]) -> None:
    assert back(draft_of(message)) == message


@given(
    st.text(st.characters(codec=None)),
    st.dictionaries(st.sampled_from(["x", "y"]), st.integers() | st.text(max_size=5), max_size=2),
)
def test_any_text_and_any_other_field_come_back(text: str, more: dict[str, Any]) -> None:
    message = {"role": "user", "content": text, **more}
    assert back(draft_of(message)) == message


def test_parts_are_what_they_are() -> None:
    draft = draft_of(
        {"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [CALL],
         "id": "msg_1", "name": "bot"}
    )  # fmt: skip
    assert draft.parts == (Reasoning("hm"), Text("x"), ToolCall("c1", "run", '{"x":1}'))
    assert (draft.key, draft.author, draft.meta) == ("msg_1", "bot", None)
    assert draft_of(draft) is draft
    assert draft_of({"role": "user", "content": "x", "key": "k", "id": "i"}).key == "k"
    assert draft_of({"role": "function", "name": "f", "content": "x"}).parts == (
        ToolResult("f", "x", "f"),
    )
    assert draft_of({"role": "user", "content": {"odd": 1}}).parts == (Unknown({"odd": 1}),)
    image = {"type": "image_url", "image_url": {"url": "data:image/webp;base64,aGk="}}
    assert draft_of({"role": "user", "content": [image]}).parts == (
        Image(media_type="image/webp", data=b"hi"),
    )


@pytest.mark.parametrize(
    "bad",
    [
        {}, {"role": None}, {"role": ["user"]}, {"role": "user", "content": "x", "_clew": {}},
        {"role": "user", "content": "x", "name": 5}, {"role": "user", "content": "x", "id": ["a"]},
        {"role": "assistant", "tool_calls": 5}, {"role": "assistant", "tool_calls": [5]},
        {"role": "robot"}, {"role": ["user"][0] + " "},
        {"role": "tool", "content": "x"},
        {"role": "user", "content": b"bytes"},
        {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "x"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c"}]},
        "text", 7,
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_message_is_refused(bad: Any) -> None:
    with pytest.raises(InputError):
        draft_of(bad)


@given(
    st.none() | st.integers() | st.text(max_size=3) | st.dictionaries(
        st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "x", "_clew"]),
        st.none() | st.integers() | st.lists(st.integers(), max_size=2) | st.dictionaries(
            st.sampled_from(["role", "content", "strings", "untyped", "objects"]),
            st.sampled_from(["absent", "null", "list", "bare", "function", [0], 5, None]),
        ),
    )
)  # fmt: skip
def test_meta_is_the_callers_and_overrides_nothing(chat: Any) -> None:
    for parts in ((Text("a"),), (Text("a"), ToolCall("c", "f", "x"))):
        message = chat_of(Role.ASSISTANT, parts, no_blob, None, {"chat": chat})
        assert message["role"] == "assistant"
        assert message["content"] in ("a", ["a"], [{"type": "text", "text": "a"}])
        assert not message.get("tool_calls") or len(parts) == 2
        assert "tool_call_id" not in message
    result = chat_of(Role.TOOL, (ToolResult("c", "x"),), no_blob, None, {"chat": chat})
    assert result["content"] == "x"


def test_the_common_messages_need_no_meta() -> None:
    for message in (
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ):
        assert draft_of(message).meta is None


def test_bytes_are_rendered_as_data_urls() -> None:
    stored = Image(media_type="image/png", hash="h" * 64, size=2)
    rendered = chat_of(Role.USER, (stored, File(name="f", data=b"x")), lambda _: b"hi")
    assert rendered["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "file", "file": {
            "filename": "f",
            "file_data": "data:application/octet-stream;base64," + base64.b64encode(b"x").decode(),
        }},
    ]  # fmt: skip
    for empty in (Image(), File()):
        with pytest.raises(InputError):
            chat_of(Role.USER, (empty,), no_blob)


def test_one_message_for_each_result() -> None:
    results = (ToolResult("a", "1"), ToolResult("b", "2"))
    assert split_results(results) == [(results[0],), (results[1],)]
    assert split_results((Text("x"), results[0])) == [(Text("x"), results[0])]


def call(*ids: str) -> Entry:
    return Entry(Role.ASSISTANT, tuple(ToolCall(id, "run") for id in ids))


def answer(*ids: str) -> Entry:
    return Entry(Role.TOOL, tuple(ToolResult(id, "ok") for id in ids))


def say(text: str = "x") -> Entry:
    return Entry(Role.USER, (Text(text),))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([call("a"), answer("a"), say()], ["call a", "ok a", "say"]),
        ([call("a", "b"), answer("b"), answer("a")], ["call a b", "ok b", "ok a"]),
        ([call("a", "b"), answer("a"), say()], ["call a b", "ok a", "closed b", "say"]),
        ([call("a")], ["call a", "closed a"]),
        ([answer("a"), say()], ["say"]),
        ([call("a"), say(), answer("a")], ["call a", "ok a", "say"]),
        ([call("a"), say(), call("b"), answer("b", "a")],
         ["call a", "ok a", "say", "call b", "ok b"]),
        ([call("a"), call("a"), answer("a")], ["call a", "closed a", "call a", "ok a"]),
        ([call("a"), answer("a", "gone")], ["call a", "ok a"]),
        ([answer("a"), call("a")], ["call a", "closed a"]),
        ([call("a"), call("b"), answer("b")], ["call a", "closed a", "call b", "ok b"]),
        ([call("a"), answer("a"), answer("a")], ["call a", "ok a"]),
        ([call("a"), answer("a"), call("a"), answer("a")], ["call a", "ok a"] * 2),
    ],
    ids=str,
)  # fmt: skip
def test_every_call_is_answered_once_right_behind_it(
    entries: list[Entry], expected: list[str]
) -> None:
    said: list[str] = []
    closed: Any = closed_calls(entries)
    for role, parts, *_ in closed:
        match parts[0]:
            case ToolCall():
                said.append("call " + " ".join(part.id for part in parts))
            case ToolResult(is_error=True):
                said.append("closed " + " ".join(part.call_id for part in parts))
            case ToolResult(call_id=id):
                said.append(f"ok {id}")
            case _:
                assert role is Role.USER
                said.append("say")
    assert said == expected
