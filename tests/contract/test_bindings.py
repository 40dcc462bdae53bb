"""Outside keys: found, made once, reset; deliveries answered once."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, compact, summary, talk, texts

import clew


def test_a_key_finds_what_it_made(profile: clew.Profile) -> None:
    """S46.1."""
    one = profile.conversation("chat-1", source="tg")
    assert profile.conversation("chat-1", source="tg").id == one.id
    assert profile.conversation("chat-1", source="web").id != one.id
    assert profile.conversation("chat-2", source="tg").id != one.id
    assert one.info().source == "tg"
    assert profile.bound("nobody") is None


def test_b44_equal_openings_share_nothing(store: clew.Store) -> None:
    """Two API keys, the same prompt, both begin with "hi"."""
    opening = clew.NewConversation(prompt="You are helpful.")
    convs = [
        store.profile(credential).conversation("default", new=opening)
        for credential in ("key-1", "key-2")
    ]
    for conv in convs:
        conv.add({"role": "user", "content": "hi"})
    assert len({conv.id for conv in convs}) == 2
    assert [texts(conv) for conv in convs] == [["hi"], ["hi"]]


def test_b40_the_same_id_in_another_profile_is_not_found(store: clew.Store) -> None:
    """S47.1."""
    mine, other = store.profile("p"), store.profile("q")
    conv = mine.create(id="same")
    with pytest.raises(clew.NotFound):
        other.open("same")
    with pytest.raises(clew.NotFound):
        other.resolve("same")
    with pytest.raises(clew.NotFound):
        other.create(id="same")
    assert other.list().items == ()
    talk(conv, "a")
    assert texts(mine.open("same")) == ["a"]


def test_a_reset_begins_anew_and_keeps_the_old_one(profile: clew.Profile) -> None:
    """S44.1."""
    old = profile.conversation("chat", source="tg")
    talk(old, "a")
    done = profile.reset("chat", source="tg")
    assert (done.previous, done.carried) == (old.id, 0)
    new = profile.conversation("chat", source="tg")
    assert new.id == done.conversation != old.id
    assert texts(new) == []
    assert texts(old) == ["a"]
    assert (old.info().end_reason, old.info().ended) == ("reset", True)
    assert old.info().affinity != new.info().affinity


def test_a_reset_of_an_unknown_key_makes_one(profile: clew.Profile) -> None:
    done = profile.reset("chat", source="tg")
    assert done.previous is None
    assert profile.conversation("chat", source="tg").id == done.conversation


def test_a_reset_again_under_its_id_is_the_same_reset(profile: clew.Profile) -> None:
    """S44.2."""
    old = profile.conversation("chat")
    new = clew.NewConversation(id="after")
    profile.reset("chat", new=new)
    talk(profile.open("after"), "x")
    profile.reset("chat", new=new)
    assert texts(profile.conversation("chat")) == ["x"]
    assert profile.open(old.id).info().ended


def test_a_reset_takes_along_what_waits(profile: clew.Profile) -> None:
    old = profile.conversation("chat")
    turn = begun(old.begin_turn([clew.user("go")], holder=HOLDER))
    picture = clew.Image(data=b"png")
    old.append([clew.user("w1", key="k1")])
    old.append([clew.Draft(role=clew.Role.USER, parts=(picture,), key="k2")])
    done = profile.reset("chat")
    assert done.carried == 2
    with pytest.raises(clew.RightLost):
        turn.finish([clew.assistant("late")])
    new = profile.conversation("chat")
    assert [entry.key for entry in new.inbox()] == ["k1", "k2"]
    assert old.inbox() == ()
    begun(new.begin_turn(holder=HOLDER))
    assert texts(new) == ["w1", "Image"]
    (part,) = new.message("k2").parts
    assert new.blob(part.hash) == b"png"  # pyright: ignore
    assert texts(old) == ["go"]
    assert [t.state for t in old.turns()] == ["interrupted"]


def test_b92_after_a_reset_the_context_is_empty(profile: clew.Profile) -> None:
    old = profile.conversation("chat")
    talk(old, *"abcd")
    compact(old, 2, summary("a very long summary"))
    profile.reset("chat", reason="exhausted")
    new = profile.conversation("chat")
    new.add({"role": "user", "content": "hi"})
    assert new.id != old.id
    assert new.context() == [{"role": "user", "content": "hi"}]


def test_b20_a_reset_reloads_no_summary(profile: clew.Profile) -> None:
    old = profile.conversation("chat")
    talk(old, "a", "b")
    compact(old, 2, summary("larger than the window " * 100))
    for _ in range(3):
        profile.reset("chat", reason="exhausted")
    new = profile.conversation("chat")
    talk(new, "hello")
    assert (new.compactions(), new.info().generation) == ((), 0)
    assert [m.text for m in new.context_inputs().messages] == ["hello"]


def test_b19_a_dead_conversation_is_not_hit_again_by_its_key(profile: clew.Profile) -> None:
    """S46.11: Ended as exhausted: the same key, twice, goes to one new conversation."""
    old = profile.conversation("chat", source="tg")
    for n in range(3):
        number = old.open_attempt().number
        old.fail_attempt(number, "summary", summary_error=f"try {n}")
    old.end("exhausted")
    ids = {
        profile.receive(
            "chat", [clew.user("hi")], source="tg", account="bot", key=f"update-{n}"
        ).conversation
        for n in range(2)
    }
    assert len(ids) == 1
    assert old.id not in ids
    assert [a.summary_error for a in old.attempts()] == ["try 0", "try 1", "try 2"]


def test_b41_an_ended_conversation_refuses_and_its_key_leads_on(profile: clew.Profile) -> None:
    """S02.1."""
    conv = profile.conversation("chat")
    conv.end("idle")
    with pytest.raises(clew.Ended) as refused:
        conv.append([clew.user("a")])
    assert (refused.value.reason, refused.value.boundary) == ("idle", True)
    first = profile.conversation("chat")
    assert first.id != conv.id
    talk(first, "a")
    assert profile.conversation("chat").id == first.id


def test_what_a_sweeper_ended_is_still_the_keys(profile: clew.Profile) -> None:
    """S02.1."""
    conv = profile.conversation("chat")
    conv.end("stale")
    assert profile.conversation("chat").id == conv.id
    assert (
        profile.receive("chat", [clew.user("a")], source="api", account="x", key="u").conversation
        == conv.id
    )
    assert not conv.info().ended


def test_a_delivery_is_answered_once(profile: clew.Profile) -> None:
    """S47.5: (I) A redelivery after a reset gets the first result, not a second conversation."""

    def deliver(key: str, text: str = "hello") -> clew.Received:
        return profile.receive("chat", [clew.user(text)], source="tg", account="bot", key=key)

    first = deliver("update-77")
    assert (first.again, first.appended.seqs) == (False, (1,))  # pyright: ignore
    profile.reset("chat", source="tg")
    again = deliver("update-77")
    assert (again.again, again.conversation) == (True, first.conversation)
    assert again.appended == first.appended
    assert deliver("update-78").conversation != first.conversation
    assert texts(profile.open(first.conversation)) == ["hello"]


def test_a_delivery_of_another_account_is_another(profile: clew.Profile) -> None:
    for account in ("bot-1", "bot-2"):
        got = profile.receive("chat", [clew.user("x")], source="tg", account=account, key="1")
        assert not got.again
    assert texts(profile.conversation("chat", source="tg")) == ["x", "x"]


def test_a_command_is_remembered_with_its_result(profile: clew.Profile) -> None:
    first = profile.receive(
        "chat", [], source="tg", account="bot", key="1", result='done: "\ud800" é'
    )
    assert (first.appended, first.result) == (None, 'done: "\ud800" é')
    again = profile.receive("chat", [], source="tg", account="bot", key="1", result="other")
    assert (again.again, again.result, again.conversation) == (
        True, first.result, first.conversation,
    )  # fmt: skip


def test_a_delivery_while_a_turn_runs_waits(profile: clew.Profile) -> None:
    conv = profile.conversation("chat", source="tg")
    begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    got = profile.receive("chat", [clew.user("x")], source="tg", account="bot", key="1")
    assert got.appended is not None
    assert got.appended.queued
    assert (
        profile.receive("chat", [clew.user("x")], source="tg", account="bot", key="1").appended
        == got.appended
    )
    assert len(conv.inbox()) == 1


def test_a_refused_delivery_may_come_again(profile: clew.Profile) -> None:
    with pytest.raises(clew.InputError):
        profile.receive("chat", [clew.user("x", replaces=5)], source="tg", account="bot", key="1")
    assert profile.bound("chat", source="tg") is None
    got = profile.receive("chat", [clew.user("x")], source="tg", account="bot", key="1")
    assert not got.again


@pytest.mark.parametrize("bad", ["", "\0", "\ud800", "x" * 1025])
def test_names_that_cannot_be_compared_are_refused(store: clew.Store, bad: str) -> None:
    """S48.2."""
    profile = store.profile("me")
    for ask in (
        lambda: store.profile(bad),
        lambda: profile.conversation(bad),
        lambda: profile.conversation("k", source=bad),
        lambda: profile.receive("k", [], source="s", account=bad, key="k"),
        lambda: profile.receive("k", [], source="s", account="a", key=bad),
    ):
        with pytest.raises(clew.InputError):
            ask()
    assert profile.list().items == ()


def test_routes_are_keys_that_never_meet() -> None:
    assert clew.route_key({"chat": 42, "thread": 7}) == clew.route_key({"thread": 7, "chat": 42})
    assert clew.route_key({"chat": 42, "thread": None}) == clew.route_key({"chat": 42})
    keys = {
        clew.route_key({"a": "1", "b": "2"}), clew.route_key({"a": "1b2"}),
        clew.route_key({"a": "1:", "b": "2"}), clew.route_key({"a": "1", "b": ":2"}),
        clew.route_key({"a1": "b2"}), clew.route_key({"a": 1}),
    }  # fmt: skip
    assert len(keys) == 6
    with pytest.raises(clew.InputError):
        clew.route_key({"a": None})
