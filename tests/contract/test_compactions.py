"""Compactions and attempts: records beside a log that they never change."""

from __future__ import annotations

import pytest
from talk import (
    HOLDER,
    begun,
    calls,
    compact,
    context_texts,
    proposal,
    result,
    summary,
    talk,
    texts,
)

import clew
from clew import Inline, Ref, Stub
from clew.testing.clock import FakeClock


def test_a_compaction_stands_for_the_beginning(conv: clew.Conversation) -> None:
    """S07.1."""
    talk(conv, *"abcdef")
    before = conv.info()
    attempt = conv.open_attempt("hard", model="m1", tokens_before=100)
    assert (attempt.number, attempt.state, attempt.view) == (1, "open", before.view)
    done = conv.commit_attempt(1, proposal(4, summary("a-c"), Ref(4, 4)))
    assert (done.generation, done.attempt, done.covers_to, done.kind) == (1, 1, 4, "ours")
    info = conv.info()
    assert (info.generation, info.view, info.head) == (1, before.view + 1, 6)
    assert context_texts(conv) == ["<a-c>", "d", "e", "f"]
    assert texts(conv) == list("abcdef")
    (row,) = conv.attempts()
    assert (row.state, row.tokens_after, row.trigger, row.model) == ("committed", 10, "hard", "m1")


def test_committing_again_gives_the_same(conv: clew.Conversation) -> None:
    """S07.9."""
    talk(conv, *"abcd")
    number = conv.open_attempt().number
    first = conv.commit_attempt(number, proposal(2))
    talk(conv, "e")
    assert conv.commit_attempt(number, proposal(4, summary("other"))) == first
    assert len(conv.compactions()) == 1


def test_items_are_summaries_stubs_and_messages(conv: clew.Conversation) -> None:
    talk(conv, *"abcde")
    body = (summary("s"), Stub(2, "b…"), Ref(3, 4), Inline(clew.Role.ASSISTANT, ()))
    compact(conv, 4, *body)
    inputs = conv.context_inputs()
    assert inputs.compaction is not None
    assert inputs.compaction.body == body
    assert [len(messages) for _, messages in inputs.covered] == [0, 1, 2, 0]
    rendered = conv.context()
    assert [m["content"] for m in rendered][:4] == ["s", "b…", "c", "d"]


def test_the_newest_compaction_is_in_effect(conv: clew.Conversation) -> None:
    """S30.2."""
    talk(conv, *"abcdef")
    compact(conv, 2, summary("a-b"))
    compact(conv, 4, summary("a-d"))
    assert context_texts(conv) == ["<a-d>", "e", "f"]
    assert [c.generation for c in conv.compactions()] == [2, 1]
    assert conv.undo_compaction(2)
    assert not conv.undo_compaction(2)
    assert context_texts(conv) == ["<a-b>", *"cdef"]
    conv.undo_compaction(1)
    assert context_texts(conv) == list("abcdef")
    with pytest.raises(clew.NotFound):
        conv.undo_compaction(3)


def test_b07_the_log_is_the_same_after_any_number_of_compactions(
    conv: clew.Conversation,
) -> None:
    """S30.1."""
    talk(conv, *"abcd")
    before = [message.to_dict() for message in conv.messages()]
    for n in range(3):
        compact(conv, 2 + n % 2, summary(f"s{n}"))
    assert [message.to_dict() for message in conv.messages()] == before


def test_b01_a_compaction_inside_a_turn_loses_nothing_of_it(conv: clew.Conversation) -> None:
    """S21.1."""
    talk(conv, *"abcd")
    turn = begun(conv.begin_turn([clew.user("go", key="u")], holder=HOLDER))
    turn.record([calls("c1")])
    turn.record([result("c1", "five kB" * 700)])
    number = conv.open_attempt("hard").number
    with pytest.raises(clew.InvalidCompaction):
        conv.commit_attempt(number, proposal(5))  # the turn's own request is not covered
    conv.commit_attempt(number, proposal(4, summary("a-d")))
    turn.finish([clew.assistant("done")])
    assert texts(conv) == [*"abcd", "go", "call c1", "result c1", "done"]
    assert context_texts(conv) == ["<a-d>", "go", "call c1", "result c1", "done"]


def test_b02_a_message_that_arrives_in_a_compaction_is_in_the_next_context(
    profile: clew.Profile,
) -> None:
    """S07.8, S09.1."""
    conv = profile.conversation("chat", source="tg")
    talk(conv, *"abcd")
    number = conv.open_attempt().number
    got = profile.receive("chat", [clew.user("M")], source="tg", account="bot", key="1")
    conv.commit_attempt(number, proposal(4, summary("a-d")))
    assert got.conversation == conv.id
    assert context_texts(profile.conversation("chat", source="tg")) == ["<a-d>", "M"]


