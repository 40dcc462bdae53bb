"""Hermes' state.db: sessions, chains, compactions and rewinds."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Image, Reasoning, Text, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.formats.hermes_state import FORMAT
from clew.importers.probe import probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Damaged,
    Event,
    Fork,
    Kept,
    Named,
    Record,
    Rewound,
    Skipped,
    Spent,
    Titled,
    Used,
    Warned,
)
from clew.importers.source import Source
from readings import of
from readings import read as read_as
from strategies.conversations import Talk, heard, said, talks
from strategies.hermes import OLD, State, write_state

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/hermes/state-v0.19.0.db"
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted: all went well."


def ids(events: Sequence[Event], chat: str | None = None) -> list[str | None]:
    return [record.id for record in of(Record, events, chat)]


def body(compacted: Compacted) -> list[str]:
    """Ids of what is kept, texts of what is not."""
    found: list[str] = []
    for item in compacted.body:
        if isinstance(item, Kept):
            assert item.first == item.last
            found.append(item.first)
        else:
            found.append(f"{item.role}: {getattr(item.parts[0], 'text', item.parts[0])}")
    return found


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state.db")


# ---------------------------------------------------------------------- the real file


def test_the_sample_has_four_conversations_of_five_sessions() -> None:
    events = read(SAMPLE)
    assert [chat.id for chat in of(Chat, events)] == [
        "20260801_090000_aaaaaa",
        "20260801_090000_aaaaaa",
        "20260802_100000_cccccc",
        "20260803_110000_dddddd",
        "20260802_101500_eeeeee",
    ]
    assert of(Warned, events) == of(Damaged, events) == of(Skipped, events) == []
    assert of(Used, events) == of(Rewound, events) == []


def test_the_sample_rotation_is_one_conversation() -> None:
    events = read(SAMPLE)
    first = of(Chat, events)[0]
    assert (first.title, first.model, first.prompt) == (
        "Demo repo", "demo-model", "You are a helpful agent.",
    )  # fmt: skip
    assert first.workspace == Workspace(cwd="/repo")
    assert first.created_at == 1795951075456075
    assert first.meta == {
        "source": "cli", "end_reason": "compression", "sessions": 2,
        "tip": "20260801_093000_bbbbbb",
    }  # fmt: skip
    assert ids(events, first.id) == ["1", "2", "3", "4", "5", "7", "8", "9"]
    assert of(Named, events) == [Named(chat=first.id, id="20260801_093000_bbbbbb")]
    (compacted,) = of(Compacted, events, first.id)
    assert compacted.id == "compaction:6"
    assert body(compacted) == [
        "user: [CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted: listed files; "
        "README is a demo."
    ]
    asked = of(Record, events)[1]
    assert asked.parts == (
        Reasoning("two independent reads", "demo-model"),
        ToolCall("call_1", "terminal", '{"command": "ls"}'),
        ToolCall("call_2", "read_file", '{"path": "README.md"}'),
    )
    assert asked.meta == {"finish_reason": "tool_calls"}
    answers = of(Record, events)[2:4]
    assert [answer.role for answer in answers] == [Role.TOOL, Role.TOOL]
    assert answers[0].parts == (ToolResult("call_1", "README.md\nsrc", "terminal"),)
    assert answers[0].created_at == 1795951075467899


def test_the_sample_compaction_in_place_keeps_the_old_rows_and_knows_the_copy() -> None:
    events = read(SAMPLE)
    chat = "20260802_100000_cccccc"
    assert ids(events, chat) == ["10", "11", "12", "13", "14", "15", "16", "17", "20"]
    (compacted,) = of(Compacted, events, chat)
    assert body(compacted) == [
        "user: [CONTEXT COMPACTION - REFERENCE ONLY] 摘要：用户要求修改服务端计划。", "17",
    ]  # fmt: skip
    assert events.index(compacted) == events.index(of(Record, events, chat)[-1]) - 1


def test_the_sample_image_surrogate_and_sub_agent() -> None:
    events = read(SAMPLE)
    seen, answer, bad = of(Record, events, "20260803_110000_dddddd")
    assert seen.parts[0] == Text("What is in this image?")
    image = seen.parts[1]
    assert isinstance(image, Image)
    assert image.data is not None
    assert image.data.startswith(b"\x89PNG")
    assert image.media_type == "image/png"
    assert answer.model == "vision-model"
    assert bad.parts == (Text("bad \ufffd surrogate"),)
    agent = of(Chat, events)[-1]
    assert (agent.origin, agent.fork) == ("20260802_100000_cccccc", None)
    assert ids(events, agent.id) == ["23", "24"]


# ---------------------------------------------------------------------- chains


def test_a_chain_of_128_rotations_is_one_conversation_and_each_session_names_it(
    state: State,
) -> None:
    names = [f"s{at:03}" for at in range(129)]
    for at, name in enumerate(names):
        state.rotated(name, names[at - 1] if at else None)
        if at:
            state.say(name, "user", SUMMARY)
        state.say(name, "user", f"question {at}")
    state.db.execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = 's128'")
    events = read(state.close())
    assert {chat.id for chat in of(Chat, events)} == {"s000"}
    assert [named.id for named in of(Named, events)] == names[1:]
    texts = [part.text for each in of(Record, events) for part in each.parts if type(part) is Text]
    assert texts == [f"question {at}" for at in range(129)]
    assert len(of(Compacted, events)) == 128


def test_a_chain_in_doubt_is_separate_conversations_and_a_warning(state: State) -> None:
    state.rotated("a")
    state.say("a", "user", "hello")
    for name in ("b", "c"):
        state.session(name, "a")
        state.say(name, "user", SUMMARY)
        state.say(name, "user", f"in {name}")
    events = read(state.close())
    assert [chat.id for chat in of(Chat, events)] == ["a", "b", "c"]
    assert [chat.origin or chat.fork for chat in of(Chat, events)] == [None] * 3
    assert of(Chat, events)[1].meta == {"source": "cli", "parent": "a"}
    (warned,) = of(Warned, events)
    assert "'a', 'b', 'c'" in warned.text
    assert ids(events) == ["1", "2", "3", "4", "5"]
    assert of(Compacted, events) == of(Named, events) == []


def test_a_message_that_two_compactions_carry_over_is_there_once(state: State) -> None:
    state.rotated("a")
    kept = [state.say("a", *said) for said in (("user", "task"), ("assistant", "on it"))]
    state.say("a", "user", "more")
    last = state.say("a", "assistant", "done")
    state.rotated("b", "a")
    for row in (("user", "task"), ("assistant", "on it"), ("user", SUMMARY), ("assistant", "done")):
        state.say("b", *row)
    fresh = state.say("b", "user", "next")
    state.session("c", "b")
    for row in (("user", "task"), ("assistant", "on it"), ("user", SUMMARY), ("assistant", "done"),
                ("user", "next")):  # fmt: skip
        state.say("c", *row)
    newest = state.say("c", "assistant", "yes")
    events = read(state.close())
    assert ids(events) == [*kept, "3", last, fresh, newest]
    first, second = of(Compacted, events)
    assert body(first) == [*kept, f"user: {SUMMARY}", last]
    assert body(second) == [*kept, f"user: {SUMMARY}", last, fresh]


def test_compactions_in_place_one_after_the_other(state: State) -> None:
    state.session("a")
    state.say("a", "user", "task", active=1)
    state.say("a", "assistant", "ok", active=1)
    state.compact("a", ("user", SUMMARY), ("assistant", "ok"))
    state.say("a", "user", "next", active=1)
    state.say("a", "assistant", "good", active=1)
    state.compact("a", ("user", SUMMARY + " Twice."), ("user", "next"), ("assistant", "good"))
    state.say("a", "user", "good", active=1)
    events = read(state.close())
    assert ids(events) == ["1", "2", "5", "6", "10"]
    first, second = of(Compacted, events)
    assert (first.id, body(first)) == ("compaction:3", [f"user: {SUMMARY}", "2"])
    assert (second.id, body(second)) == ("compaction:7", [f"user: {SUMMARY} Twice.", "5", "6"])


def test_a_message_said_again_after_the_compaction_is_a_message(state: State) -> None:
    state.session("a")
    state.say("a", "user", "continue", active=1)
    state.compact("a", ("user", SUMMARY))
    state.clock += 60
    again = state.say("a", "user", "continue", active=1)
    events = read(state.close())
    assert ids(events) == ["1", again]
    assert [body(each) for each in of(Compacted, events)] == [[f"user: {SUMMARY}"]]


def test_many_copies_may_take_longer_than_one_may(state: State) -> None:
    tail = [("user", f"line {at}") for at in range(20)]
    state.rotated("a")
    kept = [state.say("a", *row) for row in tail]
    state.session("b", "a")
    state.say("b", "user", SUMMARY)
    for row in tail:  # a second each
        state.say("b", *row)
    events = read(state.close())
    assert ids(events) == kept
    assert [body(each)[1:] for each in of(Compacted, events)] == [kept]


def test_a_result_that_the_compaction_shortened_stands_in_its_body(state: State) -> None:
    calls = '[{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]'
    state.rotated("a")
    state.say("a", "user", "list")
    state.say("a", "assistant", None, tool_calls=calls)
    state.say("a", "tool", "x" * 100, tool_call_id="c1", tool_name="ls")
    state.session("b", "a")
    state.say("b", "user", SUMMARY)
    state.say("b", "assistant", None, tool_calls=calls)
    state.say("b", "tool", "[Old tool output cleared]", tool_call_id="c1", tool_name="ls")
    (compacted,) = of(Compacted, read(state.close()))
    assert compacted.body[1:] == (
        Kept("2", "2"),
        Inline(role=Role.TOOL, parts=(ToolResult("c1", "[Old tool output cleared]", "ls"),)),
    )


def test_a_summary_put_behind_a_kept_message_is_a_summary(state: State) -> None:
    merged = f"[PRIOR CONTEXT]\ndone\n[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n{SUMMARY}"
    state.rotated("a")
    state.say("a", "user", "task")
    state.say("a", "assistant", "done")
    state.session("b", "a")
    state.say("b", "user", "task")
    state.say("b", "assistant", merged)
    state.say("b", "user", "thanks")
    events = read(state.close())
    assert ids(events) == ["1", "2", "5"]
    assert [body(each) for each in of(Compacted, events)] == [["1", f"assistant: {merged}"]]


def test_a_text_that_looks_like_a_summary_is_a_message_where_nothing_was_compacted(
    state: State,
) -> None:
    state.session("a")
    state.say("a", "user", "hello", active=1)
    state.say("a", "user", SUMMARY, active=1)
    events = read(state.close())
    assert ids(events) == ["1", "2"]
    assert of(Compacted, events) == []


def test_a_rotation_that_puts_nothing_there_is_told(state: State) -> None:
    state.rotated("a")
    state.say("a", "user", "hello")
    state.session("b", "a")
    state.say("b", "user", "from nothing")
    events = read(state.close())
    assert ids(events) == ["1", "2"]
    assert of(Compacted, events) == [
        Compacted(chat="a", id="compaction:2", at=1_700_000_004_000_000)
    ]


# ---------------------------------------------------------------------- rewound, observed


def test_rewound_rows_are_taken_back_where_it_happened(state: State) -> None:
    state.session("a")
    for text in ("one", "two", "three"):
        state.say("a", "user", text, active=1)
    state.rewind("2")
    state.say("a", "user", "other", active=1)
    events = read(state.close())
    assert [getattr(each, "id", each) for each in events if not isinstance(each, Chat)] == [
        "1", "2", "3", Rewound(chat="a", first="2"), "4",
    ]  # fmt: skip
    assert [record.parent for record in of(Record, events)] == [None, None, None, "1"]


def test_a_rewind_at_the_end_and_into_what_a_compaction_kept(state: State) -> None:
    state.session("a")
    state.say("a", "user", "task", active=1)
    state.say("a", "user", "again", active=1)
    _, copy = state.compact("a", ("user", SUMMARY), ("user", "again"))
    state.say("a", "assistant", "no", active=1)
    state.rewind(copy)
    events = read(state.close())
    assert ids(events) == ["1", "2", "5"]
    assert [body(each) for each in of(Compacted, events)] == [[f"user: {SUMMARY}"]]
    assert events[-1] == Rewound(chat="a", first="5")


def test_what_follows_when_all_was_taken_back_begins_anew(state: State) -> None:
    state.session("a")
    state.rewind(state.say("a", "user", "one", active=1))
    state.say("a", "user", "two", active=1)
    state.say("a", "user", "three", active=1)
    assert [record.parent for record in of(Record, read(state.close()))] == [None, ROOT, None]


def test_what_was_rewound_before_a_compaction_stays_before_it(state: State) -> None:
    state.session("a")
    state.say("a", "user", "task", active=1)
    state.rewind(state.say("a", "user", "wrong", active=1))
    state.say("a", "user", "right", active=1)
    state.rewind(state.say("a", "user", "also wrong", active=1))
    state.compact("a", ("user", SUMMARY), ("user", "right"))
    events = read(state.close())
    assert ids(events) == ["1", "2", "3", "4"]
    assert [getattr(each, "first", getattr(each, "id", None)) for each in events[1:]] == [
        "1", "2", "2", "3", "4", "4", "compaction:5",
    ]  # fmt: skip
    assert [body(each) for each in of(Compacted, events)] == [[f"user: {SUMMARY}", "3"]]


def test_observed_rows_say_so(state: State) -> None:
    state.session("a", source="telegram")
    state.say("a", "user", "[ann|1] lunch?", observed=1)
    state.say("a", "user", "bot, help", observed=0)
    first, second = of(Record, read(state.close()))
    assert (first.meta, second.meta) == ({"observed": True}, None)


# ---------------------------------------------------------------------- branches, delegates


def test_a_branch_shares_the_messages_that_were_copied(state: State) -> None:
    state.session("a")
    state.say("a", "user", "one")
    state.say("a", "assistant", "two")
    state.session("b", "a", model_config='{"_branched_from": "a"}', title="other way")
    state.say("b", "user", "one")
    state.say("b", "assistant", "two")
    new = state.say("b", "user", "three, there")
    state.say("a", "user", "three, here")
    events = read(state.close())
    branch = of(Chat, events)[1]
    assert (branch.id, branch.fork, branch.title) == ("b", Fork("a", "2"), "other way")
    assert ids(events, "b") == [new]
    assert ids(events, "a") == ["1", "2", "6"]


def test_a_branch_taken_before_a_compaction_and_one_after_it(state: State) -> None:
    state.session("a")
    state.say("a", "user", "one", active=1)
    state.say("a", "assistant", "two", active=1)
    state.session("b", "a", model_config='{"_branched_from": "a"}')
    for row in (("user", "one"), ("assistant", "two"), ("user", "in b")):
        state.say("b", *row, active=1)
    state.compact("a", ("user", SUMMARY), ("assistant", "two"))
    state.say("a", "user", "four", active=1)
    state.session("c", "a", model_config='{"_branched_from": "a"}')
    for row in (("user", SUMMARY), ("assistant", "two"), ("user", "four"), ("user", "in c")):
        state.say("c", *row, active=1)
    events = read(state.close())
    before, after = of(Chat, events)[1:]
    assert (before.fork, ids(events, "b")) == (Fork("a", "2"), ["5"])
    assert (after.fork, ids(events, "c")) == (Fork("a", "8"), ["12"])
    assert of(Compacted, events, "c") == []


def test_a_branch_that_shares_nothing_is_a_conversation_of_its_own(state: State) -> None:
    state.session("a")
    state.say("a", "user", "one")
    state.session("b", "a", model_config='{"_branched_from": "a"}')
    state.say("b", "user", "else")
    events = read(state.close())
    branch = of(Chat, events)[1]
    assert (branch.fork, branch.origin) == (None, None)
    assert branch.meta is not None
    assert branch.meta["parent"] == "a"
    assert len(of(Warned, events)) == 1
    assert ids(events, "b") == ["2"]


def test_delegates_and_tool_sessions_of_any_segment_belong_to_the_conversation(
    state: State,
) -> None:
    state.rotated("a")
    state.session("b", "a")
    state.session("d", "b", model_config='{"_delegate_from": "b"}')
    state.session("t", "a", source="tool")
    chats = {chat.id: chat for chat in of(Chat, read(state.close()))}
    assert {id: chat.origin for id, chat in chats.items()} == {"a": None, "d": "a", "t": "a"}


# ---------------------------------------------------------------------- usage, titles, prompts


def test_usage_is_by_model_and_task(state: State) -> None:
    state.session("a", model="m", input_tokens=999)
    row = {"session_id": "a", "task": "", "output_tokens": 5, "reasoning_tokens": 2}
    state.put("session_model_usage", **row, model="m", input_tokens=10, cache_read_tokens=3,
              cache_write_tokens=4, actual_cost_usd=0.5)  # fmt: skip
    state.put("session_model_usage", **row, model="m", input_tokens=1)
    state.put("session_model_usage", **(row | {"task": "vision"}), model="v", input_tokens=7)
    assert of(Used, read(state.close())) == [
        Used(
            chat="a",
            group="a:m:",
            spent=Spent(model="m", usage=Usage(18, 10, 3, 4), cost=0.5),
        ),
        Used(chat="a", group="a:v:vision", spent=Spent(model="v", usage=Usage(7, 5, 0, 2))),
    ]


def test_without_usage_by_model_the_counters_of_the_session_are_taken(tmp_path: Path) -> None:
    state = State(tmp_path / "old.db", without=("usage", *OLD))
    state.session("a", model="m", input_tokens=10, output_tokens=2, cache_read_tokens=30)
    state.say("a", "user", "hello")
    events = read(state.close())
    assert of(Used, events) == [
        Used(chat="a", group="a", spent=Spent(model="m", usage=Usage(40, 2, 30)))
    ]
    assert ids(events) == ["1"]


def test_later_segments_bring_their_title_prompt_and_branch(state: State) -> None:
    state.rotated("a", title="plan", system_prompt="old", cwd="/r", git_branch="main")
    state.session("b", "a", title="plan #2", system_prompt="new", cwd="/r", git_branch="fix")
    state.say("a", "user", "x")
    events = read(state.close())
    assert of(Titled, events) == [Titled(chat="a", title="plan #2")]
    assert [chat.prompt for chat in of(Chat, events)] == ["old", "new"]
    assert [chat.workspace.git_branch for chat in of(Chat, events)] == ["main", "fix"]


def test_thinking_is_read_from_where_the_provider_left_it(state: State) -> None:
    state.session("a", model="m")
    state.say("a", "assistant", "1", reasoning="plain", reasoning_details='[{"type": '
              '"reasoning.text", "text": "detail", "signature": "sig", "id": "r1"}]')  # fmt: skip
    state.say("a", "assistant", "2", reasoning="plain", codex_reasoning_items='[{"type": '
              '"reasoning", "id": "rs", "summary": [], "encrypted_content": "xyz"}]')  # fmt: skip
    state.say("a", "assistant", "3", reasoning_content="content", reasoning_details="no JSON")
    assert [each.parts[:-1] for each in of(Record, read(state.close()))] == [
        (Reasoning("detail", "m", "sig", None, "r1"),),
        (Reasoning("plain", "m"), Reasoning("", "m", None, "xyz", "rs")),
        (Reasoning("content", "m"),),
    ]


def test_what_is_not_imported_is_counted(state: State) -> None:
    state.session("a")
    state.say("a", "user", "x", api_content="<memory>x")
    state.say("a", "session_meta", "{}")
    state.say("gone", "user", "whose?")
    assert of(Skipped, read(state.close())) == [
        Skipped("message/session_meta"),
        Skipped("messages.api_content"),
        Skipped("messages of no session"),
    ]


# ---------------------------------------------------------------------- hostile


def test_odd_values_are_read_as_far_as_they_go(state: State) -> None:
    state.session("a", title=b"\xff\xfetitle", model=5, started_at="yesterday", cwd=7.5)
    state.say("a", "user", b"\xff\0bytes", timestamp="never")
    state.say("a", "assistant", "\0json:{", tool_calls="[1, {}, null]", tool_call_id=b"x")
    state.say("a", "tool", "\0json:" + "[" * 5000, tool_call_id=None)
    state.db.execute("UPDATE messages SET content = CAST(x'ff41' AS TEXT) WHERE id = 3")
    state.db.execute("INSERT INTO sessions (id, source) VALUES (NULL, 'cli'), (x'01', 'cli')")
    events = read(state.close())
    assert ids(events) == ["1", "2", "3"]
    first, second, third = of(Record, events)
    assert (first.parts, first.created_at) == ((Text("\ufffd\0bytes"),), None)
    assert second.parts == (Text("\0json:{"),)
    assert third.parts == (ToolResult("", "\ufffdA"),)


def test_tables_of_another_tool_are_none_of_hermes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE sessions (x)")
        db.execute("CREATE TABLE messages (y)")
        db.execute("CREATE TABLE state_meta (z)")
    db.close()
    assert not FORMAT.matches(probe(Source(path)))


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks(errors=False))
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write_state(talk, Path(folder) / "state.db"))
    assert heard(events) == said(talk)
    spent = of(Used, events)
    assert [each.spent.usage for each in spent] == ([talk.usage] if talk.usage != Usage() else [])
    assert of(Chat, events)[0].workspace.cwd == talk.cwd
