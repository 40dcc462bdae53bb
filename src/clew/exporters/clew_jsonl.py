"""clew's own JSONL: everything of whole conversations. The format: docs/reference/clew-jsonl.md."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from clew.domain.redaction import Redaction
from clew.exporters.redaction import Lines
from clew.store.profile import Profile
from clew.store.transfer_lines import Content, End, Facts, MessageLine
from clew.store.transfer_text import VERSION, Header, encode

STEP = 500
"""Messages after which progress is told."""
Write = Callable[[bytes], object]


class Progress(Protocol):
    """Called with (done, of): conversations, or the messages of a single one."""

    def __call__(self, done: int, of: int, /) -> object: ...


class Exported(NamedTuple):
    """What a file holds. `waiting`: messages of inboxes, which no file holds."""

    conversations: int
    messages: int
    waiting: int


def header(profile: str, made_at: int, made_by: str, whole: bool) -> bytes:
    """The first line of a file."""
    kind = "store" if whole else "conversations"
    return encode(
        Header(clew=VERSION, type=kind, made_at=made_at, made_by=made_by, profile=profile)
    )


def write(
    profile: Profile, ids: Iterable[str], write: Write, progress: Progress | None = None,
    redaction: Redaction | None = None,
) -> Exported:  # fmt: skip
    """Write conversations, each behind its origin (`Transfer.family` gives them so). NotFound.
    With a redaction the file is no longer lossless."""
    listed, transfer = list(ids), profile.transfer()
    messages = waiting = 0
    several, lines = len(listed) > 1, None if redaction is None else Lines(redaction)
    for done, id in enumerate(listed):
        if progress is not None and several:
            progress(done, len(listed))
        out = _Out(write, None if several else progress, lines)
        dumped = transfer.dump(id, out)
        out.end(id, dumped.messages, dumped.waiting)
        messages, waiting = messages + dumped.messages, waiting + dumped.waiting
    return Exported(len(listed), messages, waiting)


class _Out:
    """The lines of one conversation, counted and named by a hash."""

    def __init__(self, write: Write, progress: Progress | None, redacted: Lines | None) -> None:
        self._write, self._lines, self._hash = write, 0, hashlib.sha256()
        self._progress, self._of, self._redacted = progress, 0, redacted

    def __call__(self, line: Facts | Content) -> None:
        for fresh in (line,) if self._redacted is None else self._redacted(line):
            self._line(fresh)

    def _line(self, line: Facts | Content) -> None:
        data = encode(line)
        self._lines += 1
        if isinstance(line, Facts):
            self._of = line.head
        elif self._progress is not None and isinstance(line, MessageLine) and not line.seq % STEP:
            self._progress(line.seq, self._of)
        self._hash.update(data)
        self._write(data)

    def end(self, id: str, messages: int, waiting: int) -> None:
        for line in () if self._redacted is None else self._redacted.rest():
            self._line(line)
        self._write(encode(End(
            conversation=id, messages=messages, lines=self._lines, waiting=waiting,
            sha256=self._hash.hexdigest(),
        )))  # fmt: skip
