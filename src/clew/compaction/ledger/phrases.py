"""Noun phrases: the words around a noun, or of a subject, that tell which thing is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clew.compaction.ledger.words import GENERIC, SAME, STOP, VERBS, fold

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9'’]*(?:-[a-z0-9]+)*|\d+|[^\sA-Za-z\d]")
_DETERMINERS = frozenset(
    ("the", "our", "my", "your", "its", "their", "this", "that", "a", "an", "each", "every")
)
_ADVERBS = frozenset(("now", "currently", "then", "also", "already", "still", "only", "usually"))
"""They stand between a subject and its verb: "the Paris office now opens"."""
_AFTER = re.compile(
    r"[\s§]+(?:for|of|with) (?:the |this |our |my |that |all )?(?!users?\b)([\w' -]{2,40})"
)
_LEAD = re.compile(r"^[\w' ]{1,30}[:,] ")
MASK = "§"
"""Stands in a text where a value stood, so that the value is no word of a phrase."""


def words_of(text: str) -> list[str]:
    """Words and single marks."""
    return _WORD.findall(text)


def scope_of(words: Iterable[str]) -> tuple[str, ...]:
    """The words that tell which one is meant: folded, sorted, without those that say nothing."""
    out: set[str] = set()
    for word in words:
        low = word.lower()
        if low in GENERIC:
            continue
        if word.isupper() and word != "I":  # "US" is no pronoun, "A" of "the A team" no article
            out.add(low)
            continue
        parts = [word] if low in SAME or "-" not in low else low.split("-")
        folded = map(fold, parts)
        out.update(
            w for w in folded
            if (len(w) > 1 or w.isdecimal()) and w not in STOP and w not in GENERIC
        )  # fmt: skip
    return tuple(sorted(out))


def ends_phrase(words: list[str], at: int) -> bool:
    """Whether a word ends a noun phrase: a function word, a mark, or a verb that no article makes
    a part of the phrase ("the write timeout")."""
    word = words[at]
    low = word.lower()
    if word.isdecimal():  # "server 3"
        return at == 0 or ends_phrase(words, at - 1)
    if not low[0].isalpha():
        return True
    article = at > 0 and words[at - 1].lower() in _DETERMINERS
    if word.isupper() and (len(word) > 1 or article):
        return False
    return low in STOP or (low in VERBS and not article)


def before(text: str) -> list[str]:
    """Up to four words at the end of a text, back to what ends a noun phrase."""
    words = words_of(text[-60:])
    if words and words[-1].lower() in _ADVERBS:
        words.pop()
    out: list[str] = []
    for at in range(len(words) - 1, -1, -1):
        if ends_phrase(words, at) or len(out) == 4:
            break
        out.append(words[at])
    return out


def after(text: str) -> list[str]:
    """The noun phrase of "for the ..." or "of the ..." that a text begins with."""
    match = _AFTER.match(text)
    words = words_of(match[1]) if match else []
    out: list[str] = []
    for at in range(len(words)):
        if ends_phrase(words, at) or len(out) == 3:
            break
        out.append(words[at])
    return out


def subject(text: str) -> list[str]:
    """The first noun phrase of a clause, up to its verb or a value."""
    words = words_of(_LEAD.sub("", text[:120]))
    out: list[str] = []
    for at, word in enumerate(words):
        if word == MASK or (out and ends_phrase(words, at)):
            break
        if not ends_phrase(words, at):
            out.append(word)
    return out[:4]


def tail(
    words: list[str], joiners: frozenset[str] = frozenset(("of", "for", "per", "in", "on", "to"))
) -> list[str]:
    """The last noun phrase of some words, with what prepositions join to it."""
    for at in range(len(words) - 1, -1, -1):
        word, low = words[at], words[at].lower()
        if low in _DETERMINERS and at > 0 and words[at - 1].lower() in joiners:
            continue  # "the page size of the export"
        if not word[0].isalnum() or (low in STOP and low not in joiners and not word.isupper()):
            return words[at + 1 :]
    return words
