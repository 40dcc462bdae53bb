"""What a reader says of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from clew.importers.format import Format
from clew.importers.probe import probe
from clew.importers.records import Event, Record, Skipped
from clew.importers.registry import FORMATS
from clew.importers.source import Source

T = TypeVar("T")


def read(format: Format, path: Path) -> list[Event]:
    """All that is said of a path, which is of this format and of no other."""
    source = Source(path)
    look = probe(source)
    assert [each.name for each in FORMATS if each.matches(look)] == [format.name]
    return list(format.read(source))


def read_bytes(format: Format, data: bytes) -> list[Event]:
    """All that is said of what was never a file."""
    return list(format.read(_Held(data)))


class _Held(Source):
    """A source in memory."""

    def __init__(self, data: bytes) -> None:
        super().__init__(Path(__file__))
        self.path = Path("held.jsonl")
        self._data = data

    def opened(self) -> Any:
        return nullcontext(BytesIO(self._data))


def of(kind: type[T], events: Iterable[Event], chat: str | None = None) -> list[T]:
    """The events of a kind: of one chat, or all."""
    return [
        event
        for event in events
        if isinstance(event, kind) and (chat is None or getattr(event, "chat", chat) == chat)
    ]


def records(events: Iterable[Event], chat: str | None = None) -> list[Record]:
    return of(Record, events, chat)


def skipped(events: Iterable[Event]) -> dict[str, int]:
    """What is left out, by kind."""
    counts: Counter[str] = Counter()
    for event in of(Skipped, events):
        counts[event.kind] += event.count
    return dict(counts)
