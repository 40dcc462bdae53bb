"""The bin: a deletion that can be taken back."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, talk, texts

import clew
from clew.testing.clock import FakeClock


def test_i_22_nobody_finds_what_is_in_the_bin(profile: clew.Profile) -> None:
    """I-22."""
    conv = profile.conversation("chat", source="tg")
    talk(conv, "a", "b")
    conv.claim_alias("codex", "thread-1")
    assert profile.bin(conv.id) is True
    assert profile.list().items == ()
    assert profile.bound("chat", source="tg") is None
    for name in (conv.id, conv.id[:8], "thread-1"):
        with pytest.raises(clew.NotFound):
            profile.resolve(name)
    for call in (lambda: profile.open(conv.id), conv.info, lambda: talk(conv, "c")):
        with pytest.raises(clew.NotFound):
            call()
    (binned,) = profile.binned()
    assert (binned.id, binned.messages, binned.source) == (conv.id, 2, "tg")
    assert profile.conversation("chat", source="tg").id != conv.id


def test_it_comes_back_with_all_it_had(profile: clew.Profile) -> None:
    conv = profile.create(clew.NewConversation(title="T", prompt="p"))
    talk(conv, *"abc")
    conv.cut(conv.message(3).uid)
    conv.claim_alias("codex", "t1")
    before = conv.info(), [m.to_dict() for m in conv.messages(hidden=True)]
    profile.bin(conv.id)
    again = profile.unbin(conv.id)
    assert (again.info(), [m.to_dict() for m in again.messages(hidden=True)]) == before
    assert again.context_inputs().prompt == "p"
    assert profile.resolve("t1").id == conv.id
    assert profile.binned() == ()
    talk(conv, "d")  # the handle of before
    assert texts(conv) == ["a", "b", "d"]


def test_its_keys_do_not_come_back(profile: clew.Profile) -> None:
    conv = profile.conversation("chat")
    profile.bin(conv.id)
    other = profile.conversation("chat")
    profile.unbin(conv.id)
    found = profile.bound("chat")
    assert found is not None
    assert found.id == other.id


def test_again_is_harmless(profile: clew.Profile) -> None:
    conv = profile.create()
    assert [profile.bin(conv.id), profile.bin(conv.id)] == [True, False]
    assert profile.unbin(conv.id).id == profile.unbin(conv.id).id == conv.id
    for call in (profile.bin, profile.unbin):
        with pytest.raises(clew.NotFound):
            call("nobody")


def test_its_id_stays_taken(profile: clew.Profile) -> None:
    conv = profile.create(id="mine")
    profile.bin(conv.id)
    with pytest.raises(clew.KeyReused):
        profile.create(id="mine")
    profile.delete("mine")
    assert profile.create(id="mine").info().head == 0


def test_a_foreign_id_that_another_claimed_is_ambiguous(profile: clew.Profile) -> None:
    conv, other = profile.create(), profile.create()
    conv.claim_alias("codex", "t1")
    profile.bin(conv.id)
    assert profile.was_deleted("codex", "t1")
    assert other.claim_alias("codex", "t1") == "claimed"
    profile.unbin(conv.id)
    assert [alias.state for alias in conv.aliases()] == ["ambiguous"]
    with pytest.raises(clew.Ambiguous):
        profile.resolve("t1")


def test_branches_read_on(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, *"abc")
    branch = conv.branch()
    talk(branch, "d")
    profile.bin(conv.id)
    assert texts(branch) == ["a", "b", "c", "d"]
    talk(branch, "e")
    profile.unbin(conv.id)
    assert [child.id for child in conv.children()] == [branch.id]
    profile.bin(conv.id)
    profile.delete(conv.id)
    assert texts(branch) == ["a", "b", "c", "d", "e"]


def test_a_running_turn_is_interrupted_and_what_waits_stays(profile: clew.Profile) -> None:
    conv = profile.create()
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    conv.append([clew.user("waits")])
    profile.bin(conv.id)
    with pytest.raises(clew.RightLost):
        turn.finish([clew.assistant("late")])
    assert profile.unfinished() == ()
    profile.unbin(conv.id)
    info = conv.info()
    assert (info.turn, info.waiting) == (None, 1)


def test_emptying_it_takes_nothing_else(profile: clew.Profile) -> None:
    keep, gone = profile.create(), profile.create()
    talk(keep, "a")
    talk(gone, "b")
    profile.bin(gone.id)
    assert [(item.id, item.did) for item in profile.empty_bin()] == [(gone.id, "deleted")]
    assert profile.binned() == () == profile.empty_bin()
    assert [row.id for row in profile.list().items] == [keep.id]
    with pytest.raises(clew.NotFound):
        profile.unbin(gone.id)


@pytest.mark.requires("follow")
def test_followers_see_it_go_and_come(profile: clew.Profile, clock: FakeClock) -> None:
    conv = profile.create()
    mark = profile.mark()
    profile.bin(conv.id)
    profile.unbin(conv.id)
    _, found = profile.changes(mark)
    assert [(c.conversation, c.kind) for c in found] == [
        (conv.id, "deleted"), (conv.id, "created")
    ]  # fmt: skip


@pytest.mark.requires("search")
def test_search_finds_it_again_when_it_is_back(store: clew.Store, profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "heliotrope")
    store.search_index.catch_up()
    profile.bin(conv.id)
    store.search_index.catch_up()
    assert profile.search("heliotrope").hits == ()
    profile.unbin(conv.id)
    assert [hit.conversation for hit in profile.search("heliotrope").hits] == [conv.id]
