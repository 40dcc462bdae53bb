"""What others test of compaction, restated: two workers, late stops, redirects, failing parts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from long_talk import BUDGET, compactor, fill, seen, work
from talk import HOLDER, begun, context_texts, texts

import clew
from clew.compaction.policy import guard
from clew.testing.clock import FakeClock
from clew.testing.summarizer import SAYS, Gate, ScriptedSummarizer


def together(*work: Callable[[], object]) -> list[object]:
    """Run these at once; gives what each returned."""
    results: list[object] = [None] * len(work)

    def run(at: int) -> None:
        results[at] = work[at]()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


@pytest.mark.requires("engine")
def test_t01_two_workers_make_one_compaction_and_one_conversation(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S03.1, S03.2, S03.3: at most one is in effect, both see it, nothing is held afterwards."""
    fill(conv)
    engines = [compactor(), compactor()]
    handles = [profile.open(conv.id) for _ in engines]
    outcomes = together(*(
        lambda e=e, h=h: e.compact(h, "soft") for e, h in zip(engines, handles, strict=True)
    ))  # fmt: skip
    states = sorted(outcome.state for outcome in outcomes)  # pyright: ignore
    assert states.count("committed") == len(conv.compactions()) == 1
    assert profile.list().items[0].id == conv.id
    assert conv.children() == ()
    assert seen(engines[0].peek(handles[0])) == seen(engines[1].peek(conv))
    assert all(row.state != "open" for row in conv.attempts())


