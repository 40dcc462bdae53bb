"""What the archivist says, in Markdown for people: quotations with their references, and how to
connect a model. It never pretends to understand."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from clew.clock import SECOND, Micros
from clew.compaction.recall import recall
from clew.domain.messages import Role
from clew.errors import InputError
from clew.providers.archivist_finding import SIGN, Passage, Searched, look

if TYPE_CHECKING:
    from clew.store.profile import Profile
    from clew.store.reader import ConversationReader

__all__ = ["SIGN", "answer"]

CONNECT = """\
To talk to a language model, do one of these and start `clew chat` again:

- `export OPENAI_API_KEY=...` (or ANTHROPIC_API_KEY, OPENROUTER_API_KEY, GEMINI_API_KEY, ...)
- run one on this machine: `ollama pull qwen3` with [Ollama](https://ollama.com) is enough
- `clew config edit`, for any other server"""
WHAT = (
    "I am the archivist of clew, not a language model: I look up what was said in your "
    "conversations and quote it. Everything you write here is kept, and a model that you connect "
    "later goes on from it."
)
HOW = """\
What you can ask:

- words of what you look for: `which port did we choose`
- an exact phrase in quotes: `"disk full"`
- a message by its number: `@12`, or several: `@12-15`"""
BRIEFLY = "_Looked up, not thought: I am no language model. Say `help` to connect one._"

_HELLO = re.compile(
    r"(hi|hello|hey|good (morning|day|evening|afternoon)|hallo|moin|hola|salut|bonjour|ciao)"
    r"\b( there| you| clew| archivist)?"
)
_HELP = re.compile(
    r"/?help( me)?|(who|what) are you|what can (you|i) do( here)?|how does (this|it) work|"
    r"what is (this|clew)|what now|are you (a|an|the)? ?(bot|ai|llm|model|language model|human).*"
)
_THANKS = re.compile(r"(thanks|thank you|thx|ok|okay|great|good|bye|goodbye|danke)( a lot| you)?")
_REF = re.compile(
    r"(?:recall|show|read|quote)?\s*(?:messages?\s+)?\[?@(\d[\d,\s+–-]*)\]?\s*[.?!]?|"
    r"(?:recall|show|read|quote)\s+(?:messages?\s+)?(\d[\d,\s+–-]*)",
    re.IGNORECASE,
)
_ROOM = 4_000
"""Characters of a message that is read back."""
_LINES = 12
"""Lines of a quotation."""
_WHO = {Role.USER: "you", Role.ASSISTANT: "assistant", Role.TOOL: "tool"}


def answer(
    question: str, asked: set[int], reader: ConversationReader | None, profile: Profile | None,
    *, first: bool,
) -> str:  # fmt: skip
    """The answer to a question. `asked`: seqs of the messages that ask it. `first`: it has not
    spoken here before. Blocking: reads the store."""
    said = _said(question, asked, reader, profile)
    if said is None:
        return f"{SIGN} {WHAT}\n\n{HOW}\n\n{CONNECT}"
    ending = f"---\n\n{WHAT}\n\n{CONNECT}" if first else BRIEFLY
    return f"{SIGN} {said}\n\n{ending}"


def _said(
    question: str, asked: set[int], reader: ConversationReader | None, profile: Profile | None
) -> str | None:
    """The part of an answer that is about the question; None: it is about the archivist."""
    plain = re.sub(r"[\s!.?,]+", " ", question).strip().casefold()
    if _HELLO.fullmatch(plain) or _HELP.fullmatch(_HELLO.sub("", plain, count=1).strip()):
        return None
    if _THANKS.fullmatch(plain):
        return "You are welcome. It is all kept."
    if not plain:
        return "I can only read words, and your message has none. It is kept as it is."
    match = _REF.fullmatch(question.strip())
    if match and reader is not None:
        return _read(reader, match[1] or match[2])
    try:
        return _told(question, look(question, asked, reader, profile), asked)
    except InputError:
        return "I found no word in that to look for. Ask with names, numbers or phrases."


def _read(reader: ConversationReader, ref: str) -> str:
    try:
        found = recall(reader, ref, limit=_ROOM)
    except InputError as error:
        return f"I cannot read that: {error}."
    quoted = [
        f"[@{each.seq}] {_who(each.role)}, {_day(each.created_at)}:\n\n{_quote(each.text, 10_000)}"
        for each in found.pieces
    ]
    more = f"There is more: ask for `@{found.next}`." if found.next else ""
    return "\n\n".join(
        text for text in ("Word for word:" if quoted else found.text, *quoted, more) if text
    )


def _told(question: str, found: Searched, asked: set[int]) -> str:
    if not found.here and not found.elsewhere:
        return _nothing(question, found, asked)
    texts: list[str] = []
    if found.here:
        texts += [_count(len(found.here), "this conversation"), *map(_shown, found.here)]
    if found.elsewhere:
        also = (
            "Also in other conversations:"
            if found.here
            else _count(len(found.elsewhere), "other conversations")
        )
        texts += [also, *map(_shown, found.elsewhere)]
    return "\n\n".join((*texts, *_behind(found)))


def _count(number: int, where: str) -> str:
    return f"{'One passage' if number == 1 else f'{number} passages'} of {where} may answer that:"


def _nothing(question: str, found: Searched, asked: set[int]) -> str:
    counted = ((found.messages, "message", " of this conversation"),
               (found.conversations, "other conversation", ""))  # fmt: skip
    looked = " and ".join(f"{_many(n, what)}{of}" for n, what, of in counted if n)
    if not looked:
        return "There is nothing here yet but what you have just written, and that is kept."
    if not question.rstrip().endswith("?"):
        kept = f"It is kept as [@{max(asked)}]. " if asked else ""
        text = f"{kept}I looked through {looked} and found nothing about it."
    else:
        text = (
            f"I found nothing about that. I looked through {looked}; other words may find more: "
            "names, numbers and paths are best."
        )
    return "\n\n".join((text, *_behind(found)))


def _behind(found: Searched) -> list[str]:
    if not found.behind:
        return []
    return [f"{_many(found.behind, 'message')} could not be looked at yet; ask again in a while."]


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _shown(passage: Passage) -> str:
    place = f"[@{passage.seq}]"
    if passage.conversation is not None:
        title = f" “{_plain(passage.title)}”" if passage.title else ""
        place = f"`{passage.conversation[:8]}`{title} {place}"
    head = f"{place} {_who(passage.role)}, {_day(passage.created_at)}:"
    return f"{head}\n\n{_quote(passage.text, _LINES)}"


def _quote(text: str, most: int) -> str:
    """As a quotation; blank lines as one, so that it stays one."""
    lines = re.sub(r"\n\s*\n+", "\n\n", text.strip()).split("\n")
    shown = [f"> {line}".rstrip() for line in lines[:most]]
    return "\n".join([*shown, *(["> …"] if len(lines) > most else [])])


def _plain(title: str) -> str:
    return re.sub(r"[\s`*_\[\]<>]+", " ", title).strip()


def _who(role: Role) -> str:
    return _WHO.get(role, str(role))


def _day(at: Micros) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at / SECOND))
