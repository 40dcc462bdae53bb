"""Values that cannot be: a typed refusal that is the caller's, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from talk import HOLDER, begun, proposal, talk, texts

import clew
from clew import CallPlan, CallResult, Draft, NewConversation, Role, Text

BIG = 1 << 70
CYCLIC: list[Any] = []
CYCLIC.append(CYCLIC)
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]


def _turn(conv: clew.Conversation) -> clew.TurnHandle:
    return begun(conv.begin_turn([clew.user("x")], holder=HOLDER, call=CallPlan(model="m")))


Use = Callable[[clew.Profile, clew.Conversation], Any]
BAD: dict[str, Use] = {
    "tokens": lambda p, c: c.append([clew.user("x", tokens=-1)]),
    "created_at": lambda p, c: c.append([clew.user("x", created_at=BIG)]),
    "replaces": lambda p, c: c.append([clew.user("x", replaces=0)]),
    "role": lambda p, c: c.append([Draft(role="robot", parts=(Text("x"),))]),  # pyright: ignore
    "role in a turn": lambda p, c: c.begin_turn([Draft(role="robot", parts=())]),  # pyright: ignore
    "part": lambda p, c: c.append([Draft(role=Role.USER, parts=("x",))]),  # pyright: ignore
    "text": lambda p, c: c.append([clew.user(5)]),  # pyright: ignore
    "call": lambda p, c: c.append(
        [Draft(role=Role.ASSISTANT, parts=(clew.ToolCall(1, "run"),))]  # pyright: ignore
    ),
    "result": lambda p, c: c.append(
        [Draft(role=Role.TOOL, parts=(clew.ToolResult("c", ("x",)),))]  # pyright: ignore
    ),
    "parts as a dictionary": lambda p, c: c.append(
        [Draft(role=Role.USER, parts=({"type": "text", "text": "x"},))]  # pyright: ignore
    ),
    "nan": lambda p, c: c.append(
        [Draft(role=Role.USER, parts=(clew.Unknown({"a": float("nan")}),))]
    ),
    "nan of a call": lambda p, c: c.append(
        [Draft(role=Role.USER, parts=(clew.ToolCall("c", "f", extra={"a": float("inf")}),))]
    ),
    "nan in a result": lambda p, c: c.append(
        [Draft(role=Role.TOOL, parts=(clew.ToolResult("c", (clew.Unknown(float("nan")),)),))]
    ),
    "nan in meta": lambda p, c: c.append([clew.user("x", meta={"a": float("nan")})]),
    "nan in a new one's meta": lambda p, c: p.create(meta={"a": float("nan")}),
    "nan in content": lambda p, c: c.add({"role": "user", "content": [float("nan")]}),
    "cyclic": lambda p, c: c.add({"role": "user", "content": [CYCLIC]}),
    "cyclic meta": lambda p, c: c.append([clew.user("x", meta={"a": CYCLIC})]),
    "deep": lambda p, c: c.add({"role": "user", "content": DEEP}),
    "nothing": lambda p, c: c.add(None),  # pyright: ignore
    "a text": lambda p, c: c.add("x"),  # pyright: ignore
    "a number to replace by": lambda p, c: c.replace(5),  # pyright: ignore
    "a list as role": lambda p, c: c.add({"role": ["user"], "content": "x"}),
    "a list as a draft's role": lambda p, c: c.append(
        [Draft(role=["user"], parts=())]  # pyright: ignore
    ),
    "a list as kind of a role": lambda p, c: c.replace(
        [Draft(role="usr", parts=())]  # pyright: ignore
    ),
    "a number as key": lambda p, c: c.append([clew.user("x", key=5)]),
    "a number as uid": lambda p, c: c.append([clew.user("x", uid=5)]),
    "a number as author": lambda p, c: c.append([clew.user("x", author=5)]),
    "a text as tokens": lambda p, c: c.append([clew.user("x", tokens="5")]),
    "a text as time": lambda p, c: c.append([clew.user("x", created_at="5")]),
    "a list as meta": lambda p, c: c.append([clew.user("x", meta=[1])]),
    "texts": lambda p, c: c.append(["a"]),  # pyright: ignore
    "one draft": lambda p, c: c.append(clew.user("x")),  # pyright: ignore
    "no parts": lambda p, c: c.append([Draft(role=Role.USER, parts=None)]),  # pyright: ignore
    "base64 as bytes": lambda p, c: c.append(
        [Draft(role=Role.USER, parts=(clew.Image(data="aGk="),))]  # pyright: ignore
    ),
    "role to search": lambda p, c: clew.SearchQuery(role="bad"),  # pyright: ignore
    "limit of a search": lambda p, c: clew.SearchQuery(limit="9"),  # pyright: ignore
    "meta": lambda p, c: c.append([clew.user("x", meta={"a": object()})]),
    "ttl": lambda p, c: c.begin_turn([clew.user("x")], ttl=-1),
    "ttl of a resumed turn": lambda p, c: (_turn(c).wait(), c.resume_turn(ttl=0)),
    "turn state": lambda p, c: _turn(c).finish(state="running"),
    "unknown turn state": lambda p, c: _turn(c).finish(state="over"),  # pyright: ignore
    "call state": lambda p, c: _turn(c).record(
        call=1, result=CallResult(state="late")  # pyright: ignore
    ),
    "purpose": lambda p, c: c.plan_call(CallPlan(model="m", purpose="fun")),  # pyright: ignore
    "trigger": lambda p, c: c.open_attempt("now"),  # pyright: ignore
    "title origin": lambda p, c: c.set_title("t", "robot"),  # pyright: ignore
    "order": lambda p, c: c.log(order="random"),  # pyright: ignore
    "end reason": lambda p, c: c.end("whatever"),
    "todo state": lambda p, c: c.set_todos([clew.Todo("t", "soon")]),  # pyright: ignore
    "source": lambda p, c: p.create(source=""),
    "new created_at": lambda p, c: p.create(created_at=BIG),
    "blob hash": lambda p, c: c.append(
        [Draft(role=Role.USER, parts=(clew.Image(hash="xyz"),))]
    ),
    "limit": lambda p, c: p.list(limit=0),
}  # fmt: skip


@pytest.mark.requires("engine")
@pytest.mark.parametrize("what", BAD)
def test_a_value_that_cannot_be_is_refused_as_such(
    profile: clew.Profile, conv: clew.Conversation, what: str
) -> None:
    talk(conv, "a")
    with pytest.raises(clew.InputError):
        BAD[what](profile, conv)
    assert texts(conv)[:1] == ["a"]


def test_numbers_of_nothing_are_not_found(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    for use in (
        lambda: conv.message(-1),
        lambda: conv.message(BIG),
        lambda: conv.commit_attempt(0, proposal(1)),
        lambda: conv.undo_compaction(-1),
        lambda: conv.branch(at_cut=0),
        lambda: conv.undo_cut(5),
        lambda: conv.finish_call(0, CallResult()),
    ):
        with pytest.raises((clew.NotFound, clew.InputError)):
            use()
    assert conv.withdraw(-1) is False
    assert conv.deliveries(99) == ()


def test_creating_with_fields_or_a_value_is_the_same(profile: clew.Profile) -> None:
    one = profile.create(NewConversation(title="t"), source="cli")
    two = profile.create(title="t", source="cli")
    assert (one.info().title, one.info().source) == (two.info().title, two.info().source)


def test_a_refusal_says_which_message(conv: clew.Conversation) -> None:
    with pytest.raises(clew.InputError, match="message 2"):
        conv.append([clew.user("x"), clew.user("y", tokens=-1)])
    with pytest.raises(clew.InputError, match="message 2"):
        conv.add([{"role": "user", "content": "x"}, {"role": "robot"}])
