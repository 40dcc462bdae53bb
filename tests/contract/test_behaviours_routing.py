"""Ends, resets, scopes, keys and profiles: S02, S44 to S48 of docs/behaviours.md."""

from __future__ import annotations

import threading

import pytest
from talk import compact, talk, texts

import clew
from clew.testing.clock import FakeClock

BOUNDARIES = (
    "closed", "reset", "new", "idle", "daily", "switched", "suspended", "expired", "exhausted",
    "finished",
)  # fmt: skip
DAY = 86_400_000_000


def hi(key: str) -> clew.Draft:
    return clew.user("hi", key=key)


@pytest.mark.parametrize("reason", BOUNDARIES)
def test_a_boundary_is_undone_by_a_person_only(profile: clew.Profile, reason: str) -> None:
    """S02: append refuses, the key gets a new conversation, reopen restores no binding."""
    conv = profile.conversation("key")
    talk(conv, "a")
    conv.end(reason)
    with pytest.raises(clew.Ended):
        talk(conv, "late")
    following = profile.conversation("key")
    assert following.id != conv.id
    assert conv.reopen()
    assert not conv.reopen()
    talk(conv, "again")
    assert profile.conversation("key").id == following.id


@pytest.mark.parametrize("reason", ["stale", "imported"])
def test_other_ends_are_undone_by_the_next_message(profile: clew.Profile, reason: str) -> None:
    """S02: what a sweeper or an import writes keeps nobody from going on."""
    conv = profile.conversation("key")
    talk(conv, "a")
    conv.end(reason)
    assert profile.conversation("key").id == conv.id
    talk(conv, "b")
    assert not conv.info().ended
    assert texts(conv) == ["a", "b"]


@pytest.mark.requires("engine")
def test_what_happens_to_a_process_ends_no_conversation(place) -> None:
    """S02: shutdown, disconnection and a dead holder touch presence and rights only."""
    with clew.open(place) as store:
        conv = store.profile("me").conversation("key")
        conv.beat("tui", "typing")
        conv.begin_turn([hi("1")])
    with clew.open(place) as store:
        again = store.profile("me").conversation("key")
        again.leave("tui")
        again.interrupt_turn("its window was closed")
        assert again.id == conv.id
        assert not again.info().ended


def test_each_reset_begins_a_scope_that_was_never_used(
    profile: clew.Profile, clock: FakeClock
) -> None:
    """S44, S45: an id and a scope are minted with the row; no counter, no clock decides."""
    seen = {profile.conversation("key").info().affinity}
    ids = {profile.conversation("key").id}
    for reason in ("reset", "idle", "daily", "suspended"):
        clock.advance(-DAY)
        outcome = profile.reset("key", reason=reason)
        assert outcome.previous in ids
        profile.delete(outcome.previous)
        ids.add(outcome.conversation)
        seen.add(profile.open(outcome.conversation).info().affinity)
    assert len(seen) == len(ids) == 5


def test_a_scope_stays_while_the_conversation_does(profile: clew.Profile) -> None:
    """S44, S45: not moved by compactions, repeated or accidental ends, or many replies."""
    conv = profile.conversation("room-7", source="http")
    scope = conv.info().affinity
    for number in range(3):
        talk(profile.conversation("room-7", source="http"), f"ask {number}", f"reply {number}")
    compact(conv, 2)
    conv.end("stale")
    conv.end("stale")
    talk(conv, "b")
    assert profile.conversation("room-7", source="http").info().affinity == scope


def test_every_conversation_has_a_scope_of_its_own(profile: clew.Profile) -> None:
    """S45: two sources, a branch and a delegate; a delegate names its origin's beside its own."""
    conv = profile.conversation("key", source="a")
    talk(conv, "x")
    others = [profile.conversation("key", source="b"), conv.branch(), conv.delegate()]
    scopes = {c.info().affinity for c in (conv, *others)}
    assert len(scopes) == 4
    assert others[2].info().attribution == conv.info().affinity
    assert others[1].info().attribution is None


def test_a_key_finds_the_conversation_it_made(profile: clew.Profile) -> None:
    """S46: opening by id binds nothing; a key without a living conversation gets a new one."""
    first = profile.conversation("key", source="http")
    unkeyed = profile.create(source="http")
    talk(profile.open(unkeyed.id), "x")
    assert profile.bound(unkeyed.id, source="http") is None
    assert profile.conversation("key", source="http").id == first.id
    profile.delete(first.id)
    assert profile.bound("key", source="http") is None
    assert profile.conversation("key", source="http").id != first.id


def test_a_conversation_is_not_bound_to_a_second_key(profile: clew.Profile) -> None:
    first = profile.conversation("one")
    with pytest.raises(clew.ClewError):
        profile.conversation("two", new=clew.NewConversation(id=first.id))
    assert profile.bound("two") is None
    assert profile.conversation("one").id == first.id


@pytest.mark.requires("engine")
def test_two_first_requests_get_the_same_conversation(place) -> None:
    """S46: the primary key decides, the loser reads the winner."""
    with clew.open(place) as store:
        profile, found = store.profile("me"), list[str]()
        gate = threading.Barrier(8)

        def first() -> None:
            gate.wait()
            found.append(profile.conversation("key").id)

        threads = [threading.Thread(target=first) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1
        assert profile.stats().conversations == 1


@pytest.mark.requires("stats")
def test_keyed_conversations_are_counted(profile: clew.Profile) -> None:
    talk(profile.conversation("key", source="http"), "x")
    assert profile.stats().sources == (("http", 1, 1),)


def test_a_first_message_that_is_refused_leaves_no_binding(profile: clew.Profile) -> None:
    """S25, S46: binding, conversation and message are one transaction."""
    with pytest.raises(clew.ReadOnly):
        profile.receive(
            "chat-1", [hi("1")], source="tg", account="bot", key="update-1",
            new=clew.NewConversation(read_only=True),
        )  # fmt: skip
    assert profile.bound("chat-1", source="tg") is None
    assert profile.list().items == ()


def test_one_address_under_two_profiles_is_two_conversations(store: clew.Store) -> None:
    """S47, S48: the profile is part of every key, and has no default."""
    address = clew.route_key({"chat": 42, "thread": None})
    bots = [store.profile("a"), store.profile("b")]
    found = [bot.receive(address, [hi("1")], source="tg", account="x", key="1") for bot in bots]
    assert found[0].conversation != found[1].conversation
    assert not found[1].again
    with pytest.raises(clew.NotFound):
        bots[1].open(found[0].conversation)
    with pytest.raises(clew.NotFound):
        bots[1].resolve(found[0].conversation[:12])
    with pytest.raises(TypeError):
        store.profile()  # pyright: ignore[reportCallIssue]
