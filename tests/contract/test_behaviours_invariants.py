"""Each rule of docs/invariants.md: a constraint that refuses, or a check that sees it broken.

Rows are broken behind clew's back, in a store that is closed, and `verify` must name the rule.
I-02, I-12, I-14 and I-16 are constraints, which cannot be broken while the schema stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from talk import begun, calls, compact, result, summary, talk

import clew

pytestmark = pytest.mark.requires("file")

FREE = "DROP TRIGGER message_never_changes;"


def fill(path: Path) -> tuple[str, str]:
    """A store with one of everything; the ids of a conversation and of its branch."""
    with clew.open(path) as store:
        profile = store.profile("me")
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
        turn.record([calls("c1"), result("c1")])
        turn.finish([clew.assistant("f")])
        compact(conv, 2, summary("a, image"))
        conv.cut(conv.message(8).uid)
        assert store.verify() == []
        return conv.id, branch.id


@contextmanager
def behind_its_back(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").fetchall()
    yield connection
    connection.close()


BROKEN = [
    ("I-00", f"{FREE} UPDATE message SET parts = x'01ff' WHERE id = 3"),
    ("I-00", "UPDATE conversation SET prompt_hash = zeroblob(32) WHERE no = 1"),
    ("I-01", "DELETE FROM message WHERE id = 3"),
    ("I-01", "UPDATE conversation SET head = head + 1 WHERE no = 1"),
    ("I-03", "UPDATE conversation SET turn = 7 WHERE no = 1"),
    ("I-03", "UPDATE turn SET state = 'running', ended_at = NULL"),
    ("I-03", f"{FREE} UPDATE message SET turn = 1 WHERE conversation_no = 1 AND seq = 1"),
    ("I-04", "UPDATE conversation SET holder = 'x', held_at = 1, held_ttl = 1 WHERE no = 1"),
    ("I-04", "UPDATE conversation SET fence = 0 WHERE no = 1"),
    ("I-04", "UPDATE turn SET state = 'running', ended_at = NULL; "
             "UPDATE conversation SET turn = 1 WHERE no = 1"),
    ("I-04", "UPDATE turn SET state = 'waiting', ended_at = NULL; UPDATE conversation SET "
             "turn = 1, holder = 'x', held_at = 1, held_ttl = 1 WHERE no = 1"),
    ("I-05", f"{FREE} UPDATE message SET key = 'k1' WHERE conversation_no = 2"),
    ("I-06", "UPDATE cut SET to_seq = 99 WHERE conversation_no = 1"),
    ("I-06", "UPDATE conversation SET view = 0 WHERE no = 1"),
    ("I-07", f"{FREE} UPDATE message SET parts = "
             "(SELECT parts FROM message WHERE conversation_no = 1 AND seq = 3) "
             "WHERE conversation_no = 1 AND seq = 6"),
    ("I-08", "UPDATE compaction SET covers_to = 99"),
    ("I-08", "UPDATE compaction SET covers_to = 6"),
    ("I-09", "UPDATE attempt SET state = 'failed'"),
    ("I-10", "UPDATE conversation SET generation = 3 WHERE no = 1"),
    ("I-10", "UPDATE compaction SET generation = 2"),
    ("I-11", "DELETE FROM blob"),
    ("I-11", "UPDATE blob SET bytes = x'00'"),
    ("I-12", "UPDATE conversation SET ended_at = 1, end_reason = 'whatever' WHERE no = 1"),
    ("I-13", "UPDATE alias SET conversation = 'nobody'"),
    ("I-15", "UPDATE binding SET conversation = 'nobody'"),
    ("I-16", "DELETE FROM conversation WHERE no = 2"),
    ("I-17", "UPDATE conversation SET base = 99, head = 100 WHERE no = 2"),
    ("I-17", "UPDATE conversation SET profile = 'other' WHERE no = 2"),
    ("I-17", "UPDATE conversation SET origin = NULL WHERE no = 2"),
    ("I-18", "UPDATE conversation SET message_count = 1 WHERE no = 1"),
    ("I-18", "UPDATE conversation SET waiting = 1 WHERE no = 1"),
]  # fmt: skip
SEEN_AS = {"I-12": "I-00", "I-16": "I-00"}
"""A row without its parent is a broken foreign key."""


@pytest.mark.parametrize(("rule", "damage"), BROKEN)
def test_verify_sees_what_is_broken(fast_dir: Path, backend, rule: str, damage: str) -> None:
    """I-00 I-01 I-03 I-04 I-05 I-06 I-07 I-08 I-09 I-10 I-11 I-13 I-15 I-17 I-18 by verify."""
    fill(fast_dir / "store.db")
    with behind_its_back(fast_dir / "store.db") as connection:
        connection.execute(damage).fetchall()
    with clew.open(fast_dir / "store.db") as store:
        found = {problem.invariant for problem in store.verify()}
    assert SEEN_AS.get(rule, rule) in found


REFUSED = [
    ("I-02", "UPDATE message SET parts = x'00' WHERE id = 1"),
    ("I-02", "UPDATE message SET key = 'other' WHERE id = 1"),
    ("I-01", "INSERT INTO message(conversation_no, seq, uid, role, parts, created_at) "
             "SELECT conversation_no, seq, zeroblob(16), role, parts, 0 FROM message"),
    ("I-05", "INSERT INTO message(conversation_no, seq, uid, key, role, parts, created_at) "
             "VALUES (1, 99, zeroblob(16), 'k1', 1, x'00', 0)"),
    ("I-03", "UPDATE turn SET state = 'running', ended_at = NULL; INSERT INTO turn "
             "(conversation_no, number, uid, state, first_seq, started_at) "
             "VALUES (1, 9, zeroblob(16), 'running', 1, 0)"),
    ("I-06", "UPDATE cut SET to_seq = from_seq - 1"),
    ("I-08", "UPDATE compaction SET tokens_after = tokens_before"),
    ("I-09", "UPDATE conversation SET generation = 2; INSERT INTO compaction SELECT "
             "conversation_no, 2, attempt, covers_to, body, cuts, kind, tokens_before, "
             "tokens_after, created_at, undone_at, receipt FROM compaction"),
    ("I-10", "INSERT INTO compaction SELECT * FROM compaction"),
    ("I-12", "UPDATE conversation SET ended_at = 1 WHERE no = 1"),
    ("I-12", "UPDATE conversation SET ended_at = 1, end_reason = 'whatever' WHERE no = 1"),
    ("I-13", "INSERT INTO alias SELECT profile, source, foreign_id, 'other', 1, kind, state, 0 "
             "FROM alias"),
    ("I-15", "INSERT INTO binding SELECT profile, source, key, 'other', 0 FROM binding"),
    ("I-15", "INSERT INTO binding SELECT profile, source, 'other', conversation, 0 FROM binding"),
    ("I-16", "DELETE FROM conversation WHERE no = 1"),
    ("I-17", "UPDATE conversation SET origin = 99 WHERE no = 2"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "damage"), REFUSED)
def test_the_schema_refuses(fast_dir: Path, backend, rule: str, damage: str) -> None:
    """I-02 I-12 I-13 I-15 I-16 and most others are constraints first."""
    fill(fast_dir / "store.db")
    connection = apsw.Connection(str(fast_dir / "store.db"))
    connection.execute("PRAGMA foreign_keys = ON").fetchall()
    with pytest.raises(apsw.ConstraintError):
        connection.execute(damage).fetchall()
    connection.close()


def test_verify_sees_a_pair_that_a_compaction_splits(fast_dir: Path, backend) -> None:
    """I-08: of a turn; a message lies between the call and its result."""
    path = fast_dir / "store.db"
    with clew.open(path) as store:
        conv = store.profile("me").create()
        turn = begun(conv.begin_turn([clew.user("a")]))
        turn.record([calls("c1"), clew.user("b"), clew.assistant("c"), result("c1")])
        turn.finish()
        compact(conv, 5, clew.Ref(1, 1), clew.Ref(2, 3))
        assert store.verify() == []
    for body, covers_to in (("body", 3), ("body", 4)):
        with behind_its_back(path) as connection:
            connection.execute(f"UPDATE compaction SET covers_to = {covers_to}, body = {body}")
        with clew.open(path) as store:
            assert {problem.invariant for problem in store.verify()} == {"I-08"}


def test_i_14_each_title_has_a_column_of_its_own(fast_dir: Path, backend) -> None:
    """I-14 is the schema itself: no statement of one origin names another's column."""
    id, _ = fill(fast_dir / "store.db")
    with clew.open(fast_dir / "store.db") as store:
        conv = store.profile("me").open(id)
        conv.set_title("mine")
        conv.set_title("robot", "llm")
        conv.set_title("derived", "derived")
        assert conv.info().title == "mine"


