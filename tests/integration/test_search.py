"""Search over a real store file: complete, isolated, and never in the way of a message."""

from __future__ import annotations

import multiprocessing
import os
import random
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew
from clew.domain.messages import Role
from clew.domain.parts import Parts, Text, ToolCall, ToolResult
from clew.domain.search import SearchPage, SearchQuery
from clew.errors import Corrupt, InvalidCursor, SearchUnavailable, StoreClosed
from clew.store import queries
from clew.store.codec import Codec
from clew.store.search import Search, connection, engine, in_file, paging
from clew.store.search.text import matches, parse
from clew.store.sqlite import SqliteBackend

OWN = {
    "t_conversation": """INSERT INTO conversation(id, profile, kind, source, origin, base, head,
        affinity, created_at, active_at, title_user, git_root, git_branch, cwd, model, archived)
        VALUES (:id, :profile, :kind, :source, :origin, :base, :base, 'a', 1, 1, :title, :git_root,
        :git_branch, :cwd, :model, :archived) RETURNING no""",
    "t_message": """INSERT INTO message(conversation_no, seq, uid, role, parts, created_at,
        replaces) VALUES (:no, :seq, :uid, :role, :packed, :at, :replaces)""",
    "t_head": "UPDATE conversation SET head = :head WHERE no = :no",
    "t_cut": """INSERT INTO cut(conversation_no, number, uid, from_seq, to_seq, at)
        VALUES (:no, :number, :uid, :first, :last, 1)""",
    "t_undo": "UPDATE cut SET undone_at = 2 WHERE conversation_no = :no AND number = :number",
    "t_bin": "UPDATE conversation SET binned_at = 1 WHERE no = :no",
    "t_ids": "SELECT id FROM message WHERE conversation_no = :no ORDER BY id",
    "t_delete": "DELETE FROM message WHERE id BETWEEN :first AND :last",
    "t_change": """INSERT INTO change(conversation, profile, kind, detail, at)
        VALUES ('c', 'p', :kind, :detail, 1)""",
    "t_stamp": "UPDATE meta SET value = :stamp WHERE name = 'stamp'",
    "t_rows": """SELECT m.id, c.id, m.seq, m.parts FROM message AS m
        JOIN conversation AS c ON c.no = m.conversation_no ORDER BY m.id DESC""",
}
STATEMENTS = {**queries.load("sqlite"), **OWN}


