"""Search over a store on PostgreSQL finds what search over a file finds, in the same order."""

from __future__ import annotations

import multiprocessing
import random
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
import test_search
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_search import OWN, QUERIES, VOCABULARY, Log, all_pages, fill, places, seqs

import servers
from clew.domain.parts import Parts, Text, ToolCall
from clew.domain.search import SearchPage, SearchQuery
from clew.errors import Corrupt, SearchUnavailable
from clew.store import address
from clew.store.codec import Codec
from clew.store.postgres import PostgresBackend
from clew.store.search import Search, in_file, in_tables, paging, table_index

BOTH = (
    test_search.test_a_branch_is_searched_with_what_it_inherits_and_its_own_cuts,
    test_search.test_a_cursor_of_another_profile_or_query_is_refused,
    test_search.test_a_hit_carries_the_time_of_its_message,
    test_search.test_a_replaced_message_is_hidden,
    test_search.test_catching_up_reports_and_can_be_stopped,
    test_search.test_closing_stops_the_background,
    test_search.test_damaged_parts_do_not_stop_the_index_and_are_told,
    test_search.test_deleted_rows_are_no_hits_and_leave_the_index,
    test_search.test_every_way_to_look_finds_what_a_plain_scan_finds,
    test_search.test_filters,
    test_search.test_hits_of_other_profiles_never_appear,
    test_search.test_no_thread_is_started_for_a_few_rows,
    test_search.test_nothing_a_person_types_is_an_error,
    test_search.test_one_character_is_a_substring_in_chinese_japanese_and_korean,
    test_search.test_paging_has_no_gaps_and_no_doubles_while_rows_are_appended,
    test_search.test_queries_and_catching_up_in_many_threads,
    test_search.test_relevance_ranks_the_better_match_first,
    test_search.test_relevance_ranks_the_newest_hits_only,
    test_search.test_relevance_weighs_rare_words_and_short_texts,
    test_search.test_rows_behind_the_mark_are_scanned_up_to_a_limit_and_the_rest_is_told,
    test_search.test_rows_deleted_before_they_are_indexed_never_are,
    test_search.test_the_work_of_one_call_is_bounded_and_the_cursor_goes_on,
    test_search.test_tool_calls_and_outputs_are_searched_in_full,
    test_search.test_what_a_cut_hides_is_no_hit_until_the_cut_is_undone,
)
"""Those of test_search.py that know nothing of a file: here pytest gives them this `log`."""
globals().update({test.__name__: test for test in BOTH})

OURS = {
    **OWN,
    "t_conversation": """WITH named AS (
        INSERT INTO conversation_id(id, profile) VALUES (:id, :profile) RETURNING no)
        INSERT INTO conversation(no, id, profile, kind, source, origin, base, head, affinity,
        created_at, active_at, title_user, git_root, git_branch, cwd, model, archived)
        SELECT no, :id, :profile, :kind, :source, CAST(:origin AS BIGINT), :base, :base, 'a', 1, 1,
        :title, :git_root, :git_branch, :cwd, :model, :archived FROM named RETURNING no""",
    "t_message": """INSERT INTO message(id, conversation_no, seq, uid, role, parts, created_at,
        replaces) VALUES (clew_id(nextval('t_nth')), :no, :seq, :uid, :role, :packed, :at,
        :replaces)""",
    "t_change": """INSERT INTO change(id, conversation, profile, kind, detail, at)
        VALUES (clew_id(nextval('change_nth')), 'c', 'p', :kind, :detail, 1)""",
}


@cache
def texts() -> dict[str, Any]:
    """Statements as psycopg takes them."""
    return {name: re.sub(r":(\w+)", r"%(\1)s", text) for name, text in OURS.items()}


class Writer:
    """What a unit of a test sees of a connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rows(self, name: str, **params: Any) -> list[Any]:
        return self._connection.execute(texts()[name], params).fetchall()

    def run(self, name: str, **params: Any) -> None:
        self._connection.execute(texts()[name], params)


class TableLog(Log):
    """A store on PostgreSQL, written row by row."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clew.db"
        self.url = servers.empty_database()
        self.backend: Any = backend_of(self.url)
        self.codec = Codec()
        self.heads: dict[int, int] = {}
        self._opened: list[Search] = []
        self.search = self.another()
        self.connection = self.connect()
        self.connection.execute("CREATE SEQUENCE IF NOT EXISTS t_nth MAXVALUE 1048575 CYCLE")

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def write(self, unit: Callable[[Any], Any]) -> Any:
        with self.connection.transaction():
            return unit(Writer(self.connection))

    def another(self, path: str | None = None) -> Search:
        """A second search; with a path one whose index can never be made."""
        if path is None:
            search = in_tables(self.backend, self.codec.parts)
        else:
            search = in_file(path, self.backend, self.codec.parts)
        self._opened.append(search)
        return search

    def close(self) -> None:
        super().close()
        self.connection.close()


