"""Every real transcript, cut at every message, in every shape: what a provider is sent is valid.

Two kinds of cuts: the log up to a message, and what a compaction leaves, an inline text before the
log from a message on. Of a log of more than `WHOLE` messages, where that would take minutes, each
cut is made in a window, `WINDOW` messages on the side that stays; the whole of that side at each
`STRIDE`th.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import tessera
from msgspec import structs

import clew
from clew.context.anthropic import anthropic_messages
from clew.context.chat import chat_context, chat_messages
from clew.context.entries import Entry, entry_of
from clew.context.responses import responses_items
from clew.context.wire import entries_of, silent
from clew.domain.compactions import Inline
from clew.domain.messages import Message, Role
from clew.domain.parts import Text, answered_ids, call_ids
from clew.store.reading import ContextInputs
from imports import SAMPLES, import_into, samples
from renderings import (
    anthropic_texts,
    chat_texts,
    check_anthropic,
    check_chat,
    check_responses,
    response_texts,
)

WHOLE, WINDOW, STRIDE = 60, 30, 60
LEDGER = "What was covered, as a ledger."


class Talk(NamedTuple):
    """One conversation: what its context is made of, and its bytes."""

    inputs: ContextInputs
    blob: Callable[[str], bytes]

    @property
    def log(self) -> tuple[Message, ...]:
        return self.inputs.messages

    @property
    def model(self) -> str | None:
        return self.inputs.conversation.model

    def part(self, first: int, last: int, inline: bool = False) -> list[Entry]:
        """The context of log[first:last]."""
        summary = Inline(Role.USER, (Text(LEDGER),), {"ledger": {}})
        covered = ((summary, ()),) if inline else ()
        return entries_of(
            structs.replace(self.inputs, covered=covered, messages=self.log[first:last])
        )

    def prefixes(self) -> Iterator[list[Entry]]:
        """One for each message that may be the last, and the empty one."""
        for at in range(len(self.log) + 1):
            whole = len(self.log) <= WHOLE or at % STRIDE == 0
            yield self.part(0 if whole else max(0, at - WINDOW), at)

    def tails(self) -> Iterator[list[Entry]]:
        """One for each message that may be the first, and the empty one."""
        end = len(self.log)
        for at in range(end + 1):
            whole = end <= WHOLE or at % STRIDE == 0
            yield self.part(at, end if whole else at + WINDOW, inline=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Store]:
    with clew.open(tmp_path_factory.mktemp("render") / "a.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def known() -> dict[str, list[Talk]]:
    return {}


def talks(store: clew.Store, known: dict[str, list[Talk]], sample: str) -> list[Talk]:
    """The conversations of a sample; it is imported once, each into a profile of its own."""
    if sample not in known:
        profile = store.profile(sample.replace("/", "."))
        import_into(profile, SAMPLES / sample)
        opened = [profile.open(id) for id in profile.transfer().family()]
        known[sample] = [Talk(_all(each), each.blob) for each in opened]
    return known[sample]


def _all(conversation: clew.Conversation) -> ContextInputs:
    """Every visible message, also below a compaction of the tool it came from."""
    return structs.replace(
        conversation.context_inputs(), compaction=None, covered=(),
        messages=tuple(conversation.messages()),
    )  # fmt: skip


def check(talk: Talk, entries: list[Entry]) -> None:
    """Valid in every shape, and what the human asked last stands as it was, with no older request
    and no ledger behind it."""
    model = talk.model
    chat = chat_messages("Be exact.", entries, talk.blob, model)
    by_turns = chat_messages("Be exact.", entries, talk.blob, model, alternate=True)
    items = responses_items(entries, talk.blob, model)
    messages = anthropic_messages(entries, talk.blob, model)
    check_chat(chat)
    check_chat(by_turns, alternate=True)
    check_responses(items)
    check_anthropic(messages)
    asked = requests(entries)
    for texts in (chat_texts(chat), chat_texts(by_turns), response_texts(items),
                  anthropic_texts(messages)):  # fmt: skip
        assert in_order(asked, list(texts))


def requests(entries: list[Entry]) -> list[str]:
    """All that users say, the ledger too."""
    parts = [part for entry in entries if entry.role is Role.USER for part in entry.parts]
    return [part.text for part in parts if isinstance(part, Text) and part.text.strip()]


def in_order(wanted: list[str], said: list[str]) -> bool:
    """Whether all that is wanted is said, in its order and no more often."""
    known = set(wanted)
    return [text for text in said if text in known] == wanted


@pytest.mark.parametrize("sample", samples())
def test_every_prefix_is_valid(
    store: clew.Store, known: dict[str, list[Talk]], sample: str
) -> None:
    for talk in talks(store, known, sample):
        for entries in talk.prefixes():
            check(talk, entries)


@pytest.mark.parametrize("sample", samples())
def test_every_tail_behind_a_ledger_is_valid(
    store: clew.Store, known: dict[str, list[Talk]], sample: str
) -> None:
    for talk in talks(store, known, sample):
        for entries in talk.tails():
            check(talk, entries)


@pytest.mark.parametrize("sample", samples())
def test_what_is_rendered_stays_as_the_log_grows(
    store: clew.Store, known: dict[str, list[Talk]], sample: str
) -> None:
    """From one finished turn to the next, byte for byte: a provider's cache reads it again."""
    shapes: tuple[Callable[[Talk, list[Entry]], list[Any]], ...] = (
        lambda t, e: chat_messages(t.inputs.prompt, e, t.blob, t.model),
        lambda t, e: chat_messages(t.inputs.prompt, e, t.blob, t.model, alternate=True),
        lambda t, e: responses_items(e, t.blob, t.model),
        lambda t, e: anthropic_messages(e, t.blob, t.model),
    )
    for talk in talks(store, known, sample):
        ends = [at for at, message in enumerate(talk.log) if at and message.role is Role.USER]
        finished = [at for at in ends if not _is_open(talk.log[:at])]
        for shape in shapes:
            whole = shape(talk, talk.part(0, len(talk.log)))
            for at in finished[:: len(finished) // 20 + 1]:
                now = shape(talk, talk.part(0, at))
                assert whole[: len(now)] == now


def _is_open(log: tuple[Message, ...]) -> bool:
    """Whether something of it waits: a call for its result, or a user for an answer."""
    answered = [id for message in log for id in answered_ids(message.parts)]
    called = [id for message in log for id in call_ids(message.parts)]
    ended = log[-1].role is Role.ASSISTANT and not silent(entry_of(log[-1]))
    return sorted(answered) != sorted(called) or not ended


@pytest.mark.parametrize("sample", samples())
def test_the_plain_form_pairs_calls_and_results(
    store: clew.Store, known: dict[str, list[Talk]], sample: str
) -> None:
    """It gives a caller's own messages back as they were, so ids that came twice and messages that
    say nothing are still there; nothing else is found."""
    as_they_came = {"duplicate_call_id", "duplicate_result", "empty_assistant_turn"}
    for talk in talks(store, known, sample):
        rendered = chat_context(talk.inputs, talk.blob, talk.model)
        report = tessera.inspect(rendered, adapter="openai")
        assert {finding.defect.value for finding in report.findings} <= as_they_came
