"""The commands on a store of a PostgreSQL server, and what they say when it cannot be reached."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import clew
from clew.cli import failures
from clew.cli.commands import search
from clew.cli.main import cli
from clew.store import postgres_migrate
from clew.store.search import Search
from servers import server

from .helpers import REAL, Remote, Run, process

SECRET = "sE-cret"
ELSEWHERE = f"postgresql://ann:{SECRET}@127.0.0.1:9/db"


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> str:
    """A database without a store; CLEW_STORE names it."""
    url = server().create_database()
    monkeypatch.setenv("CLEW_STORE", url)
    return url


def tables(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        return (row.fetchone() or (0,))[0]


# ---------------------------------------------------------------- what works


def test_reading(remote: Remote, run: Run, loads: Any) -> None:
    assert remote.ids.trip in run("list").stdout
    assert len(loads("list", "--all-profiles")) == 6
    assert "Shall I change it" in run("show", remote.ids.flaky[:10]).stdout
    assert "gpt-5" in run("show", remote.ids.flaky, "--context").stdout
    assert "Kyōto" in run("search", "Kirschen").stdout
    assert run("search", "nowhere", code=1).stdout == ""
    assert run("profiles").stdout == "bot\t1\ndefault\t5\n"
    assert "--at-cut 1" in run("resume", remote.ids.flaky).stdout


def test_changing(remote: Remote, run: Run, loads: Any) -> None:
    trip = remote.ids.trip[:10]
    run("rename", trip, "Kyoto")
    run("unpin", trip)
    run("archive", trip)
    assert trip in run("list", "--archived").stdout
    assert loads("branch", trip)["kind"] == "branch"
    run("cut", trip, "2", "--yes")
    run("undo", trip)
    run("delete", trip, "--yes")
    assert loads("prune", "--older-than", "1y", "--yes")["binned"] == 0
    assert [one["id"] for one in loads("bin")] == [remote.ids.trip]
    run("bin", "restore", trip)
    assert trip in run("list", "--archived").stdout
    run("delete", trip, "--now", "--yes")
    assert loads("verify") == []


def test_sizes_are_those_of_the_server(remote: Remote, run: Run, loads: Any) -> None:
    found = loads("stats")
    assert found["bytes"]["store"] > 100_000
    assert found["bytes"]["search"] > 0
    assert found["path"] == remote.url.replace(f"postgres:{server().password}@", "")
    assert re.search(rf"[KM]iB {re.escape(found['path'])}", run("stats").stdout)


def test_following_shows_what_another_process_adds(remote: Remote) -> None:
    command = [sys.executable, "-c", REAL, "show", remote.ids.long, "--follow", "--json"]
    child = subprocess.Popen(
        [*command, "--last", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ,
    )  # fmt: skip
    assert child.stdout is not None
    assert json.loads(child.stdout.readline())["message"]["seq"] == 60
    with remote.open() as store:
        store.profile("default").open(remote.ids.long).add(clew.user("Hello from elsewhere"))
    assert json.loads(child.stdout.readline())["message"]["seq"] == 61
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=20)
    assert (child.returncode, error.strip()) == (130, "")


def test_a_shell_is_offered_ids(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    def offered() -> str:
        done = process(
            _CLEW_COMPLETE="bash_complete", COMP_WORDS=f"clew show {remote.ids.trip[:10]}",
            COMP_CWORD="2",
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    assert remote.ids.trip in offered()
    monkeypatch.setenv("CLEW_STORE", ELSEWHERE)
    assert offered().strip() == ""


# ---------------------------------------------------------------- no store


@pytest.mark.parametrize("command", [["list"], ["profiles"], ["search", "x"], ["bin"]])
def test_an_empty_database_stays_empty(empty: str, run: Run, command: list[str]) -> None:
    said = run(*command)
    assert said.stdout == ""
    assert said.stderr.startswith("There is no store in postgresql://127.0.0.1:")
    assert "clew migrate" in said.stderr
    assert "clew.open().profile('default')" in said.stderr
    assert json.loads(run(*command, "--json").stdout) == []
    assert tables(empty) == 0


def test_other_commands_need_a_store(empty: str, run: Run, loads: Any) -> None:
    for command in (["show", "x"], ["verify"], ["delete", "x", "--yes"]):
        assert "holds no store yet; make one with `clew migrate`" in run(*command, code=3).stderr
    assert loads("stats") == {}
    assert tables(empty) == 0


def test_files_have_commands_that_servers_have_not(empty: str, run: Run, tmp_path: Path) -> None:
    for command in (["backup", tmp_path / "x"], ["restore", tmp_path / "x"]):
        error = run(*command, code=2).stderr
        assert "docs/operating/scale.md" in error
        assert "clew copy" in error


# ---------------------------------------------------------------- passwords


@pytest.mark.parametrize(
    "args",
    [
        ["list"], ["show", "x"], ["doctor"], ["doctor", "--json"], ["migrate"], ["stats", "--json"],
        ["backup", "x"], ["restore", "x"], ["list", ELSEWHERE], [ELSEWHERE],
        ["search", "x", "--order", ELSEWHERE], ["list", "--since", ELSEWHERE], ["list", "--help"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("debug", [False, True])
def test_no_password_is_printed(
    args: list[str],
    debug: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CLEW_STORE", ELSEWHERE)
    if debug:
        monkeypatch.setenv("CLEW_DEBUG", "1")
    cli.run(args)
    cli.run([*args, "--store", f"{ELSEWHERE}?sslpassword={SECRET}"])
    cli.run([*args, "--store", f"postgresql://ann:{SECRET}%@127.0.0.1:9/db"])
    said = capsys.readouterr()
    assert said.out or said.err
    assert SECRET not in said.out + said.err


def test_proposed_commands_do_not_repeat_a_url(
    remote: Remote, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLEW_STORE")
    options = ("--store", remote.url, "--profile", "default")
    said = run("cut", remote.ids.trip, "2", "--yes", *options).stdout
    proposed = f"CLEW_STORE=URL clew --profile default undo {remote.ids.trip[:8]}"
    assert proposed in said
    shown = run("resume", remote.ids.flaky, *options).stdout
    assert "CLEW_STORE=URL clew --profile default branch" in shown
    assert "clew.open().profile('default')  # with the URL in CLEW_STORE" in shown
    assert server().password not in said + shown


# ---------------------------------------------------------------- what goes wrong


def _changed(url: str, **parts: str) -> str:
    pattern = r"(?P<scheme>\w+://)(?P<user>\w+):(?P<password>[^@]+)@(?P<host>[^/]+)/(?P<name>\w+)"
    found = re.fullmatch(pattern, url)
    assert found is not None
    return "{scheme}{user}:{password}@{host}/{name}".format(**found.groupdict() | parts)


@pytest.mark.parametrize(
    ("parts", "code", "said"),
    [
        ({"host": "127.0.0.1:9"}, 5, "cannot be reached"),
        ({"host": "nowhere.invalid"}, 5, "cannot be reached"),
        ({"password": "wrong"}, 5, "refuses the user or the password"),
        ({"user": "nobody"}, 5, "refuses the user or the password"),
        ({"name": "nothing"}, 5, "there is no database postgresql://127.0.0.1:"),
        ({"name": "x?unheard_of=1"}, 2, "unheard_of"),
        ({"name": "x?pool_size=none"}, 2, "pool_size"),
        ({"scheme": "mysql://"}, 2, "give a path, or postgresql://"),
    ],
)
@pytest.mark.parametrize("command", [["list"], ["show", "x"], ["migrate"]])
def test_errors_say_what_and_where(
    empty: str, run: Run, parts: dict[str, str], code: int, said: str, command: list[str]
) -> None:
    result = run(*command, "--store", _changed(empty, **parts), code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("clew: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def test_a_database_of_another_program(empty: str, run: Run) -> None:
    with psycopg.connect(empty) as connection:
        connection.execute("CREATE TABLE meta(name TEXT, value TEXT)")
    for command in (["list"], ["migrate"], ["migrate", "--check"]):
        assert "another program" in run(*command, code=5).stderr
    assert "another program" in run("doctor", code=1).stdout


def test_a_store_of_a_newer_clew(remote: Remote, run: Run) -> None:
    with psycopg.connect(remote.url) as connection:
        for name in ("schema_version", "min_writer_version"):
            connection.execute("UPDATE meta SET value = '99' WHERE name = %s", [name])
    for command in (["list"], ["migrate"]):
        assert "Upgrade clew" in run(*command, code=5).stderr
    assert "newer clew" in run("doctor", code=1).stdout


def test_a_server_that_takes_no_writes(remote: Remote, run: Run, empty: str) -> None:
    """As a standby does; what only reads works."""
    for url in (remote.url, empty):
        name = url.rpartition("/")[2]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert remote.ids.trip in run("list", "--store", remote.url).stdout
    assert "Name the primary" in run("migrate", code=5).stderr
    assert "default_transaction_read_only" in run("doctor", code=1).stdout


def test_a_search_where_the_index_cannot_be_filled(
    remote: Remote, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a standby it reads the log."""

    def refused(*_: object) -> int:
        raise clew.StoreError("the server takes no writes")

    monkeypatch.setattr(search, "FAR", -1)
    monkeypatch.setattr(Search, "catch_up", refused)
    found = run("search", "Kirschen")
    assert remote.ids.trip in found.stdout
    assert "cannot be brought up to date: the server takes no writes" in found.stderr