def test_i_16_a_deletion_leaves_only_what_it_says(fast_dir: Path, backend) -> None:
    """I-16: aliases as `deleted`, inbound rows, change rows; nothing else, and no other's rows."""
    path = fast_dir / "store.db"
    id, branch = fill(path)
    with clew.open(path) as store:
        profile = store.profile("me")
        profile.receive("key", [clew.user("x")], source="tg", account="bot", key="update-1")
        before = [(m.seq, m.text) for m in profile.open(branch).messages()]
        profile.delete(id)
        assert [(m.seq, m.text) for m in profile.open(branch).messages()] == before
        assert profile.was_deleted("tool", "foreign")
    with behind_its_back(path) as connection:
        left = {
            table: connection.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (value,))
            .fetchall()[0][0]
            for table, column, value in _places(connection, id)
        }  # fmt: skip
    assert {table for table, count in left.items() if count} == {"alias", "inbound", "change"}


def _places(connection: apsw.Connection, id: str) -> Iterator[tuple[str, str, str | int]]:
    """Every table that can name conversation 1, by number or by id."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()}
        for column in columns & {"conversation_no", "conversation"}:
            yield table, column, 1 if column == "conversation_no" else id


def test_i_04_and_i_07_hold_at_the_door(fast_dir: Path, backend) -> None:
    """I-04: a write under an old fence is refused. I-07: so is a result that answers no call; the
    inbox is not taken between a call and its result."""
    with clew.open(fast_dir / "store.db") as store:
        conv = store.profile("me").create()
        turn = begun(conv.begin_turn([clew.user("x")]))
        assert conv.append([clew.user("meanwhile")]).queued
        with pytest.raises(clew.InputError):
            turn.record([result("nobody asked")])
        assert turn.record([calls("c1")], take_inbox=True).taken == ()
        assert turn.record([result("c1")], take_inbox=True).taken == (1,)
        conv.cut(conv.message(1).uid)
        with pytest.raises(clew.RightLost):
            turn.record([clew.assistant("late")])
        assert store.verify() == []


def test_i_11_a_message_names_bytes_that_are_here(fast_dir: Path, backend) -> None:
    """I-11: a hash from another conversation is refused; a branch shares its origin's blobs, and
    keeps them when that is deleted."""
    with clew.open(fast_dir / "store.db") as store:
        profile = store.profile("me")
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
        assert store.verify() == []
