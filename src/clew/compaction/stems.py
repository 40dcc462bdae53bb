"""Words as a question has them: without those that only ask, and by their stems.

The stems are for comparing and not for showing. Light on purpose (after Harman's S stemmer, 1991,
with the endings of verbs): what a heavier one joins, "organ" and "organize", costs more than it
finds. Words of other scripts and words with digits are their own stems.
"""

from __future__ import annotations

import re
from functools import lru_cache

from clew.store.search.words import GAP, SPACELESS, segment

_ASKING = (
    "a about again all also am an and any are as at be been but by can could did do does done "
    "ever for from gave get give had has have he her his how i if in into is it its just know "
    "let me mine my no not now of on one or our please really recall remember remind said say "
    "says she should so some tell than that the their them then there these they thing this "
    "those to told too up us was we were what whats when where whether which who whom whose why "
    "will with would you your yours"
)
"""Words that questions and answers alike are full of."""
_STOP = frozenset(_ASKING.split(" "))
_ENDINGS = ("ations", "ation", "ments", "ment", "ingly", "ings", "ing", "edly", "ed", "ly")
_LEAST = 3
"""Letters that an ending leaves at least."""
_SPACELESS = re.compile(f"[{SPACELESS}]")


def words_of(text: str) -> list[str]:
    """All words of a text, folded, in order; parts of identifiers follow at the end."""
    return [word for word in segment(text).split(" ") if word and word != GAP]


def asked_words(text: str) -> list[str]:
    """The words of a question that it is about, each once; all of them when none is left."""
    words = list(dict.fromkeys(words_of(text)))
    told = [word for word in words if word not in _STOP and not _is_end_of_run(word)]
    return told or words


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """What the forms of an English word have in common: stores, stored, storing: "stor"."""
    if not (word.isascii() and word.isalpha()) or len(word) <= _LEAST:
        return word
    if word.endswith("ies") and len(word) > _LEAST + 1:
        word = f"{word[:-3]}y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in _ENDINGS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _LEAST and any(v in rest for v in "aeiouy"):
            word = rest
            if rest[-1] == rest[-2] and rest[-1] not in "aeiouls":
                word = rest[:-1]  # running: run
            break
    if word.endswith("e") and len(word) > _LEAST:
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > _LEAST else word


def wanted(word: str) -> str:
    """The text with which the store's search finds the forms of a word, and perhaps more."""
    if not (word.isascii() and word.isalpha()):
        return word
    base = stem(word)
    begin = base[:-1] if base.endswith("i") and len(base) > _LEAST else base
    if len(begin) > _LEAST:
        return f"{begin}*"
    endings = ("", "s", "e", "es", "ed", "ing", "y", "ies", "ied", "ying")
    doubled = (f"{begin}{begin[-1]}{ending}" for ending in ("ed", "ing"))
    forms = dict.fromkeys((word, *(f"{begin}{ending}" for ending in endings), *doubled))
    return " OR ".join(forms)


def _is_end_of_run(word: str) -> bool:
    """The last character of a run without spaces is a word by itself in `segment`; its pairs say
    more."""
    return len(word) == 1 and _SPACELESS.match(word) is not None
