"""Contexts within a budget: what is shortened, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import clew
from clew import Draft, Image, Role, Text, ToolCall, ToolResult
from clew.context.budget import Budget
from clew.context.build import Context, build
from clew.context.measure import measure_for
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.reference import ReferenceStore

BUDGET = Budget(window=4_000)
MEASURE = measure_for(None)


def conversation(drafts: list[Draft], **fields: Any) -> Any:
    clock = FakeClock()
    store: Any = ReferenceStore(clock=clock, ids=seeded_ids(clock))
    conv = store.profile("me").create(**fields)
    conv.append(drafts)
    return conv


def built(conv: Any, budget: Budget = BUDGET) -> Context:
    return build(conv.context_inputs(), budget, MEASURE)


def step(n: int, output: Any) -> list[Draft]:
    return [
        Draft(role=Role.ASSISTANT, parts=(ToolCall(f"c{n}", "run", "{}"),)),
        Draft(role=Role.TOOL, parts=(ToolResult(f"c{n}", output, "run"),)),
    ]


def outputs(context: Context) -> list[str]:
    return [
        part.content if isinstance(part.content, str) else "parts"
        for item in context.items for part in item.entry.parts if isinstance(part, ToolResult)
    ]  # fmt: skip


def test_what_fits_is_as_the_log_has_it() -> None:
    conv = conversation([clew.user("hi"), *step(1, "ok"), clew.assistant("done")])
    context = built(conv)
    assert context.shortened == 0
    assert context.chat(conv.blob)[0] == {"role": "user", "content": "hi"}
    assert context.tokens < 60
    assert (context.up_to_seq, context.generation) == (4, 0)


def test_a_giant_output_is_shown_by_its_two_ends() -> None:
    """B23: and it can be read back."""
    text = "first line\n" + "filler words here\n" * 5_000 + "last line"
    conv = conversation([clew.user("go"), *step(1, text)])
    context = built(conv)
    (shown,) = outputs(context)
    assert shown.startswith("first line")
    assert shown.endswith("last line")
    assert "recall(3)" in shown
    assert context.tokens <= context.limit
    assert conv.message(3).parts[0].content == text


def test_the_turn_in_flight_is_shortened_from_its_beginning() -> None:
    conv = conversation(
        [clew.user("go"), *(d for n in range(12) for d in step(n, f"line {n} of it " * 120))]
    )
    shown = outputs(built(conv))
    assert "recall" in shown[0]
    assert shown[-1] == "line 11 of it " * 120


def test_steps_give_way_to_a_digest_before_the_request() -> None:
    conv = conversation([clew.user("go"), *(d for n in range(300) for d in step(n, "x"))])
    context = built(conv)
    texts = [p.text for i in context.items for p in i.entry.parts if isinstance(p, Text)]
    assert texts[-1] == "go"
    assert "left out" in texts[0]
    assert context.tokens <= context.limit


def test_the_view_of_a_growing_turn_changes_seldom() -> None:
    """A provider's cache holds what begins like the request before."""
    drafts = [clew.user("go")]
    changes, last = 0, []
    for n in range(80):
        drafts += step(n, f"output {n} " * 30)
        now = [item.entry.parts for item in built(conversation(list(drafts))).items]
        changes += now[: len(last)] != last
        last = now
    assert changes <= 12


def test_a_system_prompt_that_is_too_large_is_told() -> None:
    conv = conversation([clew.user("hi")], prompt="word " * 9_000)
    with pytest.raises(clew.ContextTooLarge, match="system prompt and tools alone"):
        built(conv)


def test_a_message_that_is_too_large_alone_is_named() -> None:
    conv = conversation([clew.user("short"), clew.assistant("yes"), clew.user("word " * 9_000)])
    with pytest.raises(clew.ContextTooLarge, match="message 3 alone") as error:
        built(conv)
    assert (error.value.seq, error.value.limit) == (3, BUDGET.room)


def test_a_log_that_is_too_long_asks_for_a_compaction() -> None:
    drafts = [d for n in range(60) for d in (clew.user("why " * 40), clew.assistant("so " * 40))]
    with pytest.raises(clew.ContextTooLarge, match="Compact the conversation") as error:
        built(conversation(drafts))
    assert error.value.seq is None


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(200_000)


def test_twenty_pictures_in_results_stay_within_the_bytes() -> None:
    """B103: the token budget alone would let them grow until HTTP 413."""
    shots = [
        d for n in range(20)
        for d in step(n, (Text(f"shot {n}"), Image(data=PICTURE + bytes([n]), width=64, height=64)))
    ]  # fmt: skip
    budget = Budget(window=100_000, bytes=1_500_000)
    conv = conversation([clew.user("look"), *shots])
    context = built(conv, budget)
    assert context.bytes <= budget.bytes
    shown = outputs(context)
    assert "shot 0" in shown[0]
    assert "recall(3)" in shown[0]
    assert shown[-1] == "parts"
    rendered = clew_json(context.chat(conv.blob))
    assert len(rendered) <= budget.bytes


def test_pictures_of_a_person_become_handles_last() -> None:
    pictures = [
        d for n in range(12) for d in (
            Draft(role=Role.USER, parts=(Text(f"photo {n}"), Image(data=PICTURE + bytes([n])))),
            clew.assistant("Nice."),
        )
    ]  # fmt: skip
    budget = Budget(window=100_000, bytes=1_500_000)
    context = built(conversation(pictures), budget)
    assert context.bytes <= budget.bytes
    kinds = [[type(p).__name__ for p in i.entry.parts] for i in context.items]
    assert kinds[0] == ["Text", "Text"]
    assert kinds[-2] == ["Text", "Image"]


def test_bytes_that_one_message_alone_is_over_are_told() -> None:
    conv = conversation([Draft(role=Role.USER, parts=(Image(data=PICTURE),))])
    with pytest.raises(clew.ContextTooLarge, match="bytes"):
        built(conv, Budget(window=50_000, bytes=70_000))


def clew_json(messages: list[dict[str, Any]]) -> bytes:

    return msgspec.json.encode(messages)
