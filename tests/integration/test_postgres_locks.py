"""Why isolation levels and the order of locks are what they are (docs/decisions/0012-isolation.md):
real sessions that meet in the worst moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

import clew
from apart import apart
from clew.store import bindings, log, postgres_transaction
from clew.store.opening import open_parts
from clew.store.postgres_session import Command
from clew.store.store import Store
from servers import WAIT, ask, server, until

# ---------------------------------------------------------------- isolation


@pytest.mark.parametrize("level", ["REPEATABLE READ", "READ COMMITTED"])
def test_a_reader_needs_one_snapshot_for_all_its_statements(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a branch is read, its origin is deleted, and the rows that it inherits move."""
    begin = Command("read", f"BEGIN ISOLATION LEVEL {level} READ ONLY")
    monkeypatch.setattr(postgres_transaction, "_READ", begin)
    parts = open_parts(server().create_database(), None, None, None)
    with Store(parts) as store:
        profile = store.profile("me")
        origin = profile.create()
        origin.append([clew.user(str(at)) for at in range(5)])
        branch = origin.branch()

        def read(tx: Any) -> int:
            no = tx.row("conversation_no", id=branch.id)[0]
            row = tx.row("conversation_row", no=no)
            pieces = log.segments(tx, no, row[5], row[4], row[6])
            profile.delete(origin.id)
            return len(log.read(tx, parts.kit.codec, pieces))

        assert parts.backend.read(read) == (5 if level == "REPEATABLE READ" else 0)
        assert len(list(branch.messages())) == 5


class Two:
    """Two sessions that meet at a row of a small log."""

    def __init__(self, url: str) -> None:
        ask(
            url,
            "DROP TABLE IF EXISTS c, lease, m;"
            "CREATE TABLE c(no INT PRIMARY KEY, head INT, fence INT);"
            "CREATE TABLE lease(no INT PRIMARY KEY, fence INT);"
            "CREATE TABLE m(no INT, seq INT, key TEXT, PRIMARY KEY(no, seq), UNIQUE(no, key));"
            "INSERT INTO c VALUES (1, 0, 5); INSERT INTO lease VALUES (1, 5)",
        )
        self.url = url
        self.first, self.second = (psycopg.connect(url, autocommit=True) for _ in range(2))

    def late(self, *statements: str) -> Callable[[], list[tuple[Any, ...]]]:
        """Run statements in the second session; the last one waits for the first session. What
        comes back gives its rows, or raises."""
        outcome: list[Any] = []

        def run() -> None:
            try:
                outcome.append(self.second.execute(statements[-1].encode()).fetchall())
            except psycopg.Error as error:
                outcome.append(error)

        for statement in statements[:-1]:
            self.second.execute(statement.encode())
        thread = threading.Thread(target=run)
        thread.start()
        waits = f"SELECT 1 FROM pg_locks WHERE NOT granted AND pid = {self.second.info.backend_pid}"
        until(lambda: ask(self.url, waits))

        def end() -> list[tuple[Any, ...]]:
            thread.join()
            if isinstance(outcome[0], psycopg.Error):
                raise outcome[0]
            return outcome[0]

        return end

    def close(self) -> None:
        self.first.close()
        self.second.close()


@pytest.fixture(scope="module")
def empty() -> str:
    return server().create_database()


@pytest.fixture
def two(empty: str) -> Iterator[Two]:
    with closing(Two(empty)) as two:
        yield two


LOCK = "SELECT head, fence FROM c WHERE no = 1 FOR NO KEY UPDATE"
INSERT = "INSERT INTO m VALUES (1, 1, 'k')"
MOVE = "UPDATE c SET head = 1 WHERE no = 1"
LOOK = "SELECT seq FROM m WHERE no = 1 AND key = 'k'"


def test_after_a_lock_read_committed_sees_what_the_one_before_wrote(two: Two) -> None:
    with two.first.transaction():
        two.first.execute(LOCK)
        end = two.late("BEGIN ISOLATION LEVEL READ COMMITTED", LOCK)
        two.first.execute(INSERT)
        two.first.execute(MOVE)
    assert end() == [(1, 5)]
    assert two.second.execute(LOOK).fetchall() == [(1,)]


def test_repeatable_read_would_fail_at_a_lock_that_it_waited_for(two: Two) -> None:
    with two.first.transaction():
        two.first.execute(LOCK)
        end = two.late("BEGIN ISOLATION LEVEL REPEATABLE READ", LOCK)
        two.first.execute(INSERT)
        two.first.execute(MOVE)
    with pytest.raises(psycopg.errors.SerializationFailure):
        end()


