"""What went wrong in other tools when they compacted, tried with the engine. Ids as in tests."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from typing import Any

import pytest
from long_talk import BUDGET, REQUEST, compactor, fill, seen, work
from talk import HOLDER, begun, calls, context_texts, result, texts

import clew
from clew import Draft, Image, Reasoning, Role, Text, ToolResult
from clew.compaction.summarize import SummaryReply
from clew.context.budget import Budget
from clew.testing.clock import FakeClock
from clew.testing.summarizer import SAYS, Gate, ScriptedSummarizer
from renderings import check_anthropic, check_chat, check_responses

MINUTE = 60_000_000


def log(conv: clew.Conversation) -> list[dict[str, Any]]:
    return [message.to_dict() for message in conv.messages(hidden=True)]


# ---------------------------------------------------------------------- lost around a compaction


def test_b01_a_compaction_between_a_result_and_the_answer(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """B05: every message that was accepted is stored, and the turn goes on in the same log."""
    fill(conv, 0.75)
    turn = begun(conv.begin_turn([clew.user("read it", key="u")], holder=HOLDER))
    turn.record([calls("c")])
    turn.record([result("c", "five kilobytes of output " * 200)])
    before = texts(conv)
    context = compactor().context(conv)
    assert context.generation == 1
    assert texts(profile.open(conv.id)) == before
    chat = context.chat(conv.blob)
    assert [m["role"] for m in chat[-3:]] == ["user", "assistant", "tool"]
    turn.finish([clew.assistant("read")])
    assert texts(conv) == [*before, "read"]


def test_b02_a_delivery_while_another_worker_compacts(profile: clew.Profile) -> None:
    """B13: by the same route, into the same conversation, and once."""
    key = profile.conversation("chat-1", source="telegram")
    fill(key)

    def delivered(_: object) -> str:
        again = profile.conversation("chat-1", source="telegram")
        again.append([clew.user("the message M", key="delivery-7")])
        again.append([clew.user("the message M", key="delivery-7")])
        return SAYS

    assert compactor(summarizer=ScriptedSummarizer(delivered)).compact(key).state == "committed"
    shown = seen(compactor().peek(profile.conversation("chat-1", source="telegram")))
    assert (shown[-1], shown.count("the message M")) == ("the message M", 1)


def test_b04_the_second_compaction_s_request_is_refused(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """A provider that answers 400 to the summary: all of it can still be read and resumed."""
    model = ScriptedSummarizer(SAYS, ValueError("400: image too large"))
    engine = compactor(summarizer=model)
    fill(conv)
    assert engine.compact(conv).state == "committed"
    fill(conv, 0.35)
    before = log(conv)
    assert engine.compact(conv).state == "committed"
    assert len(model.requests) == 2
    assert log(profile.open(conv.id)) == before
    engine.undo(conv)
    assert REQUEST in seen(engine.peek(conv))


def test_b07_after_any_compactions_the_log_begins_where_it_began(conv: clew.Conversation) -> None:
    """B08: byte for byte, the hidden ones too."""
    conv.append([clew.user("the very first words"), clew.assistant("the first answer")])
    first = log(conv)
    for _ in range(3):
        fill(conv, 0.6)
        before = log(conv)
        assert compactor().compact(conv).state == "committed"
        assert log(conv) == before
    assert log(conv)[:2] == first


# ---------------------------------------------------------------------- rows that multiply


def test_b10_b11_b14_saving_everything_again_after_a_compaction_adds_nothing(
    conv: clew.Conversation,
) -> None:
    """By whoever held the list, once or three times, while it runs and afterwards."""
    fill(conv)
    held = [message.draft() for message in conv.messages()]

    def drained(_: object) -> str:
        for _ in range(3):
            conv.append(held)
        return SAYS

    head = conv.info().head
    assert compactor(summarizer=ScriptedSummarizer(drained)).compact(conv).state == "committed"
    for _ in range(2):
        conv.append([*held, clew.user("one more", key="more")])
    assert conv.info().head == head + 1


# ---------------------------------------------------------------------- loops, stalls, triggers


def test_b16_what_is_all_protected_is_tried_twice_and_then_left(conv: clew.Conversation) -> None:
    """Nothing changes in the store; it is tried again when the context has grown."""
    conv.append([clew.user("word " * (BUDGET.high_tokens + 100))])
    engine = compactor()
    for _ in range(6):
        assert engine.context(conv).generation == 0
    assert len(conv.attempts()) == 2
    assert (conv.info().view, conv.compactions(), conv.aliases(), conv.children()) == (
        0,
        (),
        (),
        (),
    )


def test_b17_a_narrative_of_a_fixed_size_makes_no_context_larger(conv: clew.Conversation) -> None:
    """Where six hundred tokens could go, two thousand do not come."""
    work(conv, *range(25))
    conv.append([clew.user(REQUEST)])
    before = compactor().peek(conv).tokens
    long = json.dumps({"narrative": "They talked about it at length. " * 300})
    compactor(summarizer=ScriptedSummarizer(long)).compact(conv)
    assert compactor().peek(conv).tokens <= before


def test_b19_b20_a_context_that_cannot_fit_says_what_to_do_and_a_reset_leaves_it(
    profile: clew.Profile,
) -> None:
    """Each request says the same; the key leads to a new conversation, with nothing of the old."""
    conv = profile.conversation("chat-1", source="telegram")
    conv.append([clew.user("word " * 20_000)])
    for _ in range(3):
        with pytest.raises(clew.ContextTooLarge) as error:
            compactor().context(conv)
        assert error.value.seq == 1
    profile.reset("chat-1", source="telegram")
    fresh = profile.conversation("chat-1", source="telegram")
    fresh.append([clew.user("hello")])
    assert (fresh.id != conv.id, seen(compactor().context(fresh))) == (True, ["hello"])


def test_b20_a_narrative_larger_than_the_window_is_bounded(conv: clew.Conversation) -> None:
    fill(conv)
    long = json.dumps({"narrative": "word " * 3_900})
    done = compactor(summarizer=ScriptedSummarizer(long)).compact(conv)
    assert done.state == "committed"
    context = compactor().peek(conv)
    assert context.section("ledger") < BUDGET.low_tokens
    assert context.tokens < BUDGET.high_tokens


def test_b22_what_was_replaced_is_not_counted_again(conv: clew.Conversation) -> None:
    """The trigger looks at the next request: after a compaction it is far from the mark."""
    fill(conv)
    engine = compactor()
    engine.context(conv)
    for n in range(8):
        work(conv, n)
        assert engine.context(conv).generation == 1
    assert len(conv.attempts()) == 1


def test_b23_one_output_that_is_nearly_all_of_it_goes_first(conv: clew.Conversation) -> None:
    """It is not kept while everything else is shortened again at every message."""
    work(conv, *range(8))
    conv.append([clew.user("dump it"), calls("big")])
    conv.append([result("big", "row of the dump\n" * 12_000), clew.assistant("dumped")])
    work(conv, *range(8, 16))
    conv.append([clew.user(REQUEST)])
    engine = compactor()
    context = engine.context(conv)
    assert context.tokens <= BUDGET.low_tokens * 1.1
    for n in range(4):
        work(conv, n)
        assert engine.context(conv).generation == context.generation


def test_b25_a_model_that_hangs_costs_its_patience_once(conv: clew.Conversation) -> None:
    """Not for each message: the summariser rests, and nothing is locked."""
    fill(conv)
    gate = Gate()
    model = ScriptedSummarizer(gate)
    engine = compactor(summarizer=model, patience=0.3)
    start = time.monotonic()
    for n in range(3):
        assert engine.context(conv).tokens <= BUDGET.room
        fill(conv, 0.45)
        conv.append([clew.user(f"message {n}")])
    gate.open.set()
    assert time.monotonic() - start < 60
    assert len(model.requests) == 1
    assert all(row.state != "open" for row in conv.attempts())


@pytest.mark.parametrize("finish", ["length", "content_filter", "error"])
def test_b26_half_an_answer_is_no_summary(
    conv: clew.Conversation, clock: FakeClock, finish: str
) -> None:
    """Twice a stream that ends half way, whole JSON or not; none of its words are kept."""
    half = SummaryReply(text='{"narrative": "the half summary"}', finish=finish)
    model = ScriptedSummarizer(half, '{"narrative": "the half sum')
    for n in range(2):
        fill(conv, 0.6 if n == 0 else 0.35)
        done = compactor(summarizer=model).compact(conv)
        assert done.state == "committed"
        assert done.notice is not None
        assert len(model.requests) == n + 1
        clock.advance(20 * MINUTE)
    assert "the half sum" not in "\n".join(seen(compactor().peek(conv)))
    assert seen(compactor().peek(conv))[-1] == REQUEST


# ---------------------------------------------------------------------- pairs and roles


@pytest.mark.parametrize("shift", range(6))
def test_b28_b29_wherever_it_is_cut_results_have_their_calls(
    conv: clew.Conversation, shift: int
) -> None:
    """All ids, not any; results in another order than the calls, and one whose call is gone."""
    work(conv, *range(shift + 1))
    for n in range(8):
        conv.append([
            clew.user(f"step {n}"), calls(f"x{n}", f"y{n}", f"z{n}"), result(f"z{n}", "z" * 900),
            result(f"x{n}"), result(f"gone{n}"), result(f"y{n}", "y" * 900),
            clew.assistant(f"finished {n}"),
        ])  # fmt: skip
    engine = compactor()
    for target in range(300, 2_400, 300):
        if engine.compact(conv, target=target).state == "committed":
            context = engine.peek(conv)
            check_chat(context.chat(conv.blob))
            check_responses(context.responses(conv.blob))
            check_anthropic(context.anthropic(conv.blob))
            engine.undo(conv)


def test_b31_prompts_that_were_cancelled_are_compacted_like_others(
    conv: clew.Conversation,
) -> None:
    work(conv, *range(20))
    for n in range(60):
        turn = begun(conv.begin_turn([clew.user(f"hi {n} " * 40, key=f"u{n}")], holder=HOLDER))
        turn.finish(state="interrupted")
    work(conv, *range(20, 40))
    conv.append([clew.user(REQUEST)])
    done = compactor(model="claude-sonnet-4-5").compact(conv)
    assert done.state == "committed"
    context = compactor(model="claude-sonnet-4-5").peek(conv)
    check_anthropic(context.anthropic(conv.blob))
    assert seen(context)[-1] == REQUEST


def test_b34_three_questions_stay_three_and_the_last_is_the_last(conv: clew.Conversation) -> None:
    """Behind a compaction, and in one turn where a provider wants turns to alternate."""
    fill(conv)
    conv.append([clew.assistant("yes?")])
    conv.append([clew.user(text) for text in ("question A", "question B", "question C")])
    engine = compactor(model="claude-sonnet-4-5")
    assert engine.compact(conv, target=600).state == "committed"
    blocks = engine.peek(conv).anthropic(conv.blob)[-1]["content"]
    assert [b["text"] for b in blocks[-3:]] == ["question A", "question B", "question C"]


@pytest.mark.parametrize("target", [600, 1_500, 3_000])
def test_b35_b38_a_call_that_lost_its_result_spoils_no_later_request(
    conv: clew.Conversation, target: int
) -> None:
    """Before and after a compaction, and when the result comes in the end."""
    work(conv, *range(20))
    conv.append([clew.user("both"), calls("a", "b"), result("a")])
    fill(conv, 0.5)
    engine = compactor()
    for late in ([], [result("b", "it came in the end")]):
        if late:
            conv.append(late)
        for state in ("before", "after"):
            if state == "after":
                engine.compact(conv, target=target)
            context = engine.peek(conv)
            check_chat(context.chat(conv.blob))
            check_responses(context.responses(conv.blob))
            check_anthropic(context.anthropic(conv.blob))
    assert texts(conv)[-1] == "result b"


def test_b37_a_call_that_was_announced_and_not_made_is_not_covered(conv: clew.Conversation) -> None:
    """Whoever forces a compaction at that moment, however small the target."""
    fill(conv, 0.5)
    conv.append([clew.assistant("I will."), clew.user("write the file"), calls("write_file")])
    for trigger in ("user", "hard"):
        done = compactor().compact(conv, trigger, target=400)
        if done.compaction is not None:
            assert done.compaction.covers_to < conv.info().head
    conv.append([result("write_file", "written")])
    roles = [m["role"] for m in compactor().peek(conv).chat(conv.blob)]
    assert roles[-3:] == ["user", "assistant", "tool"]


def test_b88_a_retry_after_a_compaction_asks_the_live_request_again(
    conv: clew.Conversation,
) -> None:
    """The ledger is no message of the log, so it can be no part of one."""
    fill(conv)
    request = conv.message(conv.info().head)
    conv.append([clew.assistant("a poor answer")])
    assert compactor().compact(conv).state == "committed"
    conv.retry(request.uid)
    shown = seen(compactor().peek(conv))
    assert shown[-1] == REQUEST
    assert "a poor answer" not in shown


# ---------------------------------------------------------------------- bytes, cache, models


def picture(n: int) -> Image:
    return Image(data=n.to_bytes(2) + os.urandom(1_000) * 200, width=800, height=600)


def test_b103_pictures_of_a_turn_in_flight_fit_the_bytes(conv: clew.Conversation) -> None:
    """Twenty results of 200 kB each and hardly any text: the old ones become handles."""
    budget = Budget(window=200_000, bytes=4 * 1024 * 1024)
    conv.append([clew.user("look at all of them")])
    for n in range(20):
        shot = ToolResult(f"c{n}", (Text(f"shot {n}"), picture(n)))
        conv.append([calls(f"c{n}"), Draft(role=Role.TOOL, parts=(shot,))])
    context = clew.Compactor(budget).context(conv)
    assert context.bytes <= budget.bytes
    assert len(json.dumps(context.chat(conv.blob))) <= budget.bytes * 1.02
    assert context.shortened or context.generation
    assert "recall(" in json.dumps(context.chat(conv.blob))


def test_b103_pictures_of_a_person_fit_the_bytes(conv: clew.Conversation) -> None:
    """Those of the newest message stay."""
    budget = Budget(window=200_000, bytes=4 * 1024 * 1024)
    for n in range(20):
        conv.append([
            Draft(role=Role.USER, parts=(Text(f"see {n}"), picture(n))), clew.assistant("seen"),
        ])  # fmt: skip
    conv.append([Draft(role=Role.USER, parts=(Text("and this?"), picture(99)))])
    context = clew.Compactor(budget).context(conv)
    assert context.bytes <= budget.bytes
    assert any(isinstance(part, Image) for part in context.items[-1].entry.parts)


def test_b104_a_compaction_breaks_the_cache_once_and_behind_the_head(
    conv: clew.Conversation,
) -> None:
    """Longest common beginning of the requests before and after; then each begins with the last."""
    conv.set_prompt("You are careful. " * 100)
    conv.append([clew.user("The project's context. " * 20), clew.assistant("understood")])
    engine = compactor()
    requests: list[list[str]] = []
    for n in range(90):
        work(conv, n)
        context = engine.context(conv)
        requests.append([json.dumps(message) for message in context.chat(conv.blob)])
    breaks = 0
    for before, after in itertools.pairwise(requests):
        pairs = zip(before, after, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        breaks += same < len(before)
        assert same >= 2
    assert breaks == len(conv.compactions())
    assert breaks <= 2


def test_b106_thinking_is_shown_to_the_model_that_signed_it(conv: clew.Conversation) -> None:
    """Before and after a compaction, and to that model again when it comes back."""
    fill(conv, 0.5)
    mine = Reasoning("I weigh it.", model="claude-a", signature="sig-a")
    conv.append([Draft(role=Role.ASSISTANT, parts=(mine, Text("weighed")))])
    conv.append([clew.user(REQUEST)])
    for _ in range(2):
        for model, shown in (("claude-a", True), ("claude-b", False), ("claude-a", True)):
            sent = json.dumps(compactor(model=model).peek(conv).anthropic(conv.blob))
            assert ("sig-a" in sent) == shown
        assert compactor(model="claude-b").compact(conv).state == "committed"
        fill(conv, 0.3)
        conv.append([Draft(role=Role.ASSISTANT, parts=(mine, Text("weighed again")))])
        conv.append([clew.user(REQUEST)])


def test_b107_work_that_is_done_is_told_as_done_and_before_what_is_asked(
    conv: clew.Conversation,
) -> None:
    """Task A, a compaction, then task B: the ledger is reference, and B stands last."""
    conv.append([clew.user("Task A: rename the table to accounts."), clew.assistant("A is done.")])
    fill(conv)
    conv.append([clew.assistant("written"), clew.user("Task B: now paint it blue.")])
    context = compactor().context(conv)
    assert context.generation == 1
    assert seen(context)[-1] == "Task B: now paint it blue."
    ledger = [item for item in context.items if item.section == "ledger"]
    assert context.items.index(ledger[-1]) < len(context.items) - 1
    told = "\n".join(seen_in(ledger))
    assert "Task B" not in told
    open_asks = told.partition("## Open")[2].partition("##")[0]
    assert "Task A" not in open_asks


def seen_in(items: list[Any]) -> list[str]:
    return [part.text for item in items for part in item.entry.parts if isinstance(part, Text)]


def test_what_went_wrong_leaves_no_thread_behind(conv: clew.Conversation) -> None:
    """A model that hung ends with its answer."""
    fill(conv)
    gate = Gate()
    compactor(summarizer=ScriptedSummarizer(gate), patience=0.2).compact(conv)
    mine = [t for t in threading.enumerate() if t.name == "clew-summary"]
    assert all(thread.daemon for thread in mine)
    gate.open.set()
    assert context_texts(conv)[-1] == REQUEST
