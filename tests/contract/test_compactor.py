"""The engine on every store: contexts that fit, whatever meets, fails or is stopped."""

from __future__ import annotations

import threading

import pytest
from long_talk import BUDGET, REQUEST, compactor, fill, seen, work
from talk import HOLDER, begun, calls, result, texts

import clew
from clew.compaction.view import look
from clew.testing.clock import FakeClock
from clew.testing.summarizer import SAYS, Gate, ScriptedSummarizer


def test_a_context_fits_and_the_log_is_whole(conv: clew.Conversation) -> None:
    """S14.1, S30.1."""
    fill(conv)
    context = compactor().context(conv)
    assert context.tokens <= BUDGET.low_tokens
    assert context.generation == 1
    assert conv.info().message_count == len(list(conv.messages()))
    assert seen(context)[-1] == REQUEST


def test_a_short_conversation_is_left_alone(conv: clew.Conversation) -> None:
    """S18.3: nothing is blocked, so nothing is looked up."""
    conv.add({"role": "user", "content": "hi"})
    assert compactor().context(conv).generation == 0
    assert conv.attempts() == ()


def test_one_rewrite_from_high_water_to_low_water(conv: clew.Conversation) -> None:
    fill(conv)
    engine = compactor()
    first = engine.context(conv)
    assert first.tokens <= BUDGET.low_tokens * 1.1
    generations = set()
    for n in range(6):
        work(conv, n)
        generations.add(engine.context(conv).generation)
    assert generations == {1}


def test_earlier_epochs_stay_byte_for_byte(conv: clew.Conversation) -> None:
    engine = compactor()
    ledgers: list[list[str]] = []
    for share in (0.82, 0.5):
        fill(conv, share)
        context = engine.context(conv)
        ledgers.append([
            item.entry.parts[0].text for item in context.items if item.section == "ledger"
        ])  # fmt: skip
    assert [len(ledger) for ledger in ledgers] == [1, 2]
    assert ledgers[1][:1] == ledgers[0]


def test_a_person_may_always_compact(conv: clew.Conversation) -> None:
    """S18.6."""
    fill(conv, 0.5)
    done = compactor().compact(conv)
    assert (done.state, done.attempt) == ("committed", 1)
    assert done.receipt is not None
    assert done.compaction is not None
    assert done.compaction.receipt == done.receipt.to_dict()
    assert done.receipt.tokens["after"] < done.receipt.tokens["before"]


def test_nothing_to_do_is_said_and_changes_nothing(conv: clew.Conversation) -> None:
    """S06.1, S15.6, B16."""
    conv.add({"role": "user", "content": "hi"})
    for trigger in ("user", "hard"):
        done = compactor().compact(conv, trigger)
        assert (done.state, done.attempt, conv.attempts()) == ("refused", None, ())
    assert compactor().compact(conv, "soft").state == "refused"
    assert [row.verdict for row in conv.attempts()] == ["no-op"]
    assert (conv.compactions(), conv.info().view) == ((), 0)


def test_a_turn_in_flight_is_never_covered(conv: clew.Conversation) -> None:
    """B37, B01."""
    fill(conv)
    turn = begun(conv.begin_turn([clew.user("the live one", key="u")], holder=HOLDER))
    turn.record([calls("live")])
    turn.record([result("live", "line\n" * 2000)])
    done = compactor().compact(conv, "hard")
    assert done.compaction is not None
    assert done.compaction.covers_to < turn.turn.first_seq
    assert "the live one" in seen(compactor().peek(conv))
    turn.finish([clew.assistant("done")])


def test_a_long_turn_fits_by_rendering(conv: clew.Conversation) -> None:
    """A turn larger than the window: its outputs become short, then its steps a digest."""
    turn = begun(conv.begin_turn([clew.user("dig", key="u")], holder=HOLDER))
    engine = compactor()
    for n in range(60):
        turn.record([calls(f"c{n}")])
        turn.record([result(f"c{n}", f"row {n} of output\n" * 60)])
        context = engine.context(conv)
        assert context.tokens <= context.limit
        assert "dig" in seen(context)
    assert context.shortened > 0
    assert conv.compactions() == ()
    assert len(conv.attempts()) <= 2, "the guards hold soft ones back, hard ones are not noted"


def test_a_message_that_is_too_large_alone_is_named(conv: clew.Conversation) -> None:
    """B23."""
    conv.add({"role": "user", "content": "word " * (2 * BUDGET.window)})
    with pytest.raises(clew.ContextTooLarge, match="message 1 alone") as error:
        compactor().context(conv)
    assert error.value.seq == 1


def test_the_summary_stands_beside_the_ledger(conv: clew.Conversation) -> None:
    fill(conv)
    model = ScriptedSummarizer()
    done = compactor(summarizer=model).compact(conv)
    assert done.receipt is not None
    assert done.receipt.summary is not None
    assert done.receipt.summary.state == "used"
    assert "They went on." in "\n".join(seen(compactor().peek(conv)))
    assert conv.attempts()[-1].verdict == "summary"
    (call,) = conv.calls()
    assert (call.purpose, call.state, call.model) == ("summary", "done", "scripted")


