"""What is said beside the conversation: in the last message of a request, wherever it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from saying import assistant, call, no_blob, result, said, user

import clew
from clew import (
    Budget,
    Compactor,
    Draft,
    Goal,
    Image,
    Reasoning,
    Role,
    Text,
    Todo,
    ToolCall,
    ToolResult,
)
from clew.context.anthropic import anthropic_messages
from clew.context.build import Context
from clew.context.chat import chat_messages
from clew.context.entries import Entry, entry_of
from clew.context.notices import OF_THE_AGENT, OF_THE_HOST, noticed, notices_of
from clew.context.responses import responses_items
from clew.domain.messages import Message
from clew.testing.clock import FakeClock
from clew.testing.reference import ReferenceStore
from renderings import check_anthropic, check_chat, check_responses
from strategies.render import logs

OPEN = (Todo("read"), Todo("write", "active"), Todo("old", "done"), Todo("no", "dropped"))
NOTES = "<notes>\nremember\n</notes>"
PICTURE = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")


# ---------------------------------------------------------------------- the words


def test_s23_notices_name_what_is_open() -> None:
    goal = Goal(1, "ship it", "active", 0)
    assert notices_of(OPEN, goal) == (
        f"<notes>\n{OF_THE_AGENT}\n"
        "Goal: ship it\nOpen todos:\n- read\n- write (in progress)\n</notes>"
    )
    assert "Goal" not in str(notices_of(OPEN, None))
    assert "todos" not in str(notices_of(OPEN[2:], goal))


def test_s23_6_nothing_is_said_when_all_is_done() -> None:
    assert notices_of(OPEN[2:], None) is None
    assert notices_of((), Goal(1, "x", "done", 0)) is None
    assert notices_of((), None, ["", " \n"]) is None


def test_what_the_host_says_stands_behind_the_todos_and_is_not_the_agents() -> None:
    alone = notices_of((), None, ["Two steps are left.", " The tool server is away.\n"])
    lines = f"{OF_THE_HOST}\n- Two steps are left.\n- The tool server is away."
    assert alone == f"<notes>\n{lines}\n</notes>"
    both = str(notices_of(OPEN, None, ["Two steps are left."]))
    assert both.index("- write") < both.index(OF_THE_HOST) < both.index("Two steps")
    assert both.count("<notes>") == 1


@pytest.mark.parametrize("wrong", ["one text", [1]])
def test_notices_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(clew.InputError, match="give a list of texts"):
        notices_of((), None, wrong)


# ---------------------------------------------------------------------- the place


def shapes(entries: Sequence[Entry], notice: str | None = NOTES) -> dict[str, list[Any]]:
    return {
        "chat": chat_messages("Be exact.", entries, no_blob, notice=notice),
        "by turns": chat_messages("Be exact.", entries, no_blob, alternate=True, notice=notice),
        "responses": responses_items(entries, no_blob, notice=notice),
        "anthropic": anthropic_messages(entries, no_blob, notice=notice),
    }


def logged(*entries: Entry) -> list[Entry]:
    """The entries as messages of a log."""
    return [
        entry_of(
            Message.of(seq=n, uid=f"{n:032x}", role=e.role, parts=e.parts, created_at=n)
        )
        for n, e in enumerate(entries, 1)
    ]  # fmt: skip


def check(found: dict[str, list[Any]]) -> None:
    """Valid for every provider."""
    check_chat(found["chat"])
    check_chat(found["by turns"], alternate=True)
    check_responses(found["responses"])
    check_anthropic(found["anthropic"])


def test_s23_1_it_is_a_part_behind_the_words_of_a_user() -> None:
    found = shapes(logged(user("first"), assistant("yes"), user("second")))
    check(found)
    pieces = [{"type": "text", "text": "second"}, {"type": "text", "text": NOTES}]
    assert found["chat"][-1] == {"role": "user", "content": pieces}
    assert found["by turns"] == found["chat"]
    assert [piece["text"] for piece in found["responses"][-1]["content"]] == ["second", NOTES]
    assert found["anthropic"][-1] == {"role": "user", "content": pieces}


def test_it_stands_inside_the_last_result_of_a_step() -> None:
    """Behind its text; the results before it, which a cache holds from now on, stay as they are."""
    log = logged(user("go"), assistant(call("a"), call("b")), result("a"), result("b", "out"))
    found = shapes(log)
    check(found)
    text = f"out\n\n{NOTES}"
    assert [m["content"] for m in found["chat"][-2:]] == ["ok", text]
    assert [m["content"] for m in found["by turns"][-2:]] == ["ok", text]
    assert [item["output"] for item in found["responses"][-2:]] == ["ok", text]
    assert [block["content"] for block in found["anthropic"][-1]["content"]] == ["ok", text]


@pytest.mark.parametrize("content", ["", " \n", (), (Text("out"),), (Text(""),)])
def test_a_result_of_any_kind_takes_it(content: Any) -> None:
    found = shapes(logged(user("go"), assistant(call("a")), result("a", content, is_error=True)))
    check(found)
    for shape in found.values():
        assert str(shape).count("remember") == str(shape[-1]).count("remember") == 1


def test_a_call_without_a_result_takes_it_where_it_is_said_to_be_interrupted() -> None:
    found = shapes(logged(user("go"), assistant(call("a"))))
    check(found)
    assert found["chat"][-1]["content"].endswith(NOTES)


def test_behind_a_step_with_a_picture_it_is_an_entry_of_a_user() -> None:
    """A picture costs too much to be sent anew with each request, and a cache ends at the last
    message. It may be in any result of the step."""
    log = logged(
        user("go"), assistant(call("a"), call("b")), result("a", (PICTURE,)), result("b", "out")
    )
    found = shapes(log)
    check(found)
    assert found["chat"][-1] == {"role": "user", "content": NOTES}
    assert found["chat"][-2]["content"][1]["type"] == "image_url"
    assert [piece["type"] for piece in found["by turns"][-1]["content"]] == [
        "text", "image_url", "text",
    ]  # fmt: skip
    assert found["responses"][-1]["content"][0]["text"] == NOTES
    assert found["responses"][-2]["output"] == "out"
    assert [block["type"] for block in found["anthropic"][-1]["content"]] == [
        "tool_result", "tool_result", "text",
    ]  # fmt: skip


def test_the_order_of_a_request_counts_not_that_of_the_log() -> None:
    """A result that came late is sent behind its call, so the words of the user are the last."""
    found = shapes(logged(user("go"), assistant(call("a")), user("and?"), result("a", "out")))
    check(found)
    for shape in found.values():
        assert "and?" in str(shape[-1])
        assert "remember" in str(shape[-1])


def test_behind_words_of_a_system_it_is_the_users() -> None:
    found = shapes(logged(user("go"), assistant("done"), said(Role.SYSTEM, Text("be brief"))))
    check(found)
    assert found["chat"][-1] == {"role": "user", "content": NOTES}
    for shape in found.values():
        assert "remember" in str(shape[-1])


def test_behind_an_answer_nobody_asks_so_it_stands_with_the_newest_words() -> None:
    found = shapes(logged(user("first"), assistant("one"), user("second"), assistant("two")))
    check(found)
    for shape in found.values():
        assert "two" in str(shape[-1])
        assert "remember" in str(shape[-2])


@pytest.mark.parametrize("blank", [Text(" "), Reasoning("hm")])
def test_what_says_nothing_takes_none(blank: Any) -> None:
    """It is not sent, or only as what it is: blank."""
    log = logged(user("go"), assistant(call("a")), result("a"), said(Role.ASSISTANT, blank))
    for shape in shapes(log).values():
        assert "remember" in str(shape[-1])


def test_a_notice_goes_to_no_summary_and_is_no_turn() -> None:
    """S22.6, S23.3: without words of a user in the log there is nothing it could stand beside."""
    summary = Entry(Role.USER, (Text("what was"),))
    (answer,) = logged(assistant("x"))
    assert noticed([summary, answer], "notes") == [summary, answer]
    assert noticed([summary], "notes") == [summary]
    assert noticed([], "notes") == []
    system = logged(said(Role.SYSTEM, Text("x")))
    assert noticed(system, "notes") == system


def test_a_notice_that_utf8_cannot_hold_is_sent_all_the_same() -> None:
    check(shapes(logged(user("go")), "\ud83d"))


@given(logs())
def test_any_log_with_a_notice_is_valid_in_every_shape(log: tuple[Message, ...]) -> None:
    """It is said once at most, and the entries are what they were."""
    entries = list(map(entry_of, log))
    before = list(entries)
    found = shapes(entries)
    check(found)
    assert entries == before
    for shape in found.values():
        assert str(shape).count("remember") <= 1


@given(logs())
def test_in_any_log_it_changes_one_message_or_is_one(log: tuple[Message, ...]) -> None:
    """All that stands before it is byte for byte what stands there without it."""
    entries = list(map(entry_of, log))
    for shape, plain in shapes(entries, None).items():
        told = shapes(entries)[shape]
        at = next((n for n, m in enumerate(told) if "remember" in str(m)), len(told))
        assert told[:at] == plain[:at]
        assert len(plain) <= len(told) <= len(plain) + 2


# ---------------------------------------------------------------------- conversations


def test_s23_4_it_is_made_for_each_request_and_never_stored() -> None:
    """S22.4, S23.4, S23.5: none piles up."""
    conv: Any = ReferenceStore(clock=FakeClock()).profile("p").create()
    conv.append([clew.user("first"), clew.assistant("yes"), clew.user("second")])
    conv.set_todos(OPEN)
    notice = str(notices_of(OPEN, None))
    found = peek(conv).chat(conv.blob)
    assert [m["role"] for m in found] == ["user", "assistant", "user"]
    assert [piece["text"] for piece in found[2]["content"]] == ["second", notice]
    assert [m.text for m in conv.messages()] == ["first", "yes", "second"]
    assert conv.context()[2]["content"] == "second", "a list that may be stored again has none"
    conv.set_todos([Todo("read", "done")])
    assert peek(conv).chat(conv.blob)[2]["content"] == "second"


def peek(conv: Any, notices: Sequence[str] = ()) -> Context:
    return Compactor(Budget(window=100_000)).peek(conv, notices=notices)


def test_what_the_host_says_is_counted_and_gone_with_the_request() -> None:
    conv: Any = ReferenceStore(clock=FakeClock()).profile("p").create()
    conv.append([clew.user("go")])
    bare, told = peek(conv), peek(conv, ["word " * 500])
    assert told.tokens - bare.tokens > 500
    assert told.bytes - bare.bytes > 2_500
    assert sum(map(told.section, ("system", "head", "ledger", "kept", "tail"))) == told.tokens
    assert "word word" in str(told.chat(conv.blob)[-1])
    assert peek(conv) == bare


def test_what_the_host_says_may_make_a_compaction_due() -> None:
    conv: Any = ReferenceStore(clock=FakeClock()).profile("p").create()
    for n in range(40):
        conv.append([clew.user(f"why {n} " * 12), clew.assistant(f"because of {n} " * 20)])
    conv.append([clew.user("and now?")])
    tokens = Compactor(Budget(window=100_000)).peek(conv).tokens
    engine = Compactor(Budget(window=round(tokens / 0.75)))
    assert engine.context(conv).generation == 0
    context = engine.context(conv, notices=["word " * (tokens // 10)])
    assert context.generation == 1
    assert context.tokens <= context.limit
    assert "word word" in str(context.chat(conv.blob)[-1])


def step(n: int, output: Any) -> list[Draft]:
    return [
        Draft(role=Role.ASSISTANT, parts=(ToolCall(f"c{n}", "run", "{}"),)),
        Draft(role=Role.TOOL, parts=(ToolResult(f"c{n}", output, "run"),)),
    ]


def test_the_view_of_a_growing_turn_does_not_change_with_its_notices() -> None:
    """What is left out of a long turn depends on the room, which is made in steps."""
    changes, last = 0, list[Any]()
    conv: Any = ReferenceStore(clock=FakeClock()).profile("p").create()
    conv.append([clew.user("go")])
    engine = Compactor(Budget(window=4_000))
    for n in range(80):
        conv.append(step(n, f"output {n} " * 30))
        conv.set_todos([Todo(f"task {n} " * (1 + n % 4))])
        context = engine.peek(conv)
        assert context.tokens <= context.limit
        now = context.chat(conv.blob)
        changes += now[: len(last)] != last
        last = now[:-1]
    assert changes <= 12


# ---------------------------------------------------------------------- the cache


words = st.sampled_from(["", " ", "well", "done \n", "{}"])
outputs: Any = st.one_of(
    words, words.map(lambda text: (Text(text), PICTURE)), st.just((PICTURE,)),
    st.just((Text("a"), Text("b"))), st.just("a line of it\n" * 60),
)  # fmt: skip
limits = st.sampled_from([None, None, 90])
thoughts = st.lists(
    st.sampled_from([Reasoning("hm"), Reasoning("hm", signature="s"), Reasoning(data="x", id="r")]),
    max_size=1,
)


@st.composite
def steps(draw: st.DrawFn, name: str) -> list[Draft]:
    """A message that calls tools, and their results."""
    count = draw(st.integers(1, 3))
    calls = tuple(ToolCall(f"{name}.{n}", "run", "{}") for n in range(count))
    results = [
        Draft(role=Role.TOOL, parts=(ToolResult(each.id, draw(outputs), shown=draw(limits)),))
        for each in calls
    ]
    text = draw(st.lists(words.map(Text), max_size=1))
    parts = (*draw(thoughts), *text, *calls)
    return [Draft(role=Role.ASSISTANT, parts=parts), *draw(st.permutations(results))]


@st.composite
def before_a_request(draw: st.DrawFn, name: str) -> list[Draft]:
    """What comes between two requests: an answer and the next words, or a step, with people and
    systems that speak in between."""
    found: list[Draft] = []
    if draw(st.booleans()):
        found += draw(steps(name))
    else:
        found.append(Draft(role=Role.ASSISTANT, parts=(*draw(thoughts), Text(draw(words)))))
        found.append(clew.user(f"request {name}"))
    for role in draw(st.lists(st.sampled_from([Role.USER, Role.SYSTEM]), max_size=2)):
        found.append(Draft(role=role, parts=(Text(draw(words)),)))
    return found


class Move:
    """What happens until the next request."""

    def __init__(self, drafts: list[Draft], todos: int, host: int, compact: bool) -> None:
        self.drafts, self.todos, self.host, self.compact = drafts, todos, host, compact

    def __repr__(self) -> str:
        return f"Move({self.drafts}, {self.todos}, {self.host}, {self.compact})"


@st.composite
def moves(draw: st.DrawFn) -> list[Move]:
    return [
        Move(
            draw(before_a_request(str(n))), draw(st.integers(0, 3)), draw(st.integers(0, 2)),
            draw(st.integers(0, 5)) == 0,
        )
        for n in range(draw(st.integers(1, 8)))
    ]  # fmt: skip


@settings(max_examples=150)
@given(moves())
def test_a_request_begins_as_the_one_before_up_to_its_last_message(told: list[Move]) -> None:
    """Of any talk whose todos and notices change, in every shape, between two compactions."""
    conv: Any = ReferenceStore(clock=FakeClock()).profile("p").create(prompt="Be exact.")
    for n in range(6):
        conv.append([clew.user(f"why {n}"), *step(n, "line\n" * 99), clew.assistant("so " * 40)])
    conv.append([clew.user("go on")])
    last = rendered(conv, ())
    for n, move in enumerate(told):
        conv.append(move.drafts)
        conv.set_todos([Todo(f"task {n}.{at}") for at in range(move.todos)])
        if (
            move.compact
            and Compactor(Budget(window=9_000)).compact(conv, target=500).state == "committed"
        ):
            last = {shape: [] for shape in last}
        now = rendered(conv, [f"notice {n}.{at}" for at in range(move.host)])
        for shape, request in now.items():
            kept = last[shape][:-1]
            assert request[: len(kept)] == kept, shape
            assert ("<notes>" in str(request[-1])) is bool(move.todos or move.host), shape
            assert "<notes>" not in str(request[:-1]), shape
        last = now


def rendered(conv: Any, notices: Sequence[str]) -> dict[str, list[Any]]:
    context = peek(conv, notices)
    turns = structs.replace(context, alternates=True)
    found = {
        "chat": context.chat(conv.blob), "by turns": turns.chat(conv.blob),
        "responses": context.responses(conv.blob), "anthropic": context.anthropic(conv.blob),
    }  # fmt: skip
    check(found)
    return found
