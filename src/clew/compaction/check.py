"""The check before a commit: what must still be there after a compaction.

Whatever wrote the ledger, these are compared with what the parser finds in the covered messages.
What a model added and fails goes, and the ledger alone stands; if that fails too, nothing is
changed, unless the next request would not fit otherwise. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from clew.compaction.draft import Draft, Words
from clew.compaction.ledger import (
    Add,
    Close,
    Operation,
    Row,
    RowKind,
    Supersede,
    epoch_of,
)
from clew.context.requests import live_requests
from clew.context.sections import Layout
from clew.domain.compactions import Inline, Ref
from clew.domain.messages import Message, Role
from clew.domain.parts import Text, answered_ids, call_ids, plain_text, searchable

Level = Literal["must", "should", "may"]


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. Without what must be there nothing is committed, without what
    should be there only what cannot wait; what may be missing is told."""

    name: str
    ok: bool
    note: str = ""
    level: Level = "should"


def check_draft(draft: Draft, before: Layout, found: Sequence[Row]) -> tuple[Check, ...]:
    """All checks of a draft. `found`: what the parser finds in the messages that the new epoch
    stands for, and in what is written anew."""
    live = {message.seq for message in live_requests(_log(draft))}
    return (
        _size(draft, before),
        _pairs(draft),
        _request(draft),
        _rows("rules", (row for row in found if row.kind == "rule"), draft),
        _rows("exact values", (row for row in found if _is_value_of_a_person(row)), draft, "may"),
        _rows("open asks", (row for row in found if _is_open(row) and row.seq in live), draft),
        _rows("edited files", (row for row in found if _is_edited(row)), draft),
        _words(draft),
    )


def _is_open(row: Row) -> bool:
    return row.kind == "ask" and row.state == "open"


def _is_value_of_a_person(row: Row) -> bool:
    """A value that a person gave for something that can be named."""
    return row.kind in ("fact", "decision") and bool(row.slot and row.value) and row.state == "user"


def _is_edited(row: Row) -> bool:
    return row.kind == "file" and row.state == "edited"


def failed(checks: Iterable[Check]) -> list[Check]:
    return [check for check in checks if not check.ok]


def _size(draft: Draft, before: Layout) -> Check:
    """It must shrink what it stands for."""
    after = draft.layout.tokens
    note = "" if after < before.tokens else f"{after:,} tokens after, {before.tokens:,} before"
    return Check("size", not note, note, level="must")


def _pairs(draft: Draft) -> Check:
    """No call that is shown has its result in the epoch, none in the epoch has it shown; nor does
    the cover come between the two."""
    named = [m for _, messages in draft.inputs.covered for m in messages]
    shown = {message.seq for message in (*named, *draft.inputs.messages)}
    gone = _calls(m for m in draft.taken if m.seq not in shown)
    below, above = _calls(named), _calls(draft.inputs.messages)
    seen = _Calls(below.made | above.made, below.answered | above.answered)
    split = (seen.made - seen.answered) & gone.answered
    split |= (gone.made - gone.answered) & seen.answered
    split |= (below.made - below.answered) & above.answered
    return Check("tool pairs", not split, ", ".join(sorted(split))[:200], level="must")


class _Calls(NamedTuple):
    """Ids of calls that messages make, and answer."""

    made: set[str]
    answered: set[str]


def _calls(messages: Iterable[Message]) -> _Calls:
    listed = list(messages)
    return _Calls(
        {call for message in listed for call in call_ids(message.parts)},
        {call for message in listed for call in answered_ids(message.parts)},
    )


def _request(draft: Draft) -> Check:
    """The requests that want an answer stand verbatim behind all that the compaction wrote."""
    wanted = {message.seq for message in live_requests(_log(draft))}
    behind: set[int] = {message.seq for message in draft.inputs.messages}
    for item, named in draft.inputs.covered:
        if isinstance(item, Inline):
            behind -= {seq for seq in behind if seq <= draft.plan.covers_to}
        elif isinstance(item, Ref):
            behind |= {message.seq for message in named}
    missing = wanted - behind
    return Check("last request", not missing, _seqs(missing), level="must")


def _log(draft: Draft) -> list[Message]:
    """All messages that the draft knows, in the order of the log."""
    named = [m for _, messages in draft.inputs.covered for m in messages]
    known = {m.seq: m for m in (*draft.taken, *named, *draft.inputs.messages)}
    return [known[seq] for seq in sorted(known)]


