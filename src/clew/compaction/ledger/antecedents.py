"""What a pronoun stands for inside one sentence: "the sandbox has moved, it runs at ..."."""

from __future__ import annotations

import re
from typing import NamedTuple

from clew.compaction.ledger import phrases
from clew.compaction.ledger.words import STOP, VERBS

_PRONOUN = re.compile(
    r"(?:[,;:–—]| and| so)\s+(?:(?:and|so|but|now|then|since|because) )*"
    r"(?P<it>it|its|they|their|he|she)(?P<is>'s)?(?= )"
)
_SIDE = re.compile(r"\b(?:which|whose|where|when|while|that (?:is|was|has|had))\b")
_CLAUSE_START = re.compile(r"[;:.]\s+|,\s+(?:so|and|but)\s+")
_PEOPLE = frozenset(("we", "i", "they", "you", "he", "she", "somebody", "someone"))
_DETERMINERS = frozenset(("the", "our", "my", "your", "this"))
_AUXILIARIES = frozenset(("has", "have", "had", "is", "are", "was", "were", "got", "moved"))
_PAST = re.compile(r"\w{2,}ed|went|broke|left|got|ran|fell|died|became|grew|shrank|slid|needs?")


class Resolved(NamedTuple):
    """A clause with its subject in words. `start`: where the clause began in the sentence."""

    text: str
    start: int


def resolved(text: str) -> Resolved | None:
    """The clause of a sentence that begins with a pronoun, with what it stands for in its place:
    "" when that cannot be told. None when there is no such clause."""
    match = _PRONOUN.search(text)
    if match is None:
        return None
    if _SIDE.search(text[: match.start()]):
        return Resolved("", match.start("it"))
    if not (thing := _antecedent(text[: match.start()])):
        return None
    possessive = match["it"] in ("its", "their")
    verb = " is" if match["is"] else "'s" if possessive else ""
    return Resolved(f"The {thing}{verb}{text[match.end() :]}", match.start("it"))


def _antecedent(head: str) -> str:
    """The subject of the last clause of `head`; its only object, when people are its subject."""
    words = phrases.words_of(_CLAUSE_START.split(head)[-1])
    if not words:
        return ""
    first = words[0].lower()
    if first in _DETERMINERS:
        return _phrase(words, 1)
    if first not in _PEOPLE and first not in STOP and first not in VERBS and first.isalpha():
        named = _phrase(words, 0)
        at = named.count(" ") + 1
        if at < len(words) and words[at].lower() in _AUXILIARIES:
            return "" if _people_do(words, at) else named
    objects = [at for at, word in enumerate(words) if word.lower() in _DETERMINERS]
    return _phrase(words, objects[0] + 1) if len(objects) == 1 else ""


def _people_do(words: list[str], at: int) -> bool:
    """Whether the verb has an object, as in "Marketing moved the wiki": then the object may be
    meant as well."""
    return at + 1 < len(words) and words[at + 1].lower() in _DETERMINERS


def _phrase(words: list[str], start: int) -> str:
    end = start
    while end < min(len(words), start + 4):
        if phrases.ends_phrase(words, end) or (end > start and _PAST.fullmatch(words[end])):
            break
        end += 1
    if words[end : end + 1] in (["for"], ["of"]) and words[end + 1 : end + 2] != []:
        at = end + 1 + (words[end + 1].lower() in _DETERMINERS)
        return f"{' '.join(words[start:at])} {_phrase(words, at)}".strip()
    return " ".join(words[start:end])
