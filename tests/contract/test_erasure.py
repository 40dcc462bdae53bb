"""Erasure: what a message leaves, in it and in everything that was made from it."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from raw import Raw
from talk import HOLDER, begun, calls, compact, context_texts, result, summary, talk, texts

import clew
from clew.domain.erasure import ERASED, names_person
from clew.domain.routes import route_key
from clew.errors import Cancelled

SECRET = "the passport has the number 4711-0815-2342"

pytestmark = pytest.mark.requires("engine")


def erase(profile: clew.Profile, conv: clew.Conversation, *seqs: int) -> Any:
    return profile.erase(profile.plan_erasure(messages={conv.id: seqs}))


def test_i_23_a_tombstone_says_nothing(profile: clew.Profile, conv: clew.Conversation) -> None:
    conv.append([clew.user(SECRET, key="k", author="ann", meta={"said": SECRET})])
    talk(conv, "a", "b")
    before = conv.message(1)
    erased = erase(profile, conv, 1)
    message = conv.message(1)
    assert (erased.messages, erased.proof.traces) == (1, ())
    assert erased.proof.fragments > 0
    assert (message.seq, message.uid, message.role) == (1, before.uid, before.role)
    assert message.created_at == before.created_at
    assert (message.text, message.key, message.author, message.tokens) == (ERASED, None, None, 0)
    assert message.is_erased
    assert texts(conv) == [ERASED, "a", "b"]
    assert context_texts(conv) == [ERASED, "a", "b"]


def test_erasing_again_changes_nothing(profile: clew.Profile, conv: clew.Conversation) -> None:
    talk(conv, SECRET, "b")
    erase(profile, conv, 1)
    view = conv.info().view
    assert erase(profile, conv, 1).messages == 0
    assert conv.info().view == view


def test_calls_and_results_stay_pairs(profile: clew.Profile, conv: clew.Conversation) -> None:
    conv.append([clew.user("go"), calls("c1"), result("c1", SECRET)])
    erase(profile, conv, 2, 3)
    assert texts(conv) == ["go", "call c1", "result c1"]
    assert SECRET not in str(conv.message(3).to_dict())
    assert [m["role"] for m in conv.context("m1")] == ["user", "assistant", "tool"]


def test_what_was_made_from_it_goes(profile: clew.Profile, conv: clew.Conversation) -> None:
    talk(conv, SECRET, *"bcdefgh")
    conv.set_title(SECRET, "llm")
    conv.set_todos([clew.Todo(f"look up: {SECRET}"), clew.Todo("rest")])
    conv.set_goal(SECRET)
    compact(conv, 4, summary(SECRET))
    attempt = conv.open_attempt()
    view = conv.info().view
    erased = erase(profile, conv, 1)
    info = conv.info()
    assert erased.compactions == 1
    assert info.view > view
    assert (info.title, info.preview) == ("c", "h")
    assert context_texts(conv) == [ERASED, *"bcdefgh"]
    (record,) = conv.compactions()
    assert record.undone_at is not None
    assert (record.body, record.receipt) == ((), None)
    proposal = clew.Proposal(covers_to=4, body=(summary("x"),), tokens_before=10, tokens_after=1)
    with pytest.raises(Cancelled):
        conv.commit_attempt(attempt.number, proposal)
    assert [todo.text for todo in conv.todos()] == [ERASED, "rest"]


def test_branches_show_the_tombstone(profile: clew.Profile, conv: clew.Conversation) -> None:
    talk(conv, "a", SECRET, "c", "d")
    branch = conv.branch()
    inner = branch.branch()
    low = conv.branch(conv.message(1).uid)
    compact(inner, 3, summary(SECRET))
    views = [one.info().view for one in (branch, inner, low)]
    erase(profile, inner, 2)  # where it is shown, not where it lies
    assert texts(conv) == texts(branch) == texts(inner) == ["a", ERASED, "c", "d"]
    assert context_texts(inner) == ["a", ERASED, "c", "d"]
    moved = [one.info().view > view for one, view in zip((branch, inner, low), views, strict=True)]
    assert moved == [True, True, False]


def test_a_turn_that_runs_ends(profile: clew.Profile, conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user(SECRET)], holder=HOLDER))
    erase(profile, conv, 1)
    with pytest.raises(clew.RightLost):
        turn.record([clew.assistant(SECRET)])
    assert texts(conv) == [ERASED]


def test_pictures_that_nobody_else_names_go(profile: clew.Profile, conv: clew.Conversation) -> None:
    own, shared = b"own picture bytes" * 9, b"shared picture bytes" * 9
    for data in (own, shared, shared):
        conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=data),))])
    hashes = [str(conv.message(seq).parts[0].hash) for seq in (1, 2)]  # type: ignore[union-attr]
    assert erase(profile, conv, 1, 2).blobs == 1
    with pytest.raises(clew.NotFound):
        conv.blob(hashes[0])
    assert conv.blob(hashes[1]) == shared


def test_everything_of_a_person(profile: clew.Profile) -> None:
    key = route_key({"chat": "+491701234567", "channel": "sms"})
    own = profile.conversation(key, source="sms", new=clew.NewConversation(meta={"n": SECRET}))
    talk(own, SECRET, f"I noted: {SECRET}")
    helper = own.delegate()
    talk(helper, SECRET)
    group = profile.create()
    group.append([clew.user(SECRET, author="+491701234567"), clew.user("mine", author="bob")])
    other = profile.create()
    talk(other, "nothing of it")
    plan = profile.plan_erasure(person="+491701234567")
    assert {(t.conversation, t.whole, t.why) for t in plan.targets} == {
        (own.id, True, "key"), (helper.id, True, "sub-agent"), (group.id, False, "author"),
    }  # fmt: skip
    erased = profile.erase(plan)
    assert erased.proof.traces == ()
    assert (erased.messages, erased.keys) == (4, 1)
    assert texts(own) == [ERASED, ERASED]
    assert texts(helper) == [ERASED]
    assert texts(group) == [ERASED, "mine"]
    assert texts(other) == ["nothing of it"]
    assert own.info().meta is None
    assert profile.bound(key, source="sms") is None
    assert profile.plan_erasure(person="+491701234567").is_empty


def test_another_profile_is_not_touched(store: clew.Store, profile: clew.Profile) -> None:
    other = store.profile("other").create()
    other.append([clew.user("of another bot", author="ann")])
    profile.create().append([clew.user(SECRET, author="ann")])
    profile.erase(profile.plan_erasure(person="ann"))
    assert texts(other) == ["of another bot"]
    with pytest.raises(clew.NotFound):
        profile.plan_erasure(messages={other.id: [1]})


def test_who_quotes_it_is_named(profile: clew.Profile, conv: clew.Conversation) -> None:
    talk(conv, SECRET, f"you said: {SECRET}")
    erased = erase(profile, conv, 1)
    assert not erased.is_proven
    assert {trace.kind for trace in erased.proof.traces} == {"row"}
    assert any("message.parts" in trace.place for trace in erased.proof.traces)
    assert SECRET not in str(erased)
    assert erase(profile, conv, 2).is_proven


def test_the_index_forgets_it(
    store: clew.Store, profile: clew.Profile, conv: clew.Conversation
) -> None:
    talk(conv, "zanzibar and the passport", "kept words")
    store.search_index.catch_up()
    assert len(profile.search("zanzibar").hits) == 1
    erase(profile, conv, 1)
    assert profile.search("zanzibar").hits == ()
    assert len(profile.search("kept").hits) == 1


def test_followers_are_told(profile: clew.Profile, conv: clew.Conversation) -> None:
    talk(conv, SECRET)
    mark = profile.mark()
    erase(profile, conv, 1)
    told = profile.follow(since=mark, poll=0.01)
    assert (conv.id, "erased") in {(c.conversation, c.kind) for c in islice(told, 1)}


def test_the_schema_refuses_other_changes(
    store: clew.Store, place: Any, conv: clew.Conversation, raw: Raw
) -> None:
    talk(conv, "a")
    for change in ("seq = 2", "tokens = 3", "author = 'x'", "role = 2"):
        with raw.connect(place) as run, pytest.raises(raw.refusal):
            run(f"UPDATE message SET {change}")


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("+4917", True), ("sms:+4917", True), ("+49170", False), ("4:chat5:+4917", True),
        ("4:chat5:+49175:topic1:1", True), ("4:chat6:+49170", False), ("user/+4917/x", True),
    ],
)  # fmt: skip
def test_keys_that_hold_a_persons(key: str, found: bool) -> None:
    assert names_person(key, "+4917") is found