@pytest.mark.requires("engine")
def test_any_number_that_meet_pay_for_two_summaries_at_most(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S03.1: concurrent attempts cost at most one extra summary, and make one compaction."""
    fill(conv)
    gate = Gate()
    model = ScriptedSummarizer(gate)
    timer = threading.Timer(1.0, gate.open.set)
    timer.start()
    together(*(
        lambda: compactor(summarizer=model).compact(profile.open(conv.id)) for _ in range(6)
    ))  # fmt: skip
    timer.cancel()
    gate.open.set()
    assert 1 <= len(model.requests) <= 2
    effective = conv.context_inputs().compaction
    assert effective is not None
    assert len(conv.compactions()) >= 1
    assert effective.generation == conv.compactions()[0].generation


def test_t02_what_was_stored_before_the_attempt_is_in_it(conv: clew.Conversation) -> None:
    """S09.1: no list of the caller's is compacted; what is stored is."""
    conv.append([clew.user("old durable"), clew.assistant("committed just before")])
    fill(conv)
    done = compactor().compact(conv)
    assert done.state == "committed"
    shown = "\n".join(seen(compactor().peek(conv)))
    assert "old durable" in shown


def test_t04_a_cancel_after_the_commit_finds_nothing_open(conv: clew.Conversation) -> None:
    """S16.1: who commits first stays, and the one who cancels is told."""
    fill(conv)
    done = compactor().compact(conv)
    assert done.attempt is not None
    with pytest.raises(clew.Cancelled) as error:
        conv.cancel_attempt(done.attempt)
    assert error.value.state == "committed"
    assert compactor().cancel(conv) == []


def test_t05_a_handle_from_before_sees_what_another_made(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S10.1, T05: there is nothing to adopt; the next read is of what is there."""
    fill(conv)
    stale = profile.open(conv.id)
    before = stale.info()
    compactor().compact(conv)
    assert stale.context_inputs().compaction is not None
    assert stale.append([clew.user("goes on")]).head == before.head + 1


def test_t07_a_flush_after_a_compaction_adds_nothing(conv: clew.Conversation) -> None:
    """S14.6, S21.8, B11."""
    fill(conv)
    held = [message.draft() for message in conv.messages()]
    compactor().compact(conv)
    again = conv.append(held)
    assert (again.new, again.head) == (0, conv.info().head)


def test_t08_a_proposal_that_saves_nothing_is_refused(conv: clew.Conversation) -> None:
    """S06.1, S15.1, S15.4, B17: in place or rotating, nothing changes."""
    conv.append([clew.user("short"), clew.assistant("answer"), clew.user("again")])
    for settings in ({}, {"rotate": lambda info: ("host", info.id + "x")}):
        done = compactor(**settings).compact(conv)
        assert done.state == "refused"
    assert (conv.compactions(), conv.aliases(), conv.info().view) == ((), (), 0)


def test_t09_an_error_in_a_watcher_propagates_and_blocks_nobody(conv: clew.Conversation) -> None:
    """S03.12, S06.4: no lease is left behind to wait for."""
    fill(conv)

    def boom(step: str) -> None:
        if step == "check":
            raise RuntimeError("warn boom")

    with pytest.raises(RuntimeError, match="warn boom"):
        compactor(watch=boom).compact(conv)
    assert conv.attempts()[-1].state == "failed"
    assert compactor().compact(conv).state == "committed"


def test_t10_a_summariser_of_the_wrong_shape_costs_the_narrative_only(
    conv: clew.Conversation,
) -> None:
    """S05.9."""

    class Wrong:
        model = "wrong"

        def __call__(self) -> str:  # takes no request
            return SAYS

    fill(conv)
    done = compactor(summarizer=Wrong()).compact(conv)
    assert done.state == "committed"
    assert conv.attempts()[-1].summary_error == "TypeError"


def test_t13_a_review_cannot_compact(conv: clew.Conversation) -> None:
    """S28.1, S28.2: what it is given has no method for it."""
    fill(conv)
    review = conv.snapshot()
    assert (
        not hasattr(type(review), "open_attempt") or type(review).__name__ != "ConversationReader"
    )
    with pytest.raises((AttributeError, clew.ReadOnly)):
        compactor().compact(review)  # pyright: ignore[reportArgumentType]
    assert conv.compactions() == ()


def test_t14_an_attempt_is_never_open_for_longer_than_its_deadline(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S04.3, S04.4, S03.13: there is no refresher; the deadline is set once."""
    fill(conv)
    conv.open_attempt("soft", deadline=conv.clock.now() + 1_000_000)
    assert compactor().compact(conv, "soft").state == "refused"
    clock.advance(2_000_000)
    assert compactor().compact(conv, "soft").state == "committed"
    dead = conv.attempts()[0]
    assert (dead.state, dead.verdict) == ("failed", "abandoned")


def test_t15_t16_a_late_stop_is_a_no_op_and_a_retry_works(conv: clew.Conversation) -> None:
    """S17.2, S17.3, S17.5: the answer is there, the commit is not."""
    fill(conv)
    stop = threading.Event()
    before = (texts(conv), conv.info().view, context_texts(conv))

    def late(step: str) -> None:
        if step == "check":
            stop.set()

    engine = compactor(summarizer=ScriptedSummarizer(), watch=late)
    done = engine.compact(conv, stop=stop)
    assert done.state == "cancelled"
    assert (texts(conv), conv.info().view, context_texts(conv)) == before
    conv.append([clew.user("an append works")])
    assert engine.compact(conv).state == "committed"


def test_t17_t22_t23_a_cancelled_attempt_leaves_the_guards_as_they_were(
    conv: clew.Conversation,
) -> None:
    """S18.7, S18.8, S18.9, S18.10, S17.3: nothing is cleared first, so nothing is restored."""
    fill(conv)
    failing = compactor(summarizer=ScriptedSummarizer(RuntimeError("down")))
    failing.compact(conv, "hard")
    fill(conv, 0.3)

    def verdict() -> object:
        return guard(
            "hard", attempts=conv.attempts(), model=None, now=conv.clock.now(),
            threshold=BUDGET.high_tokens,
        )  # fmt: skip

    before, stop = verdict(), threading.Event()
    stop.set()
    assert compactor(summarizer=ScriptedSummarizer()).compact(conv, stop=stop).state == "cancelled"
    assert verdict() == before


def test_t18_an_interrupted_error_of_a_provider_is_a_failure_no_cancel(
    conv: clew.Conversation,
) -> None:
    """S17.9, S06.3."""
    fill(conv)
    done = compactor(summarizer=ScriptedSummarizer(InterruptedError("signal"))).compact(conv)
    assert (done.state, conv.attempts()[-1].summary_error) == ("committed", "InterruptedError")


def test_t19_a_redirect_does_not_cancel(conv: clew.Conversation) -> None:
    """S17.6: a message of a person who changes their mind is a message."""
    fill(conv)

    def redirected(_: object) -> str:
        conv.append([clew.user("no, do this instead")])
        return SAYS

    done = compactor(summarizer=ScriptedSummarizer(redirected)).compact(conv)
    assert done.state == "committed"
    assert seen(compactor().peek(conv))[-1] == "no, do this instead"


def test_t20_t21_a_stop_beside_the_commit_wins_or_loses_whole(conv: clew.Conversation) -> None:
    """S17.7, S17.8: before it nothing is written, after it all is."""
    fill(conv)
    stop = threading.Event()

    def after(step: str) -> None:
        if step == "committed":
            stop.set()

    assert compactor(watch=after).compact(conv, stop=stop).state == "committed"
    assert stop.is_set()
    assert len(conv.compactions()) == 1


def test_an_undo_or_another_compaction_overtakes(conv: clew.Conversation) -> None:
    """S06.12, S14.5."""
    fill(conv, 0.5)
    assert compactor().compact(conv).state == "committed"
    fill(conv, 0.3)

    def undone(_: object) -> str:
        compactor().undo(conv)
        return SAYS

    done = compactor(summarizer=ScriptedSummarizer(undone)).compact(conv)
    assert done.state in ("cancelled", "overtaken")
    assert conv.context_inputs().compaction is None


def test_a_year_of_use_never_grows_the_context(conv: clew.Conversation) -> None:
    """S19.9, B22, opencrabs: neither context nor ledger grows from round to round."""
    engine = compactor()
    ledgers: list[int] = []
    for n in range(12):
        work(conv, *range(40 * n, 40 * n + 40))
        context = engine.context(conv)
        assert context.tokens <= context.limit
        ledgers.append(context.section("ledger"))
    assert max(ledgers) < BUDGET.low_tokens * 0.6
    assert len(conv.compactions()) <= 12


def test_a_turn_of_its_own_is_compacted_when_it_has_ended(conv: clew.Conversation) -> None:
    """B19, B25: the next message finds a context that fits."""
    turn = begun(conv.begin_turn([clew.user("dig", key="u")], holder=HOLDER))
    for n in range(80):
        turn.record([clew.assistant(f"step {n}: " + "prose " * 120)])
    turn.finish([clew.assistant("found it")])
    conv.append([clew.user("and now?")])
    context = compactor().context(conv)
    assert context.generation == 1
    assert seen(context)[-1] == "and now?"


def test_a_request_that_nobody_answered_stands_behind_the_ledger(conv: clew.Conversation) -> None:
    """B107, B34, claude-code's lost last request: in a loop without turns."""
    conv.append([clew.user("THE TASK: fix every module")])
    for n in range(130):
        work_step(conv, n)
    context = compactor().context(conv)
    sections = [item.section for item in context.items]
    (at,) = (n for n, item in enumerate(context.items) if item.first == 1)
    assert "ledger" in sections
    assert "ledger" not in sections[at:]
    assert "THE TASK: fix every module" in seen(context)


def test_a_cut_that_withdraws_the_last_request_brings_the_one_before_back(
    conv: clew.Conversation,
) -> None:
    """The last request that is left stands verbatim, also when a ledger tells of it."""
    fill(conv)
    assert compactor().compact(conv, target=1_500).state == "committed"
    inputs = conv.context_inputs()
    assert inputs.compaction is not None
    conv.cut(inputs.messages[0].uid)
    context = compactor().peek(conv)
    last = next(m for m in reversed(list(conv.messages())) if m.role is clew.Role.USER)
    assert seen(context)[-1] == last.text or last.text in seen(context)
    assert [item.section for item in context.items][-1] != "ledger"


def test_a_call_stays_with_its_result_whatever_was_shortened_before(
    conv: clew.Conversation,
) -> None:
    """Outputs become short first; the next compaction takes them into a ledger."""
    conv.append([clew.assistant("Hello. What shall I do?"), clew.user("Read all of it.")])
    for n in range(9):
        conv.append([
            clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.ToolCall(f"r{n}", "read", "{}"),)),
            clew.Draft(role=clew.Role.TOOL, parts=(clew.ToolResult(f"r{n}", f"row {n}\n" * 260),)),
        ])  # fmt: skip
    conv.append([clew.assistant("I have read all of it.")])
    first = compactor().compact(conv)
    assert first.receipt is not None
    assert (first.receipt.stubbed > 0, first.receipt.epoch) == (True, 0)
    fill(conv, 0.7)
    assert compactor().compact(conv).state == "committed"
    rendered = compactor().peek(conv).chat(conv.blob)
    assert "did not finish" not in str(rendered)


def work_step(conv: clew.Conversation, n: int) -> None:
    """A call with words, and what came of it; no answer."""
    conv.append([
        clew.Draft(
            role=clew.Role.ASSISTANT,
            parts=(
                clew.Text(f"Module {n} comes next; I read it, and the two that call it. " * 4),
                clew.ToolCall(f"call-{n}", "edit", f'{{"path": "src/m{n}.py"}}'),
            ),
        ),
        clew.Draft(role=clew.Role.TOOL, parts=(clew.ToolResult(f"call-{n}", "done " * 30),)),
    ])  # fmt: skip
