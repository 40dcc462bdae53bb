"""Cuts: rewind, edit, retry, and undo. Rows are never touched."""

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


def uid(conv: clew.Conversation, seq: int) -> str:
    return conv.message(seq).uid


def test_a_cut_hides_a_message_and_all_after_it(conv: clew.Conversation) -> None:
    """S29.1, S30.4."""
    talk(conv, *"abcd")
    before = conv.info()
    cut = conv.cut(uid(conv, 3), head=4, view=before.view, by="Ada")
    assert (cut.number, cut.from_seq, cut.to_seq, cut.head) == (1, 3, 4, 4)
    assert (cut.withdrawn, cut.interrupted_turn, cut.view) == ((), None, before.view + 1)
    assert texts(conv) == ["a", "b"]
    assert texts(conv.messages(hidden=True)) == ["a", "b", "c", "d"]
    info = conv.info()
    assert (info.head, info.message_count, info.view) == (4, 2, before.view + 1)
    (record,) = conv.cuts()
    assert (record.by, record.in_force) == ("Ada", True)
    talk(conv, "e")
    assert [m.seq for m in conv.messages()] == [1, 2, 5]


def test_b89_a_client_with_an_old_picture_cuts_nothing(conv: clew.Conversation) -> None:
    """S29.4: It knows two messages of many, and retries "its last"."""
    talk(conv, "a", "b")
    old = conv.info()
    target = uid(conv, 2)
    talk(conv, *"cdefgh")
    with pytest.raises(clew.Stale) as refused:
        conv.cut(target, head=old.head, view=old.view)
    assert (refused.value.what, refused.value.expected, refused.value.actual) == ("head", 2, 8)
    assert texts(conv) == list("abcdefgh")
    conv.cut(uid(conv, 8))
    with pytest.raises(clew.Stale) as refused:
        conv.cut(target, head=8, view=old.view)
    assert refused.value.what == "view"
    assert len(texts(conv)) == 7


