"""docs/formats says of each format what its reader says."""

from __future__ import annotations

import re

import pytest
from pages import DOCS, names, rows, sections, text

from clew.importers.format import Format
from clew.importers.registry import FORMATS
from clew.importers.unread import REMEDIES

PAGE = DOCS / "formats" / "README.md"
READ = {names(row[1])[0]: row for row in rows(sections(PAGE)["What is read"]) if names(row[1])}
OURS = "clew"
"""Its own format, which is read apart from those of other tools."""


def test_every_format_has_a_row_and_no_other() -> None:
    assert set(READ) - {OURS} == {each.name for each in FORMATS}


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_a_row_names_all_places_that_are_looked_in(each: Format) -> None:
    said = re.findall(r"`~/([^`]+)`", READ[each.name][2])
    for place in each.places:
        assert any(place.startswith(folder.rstrip("/")) for folder in said), place


def test_what_is_not_read_is_named_as_the_command_names_it() -> None:
    listed = {row[0] for row in rows(sections(PAGE)["What is not read yet"])} - {"tool"}
    assert listed == {name.removesuffix(" export") for name in REMEDIES}


def test_every_page_of_a_format_is_linked() -> None:
    pages = {path.name for path in PAGE.parent.glob("*.md")} - {PAGE.name}
    assert not pages - set(re.findall(r"\]\(([\w-]+\.md)\)", text(PAGE)))
