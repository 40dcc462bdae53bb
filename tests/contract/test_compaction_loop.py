"""The most ordinary agent: one request, then a long loop of tools, without turns and with."""

from __future__ import annotations

import random
from typing import Any

import pytest
from talk import HOLDER, begun

import clew
from clew import Draft, Role, Text, ToolCall, ToolResult
from clew.context.budget import Budget
from clew.context.wire import INTERRUPTED

TASK = "Find out why the nightly import is slow, and mend it. Never touch the schema."


def step(n: int, chance: random.Random) -> list[Draft]:
    """What the agent says and calls, and what comes back: from a line to some thousand."""
    output = f"row {n} of what it printed, and a word\n" * chance.choice([1, 3, 20, 60])
    call = ToolCall(f"call-{n}", "bash", f'{{"command": "python part{n % 7}.py --step {n}"}}')
    said = Text(f"Step {n}: I look at part {n % 7} next, since the one before was clean.")
    return [
        Draft(role=Role.ASSISTANT, parts=(said, call) if n % 3 else (call,)),
        Draft(role=Role.TOOL, parts=(ToolResult(f"call-{n}", output, "bash"),)),
    ]


def looked_at(engine: clew.Compactor, conv: Any) -> clew.Context:
    """The context, and what must hold of every one."""
    context = engine.context(conv)
    assert context.tokens <= context.limit
    texts = [p.text for i in context.items for p in i.entry.parts if isinstance(p, Text)]
    assert TASK in texts
    sections = [item.section for item in context.items]
    at = next(n for n, item in enumerate(context.items) if TASK in str(item.entry.parts))
    assert "ledger" not in sections[at:]
    rendered = str(context.chat(conv.blob))
    assert INTERRUPTED not in rendered, "every call has its result in the log"
    newest = [item for item in context.items if item.entry.role is Role.TOOL][-1]
    assert newest.last == conv.info().head, "what the model has not seen is there"
    return context


@pytest.mark.parametrize("window", [4_000, 8_000, 32_000])
@pytest.mark.parametrize("begins", ["request", "system", "greeting"])
def test_one_request_and_a_long_loop(conv: clew.Conversation, window: int, begins: str) -> None:
    """B107, S22.1: at each step the context fits, and says what is asked for."""
    first = {
        "request": [], "system": [Draft(role=Role.SYSTEM, parts=(Text("You mend code."),))],
        "greeting": [clew.assistant("Hello. What shall I do?")],
    }[begins]  # fmt: skip
    conv.append([*first, clew.user(TASK)])
    chance = random.Random(window)
    engine = clew.Compactor(Budget(window=window))
    for n in range(160):
        conv.append(step(n, chance))
        if n % 5 == 0 or n > 150:
            looked_at(engine, conv)
    for record in conv.compactions():
        assert record.tokens_before is not None
        assert record.tokens_after is not None
        assert record.tokens_after <= Budget(window=window).room
    conv.append(
        [clew.assistant("It was the index. It is mended."), clew.user("Thank you! And now?")]
    )
    assert engine.context(conv).tokens <= Budget(window=window).room


def test_what_a_receipt_says_is_what_is_read(conv: clew.Conversation) -> None:
    """The tokens after a compaction are those of the next context."""
    conv.append([clew.user(TASK)])
    chance, engine = random.Random(1), clew.Compactor(Budget(window=6_000))
    for n in range(150):
        conv.append(step(n, chance))
        before = conv.info().generation
        engine.context(conv)
        record = conv.context_inputs().compaction
        if record is not None and conv.info().generation > before:
            assert record.tokens_after == engine.peek(conv).tokens or engine.peek(conv).shortened


def test_the_same_in_one_turn(conv: clew.Conversation) -> None:
    """Of a turn nothing is covered; the rendering shortens it, the newest output last."""
    turn = begun(conv.begin_turn([clew.user(TASK, key="u")], holder=HOLDER))
    chance, engine = random.Random(2), clew.Compactor(Budget(window=8_000))
    for n in range(100):
        for draft in step(n, chance):
            turn.record([draft])
        if n % 3 == 0:
            looked_at(engine, conv)
    assert conv.compactions() == ()
