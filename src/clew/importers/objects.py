"""The JSON objects of a source, one at a time or the one that it is; what is none is Damaged and
named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from clew.importers.decode import decode
from clew.importers.records import Damaged
from clew.importers.source import Piece, Source


class Object(NamedTuple):
    """An object, and the number of its line or element, from 1."""

    number: int
    value: dict[str, Any]


def objects(pieces: Iterable[Piece | Damaged], what: str = "line") -> Iterator[Object | Damaged]:
    """The objects of lines or elements, `what` they are."""
    for piece in pieces:
        if isinstance(piece, Damaged):
            yield piece
            continue
        where = f"{what} {piece.number}"
        try:
            value = decode(piece.data)
        except ValueError as error:
            yield Damaged(where, str(error))
            continue
        if isinstance(value, dict):
            yield Object(piece.number, cast(dict[str, Any], value))
        else:
            yield Damaged(where, "no JSON object")


def document(source: Source) -> dict[str, Any] | Damaged:
    """The object that a whole file is; empty when it is JSON of another kind. TooLarge."""
    try:
        value = decode(source.document())
    except ValueError as error:
        return Damaged("the document", str(error))
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
