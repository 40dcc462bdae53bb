"""The small things under the commands: text on a terminal, JSON, times, columns."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli import jsonout, text, times
from clew.cli.screen import Column, Screen
from clew.cli.settings import quoted
from clew.cli.times import DAY, HOUR, MINUTE, WEEK

NOW = 1_750_000_000_000_000

any_text = st.text(st.characters(codec=None))


@given(any_text)
def test_nothing_visible_acts(value: str) -> None:
    for shown in (text.visible(value), text.one_line(value)):
        assert not any(text.acts(ord(character)) for character in shown)
        shown.encode("utf-8")
    assert "\n" not in text.one_line(value)


def test_how_controls_are_shown() -> None:
    shown = text.visible("a\x00\x1b[1m\r\nb\rc\x7f\x9b\u202e\ud800\td")
    assert shown == "a^@^[[1m\nb^Mc<7F><9B><U+202E><U+D800>    d"
    assert text.visible("plain – schön 京都\n") == "plain – schön 京都\n"


@given(st.recursive(any_text | st.integers() | st.none(), st.lists, max_leaves=5))
def test_json_is_exact(value: object) -> None:
    out = jsonout.dumps(value)
    assert json.loads(out) == value
    assert not any(text.acts(ord(character)) for character in out)
    out.encode("utf-8")


def test_json_where_the_stream_is_narrow() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    jsonout.write_list(stream, ["京", {"a": "é"}])
    stream.seek(0)
    assert json.load(stream) == ["京", {"a": "é"}]
    out = io.StringIO()
    jsonout.write_object(out, {"a": 1}, "items", iter(()))
    assert json.loads(out.getvalue()) == {"a": 1, "items": []}


@pytest.mark.parametrize(
    ("value", "width"),
    [
        ("abc", 3),
        ("京都", 4),
        ("é", 1),
        ("e\u0301", 1),
        ("\u200b", 0),
        ("★", 1),
        ("👍", 2),
        ("\U0001fae8", 2),
        ("\U0001f39e", 2),
        ("🇩🇪", 4),
        ("❤\ufe0f", 2),
        ("\u0600", 1),
        ("\xad", 1),
        ("שלום", 4),
    ],
)
def test_widths(value: str, width: int) -> None:
    assert text.cells(value) == width


@given(st.text(st.sampled_from("ab 京é\u0301")), st.integers(1, 20))
def test_fitting(value: str, width: int) -> None:
    fitted = text.fit(value, width)
    assert text.cells(fitted) <= width
    assert fitted == value or fitted.endswith("…")
    assert text.cells(text.pad(fitted, width)) == width


def test_short_ids() -> None:
    minted = "0123456789abcdefghjkmnpqrs"
    assert text.short_id(minted) == "01234567"
    assert text.short_id("telegram-42") == "telegram-42"
    other = minted[:-1] + "t"
    assert text.short_ids([minted, other]) == {minted: minted, other: other}


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (0, "just now"), (59_000_000, "just now"), (MINUTE, "1m ago"), (HOUR - 1, "59m ago"),
        (HOUR, "1h ago"), (DAY, "1d ago"), (WEEK, "1w ago"), (5 * WEEK, times.day(NOW - 5 * WEEK)),
        (-MINUTE, times.day(NOW + MINUTE)),
    ],
)  # fmt: skip
def test_ago(age: int, shown: str) -> None:
    assert times.ago(NOW - age, NOW) == shown


def test_moments() -> None:
    assert times.parse_moment("3d", NOW) == NOW - 3 * DAY
    assert times.parse_moment("1970-01-02T00:00:00Z", NOW) == DAY
    assert times.parse_moment("1970-01-01T01:00+01:00", NOW) == 0
    today, before = times.parse_moment("today", NOW), times.parse_moment("yesterday", NOW)
    assert today is not None
    assert before is not None
    assert 0 <= NOW - today < 25 * HOUR
    assert 22 * HOUR < today - before < 26 * HOUR
    for wrong in ("", "d", "-3d", "1.5d", "soon", "2026-13-01", "9999999d", "²d"):
        assert times.parse_moment(wrong, NOW) is None
    assert times.parse_age("12 W") == 12 * WEEK


def test_a_table_fits_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    columns = [Column("A", "yellow"), Column("TITLE", flexible=True), Column("N", right=True)]
    Screen(out).table(columns, [["x", "京" * 50, "7"], ["y", ("short", "bold"), "1,234"]])
    Screen(out).table(columns, [["y" * 99, "京" * 50, "7"]])
    lines = out.getvalue().splitlines()
    assert "\x1b[33mx\x1b[0m" in lines[1]
    for line in lines:
        for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m"):
            line = line.replace(code, "")
        assert text.cells(line) <= 40
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Screen(Terminal()).color
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(Terminal()).color
    assert not Screen(io.StringIO()).color


def test_words_for_a_shell() -> None:
    assert [quoted(word) for word in ("/a/b-c.db", "a b", "it's")] == [
        "/a/b-c.db",
        "'a b'",
        "'it'\\''s'",
    ]
