"""OpenHands' event streams."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Reasoning, Text, ToolCall, ToolResult, answered_ids
from clew.domain.turns import Usage
from clew.importers.formats.openhands import FORMAT
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
from readings import read as read_as
from readings import records
from strategies.conversations import Talk, heard, said, spent, talks
from strategies.openhands import write, write_new

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/openhands/events-basic.json"


def written(tmp_path: Path, *events: dict[str, Any]) -> list[Event]:
    path = tmp_path / "events.json"
    given = [{"id": at, "source": "agent"} | event for at, event in enumerate(events)]
    path.write_text(json.dumps(given), "utf-8")
    return read(path)


def say(text: str, source: str = "user") -> dict[str, Any]:
    return {"source": source, "action": "message", "args": {"content": text}}


def test_the_real_sample() -> None:
    events = read(SAMPLE)
    assert events[0] == Chat(id=str(SAMPLE))
    found = records(events)
    assert len(events) == 5
    assert [(each.id, each.role.value) for each in found] == [
        ("0", "user"), ("3", "assistant"), ("4", "tool"), ("5", "assistant"),
    ]  # fmt: skip
    asked, called, answered, done = found
    assert asked.created_at == 1738017896_900854
    text, call = called.parts
    assert isinstance(text, Text)
    assert text.text.startswith("I'll help you create a simple 2048 game in Python.")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name) == ("toolu_017nBp7UfiGqyrA7j77HgtFP", "str_replace_editor")
    assert json.loads(call.arguments)["path"] == "/workspace/game_2048.py"
    assert called.api_group == "chatcmpl-6814daca-5c62-431d-8c88-9dafead244f1"
    assert called.spent == Spent(model="claude-3-5-sonnet-20241022", usage=Usage(3486, 1135))
    assert answered_ids(answered.parts) == (call.id,)
    assert done.spent == Spent(model="claude-3-5-sonnet-20241022", usage=Usage(4646, 177, 3482))
    assert done.parts[1] == ToolCall("toolu_01BUKu3B7nY574atNECkBiFk", "finish", "{}")


def test_calls_without_the_models_answer_are_paired_by_their_cause(tmp_path: Path) -> None:
    events = written(
        tmp_path,
        say("go"),
        {"action": "run", "args": {"command": "ls", "thought": "look first"}},
        {"observation": "run", "cause": 1, "content": "README", "extras": {}},
        {"action": "think", "args": {"thought": "hm"}},
        {"observation": "error", "cause": 3, "content": "no", "source": "environment"},
    )
    assert [each.parts for each in records(events)[1:]] == [
        (Text("look first"), ToolCall("action:1", "run", '{"command":"ls"}')),
        (ToolResult("action:1", "README"),),
        (Text("hm"), ToolCall("action:3", "think", "{}")),
        (ToolResult("action:3", "no", is_error=True),),
    ]


def test_what_the_user_ran_and_what_the_program_says_are_no_calls(tmp_path: Path) -> None:
    events = written(
        tmp_path,
        {"source": "user", "action": "run", "args": {"command": "ls"}},
        {"source": "user", "observation": "run", "cause": 0, "content": "README"},
        {"source": "environment", "observation": "error", "content": "lost"},
        {"source": "environment", "action": "change_agent_state", "args": {}},
        {"source": "environment", "observation": "agent_state_changed", "content": ""},
        {"source": "environment", "other": 1},
    )
    assert [(each.role.value, each.parts) for each in records(events)] == [
        ("user", (Text("ls"),)), ("user", (Text("README"),)), ("system", (Text("lost"),)),
    ]  # fmt: skip
    assert events[4:] == [
        Skipped("action/change_agent_state"),
        Skipped("observation/agent_state_changed"),
        Skipped("event that is neither action nor observation"),
    ]


def test_the_system_prompt_brings_the_tools(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "think"}}
    args = {"content": "You are", "tools": [tool], "openhands_version": "0.50"}
    _, about, record = written(tmp_path, {"action": "system", "args": args})
    assert isinstance(about, Chat)
    assert (about.tools, about.meta) == ((tool,), {"version": "0.50"})
    assert isinstance(record, Record)
    assert (record.role, record.parts) == (Role.SYSTEM, (Text("You are"),))


def test_a_delegate_is_a_conversation_until_its_observation(tmp_path: Path) -> None:
    events = written(
        tmp_path,
        say("go"),
        {"action": "delegate", "args": {"agent": "Browser", "inputs": {"task": "t"}}},
        say("inside", "agent"),
        {"observation": "delegate", "content": "", "extras": {"outputs": {"x": 1}}},
        say("outside", "agent"),
    )
    main = str(tmp_path / "events.json")
    inner = f"{main}:delegate:1"
    assert [event for event in events if isinstance(event, Chat)][1] == Chat(
        id=inner, origin=main, call="action:1", meta={"agent": "Browser"}
    )
    assert [(each.chat, each.id) for each in records(events)] == [
        (main, "0"), (main, "1"), (inner, "2"), (main, "3"), (main, "4"),
    ]  # fmt: skip
    assert records(events)[3].parts == (ToolResult("action:1", '{"x":1}'),)


def test_a_condensation_keeps_what_it_did_not_forget(tmp_path: Path) -> None:
    first = {"forgotten_event_ids": [1, 2], "summary": "short", "summary_offset": 1}
    second = {"forgotten_events_start_id": 3, "forgotten_events_end_id": 4, "summary": None}
    events = written(
        tmp_path,
        *(say(str(at)) for at in range(4)),
        {"action": "condensation", "args": first},
        say("5"),
        {"action": "condensation", "args": second},
    )
    assert [event for event in events if isinstance(event, Compacted)] == [
        Compacted(
            chat=str(tmp_path / "events.json"),
            id="condensation:4",
            body=(
                Kept("0", "0"),
                Inline(role=Role.USER, parts=(Text("short"),)),
                Kept("3", "3"),
            ),
        ),
        Compacted(
            chat=str(tmp_path / "events.json"),
            id="condensation:6",
            body=(Kept("0", "0"), Kept("5", "5")),
        ),
    ]


def test_a_folder_of_events_is_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "abc123"
    (folder / "events").mkdir(parents=True)
    (folder / "metadata.json").write_text("{}")
    for at in (10, 2, 0):
        (folder / f"events/{at}.json").write_text(json.dumps({"id": at} | say(str(at))))
    (folder / "events/3.json").write_text("{")
    (folder / "events/notes.json").write_text("{}")
    events = read(folder)
    assert events[0] == Chat(id="abc123")
    assert [each.id for each in records(events)] == ["0", "2", "10"]
    assert [each.where for each in events if isinstance(each, Damaged)] == ["events/3.json"]


def test_the_events_of_version_1(tmp_path: Path) -> None:
    def event(kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
        return {"kind": kind, "timestamp": "2026-01-01T00:00:00", "source": source} | more

    asked = {"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'}
    events = written(
        tmp_path,
        event(
            "SystemPromptEvent",
            system_prompt={"type": "text", "text": "You are"},
            dynamic_context={"type": "text", "text": "here"},
            tools=[{"title": "terminal"}],
        ),
        event(
            "MessageEvent",
            "user",
            llm_message={"role": "user", "content": [{"type": "text", "text": "hi"}]},
            extended_content=[{"type": "text", "text": "<skill>"}],
        ),
        event(
            "ActionEvent",
            thought=[{"type": "text", "text": "look"}],
            responses_reasoning_item={"id": "rs", "summary": ["hm"], "encrypted_content": "xyz"},
            tool_call=asked,
            llm_response_id="r1",
            summary="lists files",
        ),
        event("ActionEvent", action={"path": "x"}, tool_name="edit", tool_call_id="c2",
              llm_response_id="r1"),
        event("ObservationEvent", "environment", tool_call_id="c1", tool_name="terminal",
              observation={"is_error": True, "content": [
                  {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        event("UserRejectObservation", "environment", tool_call_id="c2", rejection_reason="no"),
        event("ConversationStateUpdateEvent", "environment", key="x"),
        event("Condensation", "environment", forgotten_event_ids=["1", "2"], summary="short",
              summary_offset=1),
    )  # fmt: skip
    assert [(each.role.value, each.parts) for each in records(events)] == [
        ("system", (Text("You are"), Text("here"))),
        ("user", (Text("hi"), Text("<skill>"))),
        (
            "assistant",
            (
                Reasoning("hm", data="xyz", id="rs"),
                Text("look"),
                ToolCall("c1", "terminal", '{"command": "ls"}'),
            ),
        ),
        ("assistant", (ToolCall("c2", "edit", '{"path":"x"}'),)),
        ("tool", (ToolResult("c1", (Text("a"), Text("b")), "terminal", is_error=True),)),
        ("tool", (ToolResult("c2", "no", is_error=True),)),
    ]
    assert [each.api_group for each in records(events)] == [None, None, "r1", "r1", None, None]
    assert [event for event in events if isinstance(event, Skipped)] == [
        Skipped("SystemPromptEvent.tools", 1), Skipped("ConversationStateUpdateEvent"),
    ]  # fmt: skip
    assert [item for event in events if isinstance(event, Compacted) for item in event.body] == [
        Kept("0", "0"), Inline(role=Role.USER, parts=(Text("short"),)), Kept("3", "5"),
    ]  # fmt: skip


def test_the_state_of_a_conversation_of_version_1(tmp_path: Path) -> None:
    folder = tmp_path / "abc"
    (folder / "events").mkdir(parents=True)
    counts = {"prompt_tokens": 9, "completion_tokens": 4, "cache_read_tokens": 5}
    metrics = {"model_name": "m", "accumulated_cost": 0.5, "accumulated_token_usage": counts}
    state = {
        "id": "real-id",
        "agent": {"llm": {"model": "m"}},
        "workspace": {"working_dir": "/w"},
        "stats": {"usage_to_metrics": {"agent": metrics, "condenser": {}}},
    }
    (folder / "base_state.json").write_text(json.dumps(state))
    assert read(folder) == [
        Chat(id="real-id", model="m", workspace=Workspace(cwd="/w")),
        Used(
            chat="real-id",
            group="usage:agent",
            spent=Spent(model="m", usage=Usage(9, 4, 5), cost=0.5),
        ),
    ]


def test_damaged_elements_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    good = json.dumps({"id": 1} | say("one"))
    path.write_bytes(b"\xef\xbb\xbf[" + good.encode() + b", 7, {}, [[]], " + good.encode() + b"]")
    events = read(path)
    assert [each.id for each in records(events)] == ["1", "1"]
    assert [e.where for e in events if isinstance(e, Damaged)] == [
        "element 2", "element 3", "element 4",
    ]  # fmt: skip


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks())
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write(talk, Path(folder) / "events.json"))
    # a plain message has no place for thinking, nor for what it cost
    exchanges = tuple(
        replace(
            exchange,
            steps=tuple(
                step if step.calls else replace(step, thinking=None, usage=Usage())
                for step in exchange.steps
            ),
        )
        for exchange in talk.exchanges
    )
    wanted = replace(talk, exchanges=exchanges)
    assert heard(events) == said(wanted)
    assert spent(events) == wanted.usage


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks())
def test_a_talk_of_version_1_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write_new(talk, Path(folder) / "conversation"))
    assert heard(events) == said(talk)
    assert events[0] == Chat(id=talk.id, model=talk.model, workspace=Workspace(cwd=talk.cwd))
