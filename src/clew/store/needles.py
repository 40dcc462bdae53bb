"""Pieces of erased text and bytes, and looking for them in much data.

A piece is found where SIXTEEN bytes in a row are the same. The data is looked at in words of eight
bytes at their own places, which is some 20 ns each: any sixteen bytes hold one such word, and the
words of the pieces are known at every offset. Long values are sampled. A text that is too short for
a piece is looked for as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clew.domain.values import escape_text

SIXTEEN, EIGHT = 16, 8
WHOLE = 4096
"""Bytes of a value up to which all of it is looked for."""
SAMPLE, STRIDE = 64, 1024
"""Of a longer one: so many bytes out of so many."""
MOST = 2 << 20
"""Bytes in all that are looked for: some 500 MB of memory."""
DULL = 6
"""A piece of fewer different bytes says nothing: a line of spaces, zeros of a picture."""
SHORTEST, SHORT = 6, 64
"""Bytes of a text that is looked for as a whole because it makes no piece, such as a phone number;
and how many of these: each is a look of its own through everything."""


class Needles:
    """What is looked for."""

    def __init__(self) -> None:
        self._words: set[int] = set()
        self._pieces: set[bytes] = set()
        self._short: set[bytes] = set()
        self._room = MOST
        self.missed = 0
        """Texts that are too short to be looked for, or too many of the short ones."""

    def __len__(self) -> int:
        return len(self._pieces) + len(self._short)

    def add_text(self, text: str) -> None:
        """A text as UTF-8, and as JSON writes it."""
        plain = text.encode("utf-8", "surrogatepass")
        if len(plain) < SIXTEEN:
            self._add_short(plain)
        self.add(plain)
        escaped = escape_text(text).encode()[1:-1]
        if escaped != plain:
            self.add(escaped)

    def _add_short(self, plain: bytes) -> None:
        if plain in self._short:
            return
        if len(plain) < SHORTEST or len(self._short) >= SHORT:
            self.missed += 1
        else:
            self._short.add(plain)

    def add(self, data: bytes) -> None:
        """Bytes as they are stored."""
        for piece in _samples(data):
            if self._room <= 0:
                return
            self._room -= len(piece)
            self._pieces.update(
                found
                for at in range(len(piece) - SIXTEEN + 1)
                if len(set(found := piece[at : at + SIXTEEN])) >= DULL
            )
        self._words.clear()

    @classmethod
    def of(cls, pieces: set[bytes]) -> Needles:
        """These pieces, each of SIXTEEN bytes, or a whole short text."""
        made = cls()
        made._pieces = {piece for piece in pieces if len(piece) == SIXTEEN}
        made._short = pieces - made._pieces
        return made

    def with_more(self, other: Needles) -> Needles:
        """These and the other's."""
        both = Needles.of(self._pieces | other._pieces | self._short | other._short)
        both.missed = self.missed + other.missed
        return both

    def __contains__(self, piece: bytes) -> bool:
        return piece in self._pieces or piece in self._short

    def discard_in(self, data: bytes) -> None:
        """Take out those that stand in this, which is meant to stay."""
        found = {piece for _, piece in self.find(data)}
        if found:
            self._pieces -= found
            self._short -= found
            self._words.clear()

    def find(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Where a piece begins, and the piece."""
        words = self._known()
        usable = len(data) - len(data) % EIGHT
        view = memoryview(data)[:usable].cast("Q")
        if usable and not words.isdisjoint(view):
            for nth, word in enumerate(view):
                if word in words:
                    yield from self._around(data, nth * EIGHT)
        for at in range(max(0, len(data) - SIXTEEN - EIGHT), len(data) - SIXTEEN + 1):
            if data[at : at + SIXTEEN] in self._pieces:
                yield at, data[at : at + SIXTEEN]
        for short in self._short:
            at = data.find(short)
            if at >= 0:
                yield at, short

    def are_in(self, data: bytes) -> bool:
        """Whether a piece stands in the data."""
        return next(self.find(data), None) is not None

    def _around(self, data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
        for start in range(max(0, at - EIGHT), at + 1):
            piece = data[start : start + SIXTEEN]
            if piece in self._pieces:
                yield start, piece

    def _known(self) -> set[int]:
        if not self._words and self._pieces:
            joined = b"".join(self._pieces)
            for start in range(EIGHT + 1):
                words = memoryview(joined[start : len(joined) - EIGHT + start]).cast("Q")
                # A piece is two words long: at an even place begins one of its own words, at an odd
                # one (its second half, shifted) a word that crosses into the next piece.
                self._words.update(words[::2].tolist())
        return self._words


def _samples(data: bytes) -> Iterable[bytes]:
    if len(data) <= WHOLE:
        return (data,)
    return (data[at : at + SAMPLE] for at in range(0, len(data), STRIDE))
