"""LibreChat's exports."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.formats.librechat import FORMAT
from clew.importers.records import ROOT, Chat, Damaged, Event, Skipped, Spent, Warned
from readings import read as read_as
from readings import records
from strategies.conversations import Talk, heard, said, spent, talks
from strategies.librechat import conversation

read = partial(read_as, FORMAT)


TREE = Path(__file__).parents[2] / "data/transcripts/librechat/librechat-tree.json"
ZERO = "00000000-0000-0000-0000-000000000000"
HEAD = {"conversationId": "c", "endpoint": "openAI", "branches": True, "recursive": False}


def written(folder: Path, *messages: dict[str, Any], **fields: Any) -> list[Event]:
    path = folder / "export.json"
    path.write_text(json.dumps({**HEAD, "messages": list(messages), **fields}), "utf-8")
    return read(path)


def follows(events: list[Event]) -> list[tuple[str, str]]:
    return [(str(each.id)[:8], (each.parent or "")[:8]) for each in records(events)]


def test_a_tree_with_branches() -> None:
    events = read(TREE)
    assert not any(isinstance(event, Damaged | Warned | Skipped) for event in events)
    assert events[0] == Chat(
        id="4a86c40e-e627-4454-b158-889680e23ad3",
        title="Troubleshooting Python Virtual Environment Activation Issue",
        created_at=1714581311530000,
        model="gpt-4-turbo",
        prompt="You are an expert software engineer.",
        meta={"endpoint": "openAI", "label": "Software Engineer"},
    )
    assert follows(events) == [
        ("9501f99d", ""),
        ("4c395510", "9501f99d"),
        ("d3e12088", "4c395510"),
        ("1f062c99", "d3e12088"),
        ("6e4c95ca", "4c395510"),
        ("5da2cdce", "6e4c95ca"),
        ("64ed7568", "6e4c95ca"),
        ("f82cca6f", "64ed7568"),
        ("ad7b6ec6", "f82cca6f"),
    ]
    found = records(events)
    assert [each.role for each in found].count(Role.USER) == 4
    assert found[0].created_at == 1714581311530000
    assert found[1].created_at == 1714581312604000
    assert [each.created_at for each in found[2:]] == [None] * 7
    assert found[1].spent == Spent(model="gpt-4-turbo", usage=Usage(output=504))
    assert found[5].spent == Spent(model="gpt-4-turbo", usage=Usage(input=586))
    assert found[0].spent is None
    assert found[1].model == "gpt-4-turbo"
    last = found[-1].parts[0]
    assert isinstance(last, Text)
    assert last.text.startswith("As a software engineer, coding can")


def test_a_flat_list_says_the_same_as_its_tree(tmp_path: Path) -> None:
    document = json.loads(TREE.read_text("utf-8"))
    flat: list[dict[str, Any]] = []
    rest = list(document["messages"])
    while rest:
        message = rest.pop(0)
        rest = message.pop("children") + rest
        flat.append(message)
    document |= {"messages": flat, "recursive": False}
    path = tmp_path / "flat.json"
    path.write_text(json.dumps(document), "utf-8")
    assert read(path) == read(TREE)


def test_a_child_may_stand_before_its_parent(tmp_path: Path) -> None:
    events = written(
        tmp_path,
        {"messageId": "b", "parentMessageId": "a", "text": "2"},
        {"messageId": "a", "parentMessageId": ZERO, "text": "1", "isCreatedByUser": True},
    )
    assert follows(events) == [("a", ""), ("b", "a")]


def test_content_with_thinking_and_tools(tmp_path: Path) -> None:
    call = {"id": "t1", "name": "search", "args": '{"q":1}', "output": "found"}
    ran = {"id": "t2", "type": "code_interpreter", "code_interpreter": {"input": "1+1"}}
    odd = {"type": "new", "x": 1}
    picture = {"type": "image/png", "filepath": "/images/a.png", "width": 4, "height": 2}
    events = written(
        tmp_path,
        {"messageId": "a", "text": "look", "isCreatedByUser": True, "files": [
            picture, {"file_id": "f", "filename": "n.pdf", "type": "application/pdf"},
        ]},
        {"messageId": "b", "parentMessageId": "a", "model": "m", "attachments": [{}, {}],
         "content": [
             {"type": "think", "think": "hm"},
             {"type": "text", "text": {"value": "I look."}},
             {"type": "tool_call", "tool_call": call},
             {"type": "tool_call", "tool_call": ran},
             {"type": "agent_update"},
             odd,
         ]},
        {"messageId": "c", "parentMessageId": "b", "text": "", "content": []},
        {"messageId": "d", "parentMessageId": "c", "text": "and then"},
    )  # fmt: skip
    assert [each.parts for each in records(events)] == [
        (
            Text("look"),
            Image(media_type="image/png", url="/images/a.png", width=4, height=2),
            File(media_type="application/pdf", name="n.pdf", file_id="f"),
        ),
        (
            Reasoning("hm", model="m"),
            Text("I look."),
            ToolCall("t1", "search", '{"q":1}'),
            ToolCall("t2", "code_interpreter", "1+1"),
            Unknown(odd),
        ),
        (ToolResult("t1", "found", "search"),),
        (Text("and then"),),
    ]
    assert follows(events) == [("a", ""), ("b", "a"), ("b/result", "b"), ("d", "b/result")]
    assert [event for event in events if isinstance(event, Skipped)] == [
        Skipped("empty message"),
        Skipped("attachment", 2),
        Skipped("agent_update"),
    ]


def test_a_long_talk_as_a_tree_is_not_too_deep(tmp_path: Path) -> None:
    message: dict[str, Any] = {}
    for at in range(3000, 0, -1):
        above = f"m{at - 1}" if at > 1 else ZERO
        children = [message] if message else []
        message = {"messageId": f"m{at}", "parentMessageId": above, "text": f"{at}"}
        message["children"] = children
    path = tmp_path / "deep.json"
    opened = json.dumps({**HEAD, "recursive": True})[:-1]
    pieces: list[str] = []
    while message:
        children = message.pop("children")
        pieces.append(json.dumps(message)[:-1] + ', "children": [')
        message = children[0] if children else {}
    closed = "".join(pieces) + "]}" * len(pieces)
    path.write_text(f'{opened}, "messages": [{closed}]}}', "utf-8")
    found = records(read(path))
    assert len(found) == 3000
    assert found[-1].parts == (Text("3000"),)
    assert found[-1].parent == "m2999"


def test_a_damaged_message_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    head = json.dumps(HEAD)[:-1]
    path.write_text(
        head + ', "messages": [{"messageId": "a", "text": "1"}, {"messageId": oops}, '
        '{"text": "no id"}, {"messageId": "a", "text": "again"}, '
        '{"messageId": "b", "parentMessageId": "lost", "text": "2"}, {"messageId": "c", "te',
        "utf-8",
    )
    events = read(path)
    assert [event for event in events if isinstance(event, Damaged)] == [
        Damaged("the file", "no JSON: Expecting ',' delimiter at character 97"),
        Damaged("message 2", "no JSON: Expecting value at character 15"),
        Damaged("message 3", "it has no messageId"),
        Damaged("message 6", "no JSON: Unterminated string starting at character 20"),
    ]
    assert [each.id for each in records(events)] == ["b", "a"]
    assert Skipped("duplicate messageId") in events
    assert any(isinstance(event, Warned) for event in events)


@pytest.mark.parametrize("recursive", [True, False])
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talk=talks(images=False, errors=False))
def test_a_talk_comes_back(talk: Talk, recursive: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "export.json"
        path.write_text(json.dumps(conversation(talk, recursive=recursive)), "utf-8")
        events = read(path)
    assert heard(events) == said(talk)
    assert spent(events) == Usage(input=talk.usage.input, output=talk.usage.output)
    parents = [each.parent for each in records(events)]
    assert parents == [ROOT, *(each.id for each in records(events)[:-1])]
