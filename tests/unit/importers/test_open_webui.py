"""Open WebUI's export of chats. There is no sample of it: the files here are made by hand."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from clew.domain.parts import File, Text, Unknown
from clew.domain.turns import Usage
from clew.importers.formats.open_webui import FORMAT
from clew.importers.records import ROOT, Chat, Damaged, Event, Skipped, Spent, Warned
from readings import read as read_as
from readings import records
from strategies.conversations import Talk, heard, spent, talks
from strategies.open_webui import lines_of, row

read = partial(read_as, FORMAT)


def written(folder: Path, messages: Any, current: Any = None, **chat: Any) -> list[Event]:
    history = {"messages": messages, "currentId": current}
    value: dict[str, Any] = {"id": "c", "user_id": "u", "title": "T", "created_at": 1_700_000_000}
    value["chat"] = {"history": history, **chat}
    path = folder / "chats.json"
    path.write_text(json.dumps([value]), "utf-8")
    return read(path)


def follows(events: list[Event]) -> list[tuple[str | None, str | None]]:
    return [(each.id, each.parent) for each in records(events)]


def message(parent: str | None, role: Any, content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "parentId": parent,
        "childrenIds": ["stale"],
        "role": role,
        "content": content,
        **fields,
    }


def test_parents_are_trusted_and_not_the_lists_of_children(tmp_path: Path) -> None:
    events = written(
        tmp_path,
        {
            "a": message(None, "user", "q", timestamp=1_700_000_001),
            "b": message("a", "assistant", "one", model="llama"),
            "c": message("a", "assistant", "two", model="qwen", timestamp=1_700_000_009),
            "d": message("c", "user", "more"),
        },
        "b",
        models=["llama", "qwen"],
        params={"system": "Be kind."},
    )
    assert events[0] == Chat(
        id="c", title="T", created_at=1_700_000_000_000_000, model="llama", prompt="Be kind."
    )
    assert follows(events) == [("a", ROOT), ("b", "a"), ("c", "a"), ("d", "c")]
    assert [each.model for each in records(events)] == [None, "llama", "qwen", None]
    assert records(events)[0].created_at == 1_700_000_001_000_000


def test_odd_messages(tmp_path: Path) -> None:
    held = {"filename": "a.txt", "data": {"content": "inside"}}
    usage = {"prompt_eval_count": 5, "eval_count": 7}
    events = written(
        tmp_path,
        {
            "a": message("gone", "user", [{"type": "text", "text": "q"}, {"type": "video"}]),
            "b": message("a", "assistant", "", error={"content": "no quota"}, done=False),
            "c": message("b", "assistant", ""),
            "d": message("c", ["list"], "x"),
            "e": message("d", "assistant", "ok", usage=usage, model="m", sources=[1, 2]),
            "f": message("e", "user", "", files=[{"type": "file", "file": held}, {"id": "7"}]),
        },
    )
    assert [each.parts for each in records(events)] == [
        (Text("q"), Unknown({"type": "video"})),
        (Text("no quota"),),
        (Text("ok"),),
        (File(media_type="text/plain", name="a.txt", data=b"inside"), File(file_id="7")),
    ]
    assert [each.meta for each in records(events)] == [
        None,
        {"error": True, "unfinished": True},
        {"sources": 2},
        None,
    ]
    assert records(events)[2].spent == Spent(model="m", usage=Usage(input=5, output=7))
    skipped = [event.kind for event in events if isinstance(event, Skipped)]
    assert skipped == ["empty message", "role None"]
    assert Warned("c: 1 messages name a parent that is not there") in events


def test_an_old_chat_is_a_list(tmp_path: Path) -> None:
    value = {"id": "old", "title": "T", "user_id": "u", "chat": {"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "id": "x"},
    ]}}  # fmt: skip
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(value), "utf-8")
    assert follows(read(path)) == [("#1", ROOT), ("x", "#1")]


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    whole = json.dumps(
        {"id": "c", "user_id": "u", "title": "T", "chat": {"messages": [
            {"role": "user", "content": "q"}]}}
    )  # fmt: skip
    path.write_text(f'[{whole}, {{"id": "d"}}, {{bad}}, {whole}]', "utf-8")
    events = read(path)
    assert [event for event in events if isinstance(event, Damaged)] == [
        Damaged("element 2", "no chat with messages"),
        Damaged(
            "element 3",
            "no JSON: Expecting property name enclosed in double quotes at character 2",
        ),
    ]
    assert len(records(events)) == 2


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks(thinking=False))
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "chats.json"
        path.write_text(json.dumps([row(talk)]), "utf-8")
        events = read(path)
    assert heard(events) == lines_of(talk)
    steps = [s.usage for e in talk.exchanges for s in e.steps if s.text]
    assert spent(events) == Usage(
        input=sum(each.input for each in steps),
        output=sum(each.output for each in steps),
        cached=sum(each.cached for each in steps),
    )


ROW = {
    "id": "c",
    "user_id": "u",
    "title": "T",
    "created_at": 1_700_000_000,
    "chat": {
        "models": ["m"],
        "params": {"system": "s"},
        "history": {
            "messages": {
                "a": message(None, "user", "q", files=[{"type": "image", "url": "data:,x"}]),
                "b": message("a", "assistant", "one", model="m", usage={"prompt_tokens": 1}),
                "c": message("a", "assistant", [{"type": "text", "text": "t"}], timestamp=5),
            },
            "currentId": "b",
        },
    },
}