def backend_of(url: str) -> PostgresBackend:
    place = address.parse(url)
    assert not isinstance(place, Path)
    return PostgresBackend(place)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[TableLog]:
    opened = TableLog(tmp_path)
    yield opened
    opened.close()


# ------------------------------------------------------------------ the same as with a file


def pages(search: Search, between: Callable[[], object], **fields: Any) -> list[Any]:
    """What a person sees of all pages. The words of a cursor are its engine's."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(1_000):
        page = search.query("p", SearchQuery(cursor=cursor, **fields))
        hits = [(hit.conversation, hit.title, hit.seq, hit.snippet) for hit in page.hits]
        found.append((hits, page.behind, page.unreadable, page.next is None))
        cursor = page.next
        if cursor is None:
            return found
        between()
    raise AssertionError("paging does not end")


def grow(logs: tuple[Log, Log], chance: random.Random, rows: int) -> None:
    """The same rows, conversations, branches and cuts in both."""
    state = chance.getstate()
    for log in logs:
        chance.setstate(state)
        numbers = list(log.heads)
        for _ in range(2):
            origin = chance.choice([None, *numbers])
            base = chance.randint(1, max(1, log.heads[origin])) if origin else 0
            fields: dict[str, Any] = {
                "archived": chance.choice((0, 0, 0, 1)), "source": chance.choice(("cli", "web")),
                "kind": "branch" if base else "root", "origin": origin if base else None,
                "base": base, "title": chance.choice((None, "a title")),
            }  # fmt: skip
            name = f"c{len(log.heads)}"
            numbers.append(log.conversation(name, chance.choice("ppq"), **fields))
        for _ in range(rows):
            text = chance.choice((" ", "", "\n", "_")).join(
                chance.choices(VOCABULARY, k=chance.randint(1, 8))
            )
            parts: Parts = (Text(text),)
            if chance.random() < 0.1:
                parts = (*parts, ToolCall("1", chance.choice(("bash", "read")), text))
            log.add(chance.choice(numbers), parts, role=chance.randint(1, 2))
        for no in numbers[-2:]:
            if log.heads[no] > 1 and chance.random() < 0.5:
                log.cut(no, 1, 1, chance.randint(1, log.heads[no]))


def asked(data: st.DataObject, names: list[str]) -> dict[str, Any]:
    """A query, with filters or without."""
    words = st.sampled_from([*QUERIES, *VOCABULARY]) | st.text(max_size=12)
    some = st.lists(words, max_size=3)
    glue = data.draw(st.sampled_from((" ", " OR ", " -", '" "', "* ")))
    fields: dict[str, Any] = {"text": glue.join(data.draw(some))}
    optional = {
        "order": st.sampled_from(("newest", "relevance")), "tool": st.just("bash"),
        "conversation": st.sampled_from(names), "source": st.just("web"),
        "hidden": st.booleans(), "archived": st.booleans(), "role": st.just("assistant"),
    }  # fmt: skip
    chosen = data.draw(st.lists(st.sampled_from(sorted(optional)), max_size=2, unique=True))
    return fields | {name: data.draw(optional[name]) for name in chosen}


@given(data=st.data(), seed=st.integers(0, 1 << 32))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
def test_tables_and_a_file_give_the_same_pages(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int
):
    """Whatever is indexed and whatever is not, also when that changes between two pages."""
    logs = Log(tmp_path_factory.mktemp("file")), TableLog(tmp_path_factory.mktemp("tables"))
    chance = random.Random(seed)
    try:
        grow(logs, chance, 30)
        if data.draw(st.booleans()):
            for log in logs:
                log.search.catch_up()
        grow(logs, chance, 10)
        for _ in range(4):
            fields = asked(data, [f"c{n}" for n in range(4)])
            limit = data.draw(st.integers(1, 8))
            catching_up = data.draw(st.booleans())
            between = [log.search.catch_up if catching_up else (lambda: None) for log in logs]
            first, second = (
                pages(log.search, then, limit=limit, **fields)
                for log, then in zip(logs, between, strict=True)
            )
            assert first == second, fields
    finally:
        for log in logs:
            log.close()


def test_a_common_word_and_a_rare_one_are_found_by_both_ways_to_look(
    log: TableLog, monkeypatch: pytest.MonkeyPatch
):
    for name in ("_WALK", "_LONGEST_WALK", "_FOUND", "_COMMON"):
        monkeypatch.setattr(table_index, name, 4)
    monkeypatch.setattr(table_index, "_FOUND_GROWTH", 2)
    fill(log, 200)
    no = log.conversation("rare")
    log.add(no, *("hay" for _ in range(30)), "needle", *("hay" for _ in range(30)))
    log.search.catch_up()
    for text in [*QUERIES, "needle", "needle OR error"]:
        assert all_pages(log.search, text, limit=7) == log.expected(text), text


def test_a_step_of_the_scan_is_no_longer_than_the_statement_reads():
    assert paging._STEP <= 256  # pyright: ignore[reportPrivateUsage]


# ------------------------------------------------------------------ commits in another order


def test_a_row_that_is_committed_late_is_found(log: TableLog):
    """Its transaction began, and got its number, before one that the index has passed."""
    early, late = log.conversation("early"), log.conversation("late")
    log.add(early, "needle first")
    with log.connect() as slow:
        with slow.transaction():
            log.insert(Writer(slow), late, (Text("needle late"),))
            log.add(early, "needle second", "hay")
            log.search.catch_up()
            assert all_pages(log.search, "needle") == [("early", 2), ("early", 1)]
            status = log.search.status()
            assert (status.rows, status.behind) == (1, 2)
        assert all_pages(log.search, "needle") == log.expected("needle")
        assert ("late", 1) in log.expected("needle")
        assert log.search.catch_up() == 3
    assert all_pages(log.search, "needle") == log.expected("needle")
    assert (log.search.status().rows, log.search.status().state) == (4, "ready")


def test_a_deletion_that_is_committed_late_reaches_the_index(log: TableLog):
    gone, kept = log.conversation("gone"), log.conversation("kept")
    log.add(gone, "needle gone")
    with log.connect() as slow:
        with slow.transaction():
            writer = Writer(slow)
            writer.run("t_bin", no=gone)
            (((number,),)) = writer.rows("t_ids", no=gone)
            writer.run("t_delete", first=number, last=number)
            writer.run("t_change", kind="deleted", detail=f'{{"ids": [[{number}, {number}]]}}')
            log.add(kept, "needle kept")
            log.search.catch_up()
            assert log.search.status().rows == 1
        assert all_pages(log.search, "needle") == [("kept", 1)]
        log.search.catch_up()
    assert all_pages(log.search, "needle") == [("kept", 1)]
    assert (log.search.status().rows, log.search.status().state) == (1, "ready")


# ------------------------------------------------------------------ the tables


def index_elsewhere(url: str, results: Any) -> None:
    backend = backend_of(url)
    search = in_tables(backend, Codec().parts)
    total = 0
    for _ in range(2_000):
        total += search.catch_up(budget_seconds=0)
        if search.status().state == "ready":
            break
        time.sleep(0.001)
    results.put(total)
    search.close()
    backend.close()


def test_two_processes_index_each_row_once(log: TableLog):
    fill(log, 3000)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=index_elsewhere, args=(log.url, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    done = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert sum(done) == 3000
    assert (log.search.status().rows, log.search.status().state) == (3000, "ready")
    for text in QUERIES[:12]:
        assert all_pages(log.search, text, limit=100) == log.expected(text), text


def test_while_one_fills_the_index_the_next_one_goes_away_at_once(log: TableLog):
    fill(log, 20)
    log.search.catch_up()
    fill(log, 20, seed=2)
    with log.connect() as other, other.transaction():
        other.execute("SELECT FROM search_mark FOR UPDATE")
        assert log.search.catch_up() == 0
        assert all_pages(log.search, "the") == log.expected("the")
    assert log.search.status().rows == 20
    assert log.search.catch_up() == 20


def test_what_was_discarded_is_filled_anew(log: TableLog):
    fill(log, 60)
    log.search.catch_up()
    log.search.discard()
    status = log.search.status()
    assert (status.state, status.rows, status.behind) == ("behind", 0, 60)
    assert all_pages(log.search, "the") == log.expected("the")
    assert log.search.catch_up() == 60
    assert all_pages(log.search, "the") == log.expected("the")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE search_mark SET stamp = 'restored'",
        "UPDATE search_mark SET message = message + (1::BIGINT << 50)",
        "UPDATE search_mark SET format = 0",
    ],
)
def test_an_index_of_another_log_or_format_is_filled_anew(log: TableLog, change: Any):
    """By the next query already, in the background."""
    fill(log, 50)
    log.search.catch_up()
    log.connection.execute(change)
    assert log.search.status().state == "unusable"
    assert all_pages(log.search, "the") == log.expected("the")
    deadline = time.monotonic() + 20
    while log.search.status().state != "ready" and time.monotonic() < deadline:
        log.search.catch_up()
    status = log.search.status()
    assert (status.state, status.rows, status.problem) == ("ready", 50, None)
    assert all_pages(log.search, "the") == log.expected("the")


def test_the_index_of_a_newer_clew_is_left_alone(log: TableLog):
    fill(log, 50)
    log.search.catch_up()
    log.connection.execute("UPDATE search_mark SET format = 99")
    assert all_pages(log.search, "the") == log.expected("the")
    status = log.search.status()
    assert (status.state, status.behind) == ("unusable", 50)
    assert "newer" in (status.problem or "")
    with pytest.raises(SearchUnavailable, match="newer"):
        log.search.catch_up()
    log.connection.execute("UPDATE search_mark SET format = 1")
    assert (log.search.status().state, log.search.status().rows) == ("ready", 50)


def test_a_full_disk_stops_the_index_and_nothing_else(log: TableLog):
    fill(log, 100)
    log.search.catch_up()
    fill(log, 30, seed=2)
    log.connection.execute("""
        CREATE FUNCTION t_full() RETURNS TRIGGER LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION ''no space'' USING ERRCODE = ''53100''; END';
        CREATE TRIGGER t_full BEFORE INSERT OR DELETE ON search_text EXECUTE FUNCTION t_full()""")
    try:
        with pytest.raises(SearchUnavailable, match="space"):
            log.search.catch_up()
        assert all_pages(log.search, "the") == log.expected("the")
        log.connection.execute("UPDATE search_mark SET format = 0")
        assert all_pages(log.search, "the") == log.expected("the")
        log.connection.execute("UPDATE search_mark SET format = 1")
    finally:
        log.connection.execute("DROP FUNCTION t_full() CASCADE")
    assert log.search.catch_up() == 30
    assert (log.search.status().state, log.search.status().problem) == ("ready", None)


def test_a_message_with_more_words_than_a_row_can_hold_is_found(log: TableLog):
    no = log.conversation("c")
    huge = " ".join(f"word{n}xyz" for n in range(90_000))
    log.add(no, "needle 1", huge + " needle", "a hay", huge)
    log.search.catch_up()
    assert log.search.status().rows == 4
    assert log.search.status().unreadable == 0
    assert seqs(log.search, "needle") == [2, 1]
    assert seqs(log.search, "word89999xyz") == [4, 2]
    assert seqs(log.search, "word89999xyz -needle") == [4]
    assert seqs(log.search, "zebra") == []
    assert seqs(log.search, "hay") == [3]


def test_what_could_not_be_read_is_found_once_it_can_be(log: TableLog):
    no = log.conversation("c")
    log.add(no, "needle 1", "the hay", (ToolCall("1", "bash", "needle"),), "needle 4")
    known = log.codec.parts

    def decode(data: bytes) -> Parts:
        parts = known(data)
        if "the hay" in repr(parts) or "bash" in repr(parts):
            raise Corrupt("unknown tag")
        return parts

    old = in_tables(log.backend, decode)
    assert old.catch_up() == 4
    page: SearchPage = old.query("p", SearchQuery(text="needle"))
    assert ([hit.seq for hit in page.hits], page.unreadable) == ([4, 1], 2)
    assert seqs(log.search, "needle") == [4, 3, 1]
    assert seqs(log.search, "", tool="bash") == [3]
    assert places(log.search.query("p", SearchQuery(text="zebra"))) == []


def test_odd_names_are_words_of_the_index(log: TableLog):
    """Whatever a profile or tool is called, nothing of it reaches the syntax of an expression."""
    for name in ("it's", "a\\b", "a' | 'b", "x:*", "\u00a0\u2028", "&|!()<->", "'", "\\'"):
        no = log.conversation(f"c{name}", name)
        log.add(no, (ToolCall("1", name, "needle"),), role=2)
        for _ in range(2):
            assert seqs(log.search, "needle", profile=name, tool=name) == [1]
            assert seqs(log.search, "needle", profile=name, conversation=f"c{name}") == [1]
            log.search.catch_up()
