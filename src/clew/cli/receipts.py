"""A receipt of a compaction as lines for people.

Pure: values in, lines out. A receipt may hold words of the conversation, and that of an import
anything at all; everything is made harmless here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from clew.cli.lines import Line, line
from clew.cli.screen import Piece
from clew.cli.text import glance, one_line
from clew.cli.tokenbar import percent
from clew.compaction.check import Check
from clew.compaction.receipt import VERSION, Receipt, receipt_from
from clew.context.sections import NAMES
from clew.domain.compactions import Compaction
from clew.store.findings import counted

NAME = 9
"""Columns of the name of a fact."""
MODEL = 40
"""Columns of the name of a model."""
VALUE = 240
"""Columns of a value of a receipt that another tool wrote."""


def fact(name: str, *pieces: Piece | str, indent: int = 2) -> Line:
    """A line that begins with the name of what it says."""
    return line(indent, (f"{name:{NAME}}", "dim"), *pieces, hang=NAME)


def freed(before: int | None, after: int | None) -> str:
    """The share that a compaction freed; "" where it is not known."""
    return percent(max(0, before - after), before) if before and after is not None else ""


def receipt_of(record: Compaction) -> Receipt | None:
    """The receipt of ours; None of a compaction that another tool made, or a program by itself."""
    return None if record.kind == "foreign" else receipt_from(record.receipt)


def record_facts(record: Compaction) -> dict[str, Any]:
    """A compaction for programs, with all of its receipt. Its body may be long; `clew show --log
    --json` has it."""
    facts: dict[str, Any] = msgspec.to_builtins(record)
    del facts["body"]
    receipt = receipt_of(record)
    return facts if receipt is None else facts | {"receipt": receipt_facts(receipt)}


def receipt_facts(receipt: Receipt) -> dict[str, Any]:
    """A receipt with every field."""
    return {"clew": VERSION, **msgspec.to_builtins(structs.asdict(receipt))}


def summed_by(receipt: Receipt) -> str:
    """Who wrote the summary."""
    if receipt.summary is None:
        return "ledger"
    if receipt.summary.state == "used":
        return glance(receipt.summary.model, MODEL)
    return f"ledger ({one_line(receipt.summary.state)})"


def rows_text(rows: Mapping[str, int]) -> str:
    """Rows by kind, the most first: 31 facts, 4 rules."""
    ordered = sorted(rows.items(), key=lambda item: -item[1])
    plurals = {"done": "done"}
    shown = (counted(many, one_line(kind), plurals.get(kind)) for kind, many in ordered if many)
    return ", ".join(shown) or "no rows"


def receipt_lines(receipt: Receipt, full: bool = False) -> Iterator[Line]:
    """What became of the messages, what the ledger holds, and whether the checks held. With `full`
    all that the receipt says."""
    yield fact("messages", _fate(receipt))
    yield fact("ledger", _ledger(receipt))
    if receipt.folded:
        epochs = ", ".join(map(str, receipt.folded))
        yield fact("folded", f"epoch {epochs} written as one, shorter, by the same rules")
    yield fact("tokens", _tokens(receipt.tokens))
    yield from _prefix(receipt.prefix)
    yield from _summary(receipt)
    yield from checks_lines(receipt.checks, full)
    for notice in receipt.notices:
        yield fact("notice", (one_line(notice), "yellow"))


def _fate(receipt: Receipt) -> str:
    """What has become of the messages that are covered."""
    pieces = [f"{receipt.kept:,} as written", f"{receipt.stubbed:,} shortened"]
    if receipt.messages:
        first, last = receipt.covered
        pieces.insert(0, f"{receipt.messages:,} in the ledger (#{first} to #{last})")
    return f"up to #{receipt.covers_to}: {', '.join(pieces)}"


def _ledger(receipt: Receipt) -> str:
    if not receipt.epoch:
        return "nothing new; shorter tool outputs were enough"
    said = f"epoch {receipt.epoch}: {rows_text(receipt.rows)}"
    if receipt.replaced:
        said += f"; {counted(receipt.replaced, 'row')} replaced by newer values"
    if receipt.left_out:
        said += f"; {counted(receipt.left_out, 'row')} had no room (recall and search find them)"
    return said


def _tokens(tokens: Mapping[str, int]) -> str:
    inside = ", ".join(f"{name} {tokens[name]:,}" for name in NAMES if tokens.get(name))
    before, after = tokens.get("before"), tokens.get("after")
    text = f"{before or 0:,} before, {after or 0:,} after"
    if target := tokens.get("target"):
        text += f" (target {target:,})"
    return f"{text}: {inside}" if inside else text


def _prefix(prefix: Mapping[str, int]) -> Iterator[Line]:
    same, of = prefix.get("tokens"), prefix.get("of")
    if same is not None and of:
        share = percent(same, of)
        yield fact("prefix", f"the first {same:,} of {of:,} tokens ({share}) are as before: cached")


def _summary(receipt: Receipt) -> Iterator[Line]:
    if receipt.summary is None:
        yield fact("summary", "by the ledger alone; no model was asked")
        return
    model, state, error = receipt.summary.model, receipt.summary.state, receipt.summary.error
    said = f"{glance(model, MODEL)}: {one_line(state)}"
    yield fact("summary", said, (f"  {one_line(error)}" if error else "", "red"))


def checks_lines(checks: Sequence[Check], full: bool) -> Iterator[Line]:
    """How many hold, and which do not."""
    failed = [check for check in checks if not check.ok]
    if checks:
        held = f"{len(checks) - len(failed)} of {len(checks)} hold"
        names = ", ".join(one_line(check.name) for check in checks)
        style = "red" if failed else "green"
        yield fact("checks", (held, style), (f": {names}" if full else "", "dim"))
    for check in failed:
        note = one_line(check.note) or "does not hold"
        yield fact("", (one_line(check.name), "red"), f": {note}")


def other_lines(record: Compaction) -> Iterator[Line]:
    """What there is of a compaction that has no receipt of ours: another tool made it, or a program
    by itself."""
    yield fact("messages", f"#1 to #{record.covers_to}")
    before, after = record.tokens_before, record.tokens_after
    if before is not None or after is not None:
        shown = ["?" if count is None else f"{count:,}" for count in (before, after)]
        yield fact("tokens", f"{shown[0]} before, {shown[1]} after, as its maker counts")
    for name, value in (record.receipt or {}).items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield line(2, (f"{glance(name, 40)}  ", "dim"), glance(text, VALUE), hang=NAME)
    if not record.receipt:
        yield fact("receipt", ("none", "dim"))
