"""All rows that are left in a damaged file, and what can be said about those that are not.

Every tree of the schema is walked from its root as far as it is readable. A page counts as part of
a tree only when its keys lie where its parents say and its rows are of that table; so a page that
lies in another's place is noticed. Then the pages that no walk reached are looked at, which is what
a damaged inner page hides. A deleted row must not come back: what is on the free list is left, and
where that list itself is damaged only what a pointer map or an index vouches for is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.store.salvage_pages import FREE, TABLE_INNER, Image, Page
from clew.store.salvage_records import Record, Unreadable, order_key
from clew.store.salvage_shapes import Shape, fitting

Progress = Callable[[int, int], None]
EVERY = 256
"""Pages between two reports."""
DEEPEST = 20
"""Levels of a tree."""
Key = tuple[tuple[int, object], ...] | int


class Entry(NamedTuple):
    """What a cell holds."""

    key: int
    values: Record | None
    """None: it cannot be read."""
    overflow: tuple[int, ...]
    spills: bool = False
    """Whether a part lies on other pages."""


class Row(NamedTuple):
    """A row, or an entry of an index."""

    shape: Shape
    pages: tuple[int, ...]
    """Where it stands."""
    rowid: int
    """0 where there is none."""
    values: Record
    sure: bool
    """Its page is where it belongs. Else it needs an index that vouches for it, or at least none
    that contradicts (`hidden`)."""
    hidden: bool = False
    """On a page that nobody leads to, and that is known not to be free."""


class Salvage:
    """One reading of a damaged image. The numbers are complete when `rows` has ended."""

    def __init__(
        self, image: Image, shapes: Mapping[str, Shape], progress: Progress | None = None
    ) -> None:
        self._image = image
        self._shapes = shapes
        self._progress = progress
        self._seen: set[int] = set()
        """Pages whose part is known."""
        self._led_to: set[int] = set()
        """Readable pages that a tree leads to, whether they are in their place or not."""
        self._told = 0
        self.pages = image.count
        self.free, self.free_is_whole = image.free()
        self.damaged: dict[str, set[int]] = {}
        """Pages that are missing in each tree."""
        self.broken_rows: Counter[str] = Counter()
        """Rows on readable pages, of which the rest lies on damaged ones."""
        self.unknown_pages = 0
        """Readable ones of which nobody knows what they belong to."""

    def rows(self) -> Generator[Row]:
        """Everything that is there, the sure rows first."""
        roots = self._roots()
        for name, shape in self._shapes.items():
            if name == "sqlite_schema":
                continue
            root = roots[name]
            if root is None:
                self.damaged.setdefault(name, set()).add(0)
            else:
                yield from self._walk(shape, root)
        yield from self._left_over()

    def is_whole(self, tree: str) -> bool:
        """Whether nothing is missing in a tree."""
        return not self.damaged.get(tree) and not self.broken_rows[tree]

    # ---------------------------------------------------------------- trees

    def _roots(self) -> dict[str, int | None]:
        """Where the trees begin: as the schema says, else as in a new store, if that fits."""
        said: dict[str, int] = {}
        for row in self._walk(self._shapes["sqlite_schema"], 1):
            name, root = row.values[1], row.values[3]
            if isinstance(root, int) and root:
                said[str(name)] = root
        return {name: said.get(name) or self._guess(shape) for name, shape in self._shapes.items()}

    def _guess(self, shape: Shape) -> int | None:
        """The root in a new store, when what is there could be this tree."""
        if self.is_whole("sqlite_schema"):
            return None
        number = shape.root
        for _ in range(DEEPEST):
            try:
                page = self._image.page(number)
            except Unreadable:
                return None
            known = self._read(page) if page.kind in shape.kinds else []
            if page.kind != TABLE_INNER and not _all_fit(shape, known):
                return None
            if not page.right:
                return shape.root
            number = page.right
        return None

    def _walk(self, shape: Shape, root: int) -> Generator[Row]:
        """The rows of a tree, from its root as far as it is readable."""
        stack: list[tuple[int, Key | None, Key | None]] = [(root, None, None)]
        while stack:
            number, low, high = stack.pop()
            page = self._page(number)
            entries = [] if page is None else self._read(page)
            keys = None if page is None else _keys(shape, page, entries, low, high)
            if page is None or keys is None:
                self.damaged.setdefault(shape.name, set()).add(number)
                continue
            self._take(number, entries)
            if page.right:
                edges = [low, *keys, high]
                children = [*(cell.child for cell in page.cells), page.right]
                stack.extend((c, edges[at], edges[at + 1]) for at, c in enumerate(children))
            if page.kind != TABLE_INNER:
                yield from self._rows_of(shape, number, entries, sure=True)

    def _page(self, number: int) -> Page | None:
        """A readable page that is not known to be another's."""
        if number in self._seen or (self.free_is_whole and number in self.free):
            return None
        try:
            page = self._image.page(number)
        except Unreadable:
            return None
        self._led_to.add(number)
        return page

    def _read(self, page: Page) -> list[Entry]:
        """What stands on a page. An entry of which the overflow is damaged has no values."""
        if page.kind == TABLE_INNER:
            return [Entry(cell.key, None, ()) for cell in page.cells]
        found: list[Entry] = []
        for cell in page.cells:
            try:
                values, overflow = self._image.record(page.number, cell)
            except Unreadable:
                values, overflow = None, []
            found.append(Entry(cell.key, values, tuple(overflow), cell.overflow > 0))
        return found

    def _take(self, number: int, entries: Sequence[Entry]) -> None:
        """The page's part is known, and that of the overflow pages."""
        self._seen.add(number)
        for entry in entries:
            self._seen.update(entry.overflow)
        done = len(self._seen)
        if self._progress is not None and done // EVERY != self._told:
            self._told = done // EVERY
            self._progress(done, self._image.count)

    def _rows_of(
        self, shape: Shape, number: int, entries: Sequence[Entry], sure: bool, hidden: bool = False
    ) -> Generator[Row]:
        for entry in entries:
            row = None if entry.values is None else shape.fit(entry.key, entry.values)
            if row is None:
                self.broken_rows[shape.name] += 1
            else:
                yield Row(shape, (number, *entry.overflow), entry.key, row, sure, hidden)

    # ---------------------------------------------------------------- what no walk reached

    def _left_over(self) -> Generator[Row]:
        """Rows on pages that are part of no tree now, and are not free. First it is found out what
        they belong to, so that every tree that lacks one is known to lack it."""
        found: list[tuple[int, Shape]] = []
        for number in range(2, self._image.count + 1):
            entries = self._unclaimed(number)
            shape = self._shape(self._image.page(number).kind, entries) if entries else None
            if shape is not None:
                found.append((number, shape))
                self.damaged.setdefault(shape.name, set()).add(0)
            self.unknown_pages += bool(entries) and shape is None
        for number, shape in found:
            entries = self._read(self._image.page(number))
            self._take(number, entries)
            unfree = self.free_is_whole or self._image.pointer(number) is not None
            hidden = unfree and number not in self._led_to
            yield from self._rows_of(shape, number, entries, sure=False, hidden=hidden)

    def _unclaimed(self, number: int) -> list[Entry]:
        """What stands on a page that is no tree's and not free."""
        if number in self._seen or number in self.free or self._image.holds_no_row(number):
            return []
        said = self._image.pointer(number)
        if said is not None and said[0] == FREE:
            return []
        try:
            page = self._image.page(number)
        except Unreadable:
            return []
        return [] if page.kind == TABLE_INNER else self._read(page)

    def _shape(self, kind: int, entries: Sequence[Entry]) -> Shape | None:
        """The one tree that all entries of a page can be of; of several, the one that is known to
        lack something."""
        known = [(entry.key, entry.values) for entry in entries if entry.values is not None]
        fit = fitting(list(self._shapes.values()), kind, known)
        if len(fit) > 1:
            fit = [shape for shape in fit if self.damaged.get(shape.name)]
        return fit[0] if len(fit) == 1 else None


def _all_fit(shape: Shape, entries: Sequence[Entry]) -> bool:
    """Whether what can be read of a page is of this tree. What lacks its overflow may be."""
    return all(
        entry.spills if entry.values is None else shape.fit(entry.key, entry.values) is not None
        for entry in entries
    )


def _keys(
    shape: Shape, page: Page, entries: Sequence[Entry], low: Key | None, high: Key | None
) -> list[Key | None] | None:
    """The keys of a page of a tree, None for one that cannot be read; None when the page is not of
    this tree, or not in its place."""
    if page.kind not in shape.kinds:
        return None
    if page.kind != TABLE_INNER and not _all_fit(shape, entries):
        return None
    keys: list[Key | None] = []
    before: Any = low
    for entry in entries:
        key: Any = entry.key
        if not shape.by_rowid:
            key = None if entry.values is None else order_key(entry.values[: shape.key])
        if key is not None:
            if before is not None and not before < key:
                return None
            before = key
        keys.append(key)
    last: Any = high
    return None if last is not None and before is not None and last < before else keys