class Log:
    """A store, written row by row."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clew.db"
        self.search_path = str(self.path) + ".search"
        self.backend = SqliteBackend(self.path, statements=STATEMENTS)
        self.codec = Codec()
        self.heads: dict[int, int] = {}
        self.search = in_file(self.search_path, self.backend, self.codec.parts)
        self._opened = [self.search]

    def reopen(self) -> None:
        """As after a restore: every handle on the old content refuses."""
        self.close()
        self.backend = SqliteBackend(self.path, statements=STATEMENTS)
        self.search = in_file(self.search_path, self.backend, self.codec.parts)
        self._opened = [self.search]

    def another(self, path: str | None = None) -> Search:
        """A second search over the same store, as another process has it."""
        search = in_file(path or self.search_path, self.backend, self.codec.parts)
        self._opened.append(search)
        return search

    def scan(self) -> Search:
        """A search that never has an index."""
        return self.another(str(self.path.parent / "missing" / "x.search"))

    def conversation(self, id: str, profile: str = "p", **fields: Any) -> int:
        values = {
            "kind": "root", "source": "cli", "origin": None, "base": 0, "title": None,
            "git_root": None, "git_branch": None, "cwd": None, "model": None, "archived": 0,
        }  # fmt: skip
        values |= fields
        values |= {"id": id, "profile": profile}
        no = self.write(lambda tx: tx.rows("t_conversation", **values))[0][0]
        self.heads[no] = values["base"]
        return no

    def add(self, no: int, *bodies: str | Parts, **more: Any) -> None:
        def unit(tx: Any) -> None:
            for body in bodies:
                self.insert(tx, no, (Text(body),) if isinstance(body, str) else body, **more)

        self.write(unit)

    def write(self, unit: Callable[[Any], Any]) -> Any:
        """Run a unit of the statements above in a transaction of its own."""
        return self.backend.write(unit)

    def insert(self, tx: Any, no: int, parts: Parts, **more: Any) -> None:
        values = {"role": 1, "at": 1, "replaces": None, "packed": self.codec.pack(parts), **more}
        self.heads[no] += 1
        tx.run("t_message", no=no, seq=self.heads[no], uid=os.urandom(16), **values)
        tx.run("t_head", no=no, head=self.heads[no])

    def cut(self, no: int, number: int, first: int, last: int) -> None:
        self.run("t_cut", no=no, number=number, uid=os.urandom(16), first=first, last=last)

    def run(self, name: str, **params: Any) -> None:
        self.write(lambda tx: tx.run(name, **params))

    def delete(self, no: int) -> None:
        """All rows of a conversation, as a deletion does it."""

        def unit(tx: Any) -> None:
            tx.run("t_bin", no=no)
            tx.run("t_change", kind="deleted", detail="{}")
            ids = [row[0] for row in tx.rows("t_ids", no=no)]
            ranges = [[i, i] for i in ids]
            for first, last in ranges:
                tx.run("t_delete", first=first, last=last)
            tx.run("t_change", kind="deleted", detail=f'{{"ids": {ranges}}}')

        self.write(unit)

    def expected(self, text: str) -> list[tuple[str, int]]:
        """Every (conversation, seq) that matches, newest first, without any of the machinery."""
        parsed = parse(text)
        rows = self.write(lambda tx: tx.rows("t_rows"))
        return [
            (row[1], row[2])
            for row in rows
            if matches(parsed, "\n".join(p.text for p in self.codec.parts(row[3])))  # type: ignore
        ]

    def close(self) -> None:
        for search in self._opened:
            search.close()
        self.backend.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    opened = Log(tmp_path)
    yield opened
    opened.close()


def places(page: SearchPage) -> list[tuple[str, int]]:
    return [(hit.conversation, hit.seq) for hit in page.hits]


def seqs(search: Search, text: str = "", profile: str | None = "p", **fields: Any) -> list[int]:
    page = search.query(profile, SearchQuery(text=text, **fields))
    assert page.behind == 0
    return [hit.seq for hit in page.hits]


def all_pages(
    search: Search,
    text: str,
    profile: str | None = "p",
    between: Callable[[], object] = lambda: None,
    **fields: Any,
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    cursor: str | None = None
    for _ in range(10_000):
        page = search.query(profile, SearchQuery(text=text, cursor=cursor, **fields))
        found += places(page)
        cursor = page.next
        if cursor is None:
            return found
        between()
    raise AssertionError("paging does not end")


_WORDS = (
    "error file search fetch_rows_42 getHTTPResponse naïve Straße ＡＢＣ the of utf8 🎉 \x00 OR "
    "修改youer服务端的计划 会议记录 服务 カタカナ ひらがな 東京都 日本語 한국어 검색 서울 ｶﾞｽ "
    "か\u3099 src/clew/store.py"
)
VOCABULARY = _WORDS.split(" ")
_QUERIES = (
    "error, the of, fetch_rows, rows, http, getHTTPResponse, naive, strasse, abc, youer, -the, 🎉, "
    '"the of", "error file", err*, fet* -the, the OR error, store.py, utf, zebra, OR, of OR 서울, '
    '-"the of" the, the -"of the" -服务, "the error" OR "file of", '
    "服务, 服, 会议, 议记, 録, 京, 東京, 本語, ガ, 한, 국어, 검색, カ, タカ, 改youer, youer服"
)
QUERIES = _QUERIES.split(", ")


def fill(log: Log, rows: int, seed: int = 1, profile: str = "p") -> None:
    chance = random.Random(seed)
    numbers = [log.conversation(f"{profile}{seed}-{n}", profile) for n in range(5)]

    def unit(tx: Any) -> None:
        for _ in range(rows):
            words = chance.choices(VOCABULARY, k=chance.randint(1, 8))
            text = chance.choice((" ", "", "\n")).join(words)
            log.insert(tx, chance.choice(numbers), (Text(text),))

    log.write(unit)


# ------------------------------------------------------------------ complete


@pytest.mark.parametrize("indexed", ["all", "half", "nothing", "never"])
def test_every_way_to_look_finds_what_a_plain_scan_finds(log: Log, indexed: str):
    fill(log, 150, seed=1)
    search = log.scan() if indexed == "never" else log.search
    if indexed in ("half", "all"):
        search.catch_up()
    fill(log, 150, seed=2)
    if indexed == "all":
        search.catch_up()
    for text in QUERIES:
        assert all_pages(search, text, limit=7) == log.expected(text), text
        one = search.query("p", SearchQuery(text=text, limit=200))
        assert places(one) == log.expected(text)[:200], text
        assert one.behind == 0


def test_one_character_is_a_substring_in_chinese_japanese_and_korean(log: Log):
    no = log.conversation("c")
    log.add(no, "我们去北京", "東京タワー", "서울에서 만나요", "nothing")
    for _ in range(2):
        assert seqs(log.search, "京") == [2, 1]
        assert seqs(log.search, "ワ") == [2]
        assert seqs(log.search, "만") == [3]
        assert seqs(log.search, "北京") == [1]
        log.search.catch_up()


def test_tool_calls_and_outputs_are_searched_in_full(log: Log):
    no = log.conversation("c")
    long = "x " * 100_000 + "needle"
    log.add(no, (ToolCall("1", "run_shell", '{"command": "grep -r needle"}'),), role=2)
    log.add(no, (ToolResult("1", long, "run_shell"),), role=3)
    for _ in range(2):
        assert seqs(log.search, "needle") == [2, 1]
        assert seqs(log.search, "run_shell") == [1]
        assert "needle" in [p for p, on in log.search.query("p", SearchQuery(text="needle"))
                            .hits[0].snippet if on]  # fmt: skip
        log.search.catch_up()


def test_a_hit_carries_the_time_of_its_message(log: Log):
    no = log.conversation("c", title="a title", source="telegram")
    log.add(no, "first", at=1_000)
    log.add(no, "needle", at=9_000, role=2)
    hit = log.search.query("p", SearchQuery(text="needle")).hits[0]
    assert (hit.created_at, hit.title, hit.source, hit.role) == (
        9_000, "a title", "telegram", Role.ASSISTANT,
    )  # fmt: skip
    assert hit.plain == "needle"
    assert hit.snippet == (("needle", True),)
    assert len(hit.uid) == 32


# ------------------------------------------------------------------ what a query may show


def test_hits_of_other_profiles_never_appear(log: Log, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paging, "_PLAIN", 4)
    mine, theirs = log.conversation("mine", "p"), log.conversation("theirs", "q")
    odd = log.conversation("odd", 'p"\x01) OR ("')
    for n in range(40):
        log.add(theirs, f"secret needle {n}")
        if n % 10 == 0:
            log.add(mine, f"needle {n}")
            log.add(odd, f"needle {n}")
    for _ in range(2):
        assert len(all_pages(log.search, "needle", "p", limit=3)) == 4
        assert len(all_pages(log.search, "needle", 'p"\x01) OR ("', limit=3)) == 4
        assert len(all_pages(log.search, "needle", "q", limit=3)) == 40
        assert len(all_pages(log.search, "needle", None, limit=3)) == 48
        assert all_pages(log.search, "secret", "p") == []
        assert all_pages(log.search, "needle", "P") == []
        assert all_pages(log.search, "", "p", conversation="theirs") == []
        assert all_pages(log.search, "needle", "p", order="relevance", limit=2) != []
        assert {c for c, _ in all_pages(log.search, "needle", "p", order="relevance")} == {"mine"}
        log.search.catch_up()


def test_a_cursor_of_another_profile_or_query_is_refused(log: Log):
    fill(log, 30, profile="p")
    fill(log, 30, profile="q")
    page = log.search.query("q", SearchQuery(text="the", limit=1))
    assert page.next is not None
    for profile, fields in (
        ("p", {}),
        (None, {}),
        ("q", {"hidden": True}),
        ("q", {"role": "user"}),
    ):
        with pytest.raises(InvalidCursor):
            log.search.query(
                profile,
                SearchQuery(text="the", limit=1, cursor=page.next, **fields),  # type: ignore
            )
    again = log.search.query("q", SearchQuery(text="the", limit=5, cursor=page.next))
    assert again.hits[0] != page.hits[0]


@pytest.mark.parametrize("junk", ["", "x", "!!!!", "é", "AAAA", "a" * 5000, "gAAA", "lAHEAAAA"])
def test_junk_is_no_cursor(log: Log, junk: str):
    with pytest.raises(InvalidCursor):
        log.search.query("p", SearchQuery(text="x", cursor=junk))


def test_filters(log: Log):
    one = log.conversation("one", source="cli", model="m1", git_root="/r", git_branch="main")
    two = log.conversation("two", source="web", model="m2", cwd="/plain")
    old = log.conversation("old", archived=1)
    log.add(one, "needle one", role=1, at=100)
    log.add(two, "needle two", role=2, at=200)
    log.add(two, (ToolCall("1", "bash", "needle"),), role=2, at=300)
    log.add(two, (ToolResult("1", "needle", "bash"),), role=3, at=400)
    log.add(old, "needle old", at=500)

    def found(**fields: Any) -> list[tuple[str, int]]:
        return places(log.search.query("p", SearchQuery(text="needle", **fields)))

    for _ in range(2):
        assert found() == [("two", 3), ("two", 2), ("two", 1), ("one", 1)]
        assert found(source="cli") == [("one", 1)]
        assert found(model="m2", role=Role.ASSISTANT) == [("two", 2), ("two", 1)]
        assert found(project="/r") == [("one", 1)]
        assert found(project="/plain", role=Role.TOOL) == [("two", 3)]
        assert found(git_branch="main") == [("one", 1)]
        assert found(tool="bash") == [("two", 3), ("two", 2)]
        assert found(tool="bas") == []
        assert found(since=200, until=400) == [("two", 2), ("two", 1)]
        assert found(archived=True)[0] == ("old", 1)
        assert found(conversation="old") == [("old", 1)]
        assert found(conversation="none") == []
        assert places(log.search.query("p", SearchQuery(tool="bash"))) == [("two", 3), ("two", 2)]
        assert places(log.search.query("p", SearchQuery(source="cli"))) == [("one", 1)]
        assert places(log.search.query("p", SearchQuery(text="-two", tool="bash"))) == [
            ("two", 3), ("two", 2),
        ]  # fmt: skip
        log.search.catch_up()


def test_what_a_cut_hides_is_no_hit_until_the_cut_is_undone(log: Log):
    no = log.conversation("c")
    log.add(no, *(f"needle {n}" for n in range(5)))
    log.search.catch_up()
    log.cut(no, 1, 3, 5)
    log.add(no, "needle again")
    for _ in range(2):
        assert seqs(log.search, "needle") == [6, 2, 1]
        assert seqs(log.search, "needle", hidden=True) == [6, 5, 4, 3, 2, 1]
        assert seqs(log.search, "needle", conversation="c") == [6, 2, 1]
        log.search.catch_up()
    log.run("t_undo", no=no, number=1)
    assert seqs(log.search, "needle") == [6, 5, 4, 3, 2, 1]


def test_a_replaced_message_is_hidden(log: Log):
    no = log.conversation("c")
    log.add(no, "needle before")
    log.add(no, "needle after", replaces=1)
    for _ in range(2):
        assert seqs(log.search, "needle") == [2]
        assert seqs(log.search, "needle", hidden=True) == [2, 1]
        log.search.catch_up()


def test_a_branch_is_searched_with_what_it_inherits_and_its_own_cuts(log: Log):
    root = log.conversation("root")
    log.add(root, "needle 1", "needle 2", "needle 3", "needle 4")
    branch = log.conversation("branch", kind="branch", origin=root, base=3, title="b")
    log.add(branch, "needle own", "hay")
    twig = log.conversation("twig", kind="branch", origin=branch, base=2)
    log.add(twig, "needle twig")
    log.cut(branch, 1, 2, 2)
    for _ in range(2):
        page = log.search.query("p", SearchQuery(text="needle", conversation="branch"))
        assert places(page) == [("branch", 4), ("branch", 3), ("branch", 1)]
        assert {hit.title for hit in page.hits} == {"b"}
        assert seqs(log.search, "needle", conversation="twig") == [3, 2, 1]
        assert seqs(log.search, "needle", conversation="root") == [4, 3, 2, 1]
        assert len(log.search.query("p", SearchQuery(text="needle")).hits) == 6
        assert seqs(log.search, "needle", conversation="twig", order="relevance") != []
        log.search.catch_up()


@given(text=st.text(max_size=30), fields=st.sampled_from([{}, {"order": "relevance"}]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_nothing_a_person_types_is_an_error(log: Log, text: str, fields: dict[str, Any]):
    if not log.heads:
        fill(log, 20)
        log.search.catch_up()
        fill(log, 20, seed=2)
    page = log.search.query("p", SearchQuery(text=text, limit=5, **fields))
    if page.next:
        log.search.query("p", SearchQuery(text=text, limit=5, cursor=page.next, **fields))


# ------------------------------------------------------------------ paging


@pytest.mark.parametrize("order", ["newest", "relevance"])
def test_paging_has_no_gaps_and_no_doubles_while_rows_are_appended(log: Log, order: str):
    fill(log, 200)
    log.search.catch_up()
    fill(log, 40, seed=2)
    wanted = log.expected("the")
    no = log.conversation("later")
    steps = iter(range(10_000))

    def disturb() -> None:
        step = next(steps)
        log.add(no, f"the later {step}")
        if step % 3 == 0:
            log.search.catch_up()

    found = all_pages(log.search, "the", between=disturb, limit=3, order=order)
    assert len(found) == len(set(found))
    assert sorted(found) == sorted(wanted)
    if order == "newest":
        assert found == wanted


def test_relevance_ranks_the_better_match_first(log: Log):
    no = log.conversation("c")
    log.add(no, "needle needle needle", "needle " + "hay " * 50, "hay")
    assert seqs(log.search, "needle", order="relevance") == [1, 2]
    assert seqs(log.search, "needle") == [2, 1]
    assert seqs(log.search, "", order="relevance") == [3, 2, 1]


def test_relevance_weighs_rare_words_and_short_texts(log: Log):
    no = log.conversation("c")
    log.add(no, *("common" for _ in range(50)))
    log.add(no, "common common common rare", "common rare rare rare", "rare common " + "x " * 99)
    for _ in range(2):
        assert seqs(log.search, "common rare", order="relevance") == [52, 51, 53]
        log.search.catch_up()


def test_relevance_ranks_the_newest_hits_only(log: Log, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paging, "RELEVANCE_MATCHES", 10)
    no = log.conversation("c")
    log.add(no, "needle needle", *(f"needle {n}" for n in range(30)))
    for _ in range(2):
        found = all_pages(log.search, "needle", order="relevance", limit=4)
        assert found == [("c", n) for n in range(31, 21, -1)]
        log.search.catch_up()
    monkeypatch.setattr(paging, "RELEVANCE_LIMIT", 5)
    assert len(all_pages(log.search, "needle", order="relevance", limit=4)) == 5


def test_the_work_of_one_call_is_bounded_and_the_cursor_goes_on(
    log: Log, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(paging, "CANDIDATE_LIMIT", 20)
    monkeypatch.setattr(paging, "_PLAIN", 8)
    monkeypatch.setattr(paging, "_STEP", 8)
    one, other = log.conversation("one", source="rare"), log.conversation("other")
    log.add(one, "needle")
    log.add(other, *(f"needle {n}" for n in range(100)))
    log.search.catch_up()
    page = log.search.query("p", SearchQuery(text="needle", source="rare", limit=1))
    assert page.hits == ()
    assert page.next is not None
    assert 20 <= page.scanned <= 40
    assert all_pages(log.search, "needle", source="rare", limit=1) == [("one", 1)]


# ------------------------------------------------------------------ saying what was not looked at


def test_rows_behind_the_mark_are_scanned_up_to_a_limit_and_the_rest_is_told(
    log: Log, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(paging, "SCAN_LIMIT", 30)
    no = log.conversation("c")
    log.add(no, "needle indexed")
    log.search.catch_up()
    log.add(no, *(f"needle {n}" if n % 10 == 0 else "hay" for n in range(100)))
    page = log.search.query("p", SearchQuery(text="needle"))
    assert [hit.seq for hit in page.hits] == [92, 82, 72, 1]
    assert page.behind == 70
    assert log.search.query("p", SearchQuery(text="needle", limit=3)).behind == 0
    assert log.search.status().behind == 100
    log.search.catch_up()
    page = log.search.query("p", SearchQuery(text="needle"))
    assert (len(page.hits), page.behind) == (11, 0)
    assert log.search.status().state == "ready"


def test_without_a_usable_file_the_newest_rows_are_scanned_and_the_rest_is_told(
    log: Log, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(paging, "SCAN_LIMIT", 30)
    no = log.conversation("c")
    log.add(no, "needle first", *("hay" for _ in range(100)))
    search = log.scan()
    page = search.query("p", SearchQuery(text="needle"))
    assert page.hits == ()
    assert page.behind == 71
    assert page.next is not None
    assert all_pages(search, "needle") == [("c", 1)]
    page = search.query("p", SearchQuery(text="needle", order="relevance"))
    assert (page.hits, page.behind) == ((), 71)
    status = search.status()
    assert (status.state, status.behind) == ("unusable", 101)
    assert status.problem
    with pytest.raises(SearchUnavailable):
        search.catch_up()


def test_a_full_disk_stops_the_index_and_nothing_else(log: Log, monkeypatch: pytest.MonkeyPatch):
    fill(log, 100)
    log.search.catch_up()
    log.search.close()
    sql = {**connection._SQL, "pragma_cache": "PRAGMA max_page_count = 1"}  # pyright: ignore
    monkeypatch.setattr(connection, "_SQL", sql)
    search = log.another()
    fill(log, 300, seed=2)
    with pytest.raises(SearchUnavailable, match="full"):
        search.catch_up()
    for text in ("the", "服务", "-the"):
        assert all_pages(search, text) == log.expected(text)
    assert search.status().behind > 0


# ------------------------------------------------------------------ the file


def test_the_file_is_made_on_demand_and_is_private(log: Log):
    assert log.search.status().state == "missing"
    assert not os.path.exists(log.search_path)
    fill(log, 5)
    log.search.query("p", SearchQuery(text="the"))
    for side in ("", "-wal", "-shm"):
        mode = stat.S_IMODE(os.stat(log.search_path + side).st_mode)
        assert mode == 0o600, side
    log.search.catch_up()
    status = log.search.status()
    assert (status.state, status.rows, status.behind) == ("ready", 5, 0)
    assert status.size > 0
    log.search.close()
    assert not os.path.exists(log.search_path + "-wal")


@pytest.mark.parametrize(
    "sides", [("",), ("", "-wal", "-shm"), ("-wal", "-shm", ""), ("-wal", "-shm"), ("-shm",)]
)
def test_the_file_may_be_deleted_while_it_is_open(log: Log, sides: tuple[str, ...]):
    fill(log, 60)
    first, second = log.search, log.another()
    first.catch_up()
    assert all_pages(second, "the") == log.expected("the")
    for round in range(3):
        for side in sides:
            os.unlink(log.search_path + side)
        assert all_pages(first, "the") == log.expected("the")
        fill(log, 10, seed=10 + round)
        second.catch_up()
        assert second.status().rows == 60 + 10 * (round + 1)
        for text in QUERIES[:12]:
            assert all_pages(first, text) == all_pages(second, text) == log.expected(text)
    first.close()
    check = log.another()
    assert check.status().state == "ready"
    assert all_pages(check, "the") == log.expected("the")


def damage_header(path: str) -> None:
    with open(path, "r+b") as file:
        file.write(b"this is not a database at all" * 10)


def damage_middle(path: str) -> None:
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for offset in range(4096, size, 4096):
            file.seek(offset)
            file.write(b"\xa5" * 4096)


def damage_truncate(path: str) -> None:
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) // 2)


def damage_format(path: str) -> None:
    db = apsw.Connection(path)
    db.execute("PRAGMA user_version = 99").fetchall()
    db.close()


def damage_table(path: str) -> None:
    db = apsw.Connection(path)
    db.execute("DROP TABLE mark").fetchall()
    db.close()


@pytest.mark.parametrize(
    "damage", [damage_header, damage_middle, damage_truncate, damage_format, damage_table]
)
@pytest.mark.parametrize("first", ["query", "catch_up", "status"])
def test_b82_a_damaged_index_costs_nothing_but_time(
    log: Log, damage: Callable[[str], None], first: str
):
    fill(log, 100)
    log.search.catch_up()
    log.search.close()
    damage(log.search_path)
    fill(log, 10, seed=2)
    search = log.another()
    if first == "catch_up":
        assert search.catch_up() == 110
    if first == "status":
        assert search.status().state == "unusable"
    for text in QUERIES[:12]:
        assert all_pages(search, text) == log.expected(text), text
    search.catch_up()
    status = search.status()
    assert (status.state, status.rows, status.problem) == ("ready", 110, None)
    assert all_pages(search, "服务") == log.expected("服务")


def test_damage_under_an_open_file_is_survived(log: Log):
    fill(log, 300)
    search = log.search
    search.catch_up()
    assert all_pages(search, "the") == log.expected("the")
    with open(log.search_path, "r+b") as file:
        file.truncate(8192)
    for text in QUERIES:
        assert all_pages(search, text) == log.expected(text), text
    search.catch_up()
    assert search.status().rows == 300


def test_an_index_of_another_or_an_earlier_log_is_rebuilt(log: Log, tmp_path: Path):
    fill(log, 50)
    log.search.catch_up()
    log.run("t_stamp", stamp="restored")
    log.reopen()
    assert log.search.status().state == "unusable"
    assert all_pages(log.search, "the") == log.expected("the")
    log.search.catch_up()
    assert log.search.status().state == "ready"
    log.search.close()

    (tmp_path / "other").mkdir()
    other = Log(tmp_path / "other")
    fill(other, 20, seed=3)
    os.rename(log.search_path, other.search_path)
    assert all_pages(other.search, "the") == other.expected("the")
    other.search.catch_up()
    assert other.search.status().rows == 20
    assert all_pages(other.search, "the") == other.expected("the")
    other.close()


def test_a_log_that_was_set_back_is_noticed(log: Log):
    fill(log, 50)
    log.search.catch_up()
    log.search.close()
    db = apsw.Connection(str(log.path))
    db.execute("DELETE FROM message WHERE id > 40").fetchall()
    db.execute("UPDATE sqlite_sequence SET seq = 40 WHERE name = 'message'").fetchall()
    db.close()
    search = log.another()
    assert all_pages(search, "the") == log.expected("the")
    search.catch_up()
    assert search.status().rows == 40


# ------------------------------------------------------------------ deletions


def test_deleted_rows_are_no_hits_and_leave_the_index(log: Log):
    gone, kept = log.conversation("gone"), log.conversation("kept")
    for n in range(20):
        log.add(gone, f"needle gone {n}")
        log.add(kept, f"needle kept {n}")
    log.search.catch_up()
    log.delete(gone)
    for _ in range(2):
        assert [c for c, _ in all_pages(log.search, "needle", limit=3)] == ["kept"] * 20
        assert all_pages(log.search, "gone") == []
        log.search.catch_up()
    assert log.search.status() == log.another().status()
    assert log.search.status().rows == 20


def test_rows_deleted_before_they_are_indexed_never_are(log: Log):
    one, other = log.conversation("one"), log.conversation("other")
    log.add(one, "needle 1")
    log.search.catch_up()
    log.add(other, *(f"needle {n}" for n in range(5)))
    log.delete(other)
    log.delete(one)
    log.search.catch_up()
    status = log.search.status()
    assert (status.state, status.rows, status.behind) == ("ready", 0, 0)
    log.add(log.conversation("new"), "needle new")
    assert all_pages(log.search, "needle") == [("new", 1)]


def test_the_newest_rows_may_be_deleted_without_a_rebuild(log: Log):
    fill(log, 20)
    no = log.conversation("last")
    log.add(no, "needle")
    log.search.catch_up()
    before = os.stat(log.search_path).st_ino
    log.delete(no)
    log.search.catch_up()
    assert os.stat(log.search_path).st_ino == before
    assert log.search.status().rows == 20


def test_a_row_whose_text_was_erased_is_no_hit(log: Log):
    """Erasure is the one change a row knows; the index may not have heard of it yet."""
    no = log.conversation("c")
    log.add(no, "needle")
    log.search.catch_up()
    db = apsw.Connection(str(log.path))
    db.execute("DROP TRIGGER message_never_changes").fetchall()
    db.execute("UPDATE message SET parts = ?", (log.codec.pack(()),)).fetchall()
    db.close()
    assert seqs(log.search, "needle") == []


# ------------------------------------------------------------------ catching up


def test_catching_up_reports_and_can_be_stopped(log: Log, monkeypatch: pytest.MonkeyPatch):
    fill(log, 1100)
    calls: list[tuple[int, int]] = []

    class Enough(Exception):
        pass

    def progress(done: int, left: int) -> None:
        calls.append((done, left))
        if len(calls) == 1:
            raise Enough

    with pytest.raises(Enough):
        log.search.catch_up(progress)
    assert calls == [(512, 588)]
    assert log.search.catch_up(budget_seconds=0) == 512
    assert log.search.catch_up(progress) == 76
    assert calls[-1] == (76, 0)
    assert log.search.catch_up() == 0
    assert log.search.status().rows == 1100


def test_a_query_far_behind_has_the_rest_indexed_in_the_background(log: Log):
    fill(log, 600)
    assert log.search.status().state == "missing"
    log.search.query("p", SearchQuery(text="the"))
    deadline = time.monotonic() + 20
    while log.search.status().state != "ready" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert log.search.status().rows == 600
    log.search.close()
    assert not any(thread.name == "clew-search" for thread in threading.enumerate())


def test_no_thread_is_started_for_a_few_rows(log: Log):
    fill(log, 100)
    log.search.query("p", SearchQuery(text="the"))
    assert not any(thread.name == "clew-search" for thread in threading.enumerate())


def test_closing_stops_the_background(log: Log, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "BACKGROUND_FROM", 10)
    fill(log, 2000)
    log.search.query("p", SearchQuery(text="the"))
    log.search.close()
    assert not any(thread.name == "clew-search" for thread in threading.enumerate())
    with pytest.raises(StoreClosed):
        log.search.query("p", SearchQuery(text="the"))
    log.search.close()


def test_damaged_parts_do_not_stop_the_index_and_are_told(log: Log):
    no = log.conversation("c")
    log.add(no, "needle 1")
    log.add(no, "damaged", packed=b"\x00not json")
    log.add(no, "needle 3")
    for _ in range(2):
        page = log.search.query("p", SearchQuery(text="needle"))
        assert [hit.seq for hit in page.hits] == [3, 1]
        assert (page.behind, page.unreadable) == (0, 1)
        log.search.catch_up()
    status = log.search.status()
    assert (status.rows, status.unreadable, status.state) == (3, 1, "ready")


def test_what_could_not_be_read_is_found_once_it_can_be(log: Log):
    """A row in an encoding that this process does not know, such as that of a newer clew."""
    no = log.conversation("c")
    log.add(no, "needle 1", "the hay", (ToolCall("1", "bash", "needle"),), "needle 4")
    known = log.codec.parts

    def decode(data: bytes) -> Parts:
        parts = known(data)
        if "the hay" in repr(parts) or "bash" in repr(parts):
            raise Corrupt("unknown tag")
        return parts

    old = in_file(log.search_path, log.backend, decode)
    assert old.catch_up() == 4
    page = old.query("p", SearchQuery(text="needle"))
    assert ([hit.seq for hit in page.hits], page.unreadable) == ([4, 1], 2)
    old.close()
    assert seqs(log.search, "needle") == [4, 3, 1]
    assert seqs(log.search, "hay") == [2]
    assert seqs(log.search, "needle -bash") == [4, 1]
    assert seqs(log.search, "", tool="bash") == [3]
    assert seqs(log.search, "needle", conversation="c", order="relevance") != []
    assert seqs(log.search, "zebra") == []


def test_queries_and_catching_up_in_many_threads(log: Log):
    fill(log, 400)
    wanted = {text: log.expected(text) for text in QUERIES[:8]}
    failures: list[object] = []

    def look() -> None:
        for text, places in wanted.items():
            found = all_pages(log.search, text)
            if found != places:
                failures.append((text, len(found), len(places)))

    def index() -> None:
        for _ in range(5):
            log.search.catch_up(budget_seconds=0)

    threads = [threading.Thread(target=work) for work in (look, index, look, index, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ------------------------------------------------------------------ processes


def index_elsewhere(path: str, results: Any) -> None:
    backend = SqliteBackend(path, statements=STATEMENTS)
    search = in_file(path + ".search", backend, Codec().parts)
    total = 0
    for _ in range(200):
        total += search.catch_up(budget_seconds=0)
        if search.status().state == "ready":
            break
        time.sleep(0.001)
    results.put(total)
    search.close()
    backend.close()


def test_two_processes_index_each_row_once(log: Log):
    fill(log, 3000)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [
        context.Process(target=index_elsewhere, args=(str(log.path), results)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    done = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert sum(done) == 3000
    assert log.search.status().rows == 3000
    assert log.search.status().state == "ready"
    for text in QUERIES[:12]:
        assert all_pages(log.search, text, limit=100) == log.expected(text), text


def look_again_and_again(
    path: str, wanted: dict[str, int], rounds: Any, stop: Any, results: Any
) -> None:
    """Catch up and search until told to stop; reports wrong answers."""
    backend = SqliteBackend(path, statements=STATEMENTS)
    search = in_file(path + ".search", backend, Codec().parts)
    wrong: list[object] = []
    while not stop.is_set():
        try:
            search.catch_up()
        except SearchUnavailable:
            pass  # deleted between making and opening it
        for text, count in wanted.items():
            found = len(all_pages(search, text, limit=100))
            if found != count:
                wrong.append((text, found, count))
        with rounds.get_lock():
            rounds.value += 1
    results.put(wrong)
    search.close()
    backend.close()


@pytest.mark.parametrize("sides", [("",), ("", "-wal", "-shm")])
def test_results_stay_right_in_all_processes_while_somebody_deletes_the_file(
    log: Log, sides: tuple[str, ...]
):
    fill(log, 300)
    wanted = {text: len(log.expected(text)) for text in QUERIES[:6]}
    context = multiprocessing.get_context("spawn")
    stop, results, rounds = context.Event(), context.Queue(), context.Value("i", 0)
    path = str(log.path)
    workers = [
        context.Process(target=look_again_and_again, args=(path, wanted, rounds, stop, results))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    try:
        deadline = time.monotonic() + 60
        while rounds.value < 30 and time.monotonic() < deadline:
            for side in sides:
                try:
                    os.unlink(log.search_path + side)
                except FileNotFoundError:
                    pass
            time.sleep(0.02)
            for text, count in wanted.items():
                assert len(all_pages(log.search, text, limit=100)) == count, text
    finally:
        stop.set()
    reports = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert reports == [[], []]
    log.search.catch_up()
    assert log.search.status().rows == 300


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_leaves_the_parents_index_alone(log: Log):
    fill(log, 20)
    log.search.catch_up()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            log.search.query("p", SearchQuery(text="the"))
        except StoreClosed:
            code = 0
        finally:
            log.search.close()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fill(log, 20, seed=2)
    log.search.catch_up()
    assert all_pages(log.search, "the") == log.expected("the")


def test_the_index_is_opened_while_another_writes_to_it(tmp_path: Path) -> None:
    """A new connection wants no lock: its pragmas only read."""
    path = tmp_path / "a.db"
    with clew.open(path) as store:
        profile = store.profile("p")
        profile.create().append([clew.user("a word")])
        assert len(profile.search("word").hits) == 1
        writer = apsw.Connection(f"{path}.search")
        assert writer.pragma("auto_vacuum") == 2
        writer.execute("BEGIN IMMEDIATE")
        connection.Connection(f"{path}.search").close()
        writer.execute("ROLLBACK")
        writer.close()
