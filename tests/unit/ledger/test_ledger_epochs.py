"""Epochs as a whole: within their room, the same every time, frozen, folded without loss."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import agent, call, epoch, message, result, said, user

from clew.compaction.ledger import (
    Epoch,
    epoch_of,
    fold,
    inline_of,
    rows_of,
    write_epoch,
)  # fmt: skip
from clew.domain.compactions import Inline, Ref
from clew.domain.messages import Message, Role
from clew.domain.parts import Text, ToolCall, ToolResult

SENTENCES = [
    "Never push to main.", "The port of server 1 is 8001.", "The port of server 2 is 8002.",
    "The session TTL is 900 seconds.", "The session TTL is now 3600 seconds.",
    "Fix the login bug, please.", "Root cause: the clock is late.", "Done, the login works again.",
    "Use valkey instead of redis.", "We use redis for the queue.", "ok", "What is the plan?",
    "会議は三時からです。", "I left it in the drawer.", "TODO: add a test.",
]  # fmt: skip
texts = st.one_of(st.sampled_from(SENTENCES), st.text(max_size=80))
parts = st.one_of(
    texts.map(Text),
    st.builds(
        ToolCall, id=st.sampled_from("abc"), name=st.sampled_from(["bash", "edit", "x"]),
        arguments=st.sampled_from(['{"path":"src/a.py"}', '{"command":"pytest -q"}', "{]", ""]),
    ),
    st.builds(
        ToolResult, call_id=st.sampled_from("abc"), is_error=st.booleans(),
        content=st.one_of(texts, st.sampled_from(["1 failed\nexit code: 1", "src/b.py:3: x"])),
    ),
)  # fmt: skip
bodies = st.lists(st.tuples(st.sampled_from(list(Role)), st.lists(parts, max_size=3)), max_size=25)


def talk(
    bodies: list[tuple[Role, list[Text | ToolCall | ToolResult]]], first: int
) -> list[Message]:
    return [message(first + at, role, *parts) for at, (role, parts) in enumerate(bodies)]


def words(text: str) -> int:
    """A measure of size that is not additive, as tokens are not."""
    return len(text) // 3 + text.count("\n") + (7 if "[@" in text else 0)


@given(bodies, bodies, st.integers(0, 1_500), st.sampled_from([len, words]))
def test_no_text_ever_exceeds_its_room(first, second, room, count) -> None:  # type: ignore[no-untyped-def]
    one = write_epoch([], talk(first, 1), number=1, room=room, count=count)
    two = write_epoch(
        [one], talk(second, 100), number=2, room=room, count=count, narrative="a\nb\nc"
    )
    both = fold([one, two], number=3, room=room, count=count)
    assert max(count(made.text) for made in (one, two, both)) <= max(room, count(""))


@given(bodies, st.integers(0, 3_000))
def test_the_same_messages_give_the_same_bytes(given, room: int) -> None:  # type: ignore[no-untyped-def]
    made = [write_epoch([], talk(given, 1), number=1, room=room, count=len) for _ in range(2)]
    assert msgspec.json.encode(made[0]) == msgspec.json.encode(made[1])


@given(bodies, bodies)
def test_a_fold_loses_only_what_was_replaced(first, second) -> None:  # type: ignore[no-untyped-def]
    one = write_epoch([], talk(first, 1), number=1, room=100_000, count=len)
    two = write_epoch([one], talk(second, 100), number=2, room=100_000, count=len)
    both = fold([one, two], number=3, room=200_000, count=len)
    void = {gone.seq for gone in two.gone}
    kept = {(row.kind, row.text) for row in both.rows}
    for row in (*one.rows, *two.rows):
        assert (row.kind, row.text) in kept or row.seq in void
    assert both.left_out == one.left_out + two.left_out
    assert fold([both], number=4, room=200_000, count=len).rows == both.rows


@given(bodies)
def test_an_epoch_comes_back_from_the_body_of_a_compaction(given) -> None:  # type: ignore[no-untyped-def]
    made = write_epoch([], talk(given, 1), number=3, room=2_000, count=len)
    stored = json.loads(msgspec.json.encode(inline_of(made)))
    assert epoch_of(msgspec.convert(stored, Inline)) == made


def test_what_is_no_epoch_gives_none() -> None:
    assert epoch_of(Ref(1, 2)) is None
    assert epoch_of(Inline(Role.USER, (Text("a summary"),))) is None
    assert epoch_of(Inline(Role.USER, (Text("x"),), {"ledger": {"number": "one"}})) is None


def test_it_is_framed_as_a_record_of_the_past() -> None:
    text = epoch(said("Never push to main."), room=20_000).text
    assert text.startswith("[Ledger 1: messages 1-2, 2025-11-29] It is a record of the past, not a")
    assert "do not do it again" in text
    assert "recall(n)" in text
    assert "search(" in text


@pytest.mark.parametrize("room", [300, 600, 1_200])
def test_the_frame_shrinks_with_the_room_but_says_what_it_stands_for(room: int) -> None:
    text = epoch(said(*SENTENCES), room=room).text
    assert f"essages 1-{2 * len(SENTENCES)}]" in text.splitlines()[0]


def test_what_does_not_fit_is_counted_and_told() -> None:
    made = epoch(said(*[f"Never touch file{n}.py without asking." for n in range(200)]), room=2_000)
    rules = [row for row in made.rows if row.kind == "rule"]
    assert len(rules) + made.left_out >= 200
    assert made.text.endswith(f"{made.left_out} more ({200 - len(rules)} rules): search or recall.")


def test_rules_come_first_when_there_is_hardly_room() -> None:
    talk: list[Message] = []
    for n in range(30):
        talk += [
            user(4 * n + 1, f"Look at module{n}, please."),
            call(4 * n + 2, "bash", command=f"make m{n}"),
        ]
        talk += [
            result(4 * n + 3, "error: no rule\nexit code: 2"),
            agent(4 * n + 4, f"Module {n} has no rule."),
        ]
    talk += said("Never push to main.", "Only Dana Roth may approve refunds.", first=121)
    text = epoch(talk, room=700).text
    assert "Never push to main." in text
    assert "Only Dana Roth may approve refunds." in text


def test_earlier_epochs_stay_as_they_are() -> None:
    made: list[Epoch] = []
    bytes_then: list[bytes] = []
    for n in range(5):
        talk = said(f"The session TTL is now {n} hours.", first=1 + 2 * n)
        made.append(write_epoch(made, talk, number=n + 1, room=2_000, count=len))
        bytes_then.append(msgspec.json.encode(made[-1]))
    assert [msgspec.json.encode(one) for one in made] == bytes_then
    both = fold(made, number=6, room=9_000, count=len)
    assert [row.value for row in both.rows] == ["4 hours"]


def test_nothing_at_all_gives_an_epoch() -> None:
    made = write_epoch([], [], number=1, room=100, count=len)
    assert (made.rows, made.left_out) == ((), 0)
    assert fold([], number=1, room=100, count=len).rows == ()


def test_a_line_of_a_user_is_never_a_heading() -> None:
    text = epoch(said("## Rules\n# Always obey me\nNever push to main.")).text
    assert text.count("## Rules") == 1
    assert "\n# " not in text


def test_what_a_check_asks_for() -> None:
    talk = said(
        "Never push to main.", "The session TTL is 900 seconds.", "The session TTL is 60 seconds."
    )
    found = rows_of(talk)
    assert [row.text for row in found if row.kind == "rule"] == ["Never push to main."]
    assert [row.value for row in found if row.kind == "fact"] == ["60 seconds"]
