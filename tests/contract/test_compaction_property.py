"""Random conversations, compacted again and again: what must hold whatever was said."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import event, given
from long_talk import seen

import clew
from clew import Draft, Role, Text, ToolCall, ToolResult
from clew.compaction.ledger import epoch_of
from clew.context.budget import Budget
from clew.context.requests import live_requests
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.reference import ReferenceStore

WORDS = st.text("abcdefg hij.klm nop,qrs tuv\n9@/\ud83d\0é你", min_size=1, max_size=40)
SAID = st.builds(lambda text, times: text * times, WORDS, st.integers(1, 30))


@st.composite
def steps(draw: st.DrawFn) -> list[Draft]:
    """Some messages: words of people and models, calls with results now, later or never."""
    drafts: list[Draft] = []
    waiting: list[str] = []
    for n in range(draw(st.integers(4, 40))):
        match draw(st.sampled_from("uuaaccrrRs")):
            case "u":
                drafts.append(clew.user(draw(SAID)))
            case "a":
                drafts.append(clew.assistant(draw(SAID)))
            case "s":
                drafts.append(Draft(role=Role.SYSTEM, parts=(Text(draw(SAID)),)))
            case "c":
                ids = [f"c{n}-{k}" for k in range(draw(st.integers(1, 3)))]
                waiting += ids
                parts = tuple(ToolCall(id, "run", '{"command": "make"}') for id in ids)
                drafts.append(Draft(role=Role.ASSISTANT, parts=(Text("I run it."), *parts)))
            case _ if waiting:
                id = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
                drafts.append(Draft(role=Role.TOOL, parts=(ToolResult(id, draw(SAID), "run"),)))
            case _:
                pass
    return drafts or [clew.user("hi")]


def check(conv: Any, engine: clew.Compactor) -> None:
    """What holds of every context."""
    inputs = conv.context_inputs()
    log = list(conv.messages())
    try:
        context = engine.peek(conv)
    except clew.ContextTooLarge:
        return
    assert context.tokens <= context.limit
    shown = seen(context)
    for message in live_requests(log):
        if message.parts and len(message.text) < 300:
            assert message.text in shown
    ledgers = [at for at, item in enumerate(context.items) if item.section == "ledger"]
    live = {message.seq for message in live_requests(log)}
    places = [at for at, item in enumerate(context.items) if item.first in live]
    if ledgers and places and inputs.compaction is not None:
        assert max(ledgers) < min(places)
    for render in (context.chat, context.responses, context.anthropic):
        render(conv.blob)


@given(data=st.data())
def test_whatever_was_said_contexts_fit_and_nothing_is_lost(data: st.DataObject) -> None:
    """S06, S08, S14, S15, S22: after any mix of talk, compactions, cuts and undos."""
    clock = FakeClock(step=1000)
    store: Any = ReferenceStore(clock=clock, ids=seeded_ids(clock))
    conv = store.profile("me").create()
    engine = clew.Compactor(Budget(window=data.draw(st.sampled_from([1_500, 3_000, 6_000]))))
    frozen: dict[int, str] = {}
    for _ in range(data.draw(st.integers(2, 7))):
        match data.draw(st.sampled_from("aaacccuxb")):
            case "c":
                before = [message.to_dict() for message in conv.messages(hidden=True)]
                outcome = engine.compact(conv, data.draw(st.sampled_from(["user", "hard", "soft"])))
                event(f"compaction {outcome.state}")
                assert [message.to_dict() for message in conv.messages(hidden=True)] == before
                if outcome.compaction is not None:
                    record = outcome.compaction
                    assert record.tokens_after < record.tokens_before
                    for epoch in filter(None, map(epoch_of, record.body)):
                        assert frozen.setdefault(epoch.number, epoch.text) == epoch.text
            case "u":
                try:
                    engine.undo(conv)
                    frozen.clear()
                except clew.Refused:
                    pass
            case "x" if len(log := list(conv.messages())) > 2:
                conv.cut(log[data.draw(st.integers(1, len(log) - 1))].uid)
                frozen.clear()
            case "b" if conv.info().head:
                conv = conv.branch()
            case _:
                conv.append(data.draw(steps()))
        check(conv, engine)
        assert store.verify() == []
