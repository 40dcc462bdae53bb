"""Each rule of docs/invariants.md: a constraint that refuses, or a check that sees it broken.

Rows are broken behind clew's back, in a store that is closed, and `verify` must name the rule.
I-02, I-14 and I-16 are constraints, which cannot be broken while the schema stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from raw import Raw, Run
from talk import begun, calls, compact, result, summary, talk

import clew

pytestmark = pytest.mark.requires("engine")


class Filled(NamedTuple):
    """A conversation and its branch: ids, and the numbers that statements need."""

    id: str
    branch: str
    numbers: dict[str, int]


def fill(place: Any, raw: Raw) -> Filled:
    """A store with one of everything."""
    with clew.open(place) as store:
        profile = store.profile("me")
        profile.subscribe("memory")
        conv = profile.conversation("key", source="tg")
        conv.append([
            clew.user("a", key="k1"),
            clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"bytes"),)),
            clew.user("c"), clew.assistant("d"),
        ])  # fmt: skip
        conv.claim_alias("tool", "foreign")
        branch = conv.branch()
        talk(branch, "own")
        turn = begun(conv.begin_turn([clew.user("e")]))
        turn.record([calls("c1")], asks=[clew.Ask("c1", "run")])
        conv.answer_call("c1", True)
        turn.record([result("c1")])
        turn.finish([clew.assistant("f")])
        compact(conv, 2, summary("a, image"))
        conv.cut(conv.message(8).uid)
        assert store.verify() == []
        id, other = conv.id, branch.id
    with raw.connect(place) as run:
        number = dict(run("SELECT id, no FROM conversation"))
    return Filled(id, other, {"conv": number[id], "branch": number[other]})


BROKEN = [
    ("I-00", "{free} UPDATE message SET parts = {torn} WHERE conversation_no = {conv} AND seq = 3"),
    ("I-01", "DELETE FROM message WHERE conversation_no = {conv} AND seq = 3"),
    ("I-01", "UPDATE conversation SET head = head + 1 WHERE no = {conv}"),
    ("I-03", "UPDATE conversation SET turn = 7 WHERE no = {conv}"),
    ("I-03", "UPDATE turn SET state = 'running', ended_at = NULL"),
    ("I-03", "{free} UPDATE message SET turn = 1 WHERE conversation_no = {conv} AND seq = 1"),
    ("I-04", "UPDATE conversation SET holder = 'x', held_at = 1, held_ttl = 1 WHERE no = {conv}"),
    ("I-04", "UPDATE conversation SET fence = 0 WHERE no = {conv}"),
    ("I-04", "UPDATE turn SET state = 'running', ended_at = NULL; "
             "UPDATE conversation SET turn = 1 WHERE no = {conv}"),
    ("I-04", "UPDATE turn SET state = 'waiting', ended_at = NULL; UPDATE conversation SET "
             "turn = 1, holder = 'x', held_at = 1, held_ttl = 1 WHERE no = {conv}"),
    ("I-05", "{free} UPDATE message SET key = 'k1' WHERE conversation_no = {branch}"),
    ("I-06", "UPDATE cut SET to_seq = 99 WHERE conversation_no = {conv}"),
    ("I-06", "UPDATE conversation SET view = 0 WHERE no = {conv}"),
    ("I-07", "{free} UPDATE message SET parts = "
             "(SELECT parts FROM message WHERE conversation_no = {conv} AND seq = 3) "
             "WHERE conversation_no = {conv} AND seq = 6"),
    ("I-08", "UPDATE compaction SET covers_to = 99"),
    ("I-08", "UPDATE compaction SET covers_to = 6"),
    ("I-09", "UPDATE attempt SET state = 'failed'"),
    ("I-10", "UPDATE conversation SET generation = 3 WHERE no = {conv}"),
    ("I-10", "UPDATE compaction SET generation = 2"),
    ("I-11", "DELETE FROM blob"),
    ("I-11", "UPDATE blob SET bytes = {zero}"),
    ("I-13", "UPDATE alias SET conversation = 'nobody'"),
    ("I-15", "UPDATE binding SET conversation = 'nobody'"),
    ("I-17", "UPDATE conversation SET base = 99, head = 100 WHERE no = {branch}"),
    ("I-17", "UPDATE conversation SET profile = 'other' WHERE no = {branch}"),
    ("I-17", "UPDATE conversation SET origin = NULL WHERE no = {branch}"),
    ("I-18", "UPDATE conversation SET message_count = 1 WHERE no = {conv}"),
    ("I-18", "UPDATE conversation SET waiting = 1 WHERE no = {conv}"),
    ("I-20", "UPDATE boundary SET number = 99"),
    ("I-20", "UPDATE boundary SET generation = 2"),
    ("I-20", "UPDATE boundary SET kind = 'undo'"),
    ("I-20", "UPDATE boundary SET next_at = NULL"),
    ("I-20", "INSERT INTO subscriber VALUES ('other', 'memory', 0); "
             "UPDATE boundary SET profile = 'other'"),
    ("I-21", "UPDATE approval SET turn = 9"),
    ("I-21", "UPDATE approval SET call_id = 'another'"),
]  # fmt: skip
LOOSE = [
    ("I-00", "UPDATE conversation SET prompt_hash = {zeros32} WHERE no = {conv}"),
    ("I-12", "UPDATE conversation SET ended_at = 1, end_reason = 'whatever' WHERE no = {conv}"),
    ("I-16", "DELETE FROM conversation WHERE no = {branch}"),
    ("I-20", "DELETE FROM subscriber"),
]
"""Rows without their parent."""


def seen_after(damage: str, place: Any, raw: Raw) -> set[str]:
    """The rules that verify names after the damage."""
    filled = fill(place, raw)
    with raw.unguarded(place) as run:
        run(raw.say(damage, **filled.numbers))
    with clew.open(place) as store:
        return {problem.invariant for problem in store.verify()}


@pytest.mark.parametrize(("rule", "damage"), BROKEN)
def test_verify_sees_what_is_broken(place, raw: Raw, rule: str, damage: str) -> None:
    """I-00 I-01 I-03 I-04 I-05 I-06 I-07 I-08 I-09 I-10 I-11 I-13 I-15 I-17 I-18 I-20
    I-21 by verify."""
    assert rule in seen_after(damage, place, raw)


@pytest.mark.parametrize(("rule", "damage"), LOOSE)
def test_verify_sees_a_row_without_its_parent(place, raw: Raw, rule: str, damage: str) -> None:
    """I-00, and with it I-12, I-16 and I-20."""
    assert "I-00" in seen_after(damage, place, raw), rule


REFUSED = [
    ("I-02", "UPDATE message SET parts = {zero} WHERE conversation_no = {conv} AND seq = 1"),
    ("I-02", "UPDATE message SET key = 'other' WHERE conversation_no = {conv} AND seq = 1"),
    ("I-01", "INSERT INTO message(id, conversation_no, seq, uid, role, parts, created_at) "
             "SELECT id + 1000, conversation_no, seq, {zeros16}, role, parts, 0 FROM message"),
    ("I-05", "INSERT INTO message(id, conversation_no, seq, uid, key, role, parts, created_at) "
             "VALUES (1000, {conv}, 99, {zeros16}, 'k1', 1, {zero}, 0)"),
    ("I-03", "UPDATE turn SET state = 'running', ended_at = NULL; INSERT INTO turn "
             "(conversation_no, number, uid, state, first_seq, started_at) "
             "VALUES ({conv}, 9, {zeros16}, 'running', 1, 0)"),
    ("I-06", "UPDATE cut SET to_seq = from_seq - 1"),
    ("I-08", "UPDATE compaction SET tokens_after = tokens_before"),
    ("I-09", "UPDATE conversation SET generation = 2; INSERT INTO compaction SELECT "
             "conversation_no, 2, attempt, covers_to, body, cuts, kind, tokens_before, "
             "tokens_after, created_at, undone_at, undone_tokens, receipt FROM compaction"),
    ("I-10", "INSERT INTO compaction SELECT * FROM compaction"),
    ("I-12", "UPDATE conversation SET ended_at = 1 WHERE no = {conv}"),
    ("I-12", "UPDATE conversation SET ended_at = 1, end_reason = 'whatever' WHERE no = {conv}"),
    ("I-13", "INSERT INTO alias SELECT profile, source, foreign_id, 'other', 1, kind, state, 0 "
             "FROM alias"),
    ("I-15", "INSERT INTO binding SELECT profile, source, key, 'other', 0 FROM binding"),
    ("I-15", "INSERT INTO binding SELECT profile, source, 'other', conversation, 0 FROM binding"),
    ("I-16", "DELETE FROM conversation WHERE no = {conv}"),
    ("I-17", "UPDATE conversation SET origin = 99 WHERE no = {branch}"),
    ("I-19", "UPDATE conversation SET imported_to = head + 1 WHERE no = {conv}"),
    ("I-19", "UPDATE conversation SET imported_to = base - 1 WHERE no = {branch}"),
    ("I-20", "UPDATE boundary SET source = ''"),
    ("I-20", "INSERT INTO boundary SELECT * FROM boundary"),
    ("I-21", "UPDATE approval SET state = 'asked'"),
    ("I-21", "UPDATE approval SET answered_at = NULL"),
    ("I-21", "UPDATE approval SET state = 'denied', always = 1"),
    ("I-21", "INSERT INTO approval SELECT * FROM approval"),
    *LOOSE,
]  # fmt: skip


@pytest.mark.parametrize(("rule", "damage"), REFUSED)
def test_the_schema_refuses(place, raw: Raw, rule: str, damage: str) -> None:
    """I-02 I-12 I-13 I-15 I-16 and most others are constraints first."""
    filled = fill(place, raw)
    with raw.connect(place) as run, pytest.raises(raw.refusal):
        run(raw.say(damage, **filled.numbers))


def test_verify_sees_a_pair_that_a_compaction_splits(place, raw: Raw) -> None:
    """I-08: of a turn; a message lies between the call and its result."""
    with clew.open(place) as store:
        conv = store.profile("me").create()
        turn = begun(conv.begin_turn([clew.user("a")]))
        turn.record([calls("c1"), clew.user("b"), clew.assistant("c"), result("c1")])
        turn.finish()
        compact(conv, 5, clew.Ref(1, 1), clew.Ref(2, 3))
        assert store.verify() == []
    for body, covers_to in (("body", 3), ("body", 4)):
        with raw.unguarded(place) as run:
            run(f"UPDATE compaction SET covers_to = {covers_to}, body = {body}")
        with clew.open(place) as store:
            assert {problem.invariant for problem in store.verify()} == {"I-08"}


def test_i_14_each_title_has_a_column_of_its_own(conv: clew.Conversation) -> None:
    """I-14 is the schema itself: no statement of one origin names another's column."""
    conv.set_title("mine")
    conv.set_title("robot", "llm")
    conv.set_title("derived", "derived")
    assert conv.info().title == "mine"


