"""Pages of a database file that may be damaged: B-tree pages, overflow, the free list.

A page counts as readable only when all of it fits: the cells lie where they may, none overlaps, and
together with the free blocks they fill the page to the byte. A page that was torn, filled with
something else or never written fails that, and nothing of it is taken.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from clew.store.salvage_records import Record, Unreadable, record, varint

INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
_KINDS = (INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF)
LOCK_BYTE = 1 << 30
"""The page with this byte is never used."""
ROOT, FREE, FIRST_OVERFLOW, NEXT_OVERFLOW, INNER = 1, 2, 3, 4, 5
"""What the pointer map says of a page."""


class Cell(NamedTuple):
    """A cell as it stands on its page. The payload's overflow is not read yet."""

    child: int
    """Left child; 0 on a leaf."""
    key: int
    """Rowid; 0 in an index."""
    size: int
    """Bytes of the whole payload; 0 on an inner page of a table."""
    local: bytes
    overflow: int
    """First page of the rest; 0: all is here."""


class Page(NamedTuple):
    number: int
    kind: int
    cells: tuple[Cell, ...]
    right: int
    """Rightmost child; 0 on a leaf."""


class Image:
    """A database file in one piece, that nobody else uses."""

    def __init__(self, path: Path, page_size: int) -> None:
        self.page_size = page_size
        self._file = path.open("rb")
        self.count = path.stat().st_size // page_size
        """Pages, numbered from 1."""
        self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        head = self._map[:100]
        self.has_header = head[:16] == b"SQLite format 3\0" and head[21:24] == b"\x40\x20\x20"
        self.usable = page_size - (head[20] if self.has_header else 0)
        self.first_trunk = int.from_bytes(head[32:36], "big") if self.has_header else 0
        self.free_count = int.from_bytes(head[36:40], "big") if self.has_header else 0
        self._maps: dict[int, bool] = {}
        self.mapped = self.has_header and any(head[52:56])
        """Whether there is a pointer map (auto_vacuum)."""

    def __enter__(self) -> Image:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._map.close()
        self._file.close()

    def raw(self, number: int) -> bytes:
        """The bytes of a page. Unreadable: there is none of that number."""
        if not 1 <= number <= self.count:
            raise Unreadable(f"there is no page {number}")
        return self._map[(number - 1) * self.page_size : number * self.page_size]

    def page(self, number: int) -> Page:
        """A B-tree page. Unreadable when it is none, or any of it does not fit."""
        data, start = self.raw(number), 100 if number == 1 else 0
        kind = data[start]
        if kind not in _KINDS:
            raise Unreadable(f"page {number} is no page of a tree")
        inner = kind in (INDEX_INNER, TABLE_INNER)
        count = int.from_bytes(data[start + 3 : start + 5], "big")
        content = int.from_bytes(data[start + 5 : start + 7], "big") or 65536
        table = start + (12 if inner else 8)
        if table + 2 * count > min(content, self.usable):
            raise Unreadable(f"page {number} has more cells than it can hold")
        cells: list[Cell] = []
        places: list[tuple[int, int]] = []
        for at in range(table, table + 2 * count, 2):
            place = int.from_bytes(data[at : at + 2], "big")
            if not content <= place <= self.usable - 4:
                raise Unreadable(f"page {number} has a cell outside")
            cell, end = self._cell(data, kind, place)
            cells.append(cell)
            places.append((place, max(end, place + 4)))
        self._check_room(data, start, content, places, number)
        right = int.from_bytes(data[start + 8 : start + 12], "big") if inner else 0
        return Page(number, kind, tuple(cells), right)

    def payload(self, cell: Cell) -> tuple[bytes, list[int]]:
        """All of a cell's payload, and the overflow pages it lies on."""
        pieces, pages, next, left = [cell.local], list[int](), cell.overflow, 0
        left = cell.size - len(cell.local)
        while left > 0:
            if next in pages:
                raise Unreadable("an overflow chain runs in a circle")
            data = self.raw(next)
            pages.append(next)
            next = int.from_bytes(data[:4], "big")
            piece = data[4 : min(self.usable, 4 + left)]
            pieces.append(piece)
            left -= len(piece)
        if next if pages else cell.overflow:
            raise Unreadable("an overflow chain is too long")
        return b"".join(pieces), pages

    def record(self, page: int, cell: Cell) -> tuple[Record, list[int]]:
        """The columns of a cell, and its overflow pages, which must be its own where a pointer map
        tells."""
        payload, pages = self.payload(cell)
        above = (page, FIRST_OVERFLOW)
        for number in pages:
            said = self.pointer(number)
            if said is not None and said != (above[1], above[0]):
                raise Unreadable(f"page {number} is not of this chain")
            above = (number, NEXT_OVERFLOW)
        return record(payload), pages

    def pointer(self, number: int) -> tuple[int, int] | None:
        """(kind, parent) as the pointer map has it; None: there is no map, or it is damaged."""
        if not self.mapped or number < 3:
            return None
        each = self.usable // 5
        home = (number - 2) // (each + 1) * (each + 1) + 2
        if home == LOCK_BYTE // self.page_size + 1:
            home += 1
        at = 5 * (number - home - 1)
        if at < 0 or not self._is_map(home):
            return None
        data = self.raw(home)[at : at + 5]
        return data[0], int.from_bytes(data[1:], "big")

    def _is_map(self, home: int) -> bool:
        """Whether all of a page of the pointer map can be true."""
        known = self._maps.get(home)
        if known is None:
            known = home <= self.count and self._looks_true(home)
            self._maps[home] = known
        return known

    def _looks_true(self, home: int) -> bool:
        data = self.raw(home)
        for at in range(min(self.usable // 5, self.count - home)):
            kind, parent = data[5 * at], int.from_bytes(data[5 * at + 1 : 5 * at + 5], "big")
            alone = kind in (ROOT, FREE)
            if not ROOT <= kind <= INNER or parent > self.count or alone != (parent == 0):
                return home + 1 + at == LOCK_BYTE // self.page_size + 1
        return True

    def holds_no_row(self, number: int) -> bool:
        """Whether a page is one of the pointer map's, or the one that locks are on."""
        if number == LOCK_BYTE // self.page_size + 1:
            return True
        each = self.usable // 5
        return self.mapped and number >= 2 and (number - 2) % (each + 1) == 0

    def free(self) -> tuple[set[int], bool]:
        """The pages of the free list, and whether all of it could be read."""
        found: set[int] = set()
        trunk, whole = self.first_trunk, self.has_header
        while trunk:
            if trunk in found or not 1 < trunk <= self.count:
                return found, False
            found.add(trunk)
            data = self.raw(trunk)
            trunk, count = (int.from_bytes(data[at : at + 4], "big") for at in (0, 4))
            if count > self.usable // 4 - 2:
                return found, False
            for at in range(8, 8 + 4 * count, 4):
                leaf = int.from_bytes(data[at : at + 4], "big")
                whole = whole and 1 < leaf <= self.count and leaf not in found
                found.add(leaf)
        return found, whole and len(found) == self.free_count

    def _cell(self, data: bytes, kind: int, at: int) -> tuple[Cell, int]:
        """A cell, and where it ends."""
        child = key = 0
        if kind in (INDEX_INNER, TABLE_INNER):
            child, at = int.from_bytes(data[at : at + 4], "big"), at + 4
        if kind == TABLE_INNER:
            key, at = varint(data, at)
            return Cell(child, key, 0, b"", 0), at
        size, at = varint(data, at)
        if kind == TABLE_LEAF:
            key, at = varint(data, at)
        local = self._local(kind, size)
        end = at + local + (4 if local < size else 0)
        if size < 0 or end > self.usable:
            raise Unreadable("a cell runs over its page")
        overflow = int.from_bytes(data[at + local : end], "big") if local < size else 0
        return Cell(child, key, size, data[at : at + local], overflow), end

    def _local(self, kind: int, size: int) -> int:
        """Bytes of a payload that stand on the page itself."""
        most = self.usable - 35 if kind == TABLE_LEAF else (self.usable - 12) * 64 // 255 - 23
        if size <= most:
            return size
        least = (self.usable - 12) * 32 // 255 - 23
        some = least + (size - least) % (self.usable - 4)
        return some if some <= most else least

    def _check_room(
        self, data: bytes, start: int, content: int, places: list[tuple[int, int]], number: int
    ) -> None:
        """Cells, free blocks and fragments fill what lies behind the content's begin."""
        used = sorted([*places, *self._free_blocks(data, start, number)])
        end = content
        for first, last in used:
            if first < end:
                raise Unreadable(f"on page {number} two things lie in one place")
            end = last
        fragments = data[start + 7]
        if sum(last - first for first, last in used) + fragments != self.usable - content:
            raise Unreadable(f"page {number} does not add up")

    def _free_blocks(self, data: bytes, start: int, number: int) -> Iterator[tuple[int, int]]:
        at, before = int.from_bytes(data[start + 1 : start + 3], "big"), 0
        while at:
            size = int.from_bytes(data[at + 2 : at + 4], "big")
            if at <= before or size < 4 or at + size > self.usable:
                raise Unreadable(f"the free blocks of page {number} are no list")
            yield at, at + size
            before, at = at, int.from_bytes(data[at : at + 2], "big")
