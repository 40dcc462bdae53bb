"""The doctor of stores on PostgreSQL: what it finds, and that it changes nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import clew
from clew.store import (
    address,
    doctor_postgres,
    doctor_rows,
    doctor_server,
    postgres_upkeep,
    queries,
)
from clew.store.doctor import Finding, diagnose
from clew.testing.postgres import Server
from servers import server

from .helpers import Remote


def look(url: str) -> list[Finding]:
    place = address.parse(url)
    assert isinstance(place, address.Address)
    return diagnose(place)


def one(url: str, subject: str) -> Finding:
    """What is wrong about a subject."""
    (finding,) = [f for f in look(url) if f.subject == subject and f.level != "ok"]
    assert finding.remedy
    return finding


def good(url: str, subject: str) -> str:
    (finding,) = [f for f in look(url) if f.subject == subject]
    assert finding.level == "ok"
    return finding.what


def sql(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@contextmanager
def role(url: str, *grants: str, options: str = "") -> Iterator[str]:
    """The URL for a user who may do what is granted to {}."""
    name = f"role_{secrets.token_hex(4)}"
    sql(url, f"CREATE ROLE {name} LOGIN PASSWORD 'word' {options}")
    try:
        sql(url, *(grant.format(name) for grant in grants))
        yield url.replace(f"postgres:{server().password}", f"{name}:word")
    finally:
        sql(url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_healthy_store() -> None:
    """On a server that keeps what it has acknowledged."""
    with Server.start(durable=True) as durable:
        url = durable.create_database()
        with clew.open(url) as store:
            store.profile("me").conversation("k").add(clew.user("hi"))
        found = look(url)
        assert [f.subject for f in found] == [
            "server", "network", "durability", "schema", "spool", "integrity", "contents", "turns",
            "dictionary", "size", "search", "replication", "connections", "rights", "transactions",
        ]  # fmt: skip
        assert [f.subject for f in found if f.level != "ok"] == ["rights"]  # a superuser
        assert durable.password not in repr(found)


def test_every_statement_is_used() -> None:
    used = set(postgres_upkeep.SQL)
    texts = queries.read("upkeep.sql") + queries.read("upkeep.postgres.sql")
    assert set(queries.parse(texts)) < used
    assert not [name for name, text in postgres_upkeep.SQL.items() if ":" in text]


def test_nothing_is_changed(remote: Remote) -> None:
    def state() -> list[Any]:
        with psycopg.connect(remote.url) as connection:
            tables = "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables"
            return [
                *connection.execute(f"{tables} ORDER BY 1".encode()),
                *connection.execute("SELECT * FROM meta ORDER BY 1"),
            ]

    look(remote.url)
    before = state()
    look(remote.url)
    assert state() == before


def test_a_server_that_is_away() -> None:
    finding = one("postgresql://me@127.0.0.1:9/x", "server")
    assert finding.level == "error"
    assert "cannot be reached" in finding.what


@pytest.mark.parametrize(
    ("host", "tls", "mode", "level", "what"),
    [
        ("db.example", True, "verify-full", "ok", "is who it says"),
        ("db.example", True, "require", "ok", "certificate is not checked"),
        ("db.example", False, "prefer", "warn", "what goes to db.example and back is not"),
        ("/run/postgresql", False, "prefer", "ok", "on this machine"),
    ],
)
def test_the_network(host: str, tls: bool, mode: str, level: str, what: str) -> None:
    info = SimpleNamespace(host=host, get_parameters=lambda: {"sslmode": mode})
    connection: Any = SimpleNamespace(info=info, pgconn=SimpleNamespace(ssl_in_use=tls))
    finding = doctor_postgres.network(connection)
    assert finding.level == level
    assert what in finding.what


def test_durability(remote: Remote) -> None:
    found = [f for f in look(remote.url) if f.subject == "durability"]  # of a server for tests
    assert [f.level for f in found] == ["error", "error"]
    assert "fsync = on" in (found[0].remedy or "")


def test_turns_and_messages_that_wait(remote: Remote) -> None:
    sql(remote.url, "UPDATE conversation SET held_at = 1 WHERE held_at IS NOT NULL")
    assert remote.ids.flaky in one(remote.url, "turns").what
    with remote.open() as store:
        conversation = store.profile("default").open(remote.ids.flaky)
        conversation.interrupt_turn()
        if conversation.inbox():
            assert "wait" in one(remote.url, "inbox").what


def test_interrupted_deletions_and_the_dictionary(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = "UPDATE conversation SET binned_at = 1, deleting = 1"
    sql(remote.url, f"{began} WHERE id = '{remote.ids.trip}'")
    assert "clew.open().maintain()" in (one(remote.url, "deletions").remedy or "")
    monkeypatch.setattr(doctor_rows, "ENOUGH", 1)
    assert "clew.open().maintain()" in (one(remote.url, "dictionary").remedy or "")


def test_the_search_index(remote: Remote) -> None:
    assert "not indexed yet" in good(remote.url, "search")
    with remote.open() as store:
        store.search_index.catch_up()
    assert good(remote.url, "search") == "all is indexed"
    sql(remote.url, "UPDATE meta SET value = 'another' WHERE name = 'stamp'")
    assert "another log" in good(remote.url, "search")
    sql(remote.url, "UPDATE search_mark SET format = 99")
    assert "newer clew" in one(remote.url, "search").what


def test_an_index_that_cannot_be_used(remote: Remote) -> None:
    sql(
        remote.url,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'message_id'::regclass",
    )
    finding = one(remote.url, "integrity")
    assert "message_id" in finding.what
    assert "REINDEX INDEX CONCURRENTLY message_id" in (finding.remedy or "")


def test_connections(remote: Remote) -> None:
    assert "a host takes up to" in good(remote.url, "connections")
    assert "pool_size" in (one(f"{remote.url}?pool_size=500", "connections").remedy or "")
    assert "a pooler" in good(f"{remote.url}?pooler=transaction", "connections")
    with role(remote.url, "GRANT pg_read_all_data TO {}", options="CONNECTION LIMIT 3") as url:
        assert "0 of 3 connections of the user" in one(url, "connections").what


def test_rights(remote: Remote) -> None:
    assert "superuser" in one(remote.url, "rights").what
    enough = (
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {}",
    )
    less = (
        "REVOKE INSERT, UPDATE, DELETE ON meta, end_reason FROM {}",
        "REVOKE UPDATE ON message, blob, change, dictionary FROM {}",
    )
    with role(remote.url, *enough, *less) as url:
        assert good(url, "rights") == "the user may do what a host needs, and no more"
        with clew.open(url) as store:
            store.profile("default").open(remote.ids.trip).add(clew.user("Thank you"))
            store.profile("default").delete(remote.ids.trip)
            store.search_index.catch_up()
    with role(remote.url, *enough, "REVOKE UPDATE ON prompt FROM {}") as url:
        assert "UPDATE on prompt" in one(url, "rights").what
    with role(remote.url, enough[0]) as url:
        assert "USAGE on change_nth" in one(url, "rights").what
    with role(remote.url) as url:
        assert "lacks a privilege" in one(url, "schema").what


def test_an_owner_may_do_more_than_a_host(remote: Remote) -> None:
    with role(remote.url, "GRANT CREATE ON SCHEMA public TO {}") as url:
        sql(remote.url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
        name = url.split("//")[1].split(":")[0]
        sql(remote.url, f"GRANT ALL ON SCHEMA public TO {name}")
        clew.open(url).close()
        assert "owns the tables" in good(url, "rights")


def test_transactions_that_stay_open(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    text = postgres_upkeep.SQL["long_transactions"].replace("60 seconds", "0 seconds")
    with psycopg.connect(remote.url, application_name="forgetful") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        assert good(remote.url, "transactions") == "none is open for long"
        monkeypatch.setitem(postgres_upkeep.SQL, "long_transactions", text)
        finding = one(remote.url, "transactions")
        assert "forgetful" in finding.what
        monkeypatch.undo()
        monkeypatch.setattr(doctor_server, "MANY_HELD_BACK", -1)
        assert "pg_read_all_stats" in (one(remote.url, "transactions").remedy or "")


def test_old_rows(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_server, "UNFROZEN", -1)
    assert "autovacuum" in (one(remote.url, "vacuum").remedy or "")


def test_a_store_that_was_moved(remote: Remote) -> None:
    sql(remote.url, "INSERT INTO meta(name, value) VALUES ('moved_to', '/new/place.db')")
    assert "/new/place.db" in one(remote.url, "schema").what


def test_what_cannot_be_looked_at_is_a_finding(remote: Remote) -> None:
    sql(remote.url, "DROP TABLE inbox CASCADE")
    assert "a table of clew is missing" in one(remote.url, "contents").what
    assert "transactions" in [f.subject for f in look(remote.url)]


def test_spans() -> None:
    assert [doctor_server.span(s) for s in (5, 600, 86_400)] == ["5 s", "10 min", "24 h"]
