"""clew's own JSONL, read: conversations come as they were exported, those that are here grow.

A damaged line costs itself and is named; a conversation that cannot be brought is named, and the
others arrive. Importing again adds nothing, and goes on where an import was interrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import BinaryIO

from msgspec import Struct

from clew.errors import InputError, Refused
from clew.importers.clew_lines import LONGEST, Numbered, numbered
from clew.store.profile import Profile
from clew.store.transfer import Restored, Restoring
from clew.store.transfer_lines import Content, End, Facts, Line
from clew.store.transfer_text import VERSION, decode, header_of

TOGETHER = 64
"""Small new conversations that share a transaction."""
TOLD = 1000
"""Damaged lines, refused conversations and notes that are told one by one."""

Progress = Callable[[int], object]
"""Called with the bytes that were read so far."""


class Brought(Struct, frozen=True, kw_only=True):
    """What an import did, or would do."""

    new: int = 0
    """Conversations that were not here, ..."""
    grown: int = 0
    unchanged: int = 0
    messages: int = 0
    """Messages that are new."""
    damaged: tuple[tuple[int, str], ...] = ()
    """(line, reason), of the first lines that could not be read."""
    damaged_count: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    """(conversation, why): nothing of them was written, or nothing further."""
    refused_count: int = 0
    notes: tuple[tuple[str, str], ...] = ()
    """(conversation, what is not as it was exported)."""
    waiting: int = 0
    """Messages of inboxes that were not exported."""


def sniff(head: bytes) -> bool:
    """Whether a file that begins so is one of clew's."""
    line = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return line.startswith(b'{"clew":') and b'"type":' in line


def bring(
    profile: Profile, stream: BinaryIO, *, progress: Progress | None = None, dry_run: bool = False
) -> Brought:
    """Bring all conversations of a file into a profile. InputError when it is none of clew's, or
    of a later version."""
    run = _Run(profile, dry_run)
    done = 0
    for line in numbered(stream):
        if line.number == 1:
            _check_header(line)
        else:
            run.line(line)
        done += line.size
        if progress is not None:
            progress(done)
    run.close("the file ends before it does")
    run.write()
    return run.brought()


def _check_header(line: Numbered) -> None:
    found = header_of((line.data or b"").removeprefix(b"\xef\xbb\xbf").rstrip(b"\r"))
    if found is None:
        raise InputError(
            'the first line is not that of a clew export ({"clew":1,...}); add it again if it was '
            "lost, docs/reference/clew-jsonl.md shows it"
        )
    if found.clew != VERSION:
        raise InputError(
            f"the file has version {found.clew} of clew's JSONL, this clew reads {VERSION}; import "
            f"it with a newer clew"
        )


