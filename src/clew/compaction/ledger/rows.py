"""Rows of the ledger, the epochs they stand in, and what a model may propose about them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

RowKind = Literal[
    "rule", "ask", "decision", "fact", "file", "command", "error", "done", "note"
]  # fmt: skip


class Row(Struct, frozen=True, omit_defaults=True):
    """One thing worth keeping, verbatim or near it, and where it stands in the log.

    `slot`: what the row is about when that can be told, a dimension and its subject, such as
    "option:session ttl" or "date:launch". Only a slot, or a value named as replaced, lets a later
    row replace this one.
    `value`: the exact value of the slot.
    `at`: microseconds since 1970-01-01 UTC; None when unknown.
    `was`: seqs of rows that this one replaces.
    `state`: who said it ("user", "assistant") for what was said; "edited", "read" or "seen" for
    files; the outcome of a command; "open", "done" or "withdrawn" for asks; "fixed" for errors.
    """

    kind: RowKind
    text: str
    seq: int
    slot: str | None = None
    value: str | None = None
    at: int | None = None
    was: tuple[int, ...] = ()
    state: str | None = None


class Gone(Struct, frozen=True):
    """A row of an earlier epoch that no longer holds: its seq, and the words that tell it from
    other rows of the same message."""

    seq: int
    label: str


class Epoch(Struct, frozen=True, omit_defaults=True):
    """What stands for the messages first..last.

    `rows` are those shown, `text` is what a model reads, `left_out` rows did not fit (the text
    says so), `replaced` rows were superseded inside this epoch and do not stand in it. `gone`
    names rows of earlier epochs that this one makes void.
    """

    number: int
    first: int
    last: int
    rows: tuple[Row, ...]
    text: str
    left_out: int = 0
    replaced: int = 0
    gone: tuple[Gone, ...] = ()


class Add(Struct, frozen=True, tag="add"):
    """A model proposes a row about the message `seq`."""

    kind: RowKind
    text: str
    seq: int


class Supersede(Struct, frozen=True, tag="supersede"):
    """A model proposes that what the message `seq_new` says replaces what `seq_old` said."""

    seq_old: int
    seq_new: int


class Close(Struct, frozen=True, tag="close"):
    """A model proposes that what was asked in the message `seq` is done."""

    seq: int


Operation = Add | Supersede | Close


def label_of(row: Row) -> str:
    """A few words that tell this row from others of the same message."""
    if row.slot:
        dimension, _, scope = row.slot.partition(":")
        return f"{scope} {dimension}" if scope and dimension != "option" else scope or dimension
    return " ".join(row.text.split()[:6])
