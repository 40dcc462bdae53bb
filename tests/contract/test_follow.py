"""Following: what changed, in a profile or a conversation, since a mark."""

from __future__ import annotations

import threading

import pytest
from talk import HOLDER, begun, compact, talk

import clew
from apart import apart
from clew import Change

pytestmark = pytest.mark.requires("follow")


def kinds(profile: clew.Profile, mark: clew.Mark, conversation: str | None = None) -> list[str]:
    return [change.kind for change in profile.changes(mark, conversation)[1]]


def test_nothing_is_told_of_before_the_mark(profile: clew.Profile) -> None:
    talk(profile.create(), "a")
    mark = profile.mark()
    assert profile.changes(mark)[1] == []


def test_new_messages_are_told_with_their_seqs(conv: clew.Conversation, profile) -> None:
    talk(conv, "a")
    mark = profile.mark()
    talk(conv, "b", "c")
    after, found = profile.changes(mark)
    assert found == [Change(conversation=conv.id, kind="appended", first_seq=2, last_seq=3)]
    assert profile.changes(after)[1] == []


def test_every_kind_of_change_is_told(profile: clew.Profile) -> None:
    mark = profile.mark()
    conv = profile.create()
    assert kinds(profile, mark) == ["created"]

    def after(work) -> list[str]:
        mark = profile.mark()
        work()
        return kinds(profile, mark)

    talk(conv, *"abcd")
    assert after(lambda: conv.cut(conv.message(4).uid)) == ["cut"]
    assert after(lambda: conv.undo_cut()) == ["undone"]
    assert after(lambda: compact(conv, 2)) == ["compacted"]
    assert after(lambda: conv.undo_compaction(1)) == ["undone"]
    assert after(lambda: conv.set_title("x")) == ["titled"]
    assert after(lambda: conv.pin()) == ["flagged"]
    assert after(lambda: conv.pin()) == []
    assert after(lambda: conv.end()) == ["ended"]
    assert after(lambda: conv.reopen()) == ["reopened"]
    begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    assert after(lambda: conv.interrupt_turn()) == ["turn"]
    assert set(after(lambda: profile.delete(conv.id))) == {"deleted"}


def test_other_profiles_and_conversations_are_not_told(store: clew.Store) -> None:
    profile = store.profile("p")
    mine, other = profile.create(), profile.create()
    foreign = store.profile("q").create()
    mark = profile.mark()
    for conv in (mine, other, foreign):
        talk(conv, "a")
    assert {c.conversation for c in profile.changes(mark)[1]} == {mine.id, other.id}
    assert {c.conversation for c in profile.changes(mark, mine.id)[1]} == {mine.id}


@pytest.mark.requires("engine")
def test_a_follower_hears_of_another_connection(store: clew.Store, place) -> None:
    """Each message once, in order, none missed."""
    profile = store.profile("me")
    conv = profile.create()
    total, heard = 30, list[tuple[int | None, int | None]]()
    follower = profile.follow(
        conv.id, since=profile.mark(), poll=0.01, until=lambda: last() >= total
    )

    def last() -> int:
        return heard[-1][1] or 0 if heard else 0

    def write() -> None:
        with apart(place) as other:
            theirs = other.profile("me").open(conv.id)
            for n in range(total):
                theirs.append([clew.user(str(n))])

    thread = threading.Thread(target=write)
    thread.start()
    for change in follower:
        heard.append((change.first_seq, change.last_seq))
    thread.join()
    assert [first for first, _ in heard] == [1, *((end or 0) + 1 for _, end in heard[:-1])]
    assert heard[-1][1] == total


def test_a_follower_polls_at_least_once_a_second(profile: clew.Profile) -> None:
    for poll in (0, -1, 1.5):
        with pytest.raises(clew.InputError):
            next(profile.follow(poll=poll))


def test_many_changes_are_told_in_portions(profile: clew.Profile) -> None:
    mark = profile.mark()
    convs = [profile.create() for _ in range(3)]
    for n in range(400):
        convs[n % 3].set_title(f"title {n}")
    found: list[Change] = []
    while True:
        after, some = profile.changes(mark)
        found += some
        if after == mark:
            break
        mark = after
    assert [c.kind for c in found].count("titled") == 400
