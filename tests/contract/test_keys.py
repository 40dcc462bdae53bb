"""Names: a key or uid is one message, whoever writes it, however often."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, talk, texts

import clew
from clew import Draft, Role, Text


def test_writing_a_key_again_gives_the_first_message(conv: clew.Conversation) -> None:
    first = conv.append([clew.user("a", key="k")])
    talk(conv, "b")
    again = conv.append([clew.user("a", key="k", author="someone", meta={"x": 1})])
    assert (again.seqs, again.uids, again.new, again.head) == (first.seqs, first.uids, 0, 2)
    assert conv.message("k").author is None


def test_a_key_with_other_content_is_refused(conv: clew.Conversation) -> None:
    conv.append([clew.user("a", key="k")])
    for other in (clew.user("b", key="k"), clew.assistant("a", key="k")):
        with pytest.raises(clew.KeyReused) as refused:
            conv.append([other])
        assert (refused.value.key, refused.value.seq) == ("k", 1)
    assert texts(conv) == ["a"]


def test_equal_content_under_two_keys_or_none_is_two_messages(conv: clew.Conversation) -> None:
    conv.append([clew.user("a", key="k1"), clew.user("a", key="k2"), clew.user("a")])
    conv.append([clew.user("a")])
    assert texts(conv) == ["a"] * 4


def test_a_callers_uid_names_its_message(conv: clew.Conversation) -> None:
    uid = "0123456789abcdef" * 2
    assert conv.append([clew.user("a", uid=uid)]).uids == (uid,)
    assert conv.append([clew.user("a", uid=uid)]).new == 0
    with pytest.raises(clew.KeyReused):
        conv.append([clew.user("b", uid=uid)])
    assert texts(conv) == ["a"]


def test_a_uid_is_looked_for_above_the_head_its_writer_saw(conv: clew.Conversation) -> None:
    uid = "ab" * 16
    talk(conv, "a", "b")
    assert conv.append([clew.user("c", uid=uid, after=2)]).seqs == (3,)
    assert conv.append([clew.user("c", uid=uid, after=2)]).seqs == (3,)


@pytest.mark.parametrize("uid", ["", "zz" * 16, "ab" * 15, "ab" * 17])
def test_a_uid_that_is_none_is_refused(conv: clew.Conversation, uid: str) -> None:
    with pytest.raises(clew.InputError):
        conv.append([clew.user("a", uid=uid)])


def test_a_batch_goes_on_where_it_broke_off(conv: clew.Conversation) -> None:
    batch = [clew.user(text, key=text) for text in "abc"]
    conv.append(batch[:2])
    done = conv.append(batch)
    assert (done.seqs, done.new, done.head) == ((1, 2, 3), 1, 3)
    assert conv.append(batch).new == 0


@pytest.mark.parametrize(
    ("there", "batch", "found"),
    [("b", "ab", (1,)), ("ac", "abc", (1, 2)), ("ba", "ab", (2, 1)), ("axb", "ab", (1, 3))],
)
def test_a_batch_of_which_pieces_are_there_is_refused(
    conv: clew.Conversation, there: str, batch: str, found: tuple[int, ...]
) -> None:
    conv.append([clew.user(text, key=text) for text in there])
    with pytest.raises(clew.BatchConflict) as refused:
        conv.append([clew.user(text, key=text) for text in batch])
    assert refused.value.found == found
    assert texts(conv) == list(there)


def test_one_batch_names_each_message_once(conv: clew.Conversation) -> None:
    with pytest.raises(clew.InputError):
        conv.append([clew.user("a", key="k"), clew.user("b", key="k")])
    with pytest.raises(clew.InputError):
        conv.append([clew.user("a", uid="ab" * 16), clew.user("b", uid="AB" * 16)])


def test_a_hidden_message_keeps_its_key(conv: clew.Conversation) -> None:
    conv.append([clew.user("a", key="k")])
    conv.cut(conv.message("k").uid)
    again = conv.append([clew.user("a", key="k")])
    assert (again.new, again.seqs) == (0, (1,))
    with pytest.raises(clew.KeyReused):
        conv.append([clew.user("b", key="k")])
    assert texts(conv) == []


def test_a_branch_knows_the_keys_it_inherits(conv: clew.Conversation) -> None:
    conv.append([clew.user("a", key="k1"), clew.user("b", key="k2")])
    branch = conv.branch(conv.message("k1").uid)
    assert branch.append([clew.user("a", key="k1")]).new == 0
    with pytest.raises(clew.KeyReused):
        branch.append([clew.user("x", key="k1")])
    # k2 lies above the branch: there it is free
    assert branch.append([clew.user("other", key="k2")]).seqs == (2,)
    assert texts(conv) == ["a", "b"]
    assert texts(branch) == ["a", "other"]


def test_a_key_is_free_in_another_conversation(profile: clew.Profile) -> None:
    one, other = profile.create(), profile.create()
    one.append([clew.user("a", key="k")])
    other.append([clew.user("b", key="k")])
    assert (texts(one), texts(other)) == (["a"], ["b"])


def test_a_waiting_message_keeps_its_key(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    first = conv.append([clew.user("wait", key="k")])
    again = conv.append([clew.user("wait", key="k")])
    assert (first.numbers, first.new) == ((1,), 1)
    assert (again.numbers, again.new, again.uids) == ((1,), 0, first.uids)
    with pytest.raises(clew.KeyReused) as refused:
        conv.append([clew.user("other", key="k")])
    assert refused.value.seq is None
    turn.finish()
    conv.append([clew.user("next")])
    assert texts(conv) == ["go", "wait", "next"]
    assert conv.append([clew.user("wait", key="k")]).seqs == (2,)


def test_a_withdrawn_message_stays_withdrawn_when_it_is_sent_again(
    conv: clew.Conversation,
) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    conv.append([clew.user("wait", key="k")])
    assert conv.withdraw(1)
    turn.finish()
    again = conv.append([clew.user("wait", key="k")])
    assert (again.new, again.queued, again.seqs, again.numbers) == (0, False, (), ())
    assert texts(conv) == ["go"]
    assert conv.inbox() == ()
    known = conv.begin_turn([clew.user("wait", key="k")])
    assert isinstance(known, clew.TurnKnown)
    assert (known.turn, known.appended.queued) == (None, False)
    conv.replace([clew.user("go"), clew.user("wait", key="k")])
    assert texts(conv) == ["go", "wait"]


def test_unknown_values_are_compared_as_json(conv: clew.Conversation) -> None:
    draft = Draft(role=Role.USER, parts=(clew.Unknown({"type": "x", "list": (1, 2)}),), key="k")
    conv.append([draft])
    assert conv.append([draft]).new == 0
    assert conv.message("k").parts == (clew.Unknown({"type": "x", "list": [1, 2]}),)


@pytest.mark.parametrize("key", ["", "a\0b", "a\ud800b", "x" * 1025])
def test_a_key_that_cannot_be_compared_is_refused(conv: clew.Conversation, key: str) -> None:
    with pytest.raises(clew.InputError):
        conv.append([Draft(role=Role.USER, parts=(Text("a"),), key=key)])


def test_creating_an_id_again_gives_the_first(profile: clew.Profile) -> None:
    first = profile.create(id="mine", title="one")
    talk(first, "a")
    again = profile.create(id="mine", title="two")
    assert (again.id, again.info().title) == ("mine", "one")
    assert texts(again) == ["a"]
    assert profile.list().items[0].id == "mine"
