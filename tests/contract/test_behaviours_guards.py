"""Who may compact, and when: S03, S04, S18, S19, S20 of docs/behaviours.md."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from long_talk import BUDGET, compactor, fill, work
from talk import texts

import clew
from clew.testing.clock import FakeClock
from clew.testing.summarizer import SAYS, Gate, ScriptedSummarizer

SECOND = 1_000_000
WINDOW = 300 * SECOND
DAY = 86_400 * SECOND
TOO_LITTLE = 0.45
"""A share of the window of which a compaction frees less than a quarter."""
STEPS = ("guard", "open", "read", "plan", "ledger", "summary", "check", "commit")


def down() -> ScriptedSummarizer:
    return ScriptedSummarizer(ConnectionError("down"))


def soft(conv: clew.Conversation, **settings: Any) -> clew.Outcome:
    """As another process would ask: an engine and a handle that know nothing of before."""
    return compactor(**settings).compact(conv, "soft")


def closed(conv: clew.Conversation) -> None:
    """Two ineffective attempts."""
    fill(conv, TOO_LITTLE)
    assert [soft(conv).state for _ in range(2)] == ["failed", "failed"]


# ---------------------------------------------------------------------- S03, S04


@pytest.mark.requires("engine")
def test_of_all_that_open_an_attempt_at_once_one_has_no_rivals(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S03.4, S03.8: each has its own number; all but the first know of an earlier one."""
    opened: list[clew.Attempt] = []

    def open_one() -> None:
        opened.append(profile.open(conv.id).open_attempt("soft", deadline=conv.clock.now() + DAY))

    threads = [threading.Thread(target=open_one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(attempt.number for attempt in opened) == list(range(1, 9))
    for attempt in opened:
        assert list(attempt.rivals) == list(range(1, attempt.number))


def test_s03_5_what_nobody_ended_is_passed_over_after_its_deadline(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S03.13, S04.3, S04.4: of a process that was killed nothing blocks for longer than it said."""
    fill(conv)
    conv.open_attempt("soft", deadline=clock.now() + 20 * SECOND)
    for _ in range(3):
        clock.advance(6 * SECOND)
        assert soft(conv).reason == "Another attempt is at work."
    assert len(conv.attempts()) == 1
    clock.advance(3 * SECOND)
    assert soft(conv).state == "committed"


def test_s03_6_a_cancel_concerns_one_attempt_and_only_once(conv: clew.Conversation) -> None:
    """S03.17: who cancels what has ended is told what it became."""
    fill(conv)
    first, second = conv.open_attempt("user").number, conv.open_attempt("user").number
    conv.cancel_attempt(first)
    assert [row.state for row in conv.attempts()] == ["cancelled", "open"]
    with pytest.raises(clew.Cancelled) as error:
        conv.cancel_attempt(first)
    assert error.value.state == "cancelled"
    assert compactor().cancel(conv) == [second]


def test_s03_7_what_is_at_work_is_not_made_to_last_longer(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S04.1, S04.2, S04.6: a deadline is written once; nothing has to be refreshed in time."""
    fill(conv)
    seen: list[int | None] = []

    def slow(_: object) -> str:
        for _ in range(3):
            clock.advance(30 * SECOND)
            seen.append(conv.attempts()[-1].deadline)
        return SAYS

    start = clock.now()
    done = compactor(summarizer=ScriptedSummarizer(slow)).compact(conv)
    assert done.state == "committed"
    assert set(seen) == {start + 180 * SECOND}


def test_s03_9_a_claim_is_on_the_conversation_by_whatever_id_it_is_asked(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S03.14: a rotation changes what it is called elsewhere, not what is locked."""
    fill(conv)
    clew.Compactor(BUDGET, rotate=lambda _: ("host", "segment-2")).compact(conv)
    fill(conv, 0.5)
    conv.open_attempt("user", deadline=conv.clock.now() + DAY)
    other = profile.open(profile.resolve("segment-2").id)
    assert soft(other).reason == "Another attempt is at work."


def test_s03_11_who_stands_back_can_tell_why(conv: clew.Conversation) -> None:
    """Somebody is at it, and there is nothing to do, are two sentences."""
    conv.append([clew.user("hi")])
    idle = soft(conv)
    conv.open_attempt("soft", deadline=conv.clock.now() + DAY)
    busy = soft(conv)
    assert (idle.state, busy.state) == ("refused", "refused")
    assert idle.reason != busy.reason == "Another attempt is at work."


@pytest.mark.parametrize("step", STEPS[1:])
def test_s03_12_no_way_out_leaves_an_attempt_open(conv: clew.Conversation, step: str) -> None:
    """S03.16, S04.5: whatever is raised wherever; the next one goes through at once."""
    fill(conv)
    before = (texts(conv), conv.info().view)

    def boom(name: str) -> None:
        if name == step:
            raise OSError(step)

    with pytest.raises(OSError, match=step):
        compactor(summarizer=ScriptedSummarizer(), watch=boom).compact(conv)
    assert [row.state for row in conv.attempts()] == ([] if step == "open" else ["failed"])
    assert (texts(conv), conv.info().view, conv.compactions()) == (*before, ())
    assert soft(conv).state == "committed"


def test_s04_5_no_thread_is_left_of_a_summary_that_came(conv: clew.Conversation) -> None:
    fill(conv)
    for answer in (SAYS, ConnectionError("down")):
        compactor(summarizer=ScriptedSummarizer(answer)).compact(conv)
        waiting = [t for t in threading.enumerate() if t.name == "clew-summary"]
        for thread in waiting:
            thread.join(10)
            assert not thread.is_alive()


def test_s03_15_having_the_right_to_try_is_not_having_read_what_is(conv: clew.Conversation) -> None:
    """The commit looks at the view once more."""
    fill(conv)
    stale = conv.open_attempt("user", deadline=conv.clock.now() + DAY)
    compactor().compact(conv)
    body = (clew.Inline(clew.Role.USER, (clew.Text("old"),)),)
    proposal = clew.Proposal(covers_to=5, body=body, tokens_before=9, tokens_after=1)
    with pytest.raises(clew.Overtaken):
        conv.commit_attempt(stale.number, proposal)
    assert len(conv.compactions()) == 1


# ---------------------------------------------------------------------- S18


def test_a_rest_is_seen_by_everybody_and_ended_by_a_success(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S18.2, S18.4, S18.6: no process holds a copy of it; a person's success ends it for all."""
    fill(conv)
    mine, theirs = down(), ScriptedSummarizer()
    bound_before = compactor(summarizer=theirs)
    compactor(summarizer=mine).compact(conv, "hard")
    fill(conv, 0.3)
    bound_before.compact(profile.open(conv.id), "hard")
    assert (len(mine.requests), len(theirs.requests)) == (1, 0)
    fill(conv, 0.3)
    assert compactor(summarizer=theirs).compact(conv, "user").state == "committed"
    assert len(theirs.requests) == 1
    fill(conv, 0.3)
    bound_before.compact(profile.open(conv.id), "hard")
    assert len(theirs.requests) == 2


def test_s18_12_each_failure_in_a_row_makes_the_rest_longer_and_a_clock_set_back_frees(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S18.13, S18.5: 60, 300, 900 and 900 s; nothing of it is kept in a process."""
    asked: list[int] = []
    fill(conv)
    for rest in (60, 300, 900, 900):
        for wait, calls in ((0, 1), (rest - 1, 0), (1, 0)):
            clock.advance(wait * SECOND)
            if (wait, calls) == (1, 0):
                break
            model = down()
            done = compactor(summarizer=model).compact(conv, "hard")
            assert done.state == "committed"
            asked.append(len(model.requests))
            fill(conv, 0.3)
    assert asked == [1, 0, 1, 0, 1, 0, 1, 0]
    compactor(summarizer=down()).compact(conv, "hard")
    fill(conv, 0.3)
    clock.advance(-DAY)
    model = ScriptedSummarizer()
    compactor(summarizer=model).compact(conv, "hard")
    assert len(model.requests) == 1


def test_s08_9_a_failure_keeps_the_next_turn_from_trying_again_at_once(
    conv: clew.Conversation,
) -> None:
    """The summariser rests, and attempts that freed too little are not repeated."""
    fill(conv)
    model = down()
    engine = compactor(summarizer=model)
    engine.context(conv)
    for n in range(3):
        work(conv, n)
        engine.context(conv)
    assert (len(model.requests), len(conv.attempts())) == (1, 1)


# ---------------------------------------------------------------------- S19, S20


def test_s19_1_strikes_hold_for_who_was_not_there(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S19.2, S19.5, S19.7, S20.7: two close it, one does not; they are rows, counted when asked."""
    fill(conv, TOO_LITTLE)
    assert soft(conv).state == "failed"
    assert soft(profile.open(conv.id)).state == "failed"
    third = soft(profile.open(conv.id))
    assert (third.state, len(conv.attempts())) == ("refused", 2)
    assert "freed too little" in third.reason


def test_s19_3_another_model_begins_without_strikes(conv: clew.Conversation) -> None:
    """They belong to the conversation, and to the model they were made for."""
    fill(conv, TOO_LITTLE)
    for _ in range(3):
        last = soft(conv, model="gpt-4o")
    assert last.state == "refused"
    assert soft(conv, model="claude-sonnet-4").state != "refused"


def test_s19_4_a_real_reading_below_the_threshold_clears_strikes(conv: clew.Conversation) -> None:
    """S19.6: whoever called the model; an estimate, an empty or a high reading clears nothing."""
    closed(conv)
    for reported, state in ((0, "refused"), (BUDGET.high_tokens, "refused"), (4_000, "failed")):
        number = conv.plan_call(clew.CallPlan(model="m", expected=4_000))
        usage = clew.Usage(input=reported)
        conv.finish_call(number, clew.CallResult(usage=usage))
        assert soft(conv).state == state


def test_s19_8_a_compaction_without_a_model_is_no_failure(conv: clew.Conversation) -> None:
    """The ledger alone is a result of full value: there is no streak of fallbacks to wait out."""
    engine = compactor()
    for _ in range(5):
        fill(conv, 0.6)
        assert engine.compact(conv, "soft").state == "committed"


def test_s20_1_one_probe_after_the_window_and_then_another_window(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S20.2, S20.3, S20.4, S20.6: asking, and new engines, postpone nothing."""
    closed(conv)
    for _ in range(2):
        for _ in range(29):
            clock.advance(10 * SECOND)
            assert soft(conv).state == "refused"
        clock.advance(10 * SECOND)
        assert soft(conv).state == "failed"
        assert soft(conv).state == "refused"
    assert len(conv.attempts()) == 4


def test_s20_6_an_effective_probe_opens_it(conv: clew.Conversation, clock: FakeClock) -> None:
    closed(conv)
    clock.advance(WINDOW)
    fill(conv, 0.3)
    assert soft(conv).state == "committed"
    fill(conv, 0.3)
    assert soft(conv).reason != "The last 2 attempts freed too little."


@pytest.mark.parametrize("jump", [-DAY, -WINDOW, -SECOND, DAY])
def test_s20_5_a_clock_that_jumps_makes_nobody_wait_longer(
    conv: clew.Conversation, clock: FakeClock, jump: int
) -> None:
    """One window from now at most; a clock that went back frees at once."""
    closed(conv)
    clock.advance(jump)
    assert soft(conv).state == "failed"
    waited = 0
    while soft(conv).state == "refused":
        clock.advance(10 * SECOND)
        waited += 10 * SECOND
        assert waited <= WINDOW
    clock.advance(-jump)


@pytest.mark.parametrize("share", [0.30, 0.45])
def test_s19_9_one_near_the_threshold_is_not_compacted_once_per_restart(
    profile: clew.Profile, conv: clew.Conversation, clock: FakeClock, share: float
) -> None:
    """Thirty starts in an hour: two strikes, then one probe for each window."""
    fill(conv, share)
    for _ in range(30):
        soft(profile.open(conv.id))
        clock.advance(120 * SECOND)
    assert len(conv.attempts()) <= 2 + 3_600 // 300
    assert conv.compactions() == ()


def test_strikes_hold_nobody_back_who_must_compact(conv: clew.Conversation) -> None:
    """S18.6: neither a person nor a request that would not fit."""
    closed(conv)
    fill(conv, 0.5)
    assert soft(conv).state == "refused"
    assert compactor().compact(conv, "hard").state == "committed"


# ---------------------------------------------------------------------- processes

WORKER = """
import os, sys, clew
from clew.context.budget import Budget
from clew.testing.clock import FakeClock
from clew.testing.summarizer import SAYS, ScriptedSummarizer

place, name, now, trigger, answer = sys.argv[1:]
answers = {"down": ConnectionError("down"), "ok": SAYS, "die": lambda _: os.kill(os.getpid(), 9)}
model = ScriptedSummarizer(answers[answer])
clock = FakeClock(int(now), 0) if int(now) else None
with clew.open(place, clock=clock) as store:
    conv = store.profile("me").open(name)
    engine = clew.Compactor(Budget(window=12_000), summarizer=model)
    print(engine.compact(conv, trigger).state, len(model.requests))
"""


def process(place: Any, conv: clew.Conversation, now: int, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(place), conv.id, str(now), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said(child: subprocess.Popen[str]) -> str:
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    return out.strip()


@pytest.mark.requires("engine")
def test_s18_1_a_rest_holds_over_processes_and_restarts(
    place: Any, conv: clew.Conversation, clock: FakeClock
) -> None:
    """S18.13, S19.1: each of these is a process of its own that has seen nothing of the others."""
    fill(conv)
    found: list[str] = []
    for wait, answer in ((0, "down"), (61, "down"), (299, "ok"), (2, "ok")):
        clock.advance(wait * SECOND)
        found.append(said(process(place, conv, clock.now(), "hard", answer)))
        fill(conv, 0.35)
    assert found == ["committed 1", "committed 1", "committed 0", "committed 1"]


@pytest.mark.requires("engine")
def test_s03_1_processes_that_meet_make_one_compaction(place: Any, conv: clew.Conversation) -> None:
    """S03.2, S03.3, S03.10: none of them waits, forks or pays for nothing."""
    fill(conv)
    before = texts(conv)
    children = [process(place, conv, 0, "soft", "ok") for _ in range(4)]
    found = sorted(said(child).split() for child in children)
    assert [state for state, _ in found].count("committed") == len(conv.compactions()) == 1
    assert sum(int(paid) for _, paid in found) <= 2
    assert (texts(conv), conv.children()) == (before, ())
    assert all(row.state != "open" for row in conv.attempts())


@pytest.mark.requires("engine")
def test_s03_13_a_process_that_is_killed_holds_up_soft_attempts_until_its_deadline(
    place: Any, conv: clew.Conversation, clock: FakeClock
) -> None:
    """S03.5, S04.4, B25: nothing of it is in the store but the attempt; who must, goes at once."""
    fill(conv)
    before = (texts(conv), conv.info().view)
    child = process(place, conv, clock.now(), "soft", "die")
    assert child.wait(120) == -9
    assert child.stdout is not None
    child.stdout.close()
    assert (texts(conv), conv.info().view, conv.compactions()) == (*before, ())
    assert [row.state for row in conv.attempts()] == ["open"]
    assert soft(conv).reason == "Another attempt is at work."
    clock.advance(181 * SECOND)
    model = ScriptedSummarizer()
    assert soft(conv, summarizer=model).state == "committed"
    assert [(row.state, row.verdict) for row in conv.attempts()] == [
        ("failed", "abandoned"), ("committed", "ledger"),
    ]  # fmt: skip
    assert model.requests == []


@pytest.mark.requires("engine")
def test_a_hanging_summariser_blocks_no_append_and_no_hard_attempt(conv: clew.Conversation) -> None:
    """B25, S01.7, S03.10: while one waits for a model, others write, and compact without it."""
    fill(conv, 0.85)
    gate = Gate()
    waiting = threading.Thread(
        target=lambda: compactor(summarizer=ScriptedSummarizer(gate)).compact(conv, "soft")
    )
    waiting.start()
    try:
        assert gate.asked.wait(30)
        work(conv, 1)
        model = ScriptedSummarizer()
        done = compactor(summarizer=model).compact(conv, "hard")
        assert (done.state, model.requests) == ("committed", [])
    finally:
        gate.open.set()
        waiting.join(60)
    assert not waiting.is_alive()
    assert len(conv.compactions()) == 1