def test_i_16_a_deletion_leaves_only_what_it_says(place, raw: Raw) -> None:
    """I-16: aliases as `deleted`, inbound rows, change rows; nothing else, and no other's rows."""
    filled = fill(place, raw)
    with clew.open(place) as store:
        profile = store.profile("me")
        profile.receive("key", [clew.user("x")], source="tg", account="bot", key="update-1")
        branch = profile.open(filled.branch)
        before = [(m.seq, m.text) for m in branch.messages()]
        profile.delete(filled.id)
        assert [(m.seq, m.text) for m in branch.messages()] == before
        assert profile.was_deleted("tool", "foreign")
    with raw.connect(place) as run:
        left = {
            table
            for table, column, value in _places(run, raw, filled)
            if run(f"SELECT 1 FROM {table} WHERE {column} = {value}")
        }
    assert left == {"alias", "inbound", "change"}


def _places(run: Run, raw: Raw, filled: Filled) -> Iterator[tuple[str, str, str | int]]:
    """Every column that can name the conversation, by its number or by its id."""
    names = {
        "conversation_no": filled.numbers["conv"], "conversation": f"'{filled.id}'",
        "conversation.no": filled.numbers["conv"], "conversation_id.id": f"'{filled.id}'",
        "conversation.origin": filled.numbers["conv"],
    }  # fmt: skip
    for table, column, _ in run(raw.columns):
        value = names.get(column, names.get(f"{table}.{column}"))
        if value is not None:
            yield table, column, value


