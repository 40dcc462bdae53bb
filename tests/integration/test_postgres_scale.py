"""PostgreSQL as operators run it (docs/operating/scale.md): roles, TLS, a pooler, partitions, a
standby."""

from __future__ import annotations

import os
import re
import select
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Queue
from typing import Any

import psycopg
import pytest

import clew
from clew import CallPlan, CallResult, Draft, Image, Role, ToolCall, ToolResult, errors
from clew.store import (
    address,
    migrations,
    postgres_migrate,
    queries,
)
from clew.store.address import Address
from clew.testing.postgres import Server
from servers import WAIT, ask, server, until

PAGE = Path(__file__).parents[2] / "docs" / "operating" / "scale.md"


def with_user(url: str, user: str) -> str:
    """The URL, with another user, whose password is its name."""
    return re.sub(r"//.*?@", f"//{user}:{user}@", url)


def life(store: clew.Store) -> None:
    """Something of everything that a store does; every invariant holds afterwards."""
    profile = store.profile("me")
    conv = profile.conversation("chat", source="web")
    picture = Image(media_type="image/png", data=b"\x89PNG")
    conv.append([clew.user("one", key="k1"), Draft(role=Role.USER, parts=(picture,))])
    assert conv.append([clew.user("one", key="k1")]).new == 0
    turn = conv.begin_turn([clew.user("go")], call=CallPlan(model="m"))
    assert isinstance(turn, clew.TurnHandle)
    call = ToolCall("c1", "run", "{}")
    turn.record([Draft(role=Role.ASSISTANT, parts=(call,))], call=turn.call, result=CallResult())
    assert conv.append([clew.user("meanwhile")]).numbers
    answer = Draft(role=Role.TOOL, parts=(ToolResult("c1", "found"),))
    turn.record([answer], take_inbox=True)
    turn.finish([clew.assistant("done")])
    branch = conv.branch()
    branch.append([clew.user("on a branch")])
    cut = conv.cut(conv.message("k1").uid)
    conv.undo_cut(cut.number)
    profile.receive("route", [clew.user("in")], source="mail", account="a", key="1")
    text = [message.text for message in branch.messages()]
    assert text == ["one", "", "go", "", "", "meanwhile", "done", "on a branch"]
    profile.delete(conv.id)
    assert [message.text for message in branch.messages()] == text
    [image] = [p for m in branch.messages() for p in m.parts if isinstance(p, Image)]
    assert branch.blob(str(image.hash)) == b"\x89PNG"
    assert [hit.seq for hit in profile.search("meanwhile").hits] == [6]
    store.maintain()
    assert [hit.seq for hit in profile.search("meanwhile").hits] == [6]
    assert store.verify() == []


# ---------------------------------------------------------------- URLs


@pytest.mark.parametrize(
    ("url", "conninfo", "shown"),
    [
        ("postgresql://u:p@a:5432,b:5433/d?target_session_attrs=read-write",
         "postgresql://u:p@a:5432,b:5433/d?target_session_attrs=read-write",
         "postgresql://a:5432,b:5433/d"),
        ("postgresql://u:p@[::1]:1,[::2]/d", "postgresql://u:p@[::1]:1,[::2]/d",
         "postgresql://[::1]:1,[::2]/d"),
        ("postgresql:///d?host=/run/pg&pool_size=3", "postgresql:///d?host=/run/pg",
         "postgresql:///d"),
        ("postgresql://h/d?application_name=a+b%20c&pooler=transaction&options=-c%20geqo%3Doff",
         "postgresql://h/d?application_name=a+b%20c&options=-c%20geqo%3Doff", "postgresql://h/d"),
        ("postgres://u:a%40b@h/d", "postgres://u:a%40b@h/d", "postgresql://h/d"),
    ],
)  # fmt: skip
def test_a_url_is_what_libpq_takes(url: str, conninfo: str, shown: str) -> None:
    place = address.parse(url)
    assert isinstance(place, Address)
    assert (place.conninfo, place.shown) == (conninfo, shown)
    psycopg.conninfo.conninfo_to_dict(place.conninfo)


