"""What a clause claims, and what it says is replaced.

A slot is only found when the clause names its subject in words; a value that stands without one has
none, and then nothing is replaced. The words of a subject are folded (plural, a few groups of
synonyms), so that "project budget" and "project spend" are one slot, and "staging port" and
"production port" are two.
"""

from __future__ import annotations

import re

from clew.compaction.ledger.antecedents import resolved
from clew.compaction.ledger.claim import Claim, Tone
from clew.compaction.ledger.dimensions import claims_of
from clew.compaction.ledger.names import choice, name, replaced, style
from clew.compaction.ledger.options import option
from clew.compaction.ledger.roles import holders
from clew.compaction.ledger.values import Value, values
from clew.compaction.ledger.words import STOP, UNSURE, VERBS

__all__ = ["Claim", "choice", "claims", "replaced"]


_ON_CALL = re.compile(r"\bon call\b", re.I)


def claims(text: str) -> list[Claim]:
    """What one clause, no longer than a sentence may be, claims."""
    low = text.lower()
    if UNSURE.search(low):
        return []
    text = _ON_CALL.sub("on-call", text)
    found = list(values(text))
    other = resolved(text)
    if other is None or any(value.start < other.start for value in found):
        return _claims(text, found, Tone(low))
    out = _claims(other.text, list(values(other.text)), Tone(low, other.text.lower()))
    return out if out or (found and not other.text) else _claims(text, found, Tone(low))


def _claims(text: str, found: list[Value], tone: Tone) -> list[Claim]:
    by_type: dict[str, list[Value]] = {}
    for value in found:
        by_type.setdefault(value.type, []).append(
            _person(value) if value.type == "person" else value
        )
    if "person" not in by_type and (people := list(holders(text))):
        by_type["person"] = people
    out = claims_of(text, by_type, tone)
    if not out and (claim := name(text, tone)):
        out.append(claim)
    if claim := style(text, tone):
        out.append(claim)
    if not out and (claim := option(text, found, tone)):
        out.append(claim)
    return out


def _person(value: Value) -> Value:
    """A name without the word that the sentence begins with: "Only Jane Doe"."""
    first, _, rest = value.text.partition(" ")
    if first.lower() in STOP or first.lower() in VERBS:
        return Value(value.type, rest, value.start + len(first) + 1, value.end)
    return value
