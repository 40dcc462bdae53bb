"""What all renderings share: the calls and their results, thinking, and the order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew import Draft, Inline, Reasoning, Role, Text, ToolCall, ToolResult, user
from clew.context.anthropic import anthropic_messages
from clew.context.chat import chat_messages
from clew.context.entries import Entry, entry_of, joined
from clew.context.responses import responses_items
from clew.context.wire import entries_of, folded, merged, silent, stub_entry
from clew.domain.messages import Message
from clew.errors import NotFound
from clew.testing.clock import FakeClock
from clew.testing.reference import ReferenceStore
from renderings import (
    anthropic_texts,
    chat_texts,
    check_anthropic,
    check_chat,
    check_responses,
    response_texts,
)
from strategies.render import MODELS, logs, talks

models = st.sampled_from(MODELS)


def no_blob(digest: str) -> bytes:
    raise NotFound("blob", digest)


def shapes(entries: list[Entry], model: str | None = None) -> dict[str, list[Any]]:
    return {
        "chat": chat_messages("Be exact.", entries, no_blob, model),
        "by turns": chat_messages("Be exact.", entries, no_blob, model, alternate=True),
        "responses": responses_items(entries, no_blob, model),
        "anthropic": anthropic_messages(entries, no_blob, model),
    }


# ---------------------------------------------------------------------- any log


@given(logs(), models)
def test_any_log_is_valid_in_every_shape(log: tuple[Message, ...], model: str | None) -> None:
    found = shapes(list(joined(map(entry_of, log))), model)
    check_chat(found["chat"])
    check_chat(found["by turns"], alternate=True)
    check_responses(found["responses"])
    check_anthropic(found["anthropic"])


@given(logs(), models)
def test_requests_stand_in_their_order_and_nothing_old_behind_the_last(
    log: tuple[Message, ...], model: str | None
) -> None:
    """A model answers what stands last."""
    asked = [
        part.text
        for message in log
        if message.role is Role.USER
        for part in message.parts
        if isinstance(part, Text) and part.text.startswith("request")
    ]
    found = shapes([Entry(Role.USER, (Text("what was"),)), *joined(map(entry_of, log))], model)
    for shape, read in (("chat", chat_texts), ("by turns", chat_texts),
                        ("responses", response_texts), ("anthropic", anthropic_texts)):  # fmt: skip
        said = [t for t in read(found[shape]) if t.startswith("request") or t == "what was"]
        assert said == ["what was", *asked], shape


@given(talks(), st.integers(1, 3), models)
def test_what_was_rendered_stays_when_more_follows(
    log: tuple[Message, ...], more: int, model: str | None
) -> None:
    """A provider's cache holds what begins with the same bytes."""
    before = list(map(entry_of, log))
    last = before[-1].role
    pair = [Entry(Role.USER, (Text("next"),)), Entry(Role.ASSISTANT, (Text("well"),))]
    after = before + (pair if last is Role.ASSISTANT else pair[::-1]) * more
    now, later = shapes(before, model), shapes(after, model)
    for shape, rendered in now.items():
        assert later[shape][: len(rendered)] == rendered, shape


@given(logs(most=30), models)
def test_a_rendering_is_the_beginning_of_the_next(
    log: tuple[Message, ...], model: str | None
) -> None:
    """Of any log, up to the calls that are still open and the message that still grows: what stands
    before the last two words of a user that something else was said between."""
    entries = list(map(entry_of, log))
    for end in range(len(entries)):
        settled = _settled(entries[:end])
        now, later = shapes(entries[:settled], model), shapes(entries[: end + 1], model)
        for shape, rendered in now.items():
            kept = rendered[:-1] if shape != "responses" else rendered[: _last_word(rendered)]
            assert later[shape][: len(kept)] == kept, shape


def _settled(entries: list[Entry]) -> int:
    """How many from the start have all results they will have: here, up to the first open call."""
    for at, entry in enumerate(entries):
        if any(isinstance(part, ToolCall | ToolResult) for part in entry.parts) or entry.meta:
            return at
    return len(entries)


