"""Every file is of one format: no two readers take the same for theirs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.importers.probe import probe
from clew.importers.registry import FORMATS, format_of
from clew.importers.source import Source
from imports import SAMPLES, samples
from strategies.files import FORMS, Form

OF_FOLDER = {"chatgpt-export": ("chatgpt",), "hermes": ("hermes", "hermes-json"),
             "codex": ("codex", "codex-exec")}  # fmt: skip
"""Formats of the sample folders that are not named after their one format."""


def matching(path: Path) -> list[str]:
    """The formats that take a path for theirs, all of them asked."""
    look = probe(Source(path))
    found = [each.name for each in FORMATS if each.matches(look)]
    first = format_of(look)
    assert (first.name if first else None) == (found[0] if found else None)
    return found


def test_names_are_unique() -> None:
    assert len({each.name for each in FORMATS}) == len(FORMATS) == 20
    assert {each.format for each in FORMS} == {each.name for each in FORMATS}


@pytest.mark.parametrize("name", samples())
def test_a_sample_is_of_its_format_alone(name: str) -> None:
    (found,) = matching(SAMPLES / name)
    folder = name.split("/")[0]
    assert found in OF_FOLDER.get(folder, (folder,))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_a_built_file_is_of_its_format_alone(form: Form, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = form.write(data.draw(form.talks()), Path(folder))
        assert matching(path) == [form.format]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b'"x"', b"{", b"[{}]", b"\0" * 100, b'{"type": "user"}\n',
     b'{"id": 1, "title": "x", "messages": []}', b'{"name": "package", "version": "1.0.0"}',
     b"# A title\n\nSome text.\n", b'{"log": {"version": "1.2"}}', b'[{"id": 1, "text": "x"}]'],
)  # fmt: skip
def test_what_is_no_transcript_is_of_none(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(data)
    assert matching(path) == []