def test_the_summary_is_asked_for_on_the_conversation_s_own_prefix(
    conv: clew.Conversation,
) -> None:
    """A provider's cache holds all of the request but its last message."""
    fill(conv)
    rendered = compactor().peek(conv).chat(conv.blob)
    model = ScriptedSummarizer()
    compactor(summarizer=model).compact(conv)
    assert model.requests[0].messages[:-1] == rendered


FAULTS = (
    TimeoutError("time-out"), "", "   ", "I cannot help with that.", '{"narrative": "half',
    ConnectionError("401"), "\x00\xff garbage", '{"narrative": ""}', "[]", "null",
    '{"narrative": "It costs 987654 dollars."}', RuntimeError("500"),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=[repr(fault)[:30] for fault in FAULTS])
def test_whatever_a_model_does_the_ledger_stands(
    conv: clew.Conversation, fault: str | Exception
) -> None:
    """S06.3, S06.5, B26."""
    fill(conv)
    before = texts(conv)
    done = compactor(summarizer=ScriptedSummarizer(fault)).compact(conv)
    assert done.state == "committed"
    assert done.notice is not None
    assert "nothing is lost" in done.notice
    assert texts(conv) == before
    row = conv.attempts()[-1]
    assert (row.state, row.verdict) == ("committed", "ledger")
    assert row.summary_error
    assert "987654" not in "\n".join(seen(compactor().peek(conv)))


def test_an_error_s_text_is_kept_nowhere(conv: clew.Conversation) -> None:
    """A provider's error may repeat the key it was called with."""
    fill(conv)
    secret = "sk-very-secret"
    done = compactor(summarizer=ScriptedSummarizer(RuntimeError(secret))).compact(conv)
    assert secret not in str(done) + str(conv.attempts()) + str(conv.calls())


