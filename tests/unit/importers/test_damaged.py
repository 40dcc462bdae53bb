"""Damaged files of every format: its reader says what is left, or why nothing is."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from clew.importers.format import Format
from clew.importers.formats import atif, hermes_json, mini_swe_agent, openhands, swe_agent
from clew.importers.probe import probe
from clew.importers.records import Chat, Damaged, Event, Record
from clew.importers.registry import FORMATS, format_of
from clew.importers.source import Source
from imports import SAMPLES, samples
from strategies.damage import break_file, randoms, survived
from strategies.files import EXAMPLE, FORMS, Form

BY_NAME = {format.name: format for format in FORMATS}
LARGEST = 100_000
"""Bytes of a sample that is damaged."""
SMALL = [
    name
    for name in samples()
    if (SAMPLES / name).is_dir() or (SAMPLES / name).stat().st_size <= LARGEST
]


def check(format: Format, path: Path, random: Random) -> None:
    """Read a damaged file, whatever it now looks like."""
    break_file(random, path)
    events = survived(format, Source(path))
    assert all(isinstance(each, Event) for each in events)
    told = {each.id for each in events if isinstance(each, Chat)}
    assert {each.chat for each in events if isinstance(each, Record)} <= told


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=2 * settings.default.max_examples)
@given(random=randoms)
def test_no_damage_to_a_sample_stops_its_reader(name: str, random: Random) -> None:
    whole = SAMPLES / name
    format = format_of(probe(Source(whole)))
    assert format is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / whole.name
        (shutil.copytree if whole.is_dir() else shutil.copy)(whole, path)
        check(format, path, random)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@settings(max_examples=2 * settings.default.max_examples)
@given(random=randoms)
def test_no_damage_to_a_talk_stops_its_reader(form: Form, random: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(BY_NAME[form.format], form.write(EXAMPLE, Path(folder)), random)


# ---------------------------------------------------------------------- documents

DOCUMENTS = [
    (hermes_json.FORMAT, "hermes/archival-export-v1.json"),
    (swe_agent.FORMAT, "swe-agent/function_calling_simple.traj"),
    (mini_swe_agent.FORMAT, "mini-swe-agent/github_issue.traj.json"),
    (openhands.FORMAT, "openhands/events-basic.json"),
    (atif.FORMAT, "atif/multiagent.json"),
]
"""Documents of one conversation each."""


def said_of(format: Format, data: bytes) -> list[Event]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.json"
        path.write_bytes(data)
        return list(format.read(Source(path)))


def spoken(events: list[Event]) -> list[tuple[str, object]]:
    return [(each.role, each.parts) for each in events if isinstance(each, Record)]


@pytest.mark.parametrize(("format", "name"), DOCUMENTS)
def test_a_byte_order_mark_and_line_ends_change_nothing(format: Format, name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    ended = b"\xef\xbb\xbf" + data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert spoken(said_of(format, ended)) == spoken(said_of(format, data))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "renamed"
        path.write_bytes(ended)
        assert format.matches(probe(Source(path)))


@pytest.mark.parametrize(("format", "name"), DOCUMENTS)
def test_what_is_no_utf_8_is_replaced_and_the_rest_arrives(format: Format, name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    whole = spoken(said_of(format, data))
    place = data.index(b" the ", len(data) // 3) + 1
    hurt = spoken(said_of(format, data[:place] + b"\xff" + data[place + 1 :]))
    assert len(hurt) == len(whole)
    assert sum(a != b for a, b in zip(hurt, whole, strict=True)) <= 1


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"[", b"{", b"null", b"[]", b"{}", b'"x"'])
@pytest.mark.parametrize("format", [format for format, _ in DOCUMENTS])
def test_a_document_that_says_nothing_has_no_records(format: Format, data: bytes) -> None:
    events = said_of(format, data)
    assert spoken(events) == []
    assert all(isinstance(event, Damaged | Chat) for event in events)


@pytest.mark.parametrize(("format", "name"), DOCUMENTS)
def test_a_document_of_ten_thousand_levels_is_refused(format: Format, name: str) -> None:
    deep = b'[{"role": "user", "id": 1, "source": "user", "content": ' + b"[" * 10_000
    events = said_of(format, deep + b"]" * 10_000 + b"}]")
    assert spoken(events) == []
