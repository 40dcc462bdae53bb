"""Every real transcript, imported, then exported in every format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import atif as validator
import pytest
from exporting import brought, exported, rows
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

import clew
from clew.exporters import atif, chat, html, markdown, responses
from clew.exporters.transcript import Transcript, transcript
from clew.importers.bring import import_paths

TRANSCRIPTS = Path(__file__).parent.parent / "data" / "transcripts"
CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
ITEMS: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
TRIMMED = "[trimmed for fixture]"
"""In a file whose values somebody has taken out: what is an item there is none of the API."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Store]:
    with clew.open(tmp_path_factory.mktemp("real") / "a.db") as opened:
        found = import_paths(opened.profile("p"), TRANSCRIPTS)
        assert found.totals.messages > 1000
        yield opened


@pytest.fixture(scope="module")
def transcripts(store: clew.Store) -> list[Transcript]:
    profile = store.profile("p")
    return [transcript(profile.open(id)) for id in profile.transfer().family()]


def read(value: Any) -> None:
    """Pydantic looks at what is iterable only when it is read."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            read(inner)


def test_export_and_import_are_equal(store: clew.Store, fast_dir: Path) -> None:
    with clew.open(fast_dir / "b.db") as other:
        data = exported(store.profile("p"))
        first = brought(other.profile("p"), data)
        assert (first.damaged, first.refused, first.notes) == ((), (), ())
        assert rows(other, "p") == rows(store, "p")
        assert other.verify() == []
        assert brought(other.profile("p"), data).unchanged == first.new
        again = import_paths(other.profile("p"), TRANSCRIPTS)  # known by the names they had
        assert again.totals.messages == 0
        assert rows(other, "p") == rows(store, "p")


def test_chat_completions(transcripts: list[Transcript]) -> None:
    for source in transcripts:
        read(CHAT.validate_python(json.loads("".join(chat.text(source)))["messages"]))


def test_responses(transcripts: list[Transcript]) -> None:
    for source in transcripts:
        items = json.loads("".join(responses.text(source)))["input"]
        read(ITEMS.validate_python([item for item in items if TRIMMED not in json.dumps(item)]))


def test_atif(store: clew.Store, transcripts: list[Transcript]) -> None:
    profile = store.profile("p")
    embedded = 0
    for source in transcripts:
        text = "".join(atif.text(source, lambda id: transcript(profile.open(id))))
        found = validator.Trajectory.model_validate_json(text)
        embedded += len(found.subagent_trajectories or ())
    assert embedded >= 6


class Counting(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.articles = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "link", "object", "form")
        self.articles += tag == "article"


def test_pages(transcripts: list[Transcript]) -> None:
    for source in transcripts:
        entries = len(list(source.entries()))
        assert Counting("".join(html.text(source))).articles == entries
        page = "".join(markdown.text(source))
        assert sum(line.startswith("## \\#") for line in page.split("\n")) == entries