@pytest.mark.parametrize(
    "url", ["postgresql://u:12/secret@h/d", "postgresql://u:se?cret@h/d", "postgresql://h:no/d"]
)
def test_a_password_that_is_not_escaped_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(clew.InputError, match="%XX") as refused:
        address.parse(url)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["host=h password=secret dbname=d", " dbname = d", "sslmode=require password='se cret'",
     "password=secret://x", "application_name=a user=u"],
)  # fmt: skip
def test_keywords_of_libpq_are_no_path_and_are_not_shown(text: str) -> None:
    for store in (text, Path(text)):
        with pytest.raises(clew.InputError, match="give a URL") as refused:
            address.parse(store)
        assert "cret" not in str(refused.value)


@pytest.mark.parametrize("path", ["a=b", "/data/host=a/clew.db", "x=1/clew.db", "password.db"])
def test_a_path_may_hold_an_equals_sign(path: str) -> None:
    assert address.parse(path) == Path(path)


# ---------------------------------------------------------------- roles


def test_a_host_needs_no_more_than_the_page_grants() -> None:
    """The statements of the page; the owner migrates, also later, and a host cannot."""
    admin = server().create_database()
    name = admin.rpartition("/")[2]
    owner, host = f"{name}_owner", f"{name}_app"
    before, after = (
        block.replace("clew_owner", owner)
        .replace("clew_app", host)
        .replace("E clew ", f"E {name} ")
        for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[:2]
    )
    ask(admin, before.replace("'...'", f"'{owner}'", 1).replace("'...'", f"'{host}'"))
    try:
        with pytest.raises(clew.StoreError, match="run `clew migrate` as their owner"):
            clew.open(with_user(admin, host))
        with closing(psycopg.connect(with_user(admin, owner), autocommit=True)) as connection:
            postgres_migrate.finish(connection)
            ask(with_user(admin, owner), after)
            known = [*migrations.known("postgres")]
            later = known[-1]._replace(
                number=known[-1].number + 1, read=lambda: "CREATE TABLE later(x INTEGER)"
            )
            postgres_migrate.finish(connection, steps=[*known, later])
        with clew.open(with_user(admin, host)) as store:
            life(store)
        as_host = with_user(admin, host)
        assert ask(as_host, "SELECT count(*) FROM later") == [(0,)]
        for statement in (
            "UPDATE meta SET value = 'x'", "DELETE FROM end_reason", "CREATE TABLE t()",
            "ALTER TABLE message DISABLE TRIGGER ALL", "TRUNCATE message CASCADE",
            "UPDATE message SET role = 1",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(as_host, statement)
    finally:
        server().drop_database(name)
        ask(server().url(), f"DROP ROLE {host}")
        ask(server().url(), f"DROP ROLE {owner}")


# ---------------------------------------------------------------- between a host and its server


def read_exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        some = source.recv(size - len(data))
        if not some:
            raise EOFError
        data += some
    return data


def message(source: socket.socket) -> tuple[bytes, bytes]:
    """One message of the protocol: its type, and the whole of it."""
    head = read_exactly(source, 5)
    return head[:1], head + read_exactly(source, int.from_bytes(head[1:], "big") - 4)


def startup(source: socket.socket) -> tuple[int, bytes]:
    """A message without a type, as the first ones are: its code, and the whole of it."""
    head = read_exactly(source, 8)
    return int.from_bytes(head[4:], "big"), head + read_exactly(
        source, int.from_bytes(head[:4], "big") - 8
    )


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port whose connections are served in a thread each."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def attend(client: socket.socket) -> None:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client, suppress(EOFError, OSError):
                serve(client)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = door.accept()
                    threading.Thread(target=attend, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed one for localhost, and its key."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def test_tls_is_verified_when_the_url_says_so(tmp_path: Path) -> None:
    """A door with TLS before a server without, as PostgreSQL is here built without it."""
    cert, key = certificate(tmp_path, "server")
    other, _ = certificate(tmp_path, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def serve(client: socket.socket) -> None:
        code, _ = startup(client)
        assert code == 80877103  # SSLRequest
        client.sendall(b"S")
        place = ("127.0.0.1", server().port)
        with (
            socket.create_connection(place) as behind,
            context.wrap_socket(client, server_side=True) as secure,
        ):
            threading.Thread(target=pump, args=(secure, behind), daemon=True).start()
            pump(behind, secure)

    url = server().create_database()
    with listening(serve) as port:
        secure = url.replace(f"127.0.0.1:{server().port}", f"localhost:{port}")
        with clew.open(f"{secure}?sslmode=verify-full&sslrootcert={cert}") as store:
            store.profile("p").create().append([clew.user("by TLS")])
            assert store.verify() == []
        with pytest.raises(errors.Unavailable, match="certificate verify failed") as refused:
            clew.open(f"{secure}?sslmode=verify-full&sslrootcert={other}")
        assert server().password not in str(refused.value)
        by_number = secure.replace("localhost", "127.0.0.1")
        with pytest.raises(errors.Unavailable, match="does not match host name"):
            clew.open(f"{by_number}?sslmode=verify-full&sslrootcert={cert}")
    with pytest.raises(errors.Unavailable, match="does not support SSL"):
        clew.open(f"{url}?sslmode=verify-full&sslrootcert={cert}")


class Pooler:
    """Lends each transaction the session that has rested longest, as PgBouncer does in transaction
    mode; so two transactions of one client hardly ever meet the same one."""

    def __init__(self, url: str, sessions: int) -> None:
        self.sessions = [psycopg.connect(url, autocommit=True) for _ in range(sessions)]
        self._free: Queue[psycopg.Connection[Any]] = Queue()
        for session in self.sessions:
            self._free.put(session)
        self.lent = 0

    def serve(self, client: socket.socket) -> None:
        if startup(client)[0] in (80877103, 80877104):  # SSL, GSS: not here
            client.sendall(b"N")
            startup(client)
        values = {
            "server_version": "18.0", "server_encoding": "UTF8", "client_encoding": "UTF8",
            "standard_conforming_strings": "on", "DateStyle": "ISO", "integer_datetimes": "on",
        }  # fmt: skip
        client.sendall(_packed(b"R", bytes(4)))
        for name, value in values.items():
            client.sendall(_packed(b"S", f"{name}\0{value}\0".encode()))
        client.sendall(_packed(b"Z", b"I"))
        while True:
            kind, data = message(client)
            if kind == b"X":
                return
            session = self._free.get(timeout=WAIT)
            self.lent += 1
            try:
                with socket.socket(fileno=os.dup(session.fileno())) as behind:
                    behind.setblocking(True)
                    behind.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._transaction(client, behind, kind, data)
            finally:
                self._free.put(session)

    def _transaction(
        self, client: socket.socket, behind: socket.socket, kind: bytes, data: bytes
    ) -> None:
        """Pass on, both ways, until the session says that no transaction is open."""
        asked, more = 0, True
        while True:
            if data:
                behind.sendall(data)
                asked += kind in (b"S", b"Q")
                more, data = kind not in (b"S", b"Q"), b""
            ready, _, _ = select.select([client, behind], [], [], WAIT)
            if behind in ready:
                answer, whole = message(behind)
                client.sendall(whole)
                asked -= answer == b"Z"
                if answer == b"Z" and whole[-1:] == b"I" and not asked and not more:
                    return
            elif client in ready:
                kind, data = message(client)

    def close(self) -> None:
        for session in self.sessions:
            session.close()


def _packed(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def test_a_pooler_may_lend_another_session_to_each_transaction() -> None:
    """No statement is prepared, and no setting of a session is relied on."""
    url = server().create_database()
    ask(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET synchronous_commit = off")
    with closing(Pooler(url, 5)) as pooler, listening(pooler.serve) as port:
        pooled = url.replace(f":{server().port}/", f":{port}/") + "?pooler=transaction"
        with clew.open(pooled) as store:
            life(store)
            assert store.profile("me").list().items
        assert pooler.lent > 30
        for session in pooler.sessions:
            assert session.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert session.execute("SHOW lock_timeout").fetchone() == ("0",)


# ---------------------------------------------------------------- partitions


def test_a_store_in_partitions_is_the_same_store() -> None:
    url = server().create_database()
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        postgres_migrate.finish(connection, partitions=4)
        with pytest.raises(clew.InputError, match="made already"):
            postgres_migrate.finish(connection, partitions=8)
    with clew.open(url) as store:
        life(store)
        for at in range(40):
            store.profile("me").create().append([clew.user(f"message {at}", key="k")])
        assert len(store.profile("me").search("message").hits) == 20
        assert store.verify() == []
    rows = ask(url, "SELECT count(*), count(DISTINCT tableoid) FROM message")
    assert rows[0][1] == 4
    with pytest.raises(psycopg.errors.CheckViolation, match="I-02"):
        ask(url, "UPDATE message SET role = 2")
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for name in ("message_range", "message_by_key", "message_uids", "blob_get"):
            connection.execute("SET plan_cache_mode = auto")
            assert len(set(re.findall(r"(?:message|blob)_(\d{4})", plan(connection, name)))) == 1
            connection.execute("SET plan_cache_mode = force_generic_plan")
            assert "Subplans Removed: 3" in plan(connection, name)


def plan(connection: psycopg.Connection[Any], name: str) -> str:
    """How the server runs a statement of the store for conversation 7."""
    names: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    statement = re.sub(r":(\w+)", numbered, queries.load("postgres")[name])
    connection.execute(f"PREPARE hot AS {statement}".encode())
    values = ", ".join(f"'{at + 7}'" for at, _ in enumerate(names))
    rows = connection.execute(f"EXPLAIN EXECUTE hot({values})".encode()).fetchall()
    connection.execute("DEALLOCATE hot")
    return "\n".join(row[0] for row in rows)


# ---------------------------------------------------------------- a standby


@contextmanager
def two_servers() -> Iterator[tuple[Server, Server, str]]:
    """A primary, its standby, and a URL that leads to whichever of them takes writes."""
    with Server.start() as one:
        one.create_database("store")
        with one.standby() as two:
            both = f"postgres:{one.password}@127.0.0.1:{one.port},127.0.0.1:{two.port}"
            yield one, two, f"postgresql://{both}/store?target_session_attrs=read-write"


def test_what_was_acknowledged_is_on_a_synchronous_standby() -> None:
    """The primary dies under writers; they go on at the standby, by themselves."""
    with two_servers() as (one, two, url):
        ask(one.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
        ask(one.url(), "SELECT pg_reload_conf()")
        sync = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        until(lambda: ask(one.url(), sync))
        with clew.open(url) as store:
            conv = store.profile("me").create()
            stored: list[str] = []
            enough = threading.Event()

            def write(name: int) -> None:
                for at in range(100_000):
                    if enough.is_set():
                        return
                    conv.append([clew.user("x", key=f"{name}-{at}")])
                    stored.append(f"{name}-{at}")

            writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
            for writer in writers:
                writer.start()
            until(lambda: len(stored) > 100)
            one.kill()
            before = len(stored)
            ask(two.url(), "SELECT pg_promote()")
            until(lambda: len(stored) > before + 20)
            enough.set()
            for writer in writers:
                writer.join()
            there = [message.key for message in conv.messages()]
            assert sorted(str(key) for key in there) == sorted(stored)
            assert store.verify() == []


def test_an_asynchronous_standby_may_lack_the_newest_messages() -> None:
    """What it has is whole, it can be read meanwhile, and it says that it takes no writes."""
    with two_servers() as (one, two, url), clew.open(url) as store:
        conv = store.profile("me").create()
        conv.append([clew.user("sent in time")])
        replayed = "SELECT pg_last_wal_replay_lsn() >= CAST('{}' AS pg_lsn)"
        [(lsn,)] = ask(one.url(), "SELECT pg_current_wal_lsn()")
        until(lambda: ask(two.url(), replayed.format(lsn)) == [(True,)])
        with clew.open(two.url("store")) as copy:
            assert [m.text for m in copy.profile("me").open(conv.id).messages()] == ["sent in time"]
            assert copy.verify() == []
            with pytest.raises(clew.StoreError, match="Name the primary"):
                copy.profile("me").create()
            # It knows no LISTEN; a follower looks.
            mark, end = copy.profile("me").mark(), time.monotonic() + WAIT
            sender = threading.Timer(0.5, conv.append, args=([clew.user("sent later")],))
            sender.start()
            told = copy.profile("me").follow(since=mark, until=lambda: time.monotonic() > end)
            assert [(change.kind, change.first_seq) for change in [next(told)]] == [("appended", 2)]
            sender.join()
        ask(two.url(), "ALTER SYSTEM SET primary_conninfo = ''")  # the network between them fails
        ask(two.url(), "SELECT pg_reload_conf()")
        until(lambda: not ask(two.url(), "SELECT 1 FROM pg_stat_wal_receiver"))
        conv.append([clew.user("acknowledged, and lost")])
        lost = store.profile("me").mark()
        one.kill()
        ask(two.url(), "SELECT pg_promote()")
        assert [m.text for m in conv.messages()] == ["sent in time", "sent later"]
        assert conv.append([clew.user("goes on")]).seqs == (3,)
        with pytest.raises(clew.StoreReplaced):  # its number was that of the lost one
            store.profile("me").changes(lost)
        assert store.verify() == []