def test_s29_3_an_unknown_target_cuts_nothing(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    with pytest.raises(clew.NotFound):
        conv.cut("0" * 32)
    with pytest.raises(clew.InputError):
        conv.cut("2")
    assert (texts(conv), conv.cuts()) == (["a", "b"], ())


def test_a_hidden_message_is_no_target(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.cut(uid(conv, 2))
    with pytest.raises(clew.InputError):
        conv.cut(uid(conv, 2))


def test_an_undo_brings_the_line_back(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    conv.cut(uid(conv, 3))
    undone = conv.undo_cut()
    assert (undone.number, undone.from_seq, undone.to_seq) == (1, 3, 4)
    assert texts(conv) == list("abcd")
    assert (conv.info().message_count, conv.info().view) == (4, undone.view)
    assert [cut.in_force for cut in conv.cuts()] == [False]
    with pytest.raises(clew.NotFound):
        conv.undo_cut()


def test_an_undo_after_new_messages_is_refused_and_the_line_opens_as_a_branch(
    conv: clew.Conversation,
) -> None:
    """Two alternatives are never mixed into one dialogue (C)."""
    talk(conv, "q1", "a1", "q2", "a2")
    conv.cut(uid(conv, 3))
    talk(conv, "q2'", "a2'")
    with pytest.raises(clew.CutOvertaken) as refused:
        conv.undo_cut()
    assert refused.value.number == 1
    assert texts(conv) == ["q1", "a1", "q2'", "a2'"]
    assert texts(conv.branch(at_cut=1)) == ["q1", "a1", "q2", "a2"]


def test_only_the_newest_cut_can_be_undone(conv: clew.Conversation) -> None:
    """Nested cuts leave no hole (D)."""
    talk(conv, *"abcdef")
    conv.cut(uid(conv, 5))
    talk(conv, "g")
    conv.cut(uid(conv, 3))
    with pytest.raises(clew.CutOvertaken):
        conv.undo_cut(1)
    with pytest.raises(clew.NotFound):
        conv.undo_cut(7)
    assert conv.undo_cut(2).number == 2
    assert texts(conv) == [*"abcd", "g"]
    with pytest.raises(clew.CutOvertaken):
        conv.undo_cut(1)


def test_an_undo_with_an_old_picture_is_stale(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    view = conv.info().view
    conv.cut(uid(conv, 2))
    with pytest.raises(clew.Stale):
        conv.undo_cut(view=view)
    with pytest.raises(clew.Stale):
        conv.undo_cut(head=1)
    assert texts(conv) == ["a"]


def test_a_cut_ends_the_open_turn_and_no_late_result_lands_behind_it(
    conv: clew.Conversation,
) -> None:
    """(G) The result of a call that was cut off has nowhere to go."""
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    turn.record([calls("c1")])
    conv.append([clew.user("meanwhile")])
    cut = conv.cut(turn_target := uid(conv, 1))
    assert (cut.interrupted_turn, cut.withdrawn) == (1, (1,))
    with pytest.raises(clew.RightLost):
        turn.record([result("c1")])
    with pytest.raises(clew.RightLost):
        turn.finish([clew.assistant("late")])
    with pytest.raises(clew.RightLost):
        turn.renew()
    assert texts(conv) == []
    assert [t.state for t in conv.turns()] == ["interrupted"]
    assert conv.inbox() == ()
    assert conv.message(turn_target).text == "go"


def test_a_summary_of_what_was_cut_is_never_committed(conv: clew.Conversation) -> None:
    """(A) A cut while an attempt is open: the cut text does not come back in the summary."""
    talk(conv, *"abcdefghij")
    attempt = conv.open_attempt()
    conv.cut(uid(conv, 5))
    with pytest.raises(clew.Cancelled):
        conv.commit_attempt(attempt.number, proposal(8))
    assert conv.compactions() == ()
    assert [a.state for a in conv.attempts()] == ["cancelled"]
    assert context_texts(conv) == list("abcd")


def test_what_an_undo_shows_is_in_the_context(conv: clew.Conversation) -> None:
    """(B) Undo of a cut behind a compaction: no message is in neither summary nor tail."""
    talk(conv, *"abcdef")
    conv.cut(uid(conv, 5))
    compact(conv, 4, summary("a-d"))
    assert context_texts(conv) == ["<a-d>"]
    conv.undo_cut()
    assert context_texts(conv) == ["<a-d>", "e", "f"]


def test_a_compaction_is_in_effect_while_its_cuts_are(conv: clew.Conversation) -> None:
    """(E) Nothing is retired or brought back: which one stands follows from the cuts."""
    talk(conv, *"abcdefghij")
    compact(conv, 8, summary("a-h"))
    conv.cut(uid(conv, 3))
    assert context_texts(conv) == ["a", "b"]
    compact(conv, 2, summary("a-b"))
    assert context_texts(conv) == ["<a-b>"]
    conv.undo_cut()
    # g2 covers 1..2 and no cut was in force below it: it still holds, and it is the newer
    assert context_texts(conv) == ["<a-b>", *"cdefghij"]


def test_a_cut_below_a_compaction_puts_the_log_in_its_place(conv: clew.Conversation) -> None:
    talk(conv, *"abcdef")
    compact(conv, 4, summary("a-d"))
    conv.cut(uid(conv, 3))
    assert context_texts(conv) == ["a", "b"]
    conv.undo_cut()
    assert context_texts(conv) == ["<a-d>", "e", "f"]


def test_a_cut_above_a_compaction_leaves_it_in_effect(conv: clew.Conversation) -> None:
    talk(conv, *"abcdef")
    compact(conv, 2, summary("a-b"))
    conv.cut(uid(conv, 5))
    assert context_texts(conv) == ["<a-b>", "c", "d"]


def test_an_edit_cuts_and_appends_in_one_step(conv: clew.Conversation) -> None:
    talk(conv, "a", "b", "c", "d")
    target = uid(conv, 3)
    done = conv.edit(target, clew.user("C", key="edit-1"), head=4)
    assert done.seqs == (5,)
    assert texts(conv) == ["a", "b", "C"]
    assert conv.message(5).meta == {"retry_of": target}
    # repeated: nothing more is cut, although head and view have moved
    assert conv.edit(target, clew.user("C", key="edit-1"), head=4).new == 0
    assert texts(conv) == ["a", "b", "C"]
    assert len(conv.cuts()) == 1


def test_s29_6_an_edit_that_is_refused_does_nothing(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.append([clew.user("c", key="k")])
    for refused, edit in (
        (clew.Stale, lambda: conv.edit(uid(conv, 1), clew.user("A"), head=1)),
        (clew.KeyReused, lambda: conv.edit(uid(conv, 1), clew.user("A", key="k"))),
        (clew.NotFound, lambda: conv.edit("0" * 32, clew.user("A"))),
        (clew.InputError, lambda: conv.edit(uid(conv, 1), clew.user("A", uid="x"))),
    ):
        with pytest.raises(refused):
            edit()
        assert texts(conv) == ["a", "b", "c"]
        assert conv.cuts() == ()


def test_an_edit_to_the_same_message_changes_nothing(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    message = conv.message(1)
    assert conv.edit(message.uid, message.draft()).new == 0
    assert texts(conv) == ["a", "b"]


def test_b88_a_retry_sends_the_live_request_again(conv: clew.Conversation) -> None:
    """The compaction's summary is no message: the newest request is."""
    talk(conv, *"abcd", "current ask", "answer")
    compact(conv, 4, summary("summary with an ask in it"))
    target = uid(conv, 5)
    done = conv.retry(target, key="retry-1")
    assert conv.message(done.seqs[0]).text == "current ask"
    assert conv.message(done.seqs[0]).meta == {"retry_of": target}
    assert texts(conv) == [*"abcd", "current ask"]
    assert context_texts(conv) == ["<summary with an ask in it>", "current ask"]
    assert conv.retry(target, key="retry-1").new == 0


def test_a_retry_keeps_images_without_sending_them_again(conv: clew.Conversation) -> None:
    picture = clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png"),))
    conv.append([picture])
    done = conv.retry(uid(conv, 1))
    (part,) = conv.message(done.seqs[0]).parts
    assert isinstance(part, clew.Image)
    assert conv.blob(part.hash or "") == b"png"


def test_an_ended_or_read_only_conversation_is_not_cut(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.mark(read_only=True)
    with pytest.raises(clew.ReadOnly):
        conv.cut(uid(conv, 1))
    conv.mark(read_only=False)
    conv.end()
    with pytest.raises(clew.Ended):
        conv.cut(uid(conv, 1))
    assert texts(conv) == ["a", "b"]
