"""What was one message of an API is one again: nothing is lost, nothing moves further than that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew import (
    Compaction,
    Draft,
    Inline,
    Message,
    Ref,
    Role,
    Text,
    ToolCall,
    ToolResult,
    user,
)
from clew.context.chat import chat_context
from clew.context.entries import HELD, Entry, entry_of, joined
from clew.domain.chat import SHAPE
from clew.domain.compactions import BodyItem
from clew.store.reading import ContextInputs
from clew.testing.clock import FakeClock
from clew.testing.reference import ReferenceStore

groups = st.none() | st.sampled_from("gh")


def entry(at: int, role: Role, group: str | None) -> Entry:
    if role is Role.TOOL:
        parts = (ToolResult(f"{at}", "ok"),)
    else:
        parts = (Text(f"{at}"), ToolCall(f"{at}", "run")) if role is Role.ASSISTANT else ()
    message = Message.of(
        seq=at + 1, uid=f"{at:032x}", role=role, parts=parts or (Text(f"{at}"),), created_at=at,
        api_group=group,
    )  # fmt: skip
    return entry_of(message)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    kinds = draw(st.lists(st.tuples(st.sampled_from([*Role, Role.ASSISTANT, Role.TOOL]), groups)))
    return [entry(at, role, group) for at, (role, group) in enumerate(kinds)]


def stretches(entries: list[Entry]) -> Iterator[list[Entry]]:
    """From one speaker that is no member of a group before it to the next."""
    stretch: list[Entry] = []
    for item in entries:
        speaks = item.role in (Role.USER, Role.ASSISTANT)
        first = next((e for e in stretch if e.role in (Role.USER, Role.ASSISTANT)), None)
        known = first is not None and first.role is item.role is Role.ASSISTANT
        same = known and first is not None and first.api_group == item.api_group is not None
        if speaks and not same:
            yield stretch
            stretch = []
        stretch.append(item)
    yield stretch


@given(logs())
def test_joining_follows_the_rule(entries: list[Entry]) -> None:
    """Said the other way round: stretch by stretch, its members first, then the rest."""
    expected: list[tuple[Any, ...]] = []
    for stretch in stretches(entries):
        members = [e for e in stretch if e.role is Role.ASSISTANT]
        loose = [] if members else [e for e in stretch if e.role is Role.USER]
        others = [e for e in stretch if e not in members and e not in loose]
        if members:
            expected.append((Role.ASSISTANT, [m.seq for e in members for m in e.messages]))
        expected += [(e.role, [m.seq for m in e.messages]) for e in (*loose, *others)]
    found = [(e.role, [m.seq for m in e.messages]) for e in joined(entries)]
    assert found == expected


@given(logs())
def test_nothing_is_lost_and_joining_again_changes_nothing(entries: list[Entry]) -> None:
    found = list(joined(entries))
    assert sorted(m.seq for e in found for m in e.messages) == [*range(1, len(entries) + 1)]
    for one in found:
        assert one.parts == tuple(part for m in one.messages for part in m.parts)
        assert len(one.messages) == 1 or {m.api_group for m in one.messages} == {one.api_group}
    assert list(joined(found)) == found


@given(logs())
def test_every_call_is_followed_by_its_result(entries: list[Entry]) -> None:
    """Whatever was joined, a provider accepts it: each call answered right behind its message."""
    named: list[Entry] = []
    open_calls: list[str] = []
    for item in entries:
        if item.role is Role.ASSISTANT:
            open_calls.append(item.messages[0].text)
        if item.role is Role.TOOL and open_calls:
            item = item._replace(parts=(ToolResult(open_calls.pop(0), "ok"),))
        named.append(item)
    messages = tuple(
        Message.of(seq=at + 1, uid=f"{at:032x}", role=e.role, parts=e.parts, created_at=at,
                   api_group=e.api_group)
        for at, e in enumerate(named)
    )  # fmt: skip
    valid(chat_context(inputs(messages), no_blob))


@given(logs(), st.integers(0, 30), st.booleans())
def test_a_border_of_a_compaction_may_split_a_group(
    entries: list[Entry], border: int, kept: bool
) -> None:
    messages = tuple(message for item in entries for message in item.messages)
    below, above = messages[:border], messages[border:]
    summary = Inline(Role.USER, (Text("what was"),))
    item: tuple[BodyItem, tuple[Message, ...]] = (summary, ())
    if kept and below:
        item = (Ref(1, border), below)
    valid(chat_context(inputs(above, (item,)), no_blob))


def no_blob(digest: str) -> bytes:
    raise AssertionError(digest)


def inputs(
    messages: tuple[Message, ...], covered: tuple[tuple[BodyItem, tuple[Message, ...]], ...] = ()
) -> ContextInputs:
    info = ReferenceStore(clock=FakeClock()).profile("p").create().info()
    compaction: Compaction | None = None
    return ContextInputs(
        conversation=info, prompt=None, toolset=None, compaction=compaction, covered=covered,
        messages=messages, todos=(), goal=None,
    )  # fmt: skip


def valid(rendered: list[dict[str, Any]]) -> None:
    wanted: list[str] = []
    for message in rendered:
        if message["role"] == "tool":
            wanted.remove(message["tool_call_id"])
            continue
        assert wanted == []
        wanted = [call["id"] for call in message.get("tool_calls", ())]
    assert wanted == []


def test_interleaved_results_come_behind() -> None:
    kinds = [(Role.ASSISTANT, "g"), (Role.TOOL, None), (Role.ASSISTANT, "g"), (Role.TOOL, None),
             (Role.USER, None), (Role.ASSISTANT, "g")]  # fmt: skip
    entries = [entry(at, role, group) for at, (role, group) in enumerate(kinds)]
    found = [[m.seq for m in e.messages] for e in joined(entries)]
    assert found == [[1, 3], [2], [4], [5], [6]]


def test_hidden_and_replaced_members_are_left_out() -> None:
    conversation = ReferenceStore(clock=FakeClock()).profile("p").create()
    parts = [(Text("read"),), (ToolCall("a", "run"),), (ToolCall("b", "run"),)]
    drafts = [Draft(role=Role.ASSISTANT, parts=one, api_group="g") for one in parts]
    results = [Draft(role=Role.TOOL, parts=(ToolResult(id, "ok"),)) for id in "ab"]
    conversation.append([user("x"), drafts[0], drafts[1], results[0], drafts[2], results[1]])
    one = conversation.context()[1]
    assert (one["content"], [c["id"] for c in one["tool_calls"]]) == ("read", ["a", "b"])
    assert [m.get("tool_call_id") for m in conversation.context()[2:]] == ["a", "b"]
    conversation.append(
        [Draft(role=Role.ASSISTANT, parts=(Text("READ"),), api_group="g", replaces=2)]
    )
    assert conversation.context()[1]["content"] == "READ"
    conversation.cut(conversation.message(5).uid)
    cut = conversation.context()
    assert [c["id"] for c in cut[1]["tool_calls"]] == ["a"]
    assert (cut[1]["content"], len(cut)) == ("read", 3)


def test_what_the_records_say_beside_their_parts() -> None:
    """The last word of each field; one author; the shape of one record is none of them all."""
    first = Entry(Role.ASSISTANT, (), None, {
        "import": {"usage": 1, "cwd": "/a"}, "chat": {SHAPE: {"content": "absent"}, "x": 1},
    }, "g")  # fmt: skip
    last = Entry(Role.ASSISTANT, (), "bot", {"import": {"usage": 7}, "more": True}, "g")
    (one,) = joined([first, last])
    assert one.author == "bot"
    assert one.meta == {"import": {"usage": 7, "cwd": "/a"}, "chat": {"x": 1}, "more": True}
    assert list(joined([first])) == [first]


def test_a_message_that_holds_results_stays_alone() -> None:
    odd = Entry(Role.ASSISTANT, (ToolResult("a", "x"),), api_group="g")
    plain = Entry(Role.ASSISTANT, (Text("x"),), api_group="g")
    assert list(joined([plain, odd, plain])) == [plain, odd, plain]


def test_a_group_without_an_end_is_not_waited_for() -> None:
    asked = 0

    def many() -> Iterator[Entry]:
        nonlocal asked
        for asked in range(1, 4 * HELD):
            yield entry(asked, Role.ASSISTANT if asked % 2 else Role.TOOL, "g")

    found = joined(many())
    assert len(next(found).messages) == HELD // 2
    assert asked == HELD + 1
