"""Where the records of a chat are: on which of its lines, at which seq, and what follows what."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from clew.domain.messages import Role
from clew.domain.parts import answered_ids, call_ids
from clew.importers.line import CHILD, SEEN, Line
from clew.importers.records import Record

_SHIFT = 40
"""Bits of a seq in a packed place: one number instead of a tuple, of each of a million records."""
_SEQ = (1 << _SHIFT) - 1
_UID = 16
"""Bytes of a uid."""


class Spot(NamedTuple):
    """Where a record is."""

    line: Line
    seq: int


class Origin(NamedTuple):
    """What a new chat comes from: a sub-agent's chat, or one that it continues from `at`."""

    conversation: str
    at: int | None


class Spots:
    """The lines of a chat and what is on them."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._places: dict[bytes, int] = {}
        self._resting: tuple[bytes, array[int] | range] | None = None
        self._children: dict[int, int] = {}
        """The newest child of a record, where that is not the next of its line."""
        self._calls: dict[str, int] = {}
        """Where calls were made that no result has answered yet."""
        self._last: int | None = None

    def rest(self) -> None:
        """Hold it in a sixth of the space, until `wake`; meanwhile nothing can be looked up. A
        session may have thousands of sub-agents that have said what they had to say."""
        if self._places:
            places = array("q", self._places.values())
            row = range(places[0], places[0] + len(places))  # mostly just that
            is_row = places == array("q", row)
            self._resting = (b"".join(self._places), row if is_row else places)
            self._places = {}

    def wake(self) -> None:
        """Be of use again."""
        if self._resting is not None:
            uids, places = self._resting
            self._resting = None
            for number, place in enumerate(places):
                self._places[uids[number * _UID : (number + 1) * _UID]] = place

    # ------------------------------------------------------------------ looking

    def find(self, uid: bytes) -> Spot | None:
        """Where the record of this uid is."""
        packed = self._places.get(uid)
        return None if packed is None else self._spot(packed)

    @property
    def last(self) -> Spot | None:
        """The newest record that the source has shown."""
        return None if self._last is None else self._spot(self._last)

    @property
    def current(self) -> Line | None:
        """The line of the newest record, or the first one."""
        last = self.last
        if last is not None:
            return last.line
        return self.lines[0] if self.lines else None

    def child(self, parent: Spot) -> Spot | None:
        """The newest child of a record that the source has shown so far."""
        packed = self._children.get(_pack(parent))
        if packed is not None:
            return self._spot(packed)
        line, seq = parent
        return Spot(line, seq + 1) if line.has(seq + 1, CHILD) else None

    def is_parallel(self, record: Record, parent: Spot | None) -> bool:
        """Whether a record belongs to the same API message as its parent, or answers its call."""
        if parent is None:
            return False
        group = parent.line.group(parent.seq)
        if group and record.api_group is not None and hash(record.api_group) == group:
            return True
        if record.role is not Role.TOOL:
            return False
        for call in answered_ids(record.parts):
            made = self._calls.get(call)
            if made is None:
                continue
            line, seq = self._spot(made)
            if (line, seq) == parent or (group and line.group(seq) == group):
                return True
        return False

    # ------------------------------------------------------------------ keeping

    def put(self, uid: bytes, spot: Spot) -> None:
        """Note where a record is."""
        self._places[uid] = _pack(spot)

    def load(self, uid: bytes, spot: Spot) -> None:
        """As `put`, of a message that is here; the first line that has it counts."""
        self._places.setdefault(uid, _pack(spot))

    def follow(self, record: Record, spot: Spot, parent: Spot | None, parallel: bool) -> None:
        """Take a placed record as the newest that the source has shown."""
        line, seq = spot
        line.mark(seq, SEEN)
        line.seen_to = max(line.seen_to, seq)
        if record.api_group is not None:
            line.set_group(seq, hash(record.api_group))
        if parent is not None and not parallel:
            if parent.line is line and parent.seq == seq - 1:
                line.mark(seq, CHILD)
                self._children.pop(_pack(parent), None)
            else:
                self._children[_pack(parent)] = _pack(spot)
        for call in answered_ids(record.parts):
            self._calls.pop(call, None)
        for call in call_ids(record.parts):
            self._calls[call] = _pack(spot)
        self._last = _pack(spot)

    def passed(self, spot: Spot) -> None:
        """Take a spot as the newest without more ado."""
        self._last = _pack(spot)

    def _spot(self, packed: int) -> Spot:
        return Spot(self.lines[packed >> _SHIFT], packed & _SEQ)


def _pack(spot: Spot) -> int:
    return spot.line.index << _SHIFT | spot.seq