def test_a_failing_summariser_rests_and_the_ledger_goes_on(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S18.1, S18.13."""
    model = ScriptedSummarizer(RuntimeError("500"))
    engine = compactor(summarizer=model)
    fill(conv)
    assert engine.compact(conv, "hard").state == "committed"
    fill(conv, 0.4)
    assert engine.compact(conv, "hard").state == "committed"
    assert len(model.requests) == 1
    clock.advance(61_000_000)
    fill(conv, 0.4)
    engine.compact(conv, "hard")
    assert len(model.requests) == 2


def test_a_stall_gives_way_to_the_other_route(conv: clew.Conversation) -> None:
    """S06.12: the late answer finds nothing to commit."""
    fill(conv)
    slow, other = Gate(), ScriptedSummarizer(model="other")
    engine = compactor(summarizer=ScriptedSummarizer(slow), fallback=other, patience=0.2)
    done = engine.compact(conv)
    slow.open.set()
    assert done.state == "committed"
    assert done.receipt is not None
    assert done.receipt.summary is not None
    assert done.receipt.summary.model == "other"
    assert [row.state for row in conv.attempts()] == ["cancelled", "committed"]
    assert len(conv.compactions()) == 1


def test_a_hard_stop_has_no_effect_at_all(conv: clew.Conversation) -> None:
    """S17.1, S16.3."""
    fill(conv)
    gate, stop = Gate(), threading.Event()
    engine = compactor(summarizer=ScriptedSummarizer(gate))
    outcome: list[object] = []
    worker = threading.Thread(target=lambda: outcome.append(engine.compact(conv, stop=stop)))
    before = (conv.info().view, texts(conv))
    worker.start()
    assert gate.asked.wait(10)
    stop.set()
    worker.join(10)
    gate.open.set()
    assert outcome[0].state == "cancelled"
    assert (conv.info().view, texts(conv), conv.compactions()) == (*before, ())
    assert conv.attempts()[-1].state == "cancelled"
    conv.add({"role": "user", "content": "still works"})
    assert compactor(summarizer=ScriptedSummarizer(SAYS)).compact(conv).state == "committed"


def test_whoever_cancels_first_wins_from_anywhere(conv: clew.Conversation) -> None:
    """S16.2, T03: another handle cancels; the summary comes and is not used."""
    fill(conv)
    engine: list[clew.Compactor] = []

    def meanwhile(_: object) -> str:
        assert engine[0].cancel(conv) == [1]
        return SAYS

    engine.append(compactor(summarizer=ScriptedSummarizer(meanwhile)))
    done = engine[0].compact(conv)
    assert (done.state, conv.compactions()) == ("cancelled", ())


def test_what_was_withdrawn_never_comes_back(conv: clew.Conversation) -> None:
    """A cut during an attempt."""
    fill(conv)
    secret = conv.message(conv.append([clew.user("the secret word")]).seqs[0])

    def meanwhile(_: object) -> str:
        conv.cut(secret.uid)
        return '{"narrative": "They said the secret word."}'

    done = compactor(summarizer=ScriptedSummarizer(meanwhile)).compact(conv)
    assert done.state in ("cancelled", "overtaken")
    assert conv.compactions() == ()
    assert "secret" not in "\n".join(seen(compactor().context(conv)))


def test_messages_that_come_meanwhile_are_in_the_next_context(conv: clew.Conversation) -> None:
    """B14, S07.8, S14.4."""
    fill(conv)

    def meanwhile(_: object) -> str:
        for n in range(4):
            conv.append([clew.user(f"late {n}")])
        return SAYS

    done = compactor(summarizer=ScriptedSummarizer(meanwhile)).compact(conv)
    assert done.state == "committed"
    assert seen(compactor().peek(conv))[-4:] == [f"late {n}" for n in range(4)]


def test_a_soft_attempt_stands_back_for_another(conv: clew.Conversation) -> None:
    """S03.1, S03.10."""
    fill(conv)
    conv.open_attempt("soft", deadline=conv.clock.now() + 10**9)
    model = ScriptedSummarizer()
    context = compactor(summarizer=model).context(conv)
    assert (context.generation, model.requests) == (0, [])
    assert conv.attempts()[0].state == "open"


def test_undo_brings_the_log_back_and_holds_soft_attempts(conv: clew.Conversation) -> None:
    fill(conv, 0.5)
    engine = compactor()
    whole = engine.peek(conv).tokens
    engine.compact(conv)
    undone = engine.undo(conv)
    assert undone.undone_at is not None
    assert engine.peek(conv).tokens == whole
    assert engine.compact(conv, "soft").state == "refused"
    with pytest.raises(clew.Refused, match="no compaction is in effect"):
        engine.undo(conv)


def test_an_undo_that_would_not_fit_is_refused(conv: clew.Conversation) -> None:
    fill(conv, 1.2)
    engine = compactor()
    engine.context(conv)
    with pytest.raises(clew.Refused, match="recall"):
        engine.undo(conv)
    assert engine.peek(conv).generation == 1


def test_rotation_names_what_follows_by_another_id(conv: clew.Conversation) -> None:
    """S07.3, S13.6: the conversation's own id stays."""
    fill(conv)
    engine = clew.Compactor(BUDGET, rotate=lambda info: ("host", f"{info.id}-2"))
    assert engine.compact(conv).state == "committed"
    (alias,) = conv.aliases()
    assert (alias.kind, alias.foreign_id) == ("segment", f"{conv.id}-2")
    assert alias.from_seq == conv.info().head + 1


def test_what_providers_report_corrects_the_count(conv: clew.Conversation) -> None:
    """The family counts two tokens where we count one: contexts are measured so from then on."""
    fill(conv, 0.3)
    engine = clew.Compactor(BUDGET, model="some-model")
    before = engine.peek(conv)
    for _ in range(3):
        plan = clew.CallPlan(model="some-model", expected=before.expected)
        number = conv.plan_call(plan)
        usage = clew.Usage(input=2 * before.expected, output=5)
        conv.finish_call(number, clew.CallResult(usage=usage))
    after = engine.peek(conv)
    assert after.tokens == pytest.approx(2 * before.expected, rel=0.03)
    assert after.expected == pytest.approx(before.expected, rel=0.03)
    other = clew.Compactor(BUDGET, model="claude-sonnet-4-5").peek(conv)
    assert other.expected == pytest.approx(before.expected, rel=0.05), "another family's is its own"


def test_what_somebody_else_has_done_meanwhile_is_not_done_again(conv: clew.Conversation) -> None:
    """Two decided on one context. The second finds it small and gives up: that is no strike."""
    fill(conv)

    def meanwhile(step: str) -> None:
        if step == "open" and not conv.compactions():
            compactor().compact(conv)

    engine = compactor(watch=meanwhile)
    assert engine.compact(conv, "soft").state == "overtaken"
    assert [c.generation for c in conv.compactions()] == [1]
    assert sorted(a.state for a in conv.attempts()) == ["cancelled", "committed"]
    assert engine.context(conv).generation == 1


def test_a_context_that_is_not_due_is_shown_whole(conv: clew.Conversation) -> None:
    """Also where what is said beside it takes the last of the room: then a compaction is due."""
    turn = begun(conv.begin_turn([clew.user("Do it all.")], holder=HOLDER))
    budget = clew.Budget(window=6_000, reply=600, high=1.0, low=0.5)
    engine = clew.Compactor(budget)
    notices = ["Two steps are left."]
    for n in range(400):
        turn.record([calls(f"c{n}")])
        turn.record([result(f"c{n}", "so it is " * 9)])
        view = look(conv, budget).told(notices)
        if view.due() is not None:
            break
        assert engine.peek(conv, notices=notices).shortened == 0
    else:
        pytest.fail("it never was full")
    assert view.layout.tokens > 0.9 * budget.room
