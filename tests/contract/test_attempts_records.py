"""What an attempt, a compaction and a model call tell those who decide about the next one."""

from __future__ import annotations

import threading

import pytest
from talk import HOLDER, begun, compact, proposal, summary, talk

import clew
from clew import CallPlan
from clew.testing.clock import FakeClock


def test_an_attempt_knows_the_others_that_are_open(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """Lowest first, without those that ended or whose deadline has passed."""
    talk(conv, *"abcd")
    first = conv.open_attempt(deadline=clock.now() + 10)
    second = conv.open_attempt()
    third = conv.open_attempt()
    assert [a.rivals for a in (first, second, third)] == [(), (1,), (1, 2)]
    assert {a.rivals for a in conv.attempts()} == {()}
    conv.cancel_attempt(2)
    assert conv.open_attempt().rivals == (1, 3)
    clock.advance(11)
    assert conv.open_attempt().rivals == (3, 4)
    conv.commit_attempt(3, proposal(2))
    assert conv.open_attempt().rivals == (4, 5)
    conv.undo_compaction(1)
    assert conv.open_attempt().rivals == ()


@pytest.mark.requires("engine")
def test_of_any_number_at_once_one_has_no_rival(conv: clew.Conversation) -> None:
    """Opening is serialised by the conversation's row, so exactly one may pay for a summary."""
    talk(conv, *"abcd")
    opened: list[clew.Attempt] = []
    threads = [
        threading.Thread(target=lambda: opened.append(conv.open_attempt())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.sort(key=lambda attempt: attempt.number)
    assert [a.rivals for a in opened] == [tuple(range(1, 1 + n)) for n in range(8)]


def test_an_attempt_commits_although_its_summariser_failed(conv: clew.Conversation) -> None:
    """S06.3: what it said stays with the attempt, cut short like that of a failed one."""
    talk(conv, *"abcd")
    number = conv.open_attempt(model="m").number
    done = conv.commit_attempt(
        number, proposal(2), summary_error="HTTP 500 " + "x" * 100_000, verdict="without a model"
    )
    (row,) = conv.attempts()
    assert (row.state, row.verdict, row.tokens_after) == ("committed", "without a model", 10)
    assert (row.summary_error or "").startswith("HTTP 500 xxx")
    assert len(row.summary_error or "") < 10_000
    again = conv.commit_attempt(number, proposal(2), summary_error="other")
    assert again == done
    assert conv.attempts() == (row,)
    conv.fail_attempt(conv.open_attempt().number, "y" * 100_000)
    assert len(conv.attempts()[1].verdict or "") < 10_000


def test_an_undo_keeps_the_size_that_it_left(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    compact(conv, 1)
    compact(conv, 2)
    for bad in (-1, 1 << 54):
        with pytest.raises(clew.InvalidCompaction):
            conv.undo_compaction(2, tokens=bad)
    assert conv.undo_compaction(2, tokens=90)
    assert not conv.undo_compaction(2, tokens=91)
    assert conv.undo_compaction(1)
    assert [(c.generation, c.undone_tokens) for c in conv.compactions()] == [(2, 90), (1, None)]


def test_a_call_says_after_which_attempt_and_what_was_expected(conv: clew.Conversation) -> None:
    """Of a turn and outside it; the number that is given counts before the newest there is."""
    turn = begun(conv.begin_turn([clew.user("a")], holder=HOLDER,
                                 call=CallPlan(model="m", expected=7)))  # fmt: skip
    first = conv.open_attempt().number
    turn.record([clew.assistant("b")], call=turn.call, next_call=CallPlan(model="m"))
    conv.open_attempt()
    turn.finish([clew.assistant("c")])
    conv.plan_call(CallPlan(model="m", purpose="summary", expected=1 << 53), attempt=first)
    conv.plan_call(CallPlan(model="m", purpose="title", expected=0))
    assert [(c.after_attempt, c.expected) for c in conv.calls()] == [
        (None, 7), (1, None), (1, 1 << 53), (2, 0),
    ]  # fmt: skip
    for bad in (-1, (1 << 53) + 1):
        with pytest.raises(clew.InputError):
            conv.plan_call(CallPlan(model="m", expected=bad))


def test_an_imported_call_belongs_to_no_attempt(conv: clew.Conversation) -> None:
    """Foreign compactions have none; the numbers of a branch begin anew."""
    talk(conv, *"abcd")
    conv.record_foreign_compaction(proposal(2, summary("theirs")))
    conv.plan_call(CallPlan(model="m"))
    compact(conv, 3)
    branch = conv.branch()
    branch.plan_call(CallPlan(model="m"))
    assert [c.after_attempt for c in (*conv.calls(), *branch.calls())] == [None, None]