def _rows(name: str, wanted: Iterable[Row], draft: Draft, level: Level = "should") -> Check:
    """Every row of a kind that the parser finds is shown, replaced by a later one, or its message
    stands there verbatim."""
    shown: set[tuple[str, int]] = set()
    told: set[int] = set()
    for epoch in draft.epochs:
        shown |= {(row.kind, row.seq) for row in epoch.rows}
        told |= {seq for row in epoch.rows for seq in row.was}
        told |= {gone.seq for gone in epoch.gone}
    verbatim = {m.seq for _, named in draft.inputs.covered for m in named}
    missing = {
        row.seq for row in wanted
        if (row.kind, row.seq) not in shown and row.seq not in told and row.seq not in verbatim
    }  # fmt: skip
    return Check(name, not missing, _seqs(missing), level)


def _seqs(missing: Iterable[int]) -> str:
    listed = sorted(missing)
    text = ", ".join(f"@{seq}" for seq in listed[:20])
    return text + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")


TOKEN = re.compile(r"`[^`\n]{1,80}`|[A-Za-z0-9_./:@#%$€£-]+")
"""What an exact value is looked for in."""


def values_in(text: str) -> list[str]:
    """What a text must not make up: numbers, versions, ids, amounts, paths, quoted names; lower
    case, each once."""
    found = (token for token in TOKEN.findall(text) if _is_value(token))
    return list(dict.fromkeys(token.strip("`.,:;").lower() for token in found))


def _is_value(token: str) -> bool:
    return token[0] in "`/" or any(letter.isdigit() for letter in token)


def grounded(words: Words, draft: Draft, found: Sequence[Row]) -> Words:
    """A model's words without the operations that nothing in the conversation bears out: a row is
    made of the words of the message that it names, a rule of those of a person or the system, and
    a row gives way only to one about the same thing."""
    messages = {message.seq: message for message in draft.taken}
    slots: dict[int, set[str]] = {}
    for row in found:
        if row.slot is not None:
            slots.setdefault(row.seq, set()).add(row.slot)
    kept: list[Operation] = []
    for each in words.operations:
        match each:
            case Add(kind, text, seq):
                message = messages.get(seq)
                if message is not None and _says(message, text, kind):
                    kept.append(each)
            case Supersede(old, new):
                if slots.get(old, set()) & slots.get(new, set()):
                    kept.append(each)
            case Close():
                kept.append(each)
    return words._replace(operations=tuple(kept))


NEAR = 0.7
"""The share of a row's words that its message must have."""
_WORD = re.compile(r"[^\W_]{3,}")


def _says(message: Message, text: str, kind: RowKind) -> bool:
    """Whether a row is near to what a message says, and its author may say it."""
    if kind == "rule" and message.role not in (Role.USER, Role.SYSTEM, Role.DEVELOPER):
        return False
    said = set(_WORD.findall("\n".join(searchable(message.parts)).lower()))
    words = set(_WORD.findall(text.lower()))
    return bool(words) and len(words & said) >= NEAR * len(words)


def _words(draft: Draft) -> Check:
    """Every exact value that a model wrote stands in what it summarises."""
    if draft.words is None:
        return Check("narrative", True)
    rows = [each.text for each in draft.words.operations if isinstance(each, Add)]
    said = "\n".join([draft.words.narrative, *rows])
    values = values_in(said)
    source = "\n".join(_source(draft)).lower()
    invented = [value for value in values if value and not _stands_in(value, source)]
    note = "not in the conversation: " + ", ".join(invented[:10]) if invented else ""
    return Check("narrative", not invented, note)


def _stands_in(value: str, source: str) -> bool:
    """Whether a text holds a value, not only as a piece of a longer word or number."""
    at = source.find(value)
    while at >= 0:
        before, behind = source[at - 1 : at], source[at + len(value) : at + len(value) + 1]
        if not _continues(before, value[0]) and not _continues(behind, value[-1]):
            return True
        at = source.find(value, at + 1)
    return False


def _continues(beside: str, edge: str) -> bool:
    return beside.isalnum() and edge.isalnum()


def _source(draft: Draft) -> Iterator[str]:
    for message in _log(draft):
        yield from searchable(message.parts)
        yield f"@{message.seq} {message.seq}"
    for item, _ in draft.inputs.covered:
        if isinstance(item, Inline):
            epoch = epoch_of(item)
            if epoch is None or epoch.number != (draft.epoch.number if draft.epoch else 0):
                yield plain_text(tuple(p for p in item.parts if isinstance(p, Text)))