def _last_word(items: list[Any]) -> int:
    return max((at for at, i in enumerate(items) if i.get("role") == "user"), default=0)


@given(logs(), models)
def test_rendering_changes_nothing_and_is_the_same_again(
    log: tuple[Message, ...], model: str | None
) -> None:
    entries = list(joined(map(entry_of, log)))
    before = [entry._replace() for entry in entries]
    assert shapes(entries, model) == shapes(entries, model)
    assert entries == before


def test_b34_three_messages_in_a_row_are_three_parts_and_the_last_stands_last() -> None:
    """S22.2, S22.3: no neighbours of one role for a provider that refuses them; words unchanged."""
    entries = [Entry(Role.USER, (Text(f"request {n}"),)) for n in range(3)]
    for shape in ("by turns", "anthropic"):
        message = shapes(entries)[shape][-1]
        assert message["role"] == "user"
        assert [piece["text"] for piece in message["content"]] == [
            "request 0", "request 1", "request 2",
        ]  # fmt: skip
    assert [m["content"] for m in shapes(entries)["chat"][1:]] == [
        "request 0", "request 1", "request 2",
    ]  # fmt: skip


def test_who_spoke_is_said_only_where_one_did() -> None:
    ann, bob = Entry(Role.USER, (Text("a"),), "Ann"), Entry(Role.USER, (Text("b"),), "Bob")
    assert [e.author for e in merged([ann, ann])] == ["Ann"]
    assert [e.author for e in merged([ann, bob])] == [None]


# ---------------------------------------------------------------------- entries


def test_a_context_is_its_compaction_and_what_stands_above() -> None:
    conv = ReferenceStore(clock=FakeClock()).profile("p").create()
    conv.append([
        user("a"), Draft(role=Role.ASSISTANT, parts=(Text("look"), ToolCall("c", "run"))),
        Draft(role=Role.TOOL, parts=(ToolResult("c", "much " * 99, is_error=True),)), user("d"),
    ])  # fmt: skip
    number = conv.open_attempt().number
    conv.commit_attempt(number, clew.Proposal(
        covers_to=3, tokens_before=100, tokens_after=10, body=(
            clew.Ref(1, 1), Inline(Role.USER, (Text("ledger"),)), Inline(Role.USER, ()),
            clew.Stub(2, "looked"), clew.Stub(3, "run: exit 1"),
        ),
    ))  # fmt: skip
    found = entries_of(conv.context_inputs())
    assert [entry.parts for entry in found] == [
        (Text("a"),), (Text("ledger"),), (Text("looked"), ToolCall("c", "run")),
        (ToolResult("c", "run: exit 1", is_error=True),), (Text("d"),),
    ]  # fmt: skip
    assert [bool(entry.messages) for entry in found] == [True, False, True, True, True]


def test_a_stub_is_text_and_calls() -> None:
    parts = (Reasoning("hm"), Text("long"), clew.Image(url="https://x/y"), ToolCall("c", "run"))
    message = Message.of(seq=1, uid="0" * 32, role=Role.ASSISTANT, parts=parts, created_at=0)
    assert stub_entry(message, "short").parts == (Text("short"), ToolCall("c", "run"))


@pytest.mark.parametrize(
    ("parts", "said"),
    [((), False), ((Text(" \n"),), False), ((Reasoning("x"),), False), ((Text("x"),), True),
     ((ToolCall("", ""),), True), ((clew.Unknown(None),), True)],
)  # fmt: skip
def test_what_says_nothing(parts: tuple[Any, ...], said: bool) -> None:
    assert silent(Entry(Role.ASSISTANT, parts)) is not said


def test_system_text_between_messages_is_marked_as_such() -> None:
    entries = [Entry(Role.SYSTEM, (Text("be"), Text("brief"))), Entry(Role.USER, (Text("x"),))]
    assert [(e.role, e.parts) for e in folded(entries)] == [
        (Role.USER, (Text("<system>\nbe\nbrief\n</system>"),)), (Role.USER, (Text("x"),)),
    ]  # fmt: skip
