"""ChatGPT's export."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.importers.formats.chatgpt import FORMAT
from clew.importers.probe import probe
from clew.importers.records import ROOT, Chat, Damaged, Event, Skipped, Warned
from clew.importers.source import Source
from readings import read as read_as
from readings import records
from strategies.chatgpt import conversation, lines_of
from strategies.conversations import PNG, Talk, heard, talks

read = partial(read_as, FORMAT)


DATA = Path(__file__).parents[2] / "data/transcripts/chatgpt-export"
EXPORT = DATA / "chatgpt-export.json"
BRANCHES = DATA / "chatgpt-tree-branches.json"


def written(folder: Path, *nodes: dict[str, Any], **fields: Any) -> list[Event]:
    """Nodes that follow each other, unless they say otherwise."""
    mapping: dict[str, Any] = {}
    for node in nodes:
        before = list(mapping)[-1] if mapping else None
        id = f"n{len(mapping)}"
        mapping[id] = {"id": id, "parent": before, "children": [], **node}
    value = {"title": "t", "create_time": 1, "id": "chat", "mapping": mapping, **fields}
    path = folder / "conversations.json"
    path.write_text(json.dumps([value]), "utf-8")
    return read(path)


def said(role: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    return {"message": {"author": {"role": role}, "content": content, **fields}}


def parts(events: list[Event]) -> list[Any]:
    return [record.parts for record in records(events)]


def test_a_web_search() -> None:
    events = read(EXPORT)
    assert not any(isinstance(event, Damaged | Warned) for event in events)
    assert [event for event in events if isinstance(event, Skipped)] == [
        Skipped("hidden message"),
        Skipped("hidden message"),
    ]
    first, second = (event for event in events if isinstance(event, Chat))
    assert first == Chat(
        id="d6523d1e-7ec3-474f-a363-0e9dffdb3d93",
        title="Conversation 1. Web Search",
        created_at=1704629915775304,
        model="gpt-4",
    )
    assert (second.title, second.created_at) == ("Conversation 2", 1697373097899566)
    assert second.model == "text-davinci-002-render-sha"
    one = [each for each in records(events) if each.chat == first.id]
    two = [each for each in records(events) if each.chat == second.id]
    assert Counter(each.role.value for each in one) == {"user": 3, "assistant": 7, "tool": 5}
    assert [each.role.value for each in two] == ["user", "assistant", "user", "assistant"]
    for chat in (one, two):
        ids = [ROOT, *(each.id for each in chat)]
        assert [each.parent for each in chat] == ids[:-1]
    assert one[0].id == "bbb277e8-11d0-44f4-86c9-01dc3027228a"
    assert one[0].created_at == 1704629915776371
    assert one[0].parts == (
        Text("What is the fuel consumption of vw  transporter with 8 people in l/km"),
    )
    assert one[-1].created_at == 1704630034629284
    assert one[-1].model == "gpt-4"
    assert one[0].model is None


def test_calls_and_results_without_ids_are_paired() -> None:
    one = records(read(EXPORT))[:15]
    calls = [part for each in one for part in each.parts if isinstance(part, ToolCall)]
    results = [part for each in one for part in each.parts if isinstance(part, ToolResult)]
    assert calls[0] == ToolCall(
        "call_412dd50f-40c9-4f21-9102-fe148eb41a0b",
        "browser",
        'search("Volkswagen Transporter fuel consumption with 8 people l/km")',
        kind="custom",
    )
    searched, clicked, again, clicked_again = (call.id for call in calls)
    wanted = [searched, clicked, clicked, again, clicked_again]  # one click gave two pages
    assert [result.call_id for result in results] == wanted
    assert {result.name for result in results} == {"browser"}
    assert str(results[1].content).startswith("\nURL: https://www.ultimatespecs.com/")
    assert one[4].meta == {
        "url": "https://www.ultimatespecs.com/car-specs/Volkswagen/118424/"
        "2021-Volkswagen-Transporter-T61-L2H1-20-TDI-110HP.html",
        "title": "2021 Volkswagen Transporter T6.1 L2H1 2.0 TDI 110HP specs, dimensions",
    }


def test_branches_come_after_the_path_last_seen() -> None:
    events = read(BRANCHES)
    short = [(str(each.id)[:8], (each.parent or "")[:8]) for each in records(events)]
    assert short == [
        ("aaa297ba", ""),
        ("bda8a275", "aaa297ba"),
        ("aaa236a3", "bda8a275"),
        ("db88eddf", "aaa236a3"),
        ("aaa20127", "db88eddf"),
        ("f63b8e17", "aaa20127"),
        ("aaa24023", "bda8a275"),
        ("23afbea9", "aaa24023"),
        ("aaa292cc", "23afbea9"),
        ("ada93f81", "aaa292cc"),
        ("d0d2a7df", "aaa20127"),
    ]
    stopped = next(each for each in records(events) if str(each.id).startswith("ada93f81"))
    assert stopped.meta == {
        "status": "in_progress",
        "finish": "interrupted",
        "request": "87d189e3dac712c5-IAD",
    }


def test_one_conversation_alone_is_an_export_too(tmp_path: Path) -> None:
    first = json.loads(BRANCHES.read_text("utf-8-sig"))[0]
    path = tmp_path / "conversations-001.json"
    path.write_text(json.dumps(first, indent=2), "utf-8")
    assert read(path) == read(BRANCHES)


def test_hidden_nodes_are_bridged(tmp_path: Path) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    events = written(
        tmp_path,
        {"message": None},
        said("user", "hi"),
        said("system", "secret", metadata=hidden),
        said("user", "injected", metadata=hidden),
        said("assistant", "", weight=1),
        said("assistant", "hello"),
        said("user", "weight 0, but typed", weight=0),
    )
    assert [(each.id, each.parent) for each in records(events)] == [
        ("n1", ROOT),
        ("n5", "n1"),
        ("n6", "n5"),
    ]
    skipped = Counter(event.kind for event in events if isinstance(event, Skipped))
    assert skipped == {"hidden message": 2, "empty message": 1}


def test_custom_instructions_are_the_prompt(tmp_path: Path) -> None:
    content = {
        "content_type": "user_editable_context",
        "user_profile": "I am a baker.",
        "user_instructions": "Be brief.",
    }
    events = written(
        tmp_path, {"message": {"author": {"role": "user"}, "content": content}}, said("user", "hi")
    )
    chat = next(event for event in events if isinstance(event, Chat))
    assert chat.prompt == "I am a baker.\n\nBe brief."
    assert parts(events) == [(Text("hi"),)]
    assert not any(isinstance(event, Skipped) for event in events)


def test_types_of_content(tmp_path: Path) -> None:
    def held(content: dict[str, Any], role: str = "assistant", **fields: Any) -> dict[str, Any]:
        return {"message": {"author": {"role": role}, "content": content, **fields}}

    model = {"model_slug": "o3"}
    canvas = {"content_type": "app_pairing_content", "workspaces": [1]}
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_gone"}
    thought = {"summary": "Plan", "content": "First this."}
    events = written(
        tmp_path,
        held({"content_type": "thoughts", "thoughts": [thought, "odd"]}, metadata=model),
        held({"content_type": "reasoning_recap", "content": "Thought for 3 seconds"}),
        held({"content_type": "code", "text": "print(1)"}, recipient="python"),
        held({"content_type": "execution_output", "text": "1"}, "tool"),
        held({"content_type": "code", "text": '{"q": 1}'}, recipient="web.run"),
        held({"content_type": "system_error", "name": "E", "text": "no"}, "tool"),
        held({"content_type": "code", "text": "shown"}),
        held(canvas),
        held({"content_type": "multimodal_text", "parts": [pointer, "see"]}, "user"),
        held({"content_type": "execution_output", "text": "unasked"}, "tool"),
        held({"content_type": "model_editable_context", "model_set_context": "m"}),
        said("critic", "no such role"),
    )
    assert parts(events) == [
        (Reasoning("Plan\nFirst this.", model="o3"),),
        (Reasoning("Thought for 3 seconds"),),
        (ToolCall("call_n2", "python", "print(1)", kind="custom"),),
        (ToolResult("call_n2", "1", "python"),),
        (ToolCall("call_n4", "web.run", '{"q": 1}'),),
        (ToolResult("call_n4", "no", "web.run", is_error=True),),
        (Text("shown"),),
        (Unknown(canvas),),
        (Unknown(pointer), Text("see")),
        (ToolResult("call_n9", "unasked"),),
    ]
    skipped = [event.kind for event in events if isinstance(event, Skipped)]
    assert skipped == ["model_editable_context", "author critic"]


def test_images_and_files_come_from_beside_it_in_an_archive(tmp_path: Path) -> None:
    pointer = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-ABC1",
        "width": 3,
        "height": 2,
    }
    attached = [
        {"id": "file-ABC1", "name": "shown.png", "mime_type": "image/png"},
        {"id": "file-DEF2", "name": "notes.pdf", "mime_type": "application/pdf"},
        {"id": "../secret", "name": "gone.txt", "mime_type": "text/plain"},
    ]
    user = said("user", pointer, "look", metadata={"attachments": attached})
    value = {"title": "t", "create_time": 1, "id": "c", "mapping": {"n": user}}
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([value]))
        archive.writestr("file-ABC1-shown.png", PNG)
        archive.writestr("deep/file-DEF2-notes.pdf", b"%PDF")
    events = list(FORMAT.read(Source(path, "conversations.json")))
    assert parts(events) == [
        (
            Image(media_type="image/png", data=PNG, width=3, height=2),
            Text("look"),
            File(media_type="application/pdf", name="notes.pdf", data=b"%PDF", file_id="file-DEF2"),
            File(media_type="text/plain", name="gone.txt", file_id="../secret"),
        )
    ]


def test_current_node_missing_or_unknown(tmp_path: Path) -> None:
    nodes = (
        said("user", "q", create_time=1),
        said("assistant", "old", create_time=9),
        {**said("assistant", "new", create_time=20.5), "parent": "n0"},
    )
    for current in (None, "nowhere", 7, ["n1"]):
        events = written(tmp_path, *nodes, current_node=current)
        assert [each.id for each in records(events)] == ["n0", "n2", "n1"]
    events = written(tmp_path, *nodes, current_node="n1")
    assert [each.id for each in records(events)] == ["n0", "n1", "n2"]


def test_a_parent_that_is_not_there_is_told(tmp_path: Path) -> None:
    events = written(tmp_path, {**said("user", "q"), "parent": "gone"}, said("assistant", "a"))
    assert [(each.id, each.parent) for each in records(events)] == [("n0", ROOT), ("n1", "n0")]
    assert Warned("chat: 1 nodes name a parent that is not there") in events


def test_a_damaged_conversation_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    whole = json.dumps({"title": "t", "create_time": None, "mapping": {"n": said("user", "hi")}})
    deep = '{"title": "t", "mapping": ' + "[" * 2000 + "]" * 2000 + "}"
    path.write_text(f'\ufeff[{whole}, {{"title": nope}}, {deep}, 7, {whole}, {whole[:30]}', "utf-8")
    events = read(path)
    assert [event for event in events if isinstance(event, Damaged)] == [
        Damaged("element 2", "no JSON: Expecting value at character 11"),
        Damaged("element 3", "nested too deeply"),
        Damaged("element 4", "no conversation: it has no mapping of nodes"),
        Damaged("element 6", "the file ends in the middle of an element or array"),
    ]
    assert [each.chat for each in records(events)] == [f"{path}#1", f"{path}#5"]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks())
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "conversations.json"
        path.write_text(json.dumps([conversation(talk, folder)]), "utf-8")
        events = read(path)
        assert events == read(path)
    assert heard(events) == lines_of(talk)
    chat = next(event for event in events if isinstance(event, Chat))
    assert (chat.id, chat.created_at) == (talk.id, talk.started)
    assert {each.model for each in records(events) if each.role is Role.ASSISTANT} <= {talk.model}


@pytest.mark.parametrize("name", ["codex", "claude-code", "librechat", "hermes", "pi"])
def test_other_formats_are_not_taken(name: str) -> None:
    for path in (DATA.parent / name).iterdir():
        assert not FORMAT.matches(probe(Source(path)))