def test_missing_privileges(remote: Remote, run: Run) -> None:
    with psycopg.connect(remote.url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'word'")
    stranger = _changed(remote.url, user="stranger", password="word")
    for command in (["list"], ["show", "x"], ["migrate"]):
        error = run(*command, "--store", stranger, code=5).stderr
        assert "lacks a privilege" in error
        assert "docs/operating/scale.md" in error
    with psycopg.connect(remote.url, autocommit=True) as connection:
        connection.execute("DROP ROLE stranger")


def test_without_psycopg(remote: Remote, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        n
        for n in sys.modules
        if n.startswith(("clew.store.postgres", "clew.store.doctor_postgres"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for command in (["list"], ["show", "x"], ["migrate"], ["stats"]):
        assert "pip install 'clew[postgres]'" in run(*command, code=5).stderr
    assert "pip install 'clew[postgres]'" in run("doctor", code=1).stdout


def test_a_file_needs_no_psycopg(tmp_path: Path) -> None:
    code = (
        "import sys; from clew.cli.main import cli\n"
        f"place = ['--store', {str(tmp_path / 'a.db')!r}]\n"
        "for command in ('migrate', 'list', 'stats', 'doctor', 'verify', 'profiles'):\n"
        "    cli.run([command, *place])\n"
        "print(any(name.startswith('psycopg') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


# ---------------------------------------------------------------- clew migrate


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more steps than there are, the second of which stops older hosts."""
    known = postgres_migrate.known

    def more(dialect: str) -> Any:
        steps = list(known(dialect))
        number = steps[-1].number
        made = [(number + 1, False, "9998_pre_more"), (number + 2, True, "9999_post_less")]
        return [*steps, *(postgres_migrate.Migration(*one, lambda: "SELECT 1") for one in made)]

    monkeypatch.setattr(postgres_migrate, "known", more)


def test_migrate_makes_a_store(empty: str, run: Run, loads: Any) -> None:
    assert "`clew migrate` makes it" in run("migrate", "--check", code=1).stdout
    assert loads("migrate", "--check", code=1)["schema"] == 0
    assert tables(empty) == 0
    assert "there is no store in it" in run("migrate", "--restored", code=2).stderr
    assert "a new store" in run("migrate", "--partitions", "3").stdout
    assert "up to date" in run("migrate", "--check").stdout
    assert "up to date" in run("migrate").stdout
    with psycopg.connect(empty) as connection:
        found = connection.execute("SELECT count(*) FROM pg_class WHERE relispartition").fetchone()
    assert found is not None
    assert found[0] >= 6
    assert "chosen when a store is made" in run("migrate", "--partitions", "3", code=2).stderr
    assert loads("verify") == []


@pytest.mark.usefixtures("two_steps")
def test_migrate_asks_before_it_stops_older_hosts(remote: Remote, run: Run, loads: Any) -> None:
    shown = run("migrate", "--check", code=1).stdout
    assert "9998_pre_more\n" in shown
    assert "9999_post_less  stops older hosts" in shown
    assert loads("migrate", "--check", code=1)["breaks"] == ["9999_post_less"]
    assert "not applied yet" in run("doctor", code=1).stdout
    assert "--yes" in run("migrate", code=2).stderr
    done = loads("migrate", "--yes")
    assert (done["schema"] - done["before"], len(done["applied"])) == (2, 2)
    assert loads("migrate", "--check")["pending"] == []


def test_migrate_after_a_dump_was_restored(remote: Remote, run: Run, loads: Any) -> None:
    with psycopg.connect(remote.url) as connection:
        connection.execute(
            "INSERT INTO change(id, conversation, profile, kind, at) "
            "VALUES (4611686018427387904, 'x', 'default', 'created', 1)"
        )
    assert "clew migrate --restored" in run("list", code=5).stderr
    assert "clew migrate --restored" in run("doctor", code=1).stdout
    assert "--restored" in run("migrate", "--check", code=1).stdout
    assert "give --restored" in run("migrate", code=2).stderr
    assert loads("migrate", "--restored")["restored"]
    assert remote.ids.trip in run("list").stdout
    assert "go on where they ended" in run("migrate", "--restored").stdout


def test_many_may_migrate_at_once(empty: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", REAL, "migrate"], env=os.environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]  # fmt: skip
    said = [child.communicate(timeout=60) for child in children]
    assert [child.returncode for child in children] == [0] * 4, said


def test_migrate_a_file(run: Run, loads: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    assert "makes it" in run("migrate", "--check", "--store", path, code=1).stdout
    assert not path.exists()
    assert "PostgreSQL" in run("migrate", "--partitions", "3", "--store", path, code=2).stderr
    assert not path.exists()
    assert "a new store" in run("migrate", "--store", path).stdout
    assert loads("migrate", "--check", "--store", path)["pending"] == []
    assert "clew restore" in run("migrate", "--restored", "--store", path, code=2).stderr


@pytest.mark.parametrize(
    "url", ["x://u:{}@h/d", "x://:{}@h", "x://u:a@{}@h:1", "x://h/d?sslpassword={}&a=1"]
)
def test_a_password_in_any_text_is_hidden(url: str) -> None:
    shown = failures.without_password(f"in 'postgresql://h:5432/d', {url.format(SECRET)} and more")
    assert SECRET not in shown
    assert "'postgresql://h:5432/d', x://" in shown
    assert shown.endswith(" and more")
