"""Finding messages of one conversation by a question, as an agent asks it.

An agent asks in sentences, and in other forms of a word than were written. Words that only ask are
left out, the others are compared by their stems, and the messages that say most of them come first:
those that say all, then those that say some. Ranked by BM25 (Robertson and Zaragoza, 2009) over
whole messages; a long output that has every word by chance must not stand above the short sentence
that answers.

A conversation of a few thousand messages is read whole, so that nothing depends on an index. Of a
longer one the store's search names the candidates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from clew.clock import Micros
from clew.compaction.excerpts import excerpt
from clew.compaction.ledger.words import related
from clew.compaction.stems import asked_words, stem, wanted, words_of
from clew.domain.messages import Message, Role
from clew.domain.parts import Part, Parts, Reasoning, ToolCall, ToolResult, result_text, searchable
from clew.domain.search import SearchPage, SearchQuery
from clew.errors import InputError, NotFound
from clew.store.search.rank import rarity
from clew.store.search.words import fold

if TYPE_CHECKING:
    from clew.store.reader import ConversationReader

TOP = 5
MOST = 50
"""Messages of one answer."""
LONGEST = 2_000
"""Characters of a question that are looked at."""
WHOLE = 2_000
"""Messages of a conversation that is read whole."""
SHOWN = 400
"""Characters of a message that are shown; of a longer one the part that says most."""
OWN = ("recall", "search")
"""Calls of these hold the words of earlier questions, and are no source."""

_CANDIDATES = 200
_WORDS = 12
_RUN = 32
"""Messages read for nothing at most, to read those on both sides of them at once."""
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
"""k1 and b of BM25, at their usual values."""
_BEGIN = 2
"""Letters that a word shares with its stem."""
_TIMES = 4
"""How often a word counts at most: what a long output says hundreds of times is no better for it.
"""
_PHRASE = 2.0
"""How much more a message counts that has a quoted phrase."""
_OURS = re.compile(r"\[@\d+\] \w+, \d+-\d\d-\d\d ")
"""How an answer of these tools begins."""


class Searches(Protocol):
    """What is needed of a profile."""

    def search(self, query: SearchQuery, /) -> SearchPage: ...


class Found(Struct, frozen=True):
    """A message that was found: `text` is all of it when it is short, else the best part."""

    seq: int
    role: Role
    created_at: Micros
    text: str
    score: float


class _Question(NamedTuple):
    words: tuple[str, ...]
    """As they were asked, without those that only ask."""
    phrases: tuple[str, ...]
    """What stood in quotes, folded."""


class _Source(NamedTuple):
    """A message to rank: its text, how often it has the stems asked for, and all its words."""

    message: Message
    text: str
    stems: Counter[str]
    length: int


def search(
    conv: ConversationReader, profile: Searches | None, query: str, *, top: int = TOP
) -> tuple[Found, ...]:
    """The visible messages of a conversation that say most of what is asked, the best first.

    `profile`: the one that the conversation is in. Without it only the newest 2,000 messages are
    looked at. Raises InputError for a question without a word and for a `top` outside 1..50.
    """
    if not 1 <= top <= MOST:
        raise InputError(f"top is {top}; give a number from 1 to {MOST}")
    question = _understood(query)
    return _ranked(question, _candidates(conv, profile, question), top)


def rank(query: str, messages: Iterable[Message], top: int = TOP) -> tuple[Found, ...]:
    """As `search`, among these messages."""
    return _ranked(_understood(query), messages, top)


def _understood(query: str) -> _Question:
    text = query[:LONGEST]
    words = asked_words(text)
    if not words:
        raise InputError(f"the question {query[:80]!r} has no word; ask for words that were said")
    phrases = [fold(part).strip() for part in text.split('"')[1::2]]
    return _Question(tuple(words[:_WORDS]), tuple(phrase for phrase in phrases if phrase))


def _candidates(
    conv: ConversationReader, profile: Searches | None, question: _Question
) -> Iterator[Message]:
    """What is worth ranking."""
    if profile is None or conv.info().head <= WHOLE:
        yield from islice(_backwards(conv), WHOLE)
        return
    left = _hits(conv.id, profile, question)
    for first, last in _runs(sorted(left)):
        for message in conv.messages(first=first, last=last):
            if message.seq in left:
                left.remove(message.seq)
                yield message
    for seq in left:  # those that stand in the place of others, if they do
        with suppress(NotFound):
            place = conv.message(seq).replaces
            shown = () if place is None else conv.messages(first=place, last=place)
            yield from (message for message in shown if message.seq == seq)


def _hits(conversation: str, profile: Searches, question: _Question) -> set[int]:
    """The best that say every word, and the newest that say each: a rare word has few, so that
    what is old is among them, too."""
    texts = [" ".join(question.words), *map(wanted, question.words)]
    queries = (
        SearchQuery(
            text=text, conversation=conversation, order="newest" if number else "relevance",
            limit=_CANDIDATES,
        )
        for number, text in enumerate(texts)
    )  # fmt: skip
    return {hit.seq for query in queries for hit in profile.search(query).hits}


def _backwards(conv: ConversationReader) -> Iterator[Message]:
    cursor: str | None = None
    while True:
        page = conv.log(limit=500, cursor=cursor, order="newest")
        yield from page.items
        cursor = page.next
        if cursor is None:
            return


def _runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = 0
    for seq in seqs:
        if first and seq - last > _RUN:
            yield first, last
            first = seq
        first, last = first or seq, seq
    if first:
        yield first, last


def _ranked(question: _Question, messages: Iterable[Message], top: int) -> tuple[Found, ...]:
    stems = {stem(word): tuple(map(stem, related(word))) for word in question.words}
    begins = {each[:_BEGIN] for each in (*stems, *chain.from_iterable(stems.values()))}
    sources = [_source(message, begins) for message in messages]
    for source in sources:
        _lend(source.stems, stems)
    average = sum(source.length for source in sources) / len(sources) if sources else 1.0
    weights = {
        each: rarity(sum(1 for source in sources if source.stems[each]), len(sources))
        for each in stems
    }
    scored = [(_score(source, question, weights, average), source) for source in sources]
    scored.sort(key=lambda each: (-each[0], -each[1].message.seq))
    best: dict[str, Found] = {}
    for score, source in scored:
        if score <= 0 or len(best) == top:
            break
        if source.text not in best:  # said again: the newest is enough
            best[source.text] = _found(score, source, weights)
    return tuple(best.values())


def _lend(counts: Counter[str], stems: dict[str, tuple[str, ...]]) -> None:
    """Where a word that is asked for is not said, another word for it counts as said once."""
    for each, others in stems.items():
        if not counts[each] and any(counts[other] for other in others):
            counts[each] = 1


def _found(score: float, source: _Source, weights: dict[str, float]) -> Found:
    message = source.message
    return Found(
        seq=message.seq, role=message.role, created_at=message.created_at,
        text=excerpt(source.text, weights, SHOWN), score=round(score, 3),
    )  # fmt: skip


def _source(message: Message, begins: set[str]) -> _Source:
    text = "\n".join(part for part in searchable(_told(message.parts)) if part)
    words = words_of(text)
    stems = Counter(stem(word) for word in words if word[:_BEGIN] in begins)
    return _Source(message, text, stems, len(words))


def _told(parts: Parts) -> Parts:
    """Without thinking, which is not read back, and without earlier questions and answers."""
    return tuple(part for part in parts if not _is_own(part))


def _is_own(part: Part) -> bool:
    match part:
        case Reasoning():
            return True
        case ToolCall(name=name):
            return name in OWN
        case ToolResult():
            return _OURS.match(result_text(part)) is not None
        case _:
            return False


def _score(
    source: _Source, question: _Question, weights: dict[str, float], average: float
) -> float:
    """BM25, times the share of what was asked that the message says."""
    part = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * source.length / max(average, 1.0)
    score = said = 0.0
    for each, weight in weights.items():
        times = min(source.stems[each], _TIMES)
        if times:
            said += weight
            score += weight * times / (times + _SATURATION * part)
    score *= said / (sum(weights.values()) or 1.0)
    if score and question.phrases:
        folded = fold(source.text)
        score *= _PHRASE ** sum(phrase in folded for phrase in question.phrases)
    return score
