"""Where the archivist looks: in the conversation that is open, then in all others of its profile.
What it said itself, and what it was asked before, is no source. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from clew.clock import Micros
from clew.compaction.lookup import Found, rank, search
from clew.compaction.stems import asked_words, wanted
from clew.domain.messages import Message, Role
from clew.domain.search import Hit, SearchQuery
from clew.errors import NotFound

if TYPE_CHECKING:
    from clew.store.profile import Profile
    from clew.store.reader import ConversationReader

SIGN = "**Archivist.**"
"""How each of its answers begins, so that they are known again."""
HERE, ELSEWHERE = 3, 3
"""Passages of an answer, of each kind."""
_MORE = 12
"""Passages looked at, some of which may be no source."""
_WORDS, _HITS = 8, 25
_CLOSE = 0.35
"""A passage that scores less than this share of the best one is left out."""


class Passage(Struct, frozen=True):
    """What was found, and where. `conversation`: None in the one that is open."""

    seq: int
    role: Role
    created_at: Micros
    text: str
    conversation: str | None = None
    title: str | None = None


class Searched(Struct, frozen=True):
    """What came of looking. `messages`, `conversations`: looked through, of the open one and
    beside it; `behind`: messages that could not be looked at yet."""

    here: tuple[Passage, ...] = ()
    elsewhere: tuple[Passage, ...] = ()
    messages: int = 0
    conversations: int = 0
    behind: int = 0


def look(
    question: str, asked: set[int], reader: ConversationReader | None, profile: Profile | None
) -> Searched:
    """Look for a question. `asked`: seqs of the messages that ask it. Raises InputError when the
    question has no word."""
    here: tuple[Passage, ...] = ()
    count = others = behind = 0
    elsewhere: tuple[Passage, ...] = ()
    if reader is not None:
        found = search(reader, profile, question, top=_MORE)
        here = _close(tuple(_sources(question, asked, reader, found)))[:HERE]
        count = max(0, reader.info().message_count - len(asked))
    if profile is not None:
        elsewhere, behind = _elsewhere(question, reader, profile)
        others = max(0, profile.stats().conversations - (reader is not None))
    return Searched(here, elsewhere, count, others, behind)


def is_source(message: Message, question: str) -> bool:
    """Whether a message says something: neither an answer of the archivist, nor a question."""
    text = message.text.strip()
    if message.role is Role.ASSISTANT and text.startswith(SIGN):
        return False
    if message.role is Role.USER and len(text) < 200 and text.endswith(("?", "？", "؟")):
        return False
    return text.casefold() != question.strip().casefold()


def _sources(
    question: str, asked: set[int], reader: ConversationReader, found: Iterable[Found]
) -> Iterator[tuple[float, Passage]]:
    for one in found:
        if one.seq not in asked and is_source(reader.message(one.seq), question):
            yield one.score, Passage(one.seq, one.role, one.created_at, one.text)


def _close(scored: tuple[tuple[float, Passage], ...]) -> tuple[Passage, ...]:
    """Those that come near the best one."""
    best = max((score for score, _ in scored), default=0.0)
    return tuple(passage for score, passage in scored if score >= best * _CLOSE)


def _elsewhere(
    question: str, reader: ConversationReader | None, profile: Profile
) -> tuple[tuple[Passage, ...], int]:
    own = None if reader is None else reader.id
    hits, behind = _hits(question, profile)
    places = [hit for hit in hits.values() if hit.conversation != own]
    messages = [(hit, _message(profile, hit)) for hit in places]
    kept = [(hit, each) for hit, each in messages if each is not None and is_source(each, question)]
    numbered = [_numbered(number, each) for number, (_, each) in enumerate(kept, 1)]
    scored: list[tuple[float, Passage]] = []
    for one in rank(question, numbered, _MORE):
        hit, _ = kept[one.seq - 1]
        scored.append((one.score, Passage(
            hit.seq, one.role, one.created_at, one.text, hit.conversation, hit.title
        )))  # fmt: skip
    return _close(tuple(scored))[:ELSEWHERE], behind


def _hits(question: str, profile: Profile) -> tuple[dict[tuple[str, int], Hit], int]:
    """Messages that say every word, then those that say some, newest first."""
    words = asked_words(question)[:_WORDS]
    texts = [" ".join(map(wanted, words)) if len(words) == 1 else " ".join(words)]
    texts += [wanted(word) for word in words] if len(words) > 1 else []
    found: dict[tuple[str, int], Hit] = {}
    behind = 0
    for number, text in enumerate(texts):
        order = "newest" if number else "relevance"
        page = profile.search(SearchQuery(text=text, order=order, limit=_HITS))
        behind = max(behind, page.behind)
        found |= {(hit.conversation, hit.seq): hit for hit in page.hits}
    return found, behind


def _message(profile: Profile, hit: Hit) -> Message | None:
    """The message of a hit, unless it went meanwhile."""
    try:
        return profile.open(hit.conversation).message(hit.seq)
    except NotFound:
        return None


def _numbered(number: int, message: Message) -> Message:
    """The same words under a number of their own: two conversations may each have a message 7."""
    return Message.of(
        seq=number, uid=message.uid, role=message.role, parts=message.parts,
        created_at=message.created_at,
    )  # fmt: skip
