"""Files that grow while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.importers import following
from clew.importers.following import FollowedSource
from clew.importers.format import Format
from clew.importers.formats import claude_code, codex, codex_exec, pi
from clew.importers.places import watched
from clew.importers.records import Chat, Damaged, Event, Paused, Record
from clew.importers.source import Piece, Source
from imports import SAMPLES

FILES = [
    *((claude_code.FORMAT, path) for path in sorted((SAMPLES / "claude-code").glob("*.jsonl"))),
    *(
        (codex_exec.FORMAT if "exec" in path.name else codex.FORMAT, path)
        for path in sorted((SAMPLES / "codex").glob("*.jsonl"))
    ),
    *((pi.FORMAT, path) for path in sorted((SAMPLES / "pi").glob("*.jsonl"))),
]


class Growing:
    """A file, and what a reader of its lines has said."""

    def __init__(self, path: Path, stays: bool = True) -> None:
        self.path = path
        self.path.touch()
        self.source = FollowedSource(path, stays)
        self._lines = self.source.lines()

    def write(self, data: bytes) -> Growing:
        with self.path.open("ab") as stream:
            stream.write(data)
        return self

    def told(self) -> list[bytes | str]:
        """New lines, and what is damaged, up to the pause."""
        found: list[bytes | str] = []
        for piece in self._lines:
            if isinstance(piece, Paused):
                break
            found.append(piece.data if isinstance(piece, Piece) else piece.where)
        return found


@pytest.fixture
def file(tmp_path: Path) -> Growing:
    return Growing(tmp_path / "a.jsonl")


def test_lines_are_told_once_they_are_whole(file: Growing) -> None:
    assert file.told() == []
    assert file.write(b'{"a": 1}\n{"b"').told() == [b'{"a": 1}']
    assert file.told() == []
    assert file.write(b": 2").told() == []
    assert file.write(b"}").told() == [b'{"b": 2}']
    assert file.write(b'\r\n\n{"c": 3}\n').told() == [b'{"c": 3}']
    assert file.source.done == file.path.stat().st_size


def test_what_is_no_object_waits_for_its_line_end(file: Growing) -> None:
    assert file.write(b"12").told() == []
    assert file.write(b"3}").told() == []
    assert file.write(b"\n").told() == [b"123}"]


def test_lines_keep_their_numbers(file: Growing) -> None:
    file.write(b'\xef\xbb\xbf{"a": 1}').told()
    lines = file.source.lines()
    assert next(lines) == Piece(1, b'{"a": 1}')
    file.write(b'\n\n{"b": 1}\n')
    assert [each for each in (next(lines), next(lines)) if isinstance(each, Piece)] == [
        Piece(3, b'{"b": 1}')
    ]


def test_a_line_that_is_too_long_is_passed_over(
    file: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LINE", 20)
    assert file.write(b"x" * 15).told() == []
    assert file.write(b"x" * 15).told() == ["line 1"]
    assert file.write(b"x" * 50).told() == []
    assert file.write(b'x\n{"a": 1}\n').told() == [b'{"a": 1}']


def shorter(path: Path) -> None:
    path.write_bytes(b'{"z": 1}\n')


def other_of_the_same_beginning(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"2", b"5") + b'{"c": 3}\n')


def replaced(path: Path) -> None:
    aside = path.with_suffix(".new")
    aside.write_bytes(path.read_bytes() + b'{"c": 3}\n')
    aside.replace(path)


@pytest.mark.parametrize(
    "change", [shorter, other_of_the_same_beginning, replaced, os.unlink], ids=lambda f: f.__name__
)
def test_another_file_in_its_place_is_lost(file: Growing, change: object) -> None:
    file.write(b'{"a": 1}\n{"b": 2}\n').told()
    assert not file.source.is_lost
    assert callable(change)
    change(file.path)
    assert file.told() == []
    assert file.source.is_lost


def test_one_that_does_not_stay_ends(tmp_path: Path) -> None:
    """And its last line is left out without a word when it is half a one."""
    file = Growing(tmp_path / "a.jsonl", stays=False).write(b'{"a": 1}\n{"b": 2')
    assert list(file.source.lines()) == [Piece(1, b'{"a": 1}')]
    file.write(b"}")
    assert list(file.source.lines()) == [Piece(1, b'{"a": 1}'), Piece(2, b'{"b": 2}')]


@pytest.mark.parametrize(("format", "path"), FILES, ids=lambda each: getattr(each, "name", None))
@settings(max_examples=settings.default.max_examples // 3, deadline=None)
@given(data=st.data())
def test_a_growing_file_says_what_the_whole_says(
    format: Format, path: Path, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Wherever it was cut; what comes at the end of the whole alone are no records."""
    whole = path.read_bytes()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=6)))
    growing = tmp_path_factory.mktemp("growing") / path.name
    growing.touch()
    source = FollowedSource(growing, True)
    events: Iterator[Event] | None = None
    said: list[Event] = []
    for first, last in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with growing.open("ab") as stream:
            stream.write(whole[first:last])
        if growing.stat().st_size:  # as the watch does: an empty file is of no format
            events = events or format.read(source)
            said += _until_paused(events)
    expected = [_named(event, growing, path) for event in format.read(Source(path))]
    found = [_named(event, growing, path) for event in said]
    assert found == expected[: len(found)]
    assert not [event for event in expected[len(found) :] if isinstance(event, Record | Chat)]


def _until_paused(events: Iterator[Event]) -> list[Event]:
    found: list[Event] = []
    for event in events:
        if isinstance(event, Paused):
            break
        found.append(event)
    return found


def _named(event: Event, growing: Path, path: Path) -> str:
    return repr(event).replace(str(growing), str(path))


def test_a_pause_is_what_readers_pass_on() -> None:
    assert isinstance(Paused("", ""), Damaged)


def test_the_usual_places_are_watched_by_their_folders(tmp_path: Path) -> None:
    session = tmp_path / ".claude" / "projects" / "a" / "b.jsonl"
    session.parent.mkdir(parents=True)
    database = tmp_path / ".hermes" / "state.db"
    database.parent.mkdir()
    database.touch()
    found = watched(tmp_path)
    assert {place.path for place in found.places} == {tmp_path / ".claude" / "projects", database}
    assert found.wanted(session)
    assert found.wanted(database)
    assert found.wanted(database.with_name("state.db-wal"))
    assert not found.wanted(session.with_suffix(".txt"))
    assert not found.wanted(tmp_path / ".claude" / "other.jsonl")
    assert not found.wanted(database.with_name("other.db"))