def test_b04_b26_a_summary_that_fails_leaves_everything(conv: clew.Conversation) -> None:
    """S08.6."""
    talk(conv, *"abcd")
    compact(conv, 2, summary("a-b"))
    for error in ("400: image too large", "stream ended half way"):
        number = conv.open_attempt().number
        failed = conv.fail_attempt(number, "summary", summary_error=error)
        assert (failed.state, failed.summary_error) == ("failed", error)
        with pytest.raises(clew.Cancelled) as refused:
            conv.commit_attempt(number, proposal(4))
        assert refused.value.state == "failed"
    assert texts(conv) == list("abcd")
    assert context_texts(conv) == ["<a-b>", "c", "d"]


def test_b11_a_flush_after_a_compaction_adds_one_row(conv: clew.Conversation) -> None:
    """S07.2, S21.8."""
    for n in range(20):
        conv.append([clew.user(str(n), key=str(n))])
    compact(conv, 14, summary("0-13"))
    held = [message.draft() for message in conv.context_inputs().messages]
    for _ in range(2):
        done = conv.append([*held, clew.user("new", key="new")])
    assert (done.new, conv.info().head) == (0, 21)
    assert len(context_texts(conv)) == 8


@pytest.mark.parametrize(("before", "after"), [(100, 100), (600, 2000)])
def test_b16_b17_a_compaction_that_does_not_shrink_changes_nothing(
    conv: clew.Conversation, before: int, after: int
) -> None:
    """S08.1."""
    talk(conv, *"abcd")
    number = conv.open_attempt().number
    bad = clew.Proposal(covers_to=2, body=(summary("s"),), tokens_before=before, tokens_after=after)
    info = conv.info()
    for _ in range(3):
        with pytest.raises(clew.InvalidCompaction):
            conv.commit_attempt(number, bad)
    assert (conv.info(), conv.compactions(), conv.children()) == (info, (), ())
    assert conv.attempts()[0].state == "open"


def test_b25_an_attempt_that_hangs_ends_at_its_deadline(
    conv: clew.Conversation, clock: FakeClock
) -> None:
    """S01.7."""
    talk(conv, *"abcd")
    hung = conv.open_attempt(deadline=clock.now() + 10)
    assert conv.append([clew.user("e")]).seqs == (5,)
    clock.advance(11)
    conv.open_attempt()
    states = [(a.state, a.verdict) for a in conv.attempts()]
    assert states == [("failed", "abandoned"), ("open", None)]
    with pytest.raises(clew.Cancelled):
        conv.commit_attempt(hung.number, proposal(2))


def test_of_two_attempts_the_second_is_overtaken(conv: clew.Conversation) -> None:
    """S07.6."""
    talk(conv, *"abcd")
    one, two = conv.open_attempt(), conv.open_attempt()
    conv.commit_attempt(one.number, proposal(2, summary("a-b")))
    with pytest.raises(clew.Overtaken):
        conv.commit_attempt(two.number, proposal(3))
    with pytest.raises(clew.Cancelled) as refused:
        conv.commit_attempt(two.number, proposal(3))
    assert refused.value.state == "overtaken"
    assert [a.state for a in conv.attempts()] == ["committed", "overtaken"]
    assert context_texts(conv) == ["<a-b>", "c", "d"]


def test_commit_and_cancel_are_one_swap(conv: clew.Conversation) -> None:
    """S07.6."""
    talk(conv, *"abcd")
    one, two = conv.open_attempt().number, conv.open_attempt().number
    assert conv.cancel_attempt(one).state == "cancelled"
    with pytest.raises(clew.Cancelled):
        conv.commit_attempt(one, proposal(2))
    conv.commit_attempt(two, proposal(2))
    with pytest.raises(clew.Cancelled) as refused:
        conv.cancel_attempt(two)
    assert refused.value.state == "committed"
    with pytest.raises(clew.NotFound):
        conv.cancel_attempt(9)
    with pytest.raises(clew.NotFound):
        conv.commit_attempt(9, proposal(2))


