"""Who has a duty, told by one name: "Ada approves releases"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.compaction.ledger.values import Value
from clew.compaction.ledger.words import GENERIC, STOP, VERBS

_NAME = r"[A-Z][a-zà-ÿ'’-]+"
_HAS_DUTY = (
    r"(?:approves|authori[sz]es|signs[ -]off|reviews|owns|handles|leads|manages|maintains|decides|"
    r"(?:takes|took) over(?= \w)|(?:has|carries) the pager|"
    r"is (?:now )?(?:on[ -]call|responsible|in charge)"
    r")\b"
)
_BY = r"(?:approved|authori[sz]ed|signed off|reviewed|owned|handled|led|managed|maintained) by"
_HOLDER = re.compile(
    rf"\b(?P<a>{_NAME}) (?:now |also |still )?{_HAS_DUTY}|\b{_BY} (?P<b>{_NAME})\b"
)
_DOES = re.compile(rf" (?:now |also |still )?{_HAS_DUTY}")
_ALSO = re.compile(r" also\b")


def holders(text: str) -> Iterator[Value]:
    """Single names that have a duty in this clause."""
    for match in _HOLDER.finditer(text):
        group = "a" if match["a"] else "b"
        word = match[group].lower()
        if word not in STOP and word not in VERBS and word not in GENERIC:
            yield Value("person", match[group], match.start(group), match.end(group))


def does(text: str, value: Value) -> bool:
    """Whether a name is followed by the duty it has."""
    return _DOES.match(text, value.end) is not None


def also(text: str, value: Value) -> bool:
    """Whether somebody has a duty beside others."""
    return _ALSO.match(text, value.end) is not None
