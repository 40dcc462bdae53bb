"""What a conversation does not accept at its borders: others' ids and bytes, numbers out of range,
halves of pairs, rights that were given back."""

from __future__ import annotations

import pytest
from talk import (
    HOLDER,
    OTHER,
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
from clew import Draft, Image, NewConversation, Ref, Role, Stub


def image(data: bytes) -> Draft:
    return Draft(role=Role.USER, parts=(Image(data=data),))


def named(conv: clew.Conversation, seq: int) -> Draft:
    """A draft that names the image of a message by its hash only."""
    return Draft(role=Role.USER, parts=conv.message(seq).parts)


def digest(draft: Draft) -> str:
    (part,) = draft.parts
    assert isinstance(part, Image)
    return part.hash or ""


# ------------------------------------------------------------------ bytes


@pytest.mark.parametrize("base", [1, 2])
def test_what_a_branch_names_stays_when_its_origin_goes(profile: clew.Profile, base: int) -> None:
    conv = profile.create()
    conv.append([clew.user("a"), image(b"png")])
    branch = conv.branch(conv.message(base).uid)
    draft = named(conv, 2)
    branch.append([draft])
    before = branch.context()
    profile.delete(conv.id)
    assert branch.context() == before
    assert branch.blob(digest(draft)) == b"png"


def test_what_waits_in_a_branch_stays_when_its_origin_goes(profile: clew.Profile) -> None:
    conv = profile.create()
    conv.append([clew.user("a"), image(b"png")])
    branch = conv.branch(conv.message(1).uid)
    draft = named(conv, 2)
    turn = begun(branch.begin_turn([clew.user("go")], holder=HOLDER))
    assert branch.append([draft]).queued
    profile.delete(conv.id)
    turn.record(take_inbox=True)
    assert branch.blob(digest(draft)) == b"png"


def test_bytes_come_down_a_line_of_branches(profile: clew.Profile) -> None:
    conv = profile.create()
    conv.append([image(b"png")])
    middle = conv.branch()
    talk(middle, "m")
    last = middle.branch()
    draft = named(conv, 1)
    last.append([draft])
    profile.delete(middle.id)
    profile.delete(conv.id)
    assert [last.blob(digest(named(last, seq))) for seq in (1, 3)] == [b"png", b"png"]
    other = profile.create()
    with pytest.raises(clew.InputError):
        other.append([draft])


# ------------------------------------------------------------------ compactions


@pytest.mark.parametrize("to", [3, 4])
def test_no_compaction_comes_between_a_call_and_a_result_further_up(
    conv: clew.Conversation, to: int
) -> None:
    conv.append([clew.user("a"), calls("c1"), clew.user("b"), clew.assistant("c"), result("c1")])
    number = conv.open_attempt().number
    with pytest.raises(clew.InvalidCompaction):
        conv.commit_attempt(number, proposal(to))
    with pytest.raises(clew.InvalidCompaction):
        conv.record_foreign_compaction(proposal(to))
    assert conv.commit_attempt(number, proposal(5)).covers_to == 5


def test_an_id_that_comes_again_above_the_border_is_another_call(conv: clew.Conversation) -> None:
    pair = [calls("c1"), result("c1")]
    conv.append([clew.user("a"), *pair, clew.user("b"), *pair])
    assert compact(conv, 4).covers_to == 4


BODIES = [
    (Ref(1, 3), Ref(2, 4)), (Ref(3, 4), Ref(1, 2)), (Ref(1, 3), Stub(2, "s")),
    (Stub(2, "s"), Stub(2, "t")), (Stub(1, "s"), summary("x"), Ref(1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_a_body_names_a_message_once_and_in_order(
    conv: clew.Conversation, body: tuple[Ref | Stub | clew.Inline, ...]
) -> None:
    talk(conv, "a", "b", "c", "d", "e")
    with pytest.raises(clew.InvalidCompaction):
        compact(conv, 4, *body)
    with pytest.raises(clew.InvalidCompaction):
        conv.record_foreign_compaction(proposal(4, *body))
    compact(conv, 4, Ref(1, 2), summary("s"), Stub(3, "t"), Ref(4, 4))
    assert context_texts(conv) == ["a", "b", "<s>", "[t]", "d", "e"]


@pytest.mark.parametrize("counts", [(5, -1), (-1, -2), (1 << 60, 3)])
def test_tokens_are_counts(conv: clew.Conversation, counts: tuple[int, int]) -> None:
    talk(conv, "a")
    before, after = counts
    plan = clew.Proposal(
        covers_to=1, body=(summary("s"),), tokens_before=before, tokens_after=after
    )
    with pytest.raises(clew.InvalidCompaction):
        conv.commit_attempt(conv.open_attempt().number, plan)
    with pytest.raises(clew.InvalidCompaction):
        conv.record_foreign_compaction(plan)
    assert conv.compactions() == ()


# ------------------------------------------------------------------ ids


def test_an_id_of_another_conversation_is_refused(profile: clew.Profile) -> None:
    mine, conv, new = profile.create(id="mine"), profile.create(), NewConversation(id="mine")
    talk(mine, "my own")
    talk(conv, "a", "b")
    for make in (
        lambda: conv.branch(new=new),
        lambda: conv.branch(conv.message(1).uid, new=new),
        lambda: conv.delegate(new),
        lambda: mine.delegate(new),
        lambda: mine.branch(new=new),
        lambda: profile.reset("key", new=new),
        lambda: profile.conversation("key", new=new),
        lambda: profile.receive(
            "key", [clew.user("x")], source="api", account="a", key="1", new=new
        ),
    ):
        with pytest.raises(clew.KeyReused) as refused:
            make()
        assert (refused.value.key, refused.value.what) == ("mine", "conversation")
        assert "conversation" in str(refused.value)
    assert profile.bound("key") is None
    assert texts(mine) == ["my own"]


def test_a_creation_that_is_repeated_gives_the_first(profile: clew.Profile) -> None:
    conv = profile.create(id="c")
    talk(conv, "a", "b")
    uid = conv.message(1).uid
    made = [
        lambda: conv.branch(new=NewConversation(id="head")),
        lambda: conv.branch(uid, new=NewConversation(id="one")),
        lambda: conv.delegate(NewConversation(id="sub")),
        lambda: profile.create(id="plain"),
        lambda: profile.conversation("key", new=NewConversation(id="bound")),
    ]
    first = [make().id for make in made]
    talk(conv, "c")
    cut = conv.cut(uid).number
    line = [conv.branch(at_cut=cut, new=NewConversation(id="line")).id for _ in range(2)]
    assert [make().id for make in made] == first == ["head", "one", "sub", "plain", "bound"]
    assert line == ["line", "line"]


def test_a_repeat_at_another_message_is_another_branch(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a", "b")
    conv.branch(conv.message(1).uid, new=NewConversation(id="one"))
    with pytest.raises(clew.KeyReused):
        conv.branch(conv.message(2).uid, new=NewConversation(id="one"))
    with pytest.raises(clew.KeyReused):
        conv.delegate(NewConversation(id="one"))
    with pytest.raises(clew.KeyReused):
        profile.create(id="one")


def test_a_key_is_bound_to_no_history(profile: clew.Profile) -> None:
    old = profile.conversation("first", new=NewConversation(id="old"))
    talk(old, "history")
    with pytest.raises(clew.KeyReused):
        profile.conversation("second", new=NewConversation(id="old"))
    with pytest.raises(clew.KeyReused):
        profile.reset("second", new=NewConversation(id="old"))
    old.end("closed")
    with pytest.raises(clew.KeyReused):
        profile.conversation("first", new=NewConversation(id="old"))
    assert profile.conversation("first").id != "old"


def test_a_reset_that_is_repeated_gives_the_first(profile: clew.Profile) -> None:
    profile.conversation("key")
    new = NewConversation(id="next")
    assert profile.reset("key", new=new).conversation == "next"
    assert profile.reset("key", new=new).conversation == "next"


@pytest.mark.parametrize("name", ["created_at", "imported_at"])
@pytest.mark.parametrize("at", [-1, (1 << 62) + 5])
def test_a_time_out_of_range_is_refused(profile: clew.Profile, name: str, at: int) -> None:
    with pytest.raises(clew.InputError):
        profile.create(NewConversation(), **{name: at})
    profile.create(NewConversation(), **{name: 1 << 61})
    assert len(profile.list().items) == 1


# ------------------------------------------------------------------ turns


def test_who_lets_a_turn_wait_has_given_back_the_right(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    turn.wait([clew.assistant("may I?")])
    writes = [
        lambda: turn.record([clew.assistant("late")]), lambda: turn.finish(),
        lambda: turn.wait(), lambda: turn.renew(), lambda: turn.save_partial(1, "late"),
    ]  # fmt: skip
    for write in writes:
        with pytest.raises(clew.RightLost):
            write()
    assert conv.turns()[0].state == "waiting"
    resumed = conv.resume_turn(holder=OTHER)
    with pytest.raises(clew.RightLost):
        turn.finish()
    resumed.finish([clew.assistant("done")])
    assert texts(conv) == ["go", "may I?", "done"]


def test_a_turn_does_not_end_as_running(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    with pytest.raises(clew.InputError):
        turn.finish([clew.assistant("a")], state="running")
    assert texts(conv) == ["go"]
    turn.finish([clew.assistant("a")])


@pytest.mark.parametrize("name", ["input", "output", "cached", "reasoning"])
@pytest.mark.parametrize("count", [-1, 1 << 62])
def test_usage_is_a_count(conv: clew.Conversation, name: str, count: int) -> None:
    plan = clew.CallPlan(model="m")
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER, call=plan))
    bad = clew.CallResult(usage=clew.Usage(**{name: count}))
    with pytest.raises(clew.InputError):
        turn.record([clew.assistant("a")], call=1, result=bad)
    with pytest.raises(clew.InputError):
        turn.finish([clew.assistant("a")], call=1, result=bad)
    with pytest.raises(clew.InputError):
        conv.finish_call(conv.plan_call(plan), bad)
    assert texts(conv) == ["go"]
    turn.finish(call=1, result=clew.CallResult(usage=clew.Usage(**{name: 1 << 53})))


# ------------------------------------------------------------------ pop


def replacement(text: str, seq: int) -> Draft:
    return Draft(role=Role.USER, parts=(clew.Text(text),), replaces=seq)


def test_pop_takes_what_is_shown(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.append([replacement("b again", 2)])
    assert texts(conv.pop()) == ["b again"]
    assert texts(conv) == ["a"]


def test_pop_brings_no_old_text_back(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.append([replacement("a again", 1)])
    with pytest.raises(clew.InputError):
        conv.pop()
    assert texts(conv) == ["a again", "b"]
    assert texts(conv.pop(2)) == ["a again", "b"]
    assert texts(conv) == []
