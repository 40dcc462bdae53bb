"""Which row replaces which. Only an explicit key decides: an equal slot with another value, a slot
whose subject has more words when the later statement says that it changes something, or the name
of what is replaced ("use A instead of B"). What has no key stays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import msgspec

from clew.compaction.ledger.claim import Claim
from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.values import same
from clew.compaction.ledger.words import TELLING

MOST_SCOPES = 64
"""Scopes of one dimension that a changing statement is compared with, newest first."""
REPLACEABLE = frozenset(("rule", "decision", "fact"))
Key = tuple[str, tuple[str, ...]]


class _Held(NamedTuple):
    """What one row claims of one slot."""

    place: int
    value: str


class Ledger:
    """Rows by their keys. A row lives until later ones have replaced all that it claims.

    Places are indexes into `rows`; dead ones stay there, so that places keep. Adding takes constant
    time but for the scopes of one dimension, of which at most MOST_SCOPES are compared.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.dead: set[int] = set()
        self.sealed = 0
        self.repeated = 0
        self._text: dict[tuple[str, str], int] = {}
        self._slot: dict[Key, list[_Held]] = defaultdict(list)
        self._scopes: dict[str, dict[tuple[str, ...], None]] = defaultdict(dict)
        self._value: dict[str, list[int]] = defaultdict(list)
        self._open: dict[int, int] = {}  # claims of a row that still hold

    def seal(self) -> None:
        """What is in now stands in earlier epochs: it is not taken over when it is said again."""
        self.sealed = len(self.rows)

    def add(self, row: Row, claims: Iterable[Claim] = (), names: Iterable[str] = ()) -> list[int]:
        """Put a row in; the places of the rows that it replaces."""
        claims = list(claims)
        text = (row.kind, " ".join(row.text.lower().split()))
        again = self._text.get(text)
        if again is not None and again < self.sealed and again not in self.dead:
            return []
        if again is not None:
            self.repeated += again not in self.dead
            self.dead.add(again)  # said again: the newer stands for both
        hit: list[int] = []
        for claim in claims:
            hit += self._overtaken(claim, row)
        for name in names:
            places = self._value.get(name, ())
            hit += [
                p for p in places
                if self.rows[p].seq <= row.seq and _may(row, self.rows[p])
                and _about(row.text, self.rows[p].text)
            ]  # fmt: skip
        hit = [place for place in dict.fromkeys(hit) if place not in self.dead]
        self.dead.update(hit)
        if hit:
            was = tuple(sorted({self.rows[place].seq for place in hit}))
            row = msgspec.structs.replace(row, was=was)
        self._put(row, claims, text)
        return hit

    def _put(self, row: Row, claims: list[Claim], text: tuple[str, str]) -> None:
        place = len(self.rows)
        self.rows.append(row)
        self._text[text] = place
        self._open[place] = len(claims)
        for claim in claims:
            self._slot[claim.dimension, claim.scope].append(_Held(place, same(claim.value)))
            scopes = self._scopes[claim.dimension]
            scopes.pop(claim.scope, None)
            scopes[claim.scope] = None
        if row.value and row.kind in REPLACEABLE:
            self._value[same(row.value)].append(place)

    def _overtaken(self, claim: Claim, row: Row) -> list[int]:
        """Rows of which nothing holds any more, after this claim."""
        if not claim.asserts and not claim.changes:
            return []
        gone: list[int] = []
        for key in self._keys(claim):
            kept: list[_Held] = []
            for held in self._slot[key]:
                old = self.rows[held.place]
                if held.place in self.dead or old.kind not in REPLACEABLE:
                    continue
                stays = old.seq > row.seq or held.value == same(claim.value) or _apart(old, row)
                if stays or not _may(row, old):
                    kept.append(held)
                    continue
                self._open[held.place] -= 1
                if self._open[held.place] == 0:
                    gone.append(held.place)
            self._slot[key] = kept
        return gone

    def _keys(self, claim: Claim) -> list[Key]:
        own = (claim.dimension, claim.scope)
        if any(held.place not in self.dead for held in self._slot.get(own, ())):
            return [own]
        if not claim.changes:
            return []
        mine = set(claim.scope)
        newest = islice(reversed(self._scopes[claim.dimension]), MOST_SCOPES)
        near = [
            scope for scope in newest
            if scope != claim.scope and _near(mine, set(scope), claim.dimension == "progress")
        ]  # fmt: skip
        keys = [(claim.dimension, scope) for scope in near]
        keys = [key for key in keys if any(h.place not in self.dead for h in self._slot[key])]
        return keys if len(keys) == 1 else []

    def supersede(self, old: int, new: int) -> None:
        """What the message `new` says replaces what `old` said, where that is one row, or one of a
        slot that both have."""
        mine = [p for p, row in enumerate(self.rows) if row.seq == new and p not in self.dead]
        theirs = [
            p for p, row in enumerate(self.rows)
            if row.seq == old and p not in self.dead and row.kind in REPLACEABLE
        ]  # fmt: skip
        slots = {self.rows[p].slot for p in mine} - {None}
        if len(theirs) > 1:
            theirs = [p for p in theirs if self.rows[p].slot in slots]
        if len(theirs) == 1 and mine and old < new:
            self.dead.update(theirs)

    def close(self, seq: int) -> None:
        """What the message `seq` left open is done."""
        self.dead.update(p for p, r in enumerate(self.rows) if r.seq == seq and r.kind == "ask")

    def living(self) -> list[Row]:
        """The rows that hold, without the sealed ones."""
        return [
            self.rows[place]
            for place in range(self.sealed, len(self.rows))
            if place not in self.dead
        ]


def _may(new: Row, old: Row) -> bool:
    """An agent's words never replace a person's rule."""
    return not (old.kind == "rule" and old.state != "assistant" and new.state == "assistant")


_FOR = re.compile(r"for (?:the |our |my |all )?([a-z][\w-]+)")


def _about(new: str, old: str) -> bool:
    """Whether the older is about what the newer limits itself to ("for the queue, ...")."""
    limit = _FOR.match(new.lower())
    return limit is None or limit[1].rstrip("s") in old.lower()


_MARK = re.compile(r"\b(?:[A-Z]{1,6}\d*|[a-z][A-Za-z]*)\b")


def _marks(row: Row) -> set[str]:
    """Words that tell which of several is meant: those of TELLING, and short ones in capitals."""
    text = row.text.replace(row.value, " ") if row.value else row.text
    found = {word if word.isupper() else word.lower() for word in _MARK.findall(text)}
    return {w for w in found if w in TELLING or (w.isupper() and w not in ("A", "I"))}


def _apart(old: Row, new: Row) -> bool:
    """Whether each of two statements has a mark that the other lacks: "the EU limit", "the US
    limit". Then they are of two things, whatever else says that their slot is one."""
    mine, other = _marks(new), _marks(old)
    return bool(mine - other) and bool(other - mine)


def _near(mine: set[str], other: set[str], either: bool) -> bool:
    """Whether a statement speaks of the same thing in fewer words: "the trip" for "the field
    trip". More words narrow it down, and then the older, wider statement stays; `either`: not so.
    Nor is it the same when a word that it lacks tells which of several is meant.
    """
    if either and mine and other and other <= mine:
        return True
    return bool(mine) and mine <= other and TELLING.isdisjoint(other - mine)
