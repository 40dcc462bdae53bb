"""What a store would refuse in a file costs itself, not all that came with it."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.config import Limits
from clew.importers import source as sources
from clew.importers.bring import Imported, bring, find
from clew.importers.drafting import fitting
from clew.importers.fields import COUNT
from clew.importers.records import Chat
from clew.importers.report import SourceReport
from clew.store.codec import escape_json
from imports import conversations
from strategies.hermes import State

NAMELESS = "tool without a name, or with what JSON cannot hold"
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f"}}


def imported(folder: Path, store: clew.Store) -> Imported:
    found, walk = find([folder])
    return bring(store.profile("p"), found, walk)


def one(tmp_path: Path, name: str, value: Any) -> tuple[SourceReport, clew.Conversation]:
    """The only conversation of a file, in a store."""
    folder = tmp_path / "in"
    folder.mkdir()
    data = json.dumps(value)
    (folder / name).write_text(data.replace('"1e400"', "1e400"), "utf-8")
    store = clew.open(tmp_path / "s.db")
    (report,) = imported(folder, store).sources
    assert report.error is None
    (found,) = conversations(store.profile("p"))
    return report, found


def trajectory(**more: Any) -> dict[str, Any]:
    steps = [{"step_id": 1, "source": "user", "message": "hello"}, *more.pop("steps", [])]
    agent = {"name": "a", "version": "1"} | more.pop("agent", {})
    return {"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps} | more


# ---------------------------------------------------------------- tools and prompts


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search"},
        {"name": 5},
        {"name": "", "function": {}},
        {"function": "f"},
        {"function": ["f"]},
        {"function": None},
        {"function": {"name": {}}},
        {"name": "x" * 5000},
        {"name": "g", "limit": "1e400"},
        "no object",
    ],
)
def test_a_tool_that_is_none_costs_itself(tmp_path: Path, tool: Any) -> None:
    tools = [TOOL, tool]
    report, found = one(tmp_path, "t.json", trajectory(agent={"tool_definitions": tools}))
    assert found.info().toolset_hash == sha256(escape_json((TOOL,))).hexdigest()
    assert report.skipped == {NAMELESS: 1}


def test_what_fits_is_kept_as_it_is() -> None:
    chat = Chat(id="c", prompt="be good", tools=(TOOL, {"name": "g", "x": [1.5, None]}))
    assert fitting(chat) == (chat, [])


@pytest.mark.parametrize("by", ["schemas", "names"])
def test_a_set_of_tools_over_the_limit_is_left_out(by: str) -> None:
    if by == "schemas":
        tools: list[dict[str, Any]] = [{"name": "f", "x": "y" * Limits().prompt}]
    else:
        tools = [{"name": f"{n}{'x' * 900}"} for n in range(Limits().meta // 900 + 1)]
    found, left = fitting(Chat(id="c", tools=tuple(tools)))
    assert found.tools is None
    assert left == ["tool of a set that is too large"] * len(tools)


def test_a_prompt_over_the_limit_is_left_out(tmp_path: Path) -> None:
    value = {
        "session_id": "s", "session_start": "2026-01-01T00:00:00", "last_updated": "",
        "system_prompt": "x" * (Limits().prompt + 1),
        "messages": [{"role": "user", "content": "hello"}],
    }  # fmt: skip
    report, found = one(tmp_path, "session_s.json", value)
    assert found.info().prompt_hash is None
    assert report.skipped == {"system prompt that is too large": 1}


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize(("cost", "stored"), [(0.5, 0.5), ("1e400", 0), (-1, 0), (None, 0)])
def test_counts_that_cannot_be_added_up_are_none(tmp_path: Path, cost: Any, stored: Any) -> None:
    metrics = {"prompt_tokens": 2**62, "completion_tokens": 7, "cost_usd": cost}
    step = {"step_id": 2, "source": "agent", "message": "hi", "metrics": metrics}
    _, found = one(tmp_path, "t.json", trajectory(steps=[step | {"model_name": "\ud800m"}]))
    (usage,) = found.usage()
    assert (usage.model, usage.usage.input, usage.usage.output) == ("\ufffdm", 0, 7)
    assert usage.cost == stored


def test_sums_of_counts_end_where_a_store_ends(tmp_path: Path) -> None:
    usage = {"input_tokens": COUNT, "cache_read_input_tokens": COUNT, "output_tokens": 1}
    line = {
        "type": "assistant", "uuid": "u", "parentUuid": None, "sessionId": "s",
        "message": {"role": "assistant", "model": "m", "content": "hi", "usage": usage},
    }  # fmt: skip
    _, found = one(tmp_path, "s.jsonl", line)
    assert [each.usage.input for each in found.usage()] == [COUNT]


def test_usage_that_adds_up_to_more_than_sqlite_holds(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    state = State(tmp_path / "in" / "state.db")
    state.session("a", model="m")
    state.say("a", "user", "hello")
    for _ in range(2):
        state.put("session_model_usage", session_id="a", model="m", task="", output_tokens=1,
                  input_tokens=(1 << 63) - 1)  # fmt: skip
    state.session("b", model="m")
    state.say("b", "user", "after it")
    state.close()
    with clew.open(tmp_path / "s.db") as store:
        (report,) = imported(tmp_path / "in", store).sources
        assert (report.error, report.new) == (None, 2)


# ---------------------------------------------------------------- what stands beside messages


def test_a_long_folder_does_not_cost_the_message(tmp_path: Path) -> None:
    line = {
        "type": "user", "uuid": "u", "parentUuid": None, "isSidechain": False, "sessionId": "s",
        "cwd": "/x" * 100_000, "message": {"role": "user", "content": "hello"},
    }  # fmt: skip
    report, found = one(tmp_path, "s.jsonl", line)
    assert report.damaged == []
    assert [message.text for message in found.messages()] == ["hello"]


def test_facts_in_any_writing_do_not_cost_the_conversation(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    state = State(tmp_path / "in" / "state.db")
    names = ("session_key", "end_reason", "profile_name", "model_config")
    state.session("a", **dict.fromkeys(names, "😀" * 1900))
    state.say("a", "user", "hello")
    state.close()
    with clew.open(tmp_path / "s.db") as store:
        (report,) = imported(tmp_path / "in", store).sources
        assert (report.error, report.new) == (None, 1)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("format", ["open-webui", "librechat"])
def test_a_file_of_which_nothing_is_told_is_no_file(tmp_path: Path, format: str) -> None:
    """Its conversation could be sent to no model."""
    message = {"role": "user", "content": "hello", "files": [{"a": 1}], "text": "hello",
               "messageId": "m", "isCreatedByUser": True}  # fmt: skip
    if format == "open-webui":
        chat = {"history": {"messages": {"m": message}, "currentId": "m"}}
        value: Any = [{"id": "c", "user_id": "u", "title": "t", "created_at": 1, "chat": chat}]
    else:
        value = {"conversationId": "c", "endpoint": "e", "exportAt": "x", "messages": [message]}
    _, found = one(tmp_path, "x.json", value)
    assert [type(part) for part in found.message(1).parts] == [clew.Text, clew.Unknown]
    assert found.context()


def test_a_name_that_no_file_can_have_names_none(tmp_path: Path) -> None:
    report, found = one(tmp_path, "t.json", trajectory(continued_trajectory_ref="\u4f60" * 200))
    assert found.info().head == 1
    assert report.damaged == []


def test_an_event_that_is_too_large_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "DOCUMENT", 2000)
    events = tmp_path / "in" / "c" / "events"
    events.mkdir(parents=True)
    (events.parent / "base_state.json").write_text(json.dumps({"id": "c", "x": "x" * 2000}))
    for at, words in enumerate(("hello", "x" * 2000, "bye")):
        event = {"id": at, "source": "user", "action": "message", "args": {"content": words}}
        (events / f"{at}.json").write_text(json.dumps(event))
    with clew.open(tmp_path / "s.db") as store:
        (report,) = imported(tmp_path / "in", store).sources
        (found,) = conversations(store.profile("p"))
        assert (report.error, report.damaged_count) == (None, 1)
        assert [message.text for message in found.messages()] == ["hello", "bye"]


@pytest.mark.parametrize("where", [0, -1])
def test_an_archive_with_a_damaged_name_stops_nothing(tmp_path: Path, where: int) -> None:
    """In the header of a member, and in the directory at the end."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "t.json").write_text(json.dumps(trajectory()))
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("\u00e9.json", json.dumps(trajectory(session_id="other")))
    before, name, after = (folder / "a.zip").read_bytes().partition(b"\xc3\xa9.json")
    if where == 0:
        data = before + b"\xc3\x28.json" + after
    else:
        middle, _, end = after.rpartition(name)
        data = before + name + middle + b"\xc3\x28.json" + end
    (folder / "a.zip").write_bytes(data)
    with clew.open(tmp_path / "s.db") as store:
        done = imported(folder, store)
        assert (done.totals.conversations, len(done.failed)) == (1, 1)
        assert "UTF-8" in done.failed[0][1]