def test_an_undo_of_a_compaction_cancels_open_attempts(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    compact(conv, 2)
    number = conv.open_attempt().number
    conv.undo_compaction(1)
    with pytest.raises(clew.Cancelled):
        conv.commit_attempt(number, proposal(4))


@pytest.mark.parametrize(
    "bad",
    [
        proposal(0), proposal(5),
        proposal(2, Ref(2, 3)), proposal(2, Ref(2, 1)), proposal(2, Ref(0, 1)),
        proposal(2, Stub(3, "x")), proposal(2, Stub(0, "x")),
    ],
)  # fmt: skip
def test_a_compaction_covers_what_is_there(conv: clew.Conversation, bad: clew.Proposal) -> None:
    talk(conv, *"abcd")
    with pytest.raises(clew.InvalidCompaction):
        conv.commit_attempt(conv.open_attempt().number, bad)
    assert conv.compactions() == ()


def test_a_stub_of_a_hidden_message_is_refused(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.cut(conv.message(2).uid)
    talk(conv, "c")
    with pytest.raises(clew.InvalidCompaction):
        compact(conv, 3, Stub(2, "b"))
    compact(conv, 3, Ref(1, 3))
    assert context_texts(conv) == ["a", "c"]


def test_b28_b29_call_and_results_are_never_split(conv: clew.Conversation) -> None:
    conv.append([clew.user("a"), calls("x", "y"), result("x"), result("y"), clew.user("b")])
    for covers_to in (2, 3):
        with pytest.raises(clew.InvalidCompaction):
            compact(conv, covers_to)
    compact(conv, 4, summary("s"))
    assert context_texts(conv) == ["<s>", "b"]


def test_b31_requests_without_an_answer_stand_beside_each_other(conv: clew.Conversation) -> None:
    """Two prompts cancelled before any reply: stored as they came, compacted like any other."""
    for text in ("hi", "hi", "hi again"):
        turn = begun(conv.begin_turn([clew.user(text)], holder=HOLDER))
        if text == "hi":
            conv.interrupt_turn("the user pressed stop")
            continue
        turn.finish([clew.assistant("hello")])
    compact(conv, 2, summary("hi, twice"))
    assert texts(conv) == ["hi", "hi", "hi again", "hello"]
    assert context_texts(conv) == ["<hi, twice>", "hi again", "hello"]


def test_b37_a_call_in_flight_is_not_covered(conv: clew.Conversation) -> None:
    conv.append([clew.user("a"), calls("write_file")])
    with pytest.raises(clew.InvalidCompaction):
        compact(conv, 2)
    conv.append([result("write_file")])
    compact(conv, 3)


def test_an_orphaned_result_splits_nothing(conv: clew.Conversation) -> None:
    """Imported logs hold results whose call is gone."""
    talk(conv, "a", "b")
    conv.append([result("gone"), clew.user("c")])
    compact(conv, 2, summary("s"))
    assert [m["content"] for m in conv.context()] == ["s", "c"]


def test_another_tools_compaction_is_kept_as_it_was(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    grown = clew.Proposal(
        covers_to=2, body=(summary("s"),), tokens_before=5, tokens_after=9, receipt={"by": "x"}
    )
    done = conv.record_foreign_compaction(grown)
    assert (done.kind, done.attempt, done.receipt) == ("foreign", None, {"by": "x"})
    assert context_texts(conv) == ["<s>", "c", "d"]


def test_b46_b47_b50_the_id_is_the_same_for_life(profile: clew.Profile) -> None:
    """S10.5: Any id of the line opens the whole of it, also one that a rotation gave."""
    conv = profile.create(id="session-new")
    talk(conv, *"abcd")
    for n in (1, 2):
        number = conv.open_attempt().number
        conv.commit_attempt(number, proposal(1 + n), segment=("hermes", f"child-{n}"))
    assert [row.id for row in profile.list().items] == ["session-new"]
    for name in ("session-new", "child-1", "child-2"):
        found = profile.resolve(name)
        assert (found.id, texts(found)) == (conv.id, list("abcd"))
        assert context_texts(found) == ["<1-3>", "d"]
    assert [(a.foreign_id, a.kind, a.from_seq) for a in conv.aliases()] == [
        ("child-1", "segment", 5), ("child-2", "segment", 5),
    ]  # fmt: skip


def test_a_summary_follows_no_rule_of_roles_in_the_log(conv: clew.Conversation) -> None:
    """B32: what a compaction makes is no message, so nothing can stand beside it wrongly."""
    talk(conv, *"abc")
    compact(conv, 2, summary("snapshot"), summary("again"))
    assert [m.role for m in conv.messages()] == ["user", "assistant", "user"]
    assert conv.info().message_count == 3


def test_b107_the_live_request_is_last_and_verbatim(conv: clew.Conversation) -> None:
    talk(conv, "do A", "working on A")
    compact(conv, 2, summary("pending: A"))
    talk(conv, "do B instead")
    assert conv.context()[-1] == {"role": "user", "content": "do B instead"}