class _Run:
    """One file. At most one conversation is open at a time; small ones wait for company."""

    def __init__(self, profile: Profile, dry: bool) -> None:
        self._small: dict[str, Restoring] = {}
        self._transfer, self._dry = profile.transfer(), dry
        self._open: _Conversation | None = None
        self._skipped: str | None = None
        """The conversation whose lines are passed over."""
        self._heads: dict[str, int] = {}
        self._new = self._grown = self._unchanged = self._messages = self._waiting = 0
        self._damaged: list[tuple[int, str]] = []
        self._refused: list[tuple[str, str]] = []
        self._notes: list[tuple[str, str]] = []
        self._counts = [0, 0]

    def brought(self) -> Brought:
        return Brought(
            new=self._new, grown=self._grown, unchanged=self._unchanged, messages=self._messages,
            damaged=tuple(self._damaged), damaged_count=self._counts[0],
            refused=tuple(self._refused), refused_count=self._counts[1],
            notes=tuple(self._notes), waiting=self._waiting,
        )  # fmt: skip

    def line(self, line: Numbered) -> None:
        """The next line of the file."""
        if line.data is None:
            self._damage(line, f"longer than {LONGEST >> 20} MiB")
            return
        data = line.data.removesuffix(b"\r")
        if not data:
            return
        if data.startswith(b'{"clew":') and header_of(data) is not None:
            self.close("another file follows")
            _check_header(line)
            return
        try:
            value = decode(data)
        except ValueError as error:
            self._damage(line, str(error) if line.whole else "the file ends in this line")
            return
        self._value(value, line, data)

    def close(self, why: str) -> None:
        """Nothing more comes of the conversation that is open, though its last line did not."""
        if self._open is not None:
            self._note(self._open.id, f"its last line is missing: {why}")
            self._finish(self._open, whole=False)

    def _value(self, value: Line, line: Numbered, data: bytes) -> None:
        id = value.conversation
        if isinstance(value, Facts):
            self.close("another conversation begins")
            self._begin(value, line, data)
        elif self._open is None or self._open.id != id:
            if self._skipped != id:
                self.close("lines of another conversation follow")
                self._refuse(id, "its first line is missing or damaged")
        elif isinstance(value, End):
            self._end(self._open, value)
        else:
            try:
                self._open.add(value, line.size, data)
            except InputError as error:
                self._damage(line, str(error), value)
            except Refused as error:
                self._refuse(id, str(error))

    def _begin(self, facts: Facts, line: Numbered, data: bytes) -> None:
        self._skipped = None
        if not self._small.keys().isdisjoint((facts.conversation, facts.origin)):
            self.write()
        try:
            restoring = self._transfer.restoring(facts, dry=self._dry, planned=self._heads)
        except (InputError, Refused) as error:
            self._refuse(facts.conversation, str(error))
        else:
            self._open = _Conversation(restoring, data)

    def _end(self, found: _Conversation, end: End) -> None:
        if found.lines != end.lines or found.digest() != end.sha256:
            self._note(found.id, "its lines are not those that were exported")
        self._waiting += end.waiting
        self._finish(found)

    def _finish(self, found: _Conversation, whole: bool = True) -> None:
        self._open, self._skipped = None, found.id
        restoring = found.restoring
        restoring.complete(whole)
        if restoring.is_small and not self._dry:
            self._small[found.id] = restoring
            if len(self._small) >= TOGETHER:
                self.write()
            return
        try:
            self._count(found.id, restoring.finish())
        except (InputError, Refused) as error:
            self._refused_too(found.id, str(error))

    def write(self) -> None:
        """Write the small ones that wait."""
        small, self._small = self._small, {}
        for id, outcome in zip(small, self._transfer.finish(small.values()), strict=True):
            if isinstance(outcome, Restored):
                self._count(id, outcome)
            else:
                self._refused_too(id, str(outcome))

    def _count(self, id: str, done: Restored) -> None:
        self._messages += done.messages
        self._heads[id] = done.head
        if done.made:
            self._new += 1
        elif done.changed:
            self._grown += 1
        else:
            self._unchanged += 1
        for note in done.notes:
            self._note(id, note)

    def _refuse(self, id: str, why: str) -> None:
        self._open, self._skipped = None, id
        self._refused_too(id, why)

    def _refused_too(self, id: str, why: str) -> None:
        self._counts[1] += 1
        if len(self._refused) < TOLD:
            self._refused.append((id, why))

    def _damage(self, line: Numbered, why: str, value: Content | None = None) -> None:
        if self._open is not None:
            self._open.restoring.lost(value)
        self._counts[0] += 1
        if len(self._damaged) < TOLD:
            self._damaged.append((line.number, why))

    def _note(self, id: str, what: str) -> None:
        if len(self._notes) < TOLD:
            self._notes.append((id, what))


class _Conversation:
    """The conversation that is open, and its lines so far."""

    def __init__(self, restoring: Restoring, first: bytes) -> None:
        self.restoring = restoring
        self.id = restoring.facts.conversation
        self.lines, self._hash = 0, hashlib.sha256()
        self._take(first)

    def add(self, value: Line, size: int, data: bytes) -> None:
        """One more line. InputError: it cannot be, the next may."""
        assert not isinstance(value, Facts | End)
        self._take(data)
        self.restoring.add(value, size)

    def digest(self) -> str:
        return self._hash.hexdigest()

    def _take(self, data: bytes) -> None:
        self.lines += 1
        self._hash.update(data)
        self._hash.update(b"\n")