def test_repeatable_read_would_miss_a_key_where_the_locked_row_stays_as_it_is(two: Two) -> None:
    with two.first.transaction():
        two.first.execute(LOCK)
        end = two.late("BEGIN ISOLATION LEVEL REPEATABLE READ", LOCK)
        two.first.execute(INSERT)
    assert end() == [(0, 5)]
    assert two.second.execute(LOOK).fetchall() == []
    with pytest.raises(psycopg.errors.UniqueViolation):
        two.second.execute(INSERT)


def test_an_append_in_one_statement_would_leave_a_gap(two: Two) -> None:
    """It looks for its key in the snapshot of before it waited, and moves the head for nothing."""
    at_once = (
        "WITH moved AS (UPDATE c SET head = head + 1 WHERE no = 1 AND NOT EXISTS ("
        f"{LOOK}) RETURNING head) INSERT INTO m SELECT 1, head, 'k' FROM moved "
        "ON CONFLICT (no, key) DO NOTHING RETURNING seq"
    )
    with two.first.transaction():
        two.first.execute(LOCK)
        end = two.late(at_once)
        two.first.execute(INSERT)
        two.first.execute(MOVE)
    assert end() == []
    assert ask(two.url, "SELECT head, (SELECT max(seq) FROM m) FROM c") == [(2, 1)]


@pytest.mark.parametrize(
    ("fenced", "let_in"),
    [
        ("SELECT no FROM c WHERE no = 1 AND fence = 5 FOR NO KEY UPDATE", False),
        ("SELECT no FROM c WHERE no = 1 AND EXISTS (SELECT 1 FROM lease l "
         "WHERE l.no = c.no AND l.fence = 5) FOR NO KEY UPDATE OF c", True),
    ],
)  # fmt: skip
def test_a_fence_in_another_row_than_the_locked_one_lets_a_stale_host_write(
    two: Two, fenced: str, let_in: bool
) -> None:
    with two.first.transaction():
        two.first.execute(LOCK)
        end = two.late(fenced)
        two.first.execute("UPDATE c SET fence = 6 WHERE no = 1")
        two.first.execute("UPDATE lease SET fence = 6 WHERE no = 1")
    assert bool(end()) == let_in


# ---------------------------------------------------------------- the order of locks


class Meanwhile:
    """A deletion in a thread of its own, up to where it waits for another session."""

    def __init__(self, url: str, profile: clew.Profile, conversation: str) -> None:
        self._thread = threading.Thread(target=profile.delete, args=(conversation,))
        self._thread.start()
        until(lambda: ask(url, "SELECT 1 FROM pg_locks WHERE NOT granted"))

    def end(self) -> None:
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


def test_a_deletion_locks_the_key_before_the_conversation() -> None:
    """As whoever routes a message by that key does."""
    url = server().create_database()
    with clew.open(url) as store, closing(psycopg.connect(url)) as other:
        profile = store.profile("me")
        conv = profile.conversation("chat")
        other.execute("SELECT 1 FROM binding FOR NO KEY UPDATE")
        deletion = Meanwhile(url, profile, conv.id)
        other.execute("SELECT 1 FROM conversation FOR NO KEY UPDATE NOWAIT")
        other.rollback()
        deletion.end()
        assert profile.conversation("chat").id != conv.id


def test_a_deletion_locks_delegates_before_their_origin() -> None:
    """As a unit does that writes to one twice: the foreign key then looks at the origin again."""
    url = server().create_database()
    with clew.open(url) as store, closing(psycopg.connect(url)) as other:
        profile = store.profile("me")
        origin = profile.create()
        delegate = origin.delegate()
        lock = "SELECT no FROM conversation WHERE id = %s FOR NO KEY UPDATE"
        other.execute("SET lock_timeout = '500ms'")
        rows = other.execute(lock, (delegate.id,)).fetchall()
        deletion = Meanwhile(url, profile, origin.id)
        for turn in (1, None):
            other.execute("UPDATE conversation SET turn = %s WHERE no = %s", (turn, rows[0][0]))
        other.commit()
        deletion.end()
        assert delegate.info().origin is None
        assert store.verify() == []


def test_a_key_that_is_bound_and_unbound_meanwhile_can_be_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another host binds it before this one inserts, and deletes that before this one looks."""
    url = server().create_database()
    with apart(url) as store, apart(url) as other:
        insert, meanwhile = bindings._insert, [other.profile("me")]

        def late(*args: Any) -> bool:
            if not meanwhile:
                return insert(*args)
            profile = meanwhile.pop()
            conv = profile.conversation("chat")
            inserted = insert(*args)
            profile.delete(conv.id)
            return inserted

        monkeypatch.setattr(bindings, "_insert", lambda *args: late(*args))
        conv = store.profile("me").conversation("chat")
        assert store.profile("me").conversation("chat").id == conv.id
        assert store.verify() == []