def test_i_04_and_i_07_hold_at_the_door(conv: clew.Conversation) -> None:
    """I-04: a write under an old fence is refused. I-07: so is a result that answers no call; the
    inbox is not taken between a call and its result."""
    turn = begun(conv.begin_turn([clew.user("x")]))
    assert conv.append([clew.user("meanwhile")]).queued
    with pytest.raises(clew.InputError):
        turn.record([result("nobody asked")])
    assert turn.record([calls("c1")], take_inbox=True).taken == ()
    assert turn.record([result("c1")], take_inbox=True).taken == (1,)
    conv.cut(conv.message(1).uid)
    with pytest.raises(clew.RightLost):
        turn.record([clew.assistant("late")])


def test_i_11_a_message_names_bytes_that_are_here(profile: clew.Profile) -> None:
    """I-11: a hash from another conversation is refused; a branch shares its origin's blobs, and
    keeps them when that is deleted."""
    conv, other = profile.create(), profile.create()
    conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"bytes"),))])
    named = clew.Draft(role=clew.Role.USER, parts=conv.message(1).parts)
    with pytest.raises(clew.InputError):
        other.append([named])
    branch = conv.branch()
    branch.append([named])
    profile.delete(conv.id)
    (image,) = branch.message(2).parts
    assert isinstance(image, clew.Image)
    assert branch.blob(image.hash or "") == b"bytes"
