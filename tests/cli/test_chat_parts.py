"""The parts of `clew chat`: places, history, recap, questions, tool calls, the line below."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.cli.chat import recap, tools_view
from clew.cli.chat.approve import MOMENT, Questions, read
from clew.cli.chat.entry import Pastes
from clew.cli.chat.history import LONGEST, ChatHistory, history_path
from clew.cli.chat.place import MOST, Places, place, terminal
from clew.cli.chat.rows import line_rows, piece_lines, table_rows
from clew.cli.chat.status import Status, bar, money, short
from clew.cli.chat.typed import Lines
from clew.cli.chat.window import broken, reflows
from clew.cli.text import acts, cells
from clew.domain.parts import ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.providers.api import Model


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Where one was.


def test_a_terminal_is_its_innermost_name() -> None:
    inside = {"TMUX": "/tmp/s,12,0", "TMUX_PANE": "%3", "SSH_TTY": "/dev/pts/1"}
    assert terminal(inside, "/dev/pts/9") == "TMUX_PANE=/tmp/s,12%3"
    assert terminal({"SSH_TTY": "/dev/pts/1"}, None) == "SSH_TTY=/dev/pts/1"
    assert terminal({}, "/dev/pts/9") == "tty=/dev/pts/9"
    assert terminal({}, None) == ""


def test_a_place_is_a_terminal_and_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place({"WT_SESSION": "x"}) == f"WT_SESSION=x {tmp_path}"


def test_places_are_remembered_by_store_and_profile(tmp_path: Path) -> None:
    path = tmp_path / "home" / "places.json"
    one, other = Places("a.db default", path), Places("b.db default", path)
    assert one.last("here") is None
    one.remember("here", "first")
    other.remember("here", "second")
    one.remember("there", "third")
    one.remember("here", "fourth")
    assert (one.last("here"), one.last("there"), other.last("here")) == (
        "fourth",
        "third",
        "second",
    )
    assert mode(path) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["places.json"]


def test_places_are_bounded(tmp_path: Path) -> None:
    places = Places("s", tmp_path / "p")
    for n in range(MOST + 5):
        places.remember(f"place {n}", str(n))
    assert places.last("place 0") is None
    assert places.last(f"place {MOST + 4}") == str(MOST + 4)
    assert len(json.loads((tmp_path / "p").read_text())) == MOST


@pytest.mark.parametrize("text", ["", "{", "[1]", '[["a","b"]]', "[[1,2,3]]", "{}", "\udcff"])
def test_a_broken_file_of_places_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p"
    path.write_text(text, errors="surrogateescape")
    places = Places("s", path)
    assert places.last("here") is None
    places.remember("here", "x")
    assert places.last("here") == "x"


def test_places_that_cannot_be_written_harm_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    places = Places("s", tmp_path / "file" / "p")
    places.remember("here", "x")
    assert places.last("here") is None


# What was typed.


def test_history_is_private_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "home" / "h.jsonl"
    history = ChatHistory(path)
    for text in ("one", "two\nlines 京都", " a secret", "x" * (LONGEST + 1), ""):
        history.append_string(text)
    assert [*ChatHistory(path).load_history_strings()] == ["two\nlines 京都", "one"]
    assert mode(path) == 0o600


def test_a_long_history_loses_its_oldest(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text("".join(json.dumps(f"{n} {'x' * 1000}") + "\n" for n in range(3000)))
    found = [*ChatHistory(path).load_history_strings()]
    assert found[0].startswith("2999 ")
    assert len(found) == 2000
    assert len(path.read_text().splitlines()) == 2000
    assert mode(path) == 0o600


def test_history_has_a_file_for_each_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLEW_HOME", str(tmp_path))
    paths = {history_path(name) for name in ("default", "work", "../../etc/x", "日本", "a" * 500)}
    assert len(paths) == 5
    assert all(path.parent == tmp_path / "history" for path in paths)


# What was pasted.


def test_a_long_paste_is_one_word_until_it_is_sent() -> None:
    pastes = Pastes()
    long = "\n".join(map(str, range(10_000)))
    assert pastes.fold("a\r\nb\rc") == "a\nb\nc"
    assert pastes.fold(long) == "[pasted 10,000 lines]"
    assert pastes.fold(long + "!") == "[pasted 10,000 lines 2]"
    assert pastes.fold(long) == "[pasted 10,000 lines]"
    assert pastes.fold("x" * 5000) == "[pasted 5,000 characters]"
    said = "see [pasted 10,000 lines] and [pasted 10,000 lines 2], not [pasted 7 lines]"
    assert pastes.unfold(said) == f"see {long} and {long}!, not [pasted 7 lines]"
    pastes.clear()
    assert pastes.unfold(said) == said


# Questions.


def test_what_was_typed_before_a_question_is_no_answer_to_it() -> None:
    now = 0.0
    questions = Questions(lambda: now)
    first, second = ToolCall("1", "a"), ToolCall("2", "b")
    assert questions.ask([first, second]) == [first, second]
    assert questions.ask([second]) == []
    assert (questions.current, questions.more, questions.open) == (first, 1, False)
    now += MOMENT
    assert questions.open
    assert questions.answered() == second
    assert not questions.open
    now += MOMENT
    assert questions.answered() is None
    assert not questions.open


def test_no_is_the_default() -> None:
    assert [read(t) for t in ("y", "YES ", "a", "n", "", "maybe")] == [
        "once", "once", "always", "no", "no", None,
    ]  # fmt: skip


# Tool calls.

CALL = ToolCall("1", "read_file", '{"path": "src/a.py", "limit": 3}')


def shown(pieces: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in pieces)


def test_a_call_is_one_line() -> None:
    result = ToolResult("1", "one\ntwo")
    assert shown(tools_view.running(CALL, 60, True)) == "→ read_file path=src/a.py limit=3 ..."
    found = shown(tools_view.finished(CALL, result, 1.26, 60, True))
    assert found == "→ read_file path=src/a.py limit=3  1.3 s, 2 lines"


def test_an_error_is_red_and_says_why() -> None:
    pieces = tools_view.finished(CALL, ToolResult("1", "no such file", None, True), 0, 70, False)
    assert ("  no such file", "red") in pieces


@given(st.text(max_size=80), st.text(max_size=200), st.text(max_size=200), st.integers(20, 100))
def test_a_call_fits_and_nothing_in_it_acts(name: str, args: str, said: str, width: int) -> None:
    call = ToolCall("1", name, args)
    for error in (False, True):
        line = shown(tools_view.finished(call, ToolResult("1", said, None, error), 1, width, True))
        assert not {"\n", "\t"} & {*line}
        assert not any(acts(ord(character)) for character in line)
        assert cells(line) <= max(width, 75)


def test_what_is_asked_is_seen_whole() -> None:
    call = ToolCall("1", "write", json.dumps({"path": "a", "text": "line\n  more\x1b[2J"}))
    rows = line_rows(tools_view.asked(call), 80, False)
    assert rows == ["? write", "  path: a", "  text: line", "      more^[[2J"]


# The line below.


def test_the_status_fits_every_width() -> None:
    status = Status()
    assert shown(status.pieces(80)) == "connecting"
    status.model = Model(name="gpt-5", provider="openai", window=400_000)
    status.tokens, status.limit, status.waiting = 90_000, 100_000, 2
    status.add(Usage(input=1000, output=50, cached=750), 0.0123)
    whole = shown(status.pieces(200))
    assert (
        whole == "openai/gpt-5  2 waiting  ▰▰▰▰▰▰▰▱ 90k/100k  ↑1k ↓50  cache 75%  $0.012 of $0.012"
    )
    for width in range(1, 90):
        assert cells(shown(status.pieces(width))) <= width
    assert shown(status.pieces(30)) == "openai/gpt-5  2 waiting  ↑1k"[:23]
    status.begin()
    assert (status.usage, status.cost, status.spent) == (Usage(), 0.0, 0.0123)


def test_numbers_are_short() -> None:
    assert [short(n) for n in (0, 999, 1000, 12_345, 99_960, 999_600, 2_500_000)] == [
        "0", "999", "1k", "12k", "100k", "1M", "2.5M",
    ]  # fmt: skip
    assert [money(d) for d in (0.0, 0.00123, 1.5)] == ["$0.00", "$0.0012", "$1.50"]
    assert [bar(s, False) for s in (0, 0.001, 0.5, 2)] == [
        "........",
        "#.......",
        "####....",
        "########",
    ]


# Rows.


def test_lines_and_tables_are_harmless_and_fit() -> None:
    rows = line_rows(piece_lines(["  a\x1b[2J\nb ", ("c" * 50, "red")]), 30, False)
    assert rows[0] == "  a^[[2J"
    assert all(cells(row) <= 30 for row in rows)
    table = table_rows(("A", "B"), [("x\x07", "long " * 30), ("y", "z")], 40, False)
    assert table[0].split() == ["A", "B"]
    assert all(cells(row) <= 40 for row in table)
    assert "^G" in table[1]


def test_rows_that_a_narrower_terminal_breaks() -> None:
    assert broken([10, 80, 41, 0], 40) == 2
    assert reflows({"TMUX": "x"})
    assert not reflows({"TERM": "xterm"})


# The recap.


def test_the_recap_of_a_conversation(tmp_path: Path) -> None:
    with clew.open(tmp_path / "s.db") as store:
        conv = store.profile("p").create(title="Fix\x1b[2J it")
        conv.add([clew.user("first"), clew.assistant("answer one")])
        conv.add([clew.user("second " * 200), clew.assistant("answer two")])
        conv.set_todos([clew.Todo("one", "done"), clew.Todo("two", "active"), clew.Todo("three")])
        conv.set_goal("all is well")
        newest = conv.log(limit=10, order="newest").items
        said, answer = recap.last_exchange(newest)
        facts = recap.Recap(
            info=conv.info(), said=said, answer=answer, todos=conv.todos(), goal=conv.goal(),
            turn="waiting",
        )  # fmt: skip
        rows = line_rows(recap.lines(facts, conv.clock.now(), 60), 60, False)
    assert rows[0] == "Fix^[[2J it"
    assert rows[1].endswith("4 messages, active just now")
    assert rows[2].startswith("> second second")
    text = "\n".join(rows)
    assert "answer two" in text
    assert "answer one" not in text
    assert "now:  two" in text
    assert "todo: three" in text
    assert "goal: all is well" in text
    assert "waits for your answer" in text
    assert all(cells(row) <= 60 for row in rows)


def test_the_recap_says_that_a_message_was_not_answered(tmp_path: Path) -> None:
    with clew.open(tmp_path / "s.db") as store:
        conv = store.profile("p").create()
        conv.add([clew.user("left alone")])
        facts = recap.Recap(info=conv.info(), said=next(iter(conv.messages())), answer=None)
        rows = line_rows(recap.lines(facts, conv.clock.now(), 60), 60, False)
    assert rows[-1] == "not answered: /retry has it answered"


# Lines that are typed.


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=8)))
def test_lines_come_whole_however_they_are_cut(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode() + b"last"

    async def read() -> list[str]:
        out, into = os.pipe()
        with os.fdopen(out, encoding="utf-8") as stream:
            reader, found = Lines(stream), list[str]()
            for at in range(len(data)):
                os.write(into, data[at : at + 1])
                if data[at : at + 1] == b"\n":
                    found.append(await reader.next() or "")
            os.close(into)
            found.append(await reader.next() or "")
            assert await reader.next() is None
            return found

    assert asyncio.run(read()) == [*lines, "last"]


def test_a_file_is_read_as_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\r\n\nthree")

    async def read() -> list[str | None]:
        with (tmp_path / "f").open(newline="") as stream:
            reader = Lines(stream)
            return [await reader.next() for _ in range(4)]

    assert asyncio.run(read()) == ["one", "", "three", None]
