"""Chat Completions and the Responses API, as files and as recordings."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.errors import ClewError
from clew.importers.fields import moment
from clew.importers.format import Format
from clew.importers.formats import openai_chat, openai_responses
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent, Used
from clew.importers.source import Source
from readings import of, read
from strategies.conversations import Talk, heard, said, spent, talks
from strategies.damage import altered
from strategies.openai import (
    chat_messages,
    entry,
    items,
    joined,
    write_har,
    write_json,
    write_lines,
)

DATA = Path(__file__).parents[2] / "data/transcripts"
CHAT = DATA / "openai-chat/har-chat-tools.har"
RESPONSES = DATA / "openai-responses/har-responses.har"
FORMATS = (openai_chat.FORMAT, openai_responses.FORMAT)
AT = 1_700_000_000_000_000


def chat(folder: Path, value: Any) -> list[Event]:
    return read(openai_chat.FORMAT, write_json(value, folder / "x.json"))


def responses(folder: Path, value: Any) -> list[Event]:
    return read(openai_responses.FORMAT, write_json(value, folder / "x.json"))


def recording(folder: Path, *entries: dict[str, Any], format: Format) -> list[Event]:
    return read(format, write_json({"log": {"entries": list(entries)}}, folder / "x.har"))


def asked(*words: str, **more: Any) -> dict[str, Any]:
    """A request of Chat Completions: what the user and the model said in turn."""
    roles = ["user", "assistant"] * len(words)
    messages = [{"role": role, "content": w} for role, w in zip(roles, words, strict=False)]
    return {"model": "m", "messages": messages, **more}


def answer(words: str) -> str:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": words}}]})


def dialogue(events: list[Event]) -> dict[str, list[str]]:
    """What is said in each chat."""
    found: dict[str, list[str]] = {}
    for each in of(Record, events):
        words = [part.text for part in each.parts if isinstance(part, Text)]
        found.setdefault(each.chat.partition("#")[2], []).append(" ".join(words))
    return found


# ---------------------------------------------------------------------- the samples


def test_the_recording_of_chat_completions() -> None:
    events = read(openai_chat.FORMAT, CHAT)
    at = moment("2026-03-02T09:10:00Z")
    tool = {"type": "function", "function": {"name": "bash", "parameters": {}}}
    assert events[0] == Chat(id=str(CHAT), created_at=at, model="gpt-5", tools=(tool,))
    found = of(Record, events)
    assert [(each.role, each.parts, each.created_at) for each in found] == [
        (Role.SYSTEM, (Text("Be brief."),), at),
        (Role.USER, (Text("List files"),), at),
        (Role.ASSISTANT, (Text("Sure."), ToolCall("call_x", "bash", '{"cmd":"ls"}')), at),
    ]
    assert found[2].spent == Spent(model="gpt-5", usage=Usage(30, 12, 5))
    assert len(events) == 4


def test_the_recording_of_responses() -> None:
    events = read(openai_responses.FORMAT, RESPONSES)
    at = moment("2026-03-02T09:15:00Z")
    assert events[0] == Chat(
        id=str(RESPONSES), created_at=at, model="gpt-5", prompt="Answer plainly."
    )
    found = of(Record, events)
    assert [(each.role, each.parts) for each in found] == [
        (Role.USER, (Text("Say hi"),)),
        (Role.ASSISTANT, (Text("Hi there."),)),
    ]
    assert found[1].spent == Spent(model="gpt-5", usage=Usage(12, 3))
    assert len(events) == 3


# ---------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("message", "role", "parts"),
    [
        ({"role": "developer", "content": "d"}, Role.DEVELOPER, (Text("d"),)),
        ({"role": "assistant", "content": None}, Role.ASSISTANT, ()),
        ({"role": "assistant", "content": None, "refusal": "No."}, Role.ASSISTANT, (Text("No."),)),
        (
            {"role": "assistant", "content": "a", "reasoning": "hm"},
            Role.ASSISTANT,
            (Reasoning("hm"), Text("a")),
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            Role.ASSISTANT,
            (ToolCall("f", "f", "{}"),),
        ),
        (
            {"role": "function", "name": "f", "content": "r"},
            Role.TOOL,
            (ToolResult("f", "r", "f"),),
        ),
        (
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}]},
            Role.TOOL,
            (ToolResult("c", "r"),),
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "custom", "custom": {"name": "g", "input": "x"}}
                ],
            },
            Role.ASSISTANT,
            (ToolCall("c", "g", "x", "custom"),),
        ),
        (
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": "https://x.test/a", "detail": "low"},
                    },
                    {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "f1", "filename": "a.pdf"}},
                ],
            },
            Role.USER,
            (
                Image(url="https://x.test/a", detail="low"),
                Unknown({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
                File(name="a.pdf", file_id="f1"),
            ),
        ),
    ],
)
def test_messages_of_all_kinds(tmp_path: Path, message: Any, role: Role, parts: Any) -> None:
    found = of(Record, chat(tmp_path, [message]))
    assert [(each.role, each.parts) for each in found] == [(role, parts)]


def test_names_stay(tmp_path: Path) -> None:
    events = chat(tmp_path, [{"role": "user", "name": "ada", "content": "x"}])
    assert of(Record, events)[0].author == "ada"


def test_a_message_of_no_role_is_passed_over_and_named(tmp_path: Path) -> None:
    messages: list[Any] = [{"role": "user", "content": "x"}, {"role": "critic"}, {"role": 7}, 5]
    events = chat(tmp_path, messages)
    assert len(of(Record, events)) == 1
    assert of(Skipped, events) == [
        Skipped("message of the role 'critic'"),
        Skipped("message of the role 'none'"),
    ]
    assert of(Damaged, events) == [Damaged("message 4", "no JSON object")]


def test_one_conversation_for_each_line_that_has_messages(tmp_path: Path) -> None:
    path = write_lines([asked("a", "b"), {"messages": []}, asked("c")], tmp_path / "x.jsonl")
    with path.open("ab") as stream:
        stream.write(b'{"messages": [{"role"\r\n')
    events = read(openai_chat.FORMAT, path)
    assert [each.id for each in of(Chat, events)] == [str(path), f"{path}#3"]
    assert dialogue(events) == {"": ["a", "b"], "3": ["c"]}
    assert of(Skipped, events) == [Skipped("object without messages")]
    assert [each.where for each in of(Damaged, events)] == ["line 4"]


def test_the_requests_of_a_batch(tmp_path: Path) -> None:
    lines = [
        {"custom_id": f"r{at}", "method": "POST", "url": "/v1/chat/completions", "body": asked("x")}
        for at in range(2)
    ]
    events = read(openai_chat.FORMAT, write_lines(lines, tmp_path / "x.jsonl"))
    assert dialogue(events) == {"": ["x"], "2": ["x"]}


def test_one_message_a_line(tmp_path: Path) -> None:
    lines = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    events = read(openai_chat.FORMAT, write_lines(lines, tmp_path / "x.jsonl"))
    assert dialogue(events) == {"": ["x", "y"]}


def test_a_request_over_several_lines(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(asked("x", tools=[tool]), indent=2).encode())
    events = read(openai_chat.FORMAT, path)
    assert of(Chat, events) == [Chat(id=str(path), model="m", tools=(tool,))]
    assert dialogue(events) == {"": ["x"]}


# ---------------------------------------------------------------------- items


def test_a_response_with_its_input(tmp_path: Path) -> None:
    hi = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    value = {
        "id": "resp_1", "object": "response", "created_at": 1_700_000_000, "model": "gpt-5",
        "instructions": "Be kind.", "input": "Hello", "output": [hi], "previous_response_id": "r0",
        "tools": [{"type": "function", "name": "f", "parameters": {}}, {"type": "web_search"}],
        "usage": {"input_tokens": 9, "output_tokens": 2,
                  "output_tokens_details": {"reasoning_tokens": 1}},
    }  # fmt: skip
    events = responses(tmp_path, value)
    assert events[0] == Chat(
        id=str(tmp_path / "x.json"), created_at=AT, model="gpt-5", prompt="Be kind.",
        tools=({"type": "function", "function": {"name": "f", "parameters": {}}},),
        meta={"previous_response_id": "r0"},
    )  # fmt: skip
    assert dialogue(events) == {"": ["Hello", "Hi"]}
    assert [(each.group, each.spent.usage) for each in of(Used, events)] == [
        ("resp_1", Usage(9, 2, reasoning=1))
    ]


def test_items_a_line_each_and_what_is_none(tmp_path: Path) -> None:
    lines = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "item_reference", "id": "msg_1"},
        {"role": "assistant", "content": "y"},
        {"id": 5},
    ]
    events = read(openai_responses.FORMAT, write_lines(lines, tmp_path / "x.jsonl"))
    assert dialogue(events) == {"": ["x", "y"]}
    assert of(Skipped, events) == [Skipped("item_reference"), Skipped("item of no type")]


# ---------------------------------------------------------------------- recordings


def test_requests_that_grow_are_one_conversation_and_others_are_others(tmp_path: Path) -> None:
    events = recording(
        tmp_path,
        entry("chat", asked("a"), answer("b"), AT),
        entry("chat", asked("x"), answer("y"), AT + 1),
        entry("chat", asked("a", "b", "c"), answer("d"), AT + 2),
        entry("chat", asked("a", "b", "c", "d", "e"), answer("f"), AT + 3),
        format=openai_chat.FORMAT,
    )
    assert dialogue(events) == {"": ["a", "b", "c", "d", "e", "f"], "2": ["x", "y"]}
    found = of(Record, events)
    assert [each.created_at for each in found[:2]] == [AT, AT + 1_500_000]
    assert all(before.id == each.parent for before, each in pairwise(found[4:]))


def test_the_same_asked_again_is_a_branch(tmp_path: Path) -> None:
    events = recording(
        tmp_path,
        entry("chat", asked("a"), answer("b"), AT),
        entry("chat", asked("a"), answer("B"), AT + 1),
        entry("chat", asked("a"), answer("b"), AT + 2),
        entry("chat", asked("a", "B", "c"), answer("d"), AT + 3),
        format=openai_chat.FORMAT,
    )
    a, b, other, c, d = of(Record, events)
    assert [each.parent for each in (b, other, c, d)] == [a.id, a.id, other.id, c.id]
    assert len(of(Chat, events)) == 1


def test_a_conversation_that_only_begins_alike_is_another(tmp_path: Path) -> None:
    system = {"role": "system", "content": "s"}
    one, two = asked("a"), asked("b")
    one["messages"].insert(0, system)
    two["messages"].insert(0, system)
    events = recording(
        tmp_path,
        entry("chat", one, answer("1"), AT),
        entry("chat", two, answer("2"), AT),
        format=openai_chat.FORMAT,
    )
    assert dialogue(events) == {"": ["s", "a", "1"], "2": ["s", "b", "2"]}


def test_what_failed_and_what_is_something_else(tmp_path: Path) -> None:
    failed = entry("chat", asked("a"), '{"error": {}}', AT)
    failed["response"]["status"] = 500
    other = entry("chat", asked("a"), answer("b"), AT)
    other["request"]["url"] = "https://x.test/chat/completions/feedback"
    broken = entry("chat", asked("a"), answer("b"), AT)
    broken["request"]["postData"]["text"] = "{"
    several = json.dumps({"choices": [{"message": {"role": "assistant", "content": "b"}}, {}, {}]})
    events = recording(
        tmp_path, failed, other, broken, entry("chat", asked("a"), several, AT),
        entry("chat", {"messages": []}, answer("c"), AT), {}, format=openai_chat.FORMAT,
    )  # fmt: skip
    assert dialogue(events) == {"": ["a", "b"]}
    assert Counter(each.kind for each in of(Skipped, events)) == {
        "request to something else": 2, "further choice": 1, "exchange without messages": 1,
    }  # fmt: skip
    assert [each.where for each in of(Damaged, events)] == ["entry 3"]


def test_an_answer_in_base64_and_one_that_breaks_off(tmp_path: Path) -> None:
    whole = entry("chat", asked("a"), "eyJjaG9pY2VzIjpbeyJtZXNzYWdlIjp7InJvbGUiOiJhc3Npc3Rh"
                  "bnQiLCJjb250ZW50IjoiYiJ9fV19", AT)  # fmt: skip
    whole["response"]["content"]["encoding"] = "base64"
    cut = 'data: {"choices":[{"delta":{"content":"d"}}]}\n\ndata: {"choi'
    events = recording(
        tmp_path, whole, entry("chat", asked("a", "b", "c"), cut, AT), format=openai_chat.FORMAT
    )
    assert dialogue(events) == {"": ["a", "b", "c", "d"]}


def test_both_apis_in_one_recording(tmp_path: Path) -> None:
    value = {"model": "m", "input": "x"}
    body = 'data: {"type":"response.output_text.delta","delta":"y"}\n\n'
    events = recording(
        tmp_path,
        entry("responses", value, body, AT),
        entry("chat", asked("a"), answer("b"), AT),
        format=openai_responses.FORMAT,
    )
    assert dialogue(events) == {"": ["x", "y"], "2": ["a", "b"]}


def test_what_a_call_cost_that_said_nothing_new_counts_too(tmp_path: Path) -> None:
    body = json.dumps(
        {
            "choices": [{"message": {"role": "assistant", "content": "b"}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1},
        }
    )
    entries = [entry("chat", asked("a"), body, AT + at) for at in range(2)]
    events = recording(tmp_path, *entries, format=openai_chat.FORMAT)
    assert [each.spent.usage for each in of(Used, events)] == [Usage(3, 1)]
    assert spent(events) == Usage(3, 1)


# ---------------------------------------------------------------------- properties


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks(errors=False), st.sampled_from(["list", "request", "lines", "message a line"]))
def test_a_talk_comes_back_from_messages(talk: Talk, form: str) -> None:
    messages = chat_messages(talk)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        match form:
            case "list":
                write_json(messages, path)
            case "message a line":
                write_lines(messages, path)
            case "lines":
                write_lines([{"messages": messages}, asked("x")], path)
            case _:
                write_json({"messages": messages, "model": talk.model}, path)
        events = read(openai_chat.FORMAT, path)
    assert heard(events, str(path)) == said(talk)


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks(errors=False), st.booleans())
def test_a_talk_comes_back_from_items(talk: Talk, by_line: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        (write_lines if by_line else write_json)(items(talk), path)
        events = read(openai_responses.FORMAT, path)
    assert heard(events) == joined(said(talk))


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks(errors=False), st.sampled_from(["chat", "responses"]), st.booleans(), st.booleans())
def test_a_talk_comes_back_from_a_recording(
    talk: Talk, api: str, streamed: bool, chained: bool
) -> None:
    format = openai_chat.FORMAT if api == "chat" else openai_responses.FORMAT
    chained = chained and api == "responses"
    with tempfile.TemporaryDirectory() as folder:
        path = write_har(talk, Path(folder) / "x.har", api, streamed=streamed, chained=chained)
        events = read(format, path)
    assert len(of(Chat, events)) == 1
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks(errors=False), st.data())
def test_a_list_that_grew_says_the_same_and_more(talk: Talk, data: st.DataObject) -> None:
    messages = chat_messages(talk)
    with tempfile.TemporaryDirectory() as folder:
        path = write_json(messages, Path(folder) / "x")
        later = of(Record, read(openai_chat.FORMAT, path))
        write_json(messages[: data.draw(st.integers(1, len(messages)))], path)
        before = of(Record, read(openai_chat.FORMAT, path))
    assert later[: len(before)] == before


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(st.data(), talks(errors=False))
def test_fields_of_any_type_are_read_or_named(data: st.DataObject, talk: Talk) -> None:
    values = data.draw(st.sampled_from([chat_messages, items]))(talk)
    changed = data.draw(altered(values))
    for value in (changed, {"messages": changed}, {"model": "m", "input": changed}):
        _read_all(json.dumps(value).encode())
    api = data.draw(st.sampled_from(["chat", "responses"]))
    body = json.dumps({"choices": [{"message": changed}], "output": changed, "usage": changed})
    one = entry(api, {"messages": changed, "input": changed}, body, AT)
    _read_all(json.dumps({"log": {"entries": [one]}}).encode())


def _read_all(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(data)
        for format in FORMATS:
            try:
                list(format.read(Source(path)))
            except ClewError:
                continue
