"""Branches and delegates: one numbering, records copied, messages not."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, calls, compact, context_texts, result, summary, talk, texts

import clew


def uid(conv: clew.Conversation, seq: int) -> str:
    return conv.message(seq).uid


def test_a_branch_goes_on_where_it_left(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    branch = conv.branch(uid(conv, 2))
    talk(branch, "x")
    talk(conv, "e")
    assert texts(branch) == ["a", "b", "x"]
    assert texts(conv) == list("abcde")
    info = branch.info()
    assert (info.kind, info.origin, info.base, info.head) == ("branch", conv.id, 2, 3)
    assert info.message_count == 3
    assert [m.seq for m in branch.messages()] == [1, 2, 3]
    assert branch.message(1).uid == uid(conv, 1)


def test_a_branch_of_the_head(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    branch = conv.branch(head=2)
    with pytest.raises(clew.Stale):
        conv.branch(head=1)
    assert texts(branch) == ["a", "b"]
    assert texts(branch.log(limit=1, order="newest").items) == ["b"]


def test_a_branch_of_nothing_is_a_conversation_of_its_own(conv: clew.Conversation) -> None:
    branch = conv.branch()
    talk(branch, "a")
    assert (texts(branch), texts(conv)) == (["a"], [])
    assert (branch.info().kind, branch.info().origin) == ("root", None)


def test_branches_of_branches_read_through(conv: clew.Conversation) -> None:
    """S11.12."""
    talk(conv, *"abc")
    one = conv.branch(uid(conv, 2))
    talk(one, "x", "y")
    two = one.branch(one.message(3).uid)
    talk(two, "z")
    three = two.branch(two.message(1).uid)
    assert texts(two) == ["a", "b", "x", "z"]
    assert texts(three) == ["a"]
    assert three.message(1).uid == uid(conv, 1)
    with pytest.raises(clew.NotFound):
        three.message(2)


def test_branching_again_under_the_same_id_gives_the_first(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    new = clew.NewConversation(id="branch-1")
    first = conv.branch(uid(conv, 1), new=new)
    talk(first, "x")
    assert texts(conv.branch(uid(conv, 1), new=new)) == ["a", "x"]
    assert len(conv.children()) == 1


def test_the_cuts_of_a_branch_are_its_own(conv: clew.Conversation) -> None:
    """(F) Rewinding into the inherited part hides it here only, and the other way round."""
    talk(conv, *"abcd")
    branch = conv.branch()
    branch.cut(uid(conv, 3))
    conv.cut(uid(conv, 2))
    talk(branch, "x")
    assert texts(branch) == ["a", "b", "x"]
    assert texts(conv) == ["a"]
    conv.undo_cut()
    assert texts(conv) == list("abcd")
    assert texts(branch) == ["a", "b", "x"]


def test_a_branch_copies_the_cuts_in_force_clipped_to_what_it_inherits(
    conv: clew.Conversation,
) -> None:
    talk(conv, *"abcd")
    conv.cut(uid(conv, 2))
    talk(conv, "e")
    branch = conv.branch()
    assert texts(branch) == ["a", "e"]
    assert [(c.number, c.from_seq, c.to_seq) for c in branch.cuts()] == [(1, 2, 4)]
    conv.cut(uid(conv, 5))
    later = conv.branch()
    assert texts(later) == ["a"]
    later.undo_cut()
    assert texts(later) == ["a", "e"]
    assert texts(conv) == ["a"]


def test_the_line_of_a_cut_opens_as_it_was(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    conv.cut(uid(conv, 3))
    talk(conv, "e")
    conv.cut(uid(conv, 2))
    talk(conv, "f")
    assert texts(conv.branch(at_cut=1)) == list("abcd")
    assert texts(conv.branch(at_cut=2)) == ["a", "b", "e"]
    with pytest.raises(clew.NotFound):
        conv.branch(at_cut=3)
    with pytest.raises(clew.InputError):
        conv.branch(uid(conv, 1), at_cut=1)


def test_a_hidden_message_is_no_branching_point(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.cut(uid(conv, 2))
    with pytest.raises(clew.InputError):
        conv.branch(uid(conv, 2))
    with pytest.raises(clew.NotFound):
        conv.branch("0" * 32)


def test_a_branch_inherits_the_compaction_that_holds_for_it(conv: clew.Conversation) -> None:
    talk(conv, *"abcdef")
    compact(conv, 2, summary("a-b"))
    compact(conv, 4, summary("a-d"))
    assert context_texts(conv.branch()) == ["<a-d>", "e", "f"]
    below = conv.branch(uid(conv, 3))
    assert context_texts(below) == ["<a-b>", "c"]
    (record,) = below.compactions()
    assert (record.generation, record.attempt, below.info().generation) == (1, None, 1)
    assert context_texts(conv.branch(uid(conv, 1))) == ["a"]
    conv.cut(uid(conv, 3))
    assert context_texts(conv.branch()) == ["<a-b>"]


def test_a_branch_copies_records_and_nothing_that_runs(profile: clew.Profile) -> None:
    """S24.2, S25.1, S25.3."""
    conv = profile.conversation("key", source="tg", new=clew.NewConversation(prompt="Be brief."))
    conv.set_workspace(clew.Workspace("/p", "/p", "main"), model="m1")
    conv.set_todos([clew.Todo("open"), clew.Todo("done", "done"), clew.Todo("now", "active")])
    conv.set_goal("win")
    conv.set_title("Mine")
    begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    conv.append([clew.user("waiting")])
    branch = conv.branch()
    info = branch.info()
    assert (info.cwd, info.git_branch, info.model) == ("/p", "main", "m1")
    assert branch.context_inputs().prompt == "Be brief."
    assert branch.todos() == (clew.Todo("open"), clew.Todo("now", "active"))
    assert (info.title, info.title_origin) == ("Mine", "derived")
    assert (branch.goal(), info.turn, info.waiting, branch.turns()) == (None, None, 0, ())
    assert profile.bound("key", source="tg").id == conv.id  # pyright: ignore
    assert info.affinity != conv.info().affinity


def test_the_turns_of_an_origin_are_not_the_branchs(conv: clew.Conversation) -> None:
    begun(conv.begin_turn([clew.user("go")], holder=HOLDER)).finish([clew.assistant("done")])
    branch = conv.branch()
    assert [m.turn for m in conv.messages()] == [1, 1]
    assert [m.turn for m in branch.messages()] == [None, None]
    turn = begun(branch.begin_turn([clew.user("on")], holder=HOLDER))
    assert turn.turn.number == 1
    assert [m.turn for m in branch.messages()] == [None, None, 1]


def test_a_call_that_a_branch_inherits_may_be_answered_there(conv: clew.Conversation) -> None:
    conv.append([clew.user("go"), calls("c1")])
    branch = conv.branch()
    turn = begun(branch.begin_turn([result("c1")], holder=HOLDER))
    turn.finish([clew.assistant("done")])
    assert texts(branch) == ["go", "call c1", "result c1", "done"]


def test_the_list_shows_what_a_branch_shows(conv: clew.Conversation) -> None:
    talk(conv, "question", "answer", "later")
    branch = conv.branch(uid(conv, 2))
    assert branch.info().preview == "answer"


def test_b91_children_are_found_by_their_origin(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    one, two = conv.branch(), conv.branch(uid(conv, 1))
    sub = conv.delegate()
    assert [child.id for child in conv.children()] == [sub.id, two.id, one.id]
    talk(one, "x")
    talk(conv, "c", "d")
    assert texts(one) == ["a", "b", "x"]
    assert texts(two) == ["a"]
    assert texts(conv) == list("abcd")


def test_a_delegate_starts_empty_and_names_its_origin(conv: clew.Conversation) -> None:
    """S11.9."""
    talk(conv, "a")
    sub = conv.delegate(clew.NewConversation(id="sub", source="subagent"))
    talk(sub, "x")
    info = sub.info()
    assert (info.kind, info.origin, info.base, info.source) == ("delegate", conv.id, 0, "subagent")
    assert (texts(sub), texts(conv)) == (["x"], ["a"])
    assert info.attribution == conv.info().affinity != info.affinity
    assert conv.delegate(clew.NewConversation(id="sub")).id == "sub"


def test_delegates_are_listed_under_their_origin_only(profile: clew.Profile) -> None:
    conv = profile.create()
    branch, sub = conv.branch(), conv.delegate()
    assert {row.id for row in profile.list().items} == {conv.id, branch.id}
    assert sub.id in {row.id for row in conv.children()}


def test_images_of_an_origin_are_read_in_its_branches(conv: clew.Conversation) -> None:
    conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png"),))])
    branch = conv.branch()
    (part,) = branch.message(1).parts
    assert isinstance(part, clew.Image)
    assert branch.blob(part.hash or "") == b"png"
    again = branch.retry(uid(conv, 1))
    assert branch.message(again.seqs[0]).parts == (part,)
