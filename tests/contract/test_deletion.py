"""Deleting a conversation: it takes its own, and nothing that others show."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, calls, compact, context_texts, result, summary, talk, texts

import clew
from clew import Draft, Image, Role


def picture(conv: clew.Conversation, seq: int) -> bytes:
    (part,) = conv.message(seq).parts
    assert isinstance(part, Image)
    return conv.blob(part.hash or "")


def full(profile: clew.Profile) -> clew.Conversation:
    """One of everything."""
    conv = profile.conversation("chat", source="tg", new=clew.NewConversation(prompt="p"))
    conv.append([clew.user("a"), Draft(role=Role.USER, parts=(Image(data=b"png"),))])
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, call=clew.CallPlan(model="m")))
    turn.record([calls("c1"), result("c1")], call=1, result=clew.CallResult())
    turn.finish([clew.assistant("done")], deliveries=[clew.Delivery("r", 1)])
    compact(conv, 2, summary("a, picture"))
    conv.set_todos([clew.Todo("t")])
    conv.set_goal("g")
    conv.claim_alias("codex", "t1")
    conv.cut(conv.message(6).uid)
    begun(conv.begin_turn([clew.user("more")], holder=HOLDER))
    conv.append([clew.user("waits")])
    return conv


def test_it_is_gone_with_all_that_is_its_own(profile: clew.Profile) -> None:
    """S01.9."""
    conv = full(profile)
    profile.delete(conv.id)
    with pytest.raises(clew.NotFound):
        profile.open(conv.id)
    assert profile.list().items == ()
    assert profile.unfinished() == ()
    assert profile.bound("chat", source="tg") is None
    new = profile.conversation("chat", source="tg")
    assert new.id != conv.id
    with pytest.raises(clew.NotFound):
        profile.delete(conv.id)


def test_a_branch_reads_the_same_afterwards(profile: clew.Profile) -> None:
    conv = full(profile)
    conv.interrupt_turn()
    branch = conv.branch()
    talk(branch, "own")
    before = [m.to_dict() for m in branch.messages(hidden=True)]
    shown, context = texts(branch), context_texts(branch)
    profile.delete(conv.id)
    assert [m.to_dict() for m in branch.messages(hidden=True)] == before
    assert (texts(branch), context_texts(branch)) == (shown, context)
    assert picture(branch, 2) == b"png"
    info = branch.info()
    assert (info.origin, info.base, info.head) == (None, 0, len(before))
    assert branch.context_inputs().prompt == "p"


def test_hidden_messages_stay_hidden(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, *"abcd")
    conv.cut(conv.message(3).uid)
    talk(conv, "e")
    branch = conv.branch()
    conv.append([clew.assistant("E", replaces=5)])
    replaced = conv.branch()
    profile.delete(conv.id)
    assert texts(branch) == ["a", "b", "e"]
    assert [m.text for m in branch.context_inputs().messages] == ["a", "b", "e"]
    assert texts(replaced) == ["a", "b", "E"]
    assert [m.text for m in replaced.context_inputs().messages] == ["a", "b", "E"]
    branch.cut(branch.message(2).uid)
    branch.undo_cut()
    assert texts(branch) == ["a", "b", "e"]


def test_a_middle_one_of_a_line_of_branches_goes(profile: clew.Profile) -> None:
    root = profile.create()
    talk(root, *"abc")
    middle = root.branch(root.message(2).uid)
    talk(middle, "m", "n")
    low = middle.branch(middle.message(1).uid)
    high = middle.branch(middle.message(3).uid)
    talk(low, "l")
    talk(high, "h")
    profile.delete(middle.id)
    assert texts(low) == ["a", "l"]
    assert texts(high) == ["a", "b", "m", "h"]
    assert low.info().origin == high.info().origin == root.id
    profile.delete(root.id)
    assert texts(low) == ["a", "l"]
    assert texts(high) == ["a", "b", "m", "h"]
    assert (low.info().origin, high.info().origin) == (None, None)


def test_many_messages_are_handed_over_in_steps(profile: clew.Profile) -> None:
    root = profile.create()
    for start in range(0, 1200, 600):
        root.append([clew.user(str(n), key=f"k{n}") for n in range(start, start + 600)])
    branch = root.branch(root.message("k1150").uid)
    below = branch.branch(branch.message("k700").uid)
    profile.delete(root.id)
    assert texts(branch) == [str(n) for n in range(1151)]
    assert texts(below) == [str(n) for n in range(701)]
    assert branch.append([clew.user("5", key="k5")]).seqs == (6,)
    with pytest.raises(clew.KeyReused):
        below.append([clew.user("x", key="k700")])


def test_a_branch_that_goes_leaves_its_origin(profile: clew.Profile) -> None:
    conv = full(profile)
    branch = conv.branch()
    talk(branch, "x")
    profile.delete(branch.id)
    assert picture(conv, 2) == b"png"
    assert conv.children() == ()
    assert context_texts(conv)[0] == "<a, picture>"


def test_s01_10_delegates_stay(profile: clew.Profile) -> None:
    conv = profile.create()
    sub = conv.delegate()
    talk(sub, "a")
    profile.delete(conv.id)
    assert (texts(sub), sub.info().origin, sub.info().kind) == (["a"], None, "delegate")


def test_b101_list_and_log_go_together(profile: clew.Profile) -> None:
    keep, gone = profile.create(), profile.create()
    talk(keep, "a")
    talk(gone, "b")
    profile.delete(gone.id)
    assert [row.id for row in profile.list().items] == [keep.id]
    assert [texts(profile.open(row.id)) for row in profile.list().items] == [["a"]]


def test_a_deletion_of_another_profile_finds_nothing(store: clew.Store) -> None:
    conv = store.profile("p").create()
    with pytest.raises(clew.NotFound):
        store.profile("q").delete(conv.id)
    assert not conv.info().ended


def test_a_redelivery_after_a_deletion_is_still_known(profile: clew.Profile) -> None:
    def deliver() -> clew.Received:
        return profile.receive("chat", [clew.user("x")], source="tg", account="bot", key="1")

    first = deliver()
    profile.delete(first.conversation)
    again = deliver()
    assert (again.again, again.conversation) == (True, first.conversation)
    assert profile.list().items == ()
