"""What was said: rules, asks, decisions, facts and remarks, out of the prose of messages.

Kinds come from grammar (imperatives, modal verbs, questions, copulas) and from who speaks. Text is
kept as it stands; only a heading in capitals and a list mark before it are taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from clew.compaction.ledger import grammar, slots
from clew.compaction.ledger.claim import Claim
from clew.compaction.ledger.rows import Row, RowKind
from clew.compaction.ledger.sentences import clauses, clip, sentences
from clew.compaction.ledger.values import HINT
from clew.compaction.ledger.words import STOP, VERBS, is_chatter
from clew.domain.messages import Message, Role

LONG = 1_500
"""Characters of a message beyond which it is taken to hold pasted text: then only what forbids or
obliges is a rule."""


class Said(NamedTuple):
    """A row and what its clause claims and replaces. `asking`: it is (part of) a request."""

    row: Row
    claims: tuple[Claim, ...] = ()
    replaces: tuple[str, ...] = ()
    asking: bool = False


def said(message: Message) -> list[Said]:
    """The rows of one message's prose, in its order."""
    text = message.text
    if not text or text.isspace():
        return []
    if message.role is Role.ASSISTANT:
        return list(_assistant(message, text))
    if message.role is Role.TOOL:
        return []
    if len(text) < 60 and is_chatter(text):
        return []
    found = _person(message, text)
    if message.role is Role.USER:
        return list(found)
    return [one for one in found if one.row.kind == "rule"]


def withdraws(text: str) -> bool:
    """Whether a message takes back the last request."""
    return len(text) < 200 and grammar.WITHDRAWN.search(text) is not None


def _row(message: Message, kind: RowKind, text: str, claim: Claim | None = None) -> Row:
    who = "assistant" if message.role is Role.ASSISTANT else "user"
    if message.role in (Role.SYSTEM, Role.DEVELOPER):
        who = "system"
    return Row(
        kind, text, message.seq, claim.slot if claim else None, claim.value if claim else None,
        message.created_at or None, (), who,
    )  # fmt: skip


def _person(message: Message, text: str) -> Iterator[Said]:
    """User, system and developer messages. What only refers back stands with what it refers to;
    what asks becomes one row, last."""
    asked: list[str] = []
    held: Said | None = None
    for part, one in _parts(message, text):
        if held is not None and not one.claims and grammar.ANAPHORA.match(part.lower()):
            held = held._replace(row=_joined(held.row, one.row, part))
            continue
        if held is not None:
            yield held
        held = None
        if one.asking:
            asked.append(part)
        elif one.row.kind in ("ask", "note"):
            yield one
        else:
            held = one
    if held is not None:
        yield held
    if asked and message.role is Role.USER:
        joined = " ".join(asked)
        whole = text if len(text) <= 300 and (len(asked) > 1 or len(joined) < 20) else joined
        yield Said(_row(message, "ask", clip(" ".join(whole.split()), 400)), asking=True)


def _joined(row: Row, other: Row, part: str) -> Row:
    """A row and what refers back to it; a rule, when either is."""
    kind = "rule" if other.kind == "rule" else row.kind
    return msgspec.structs.replace(row, kind=kind, text=f"{row.text} {part}")


def _parts(message: Message, text: str) -> Iterator[tuple[str, Said]]:
    """Each clause that can stand by itself, with what it says."""
    if len(text) > 20 and not _english(text):
        for sentence in sentences(text):
            yield sentence.text, Said(_row(message, "fact", sentence.text))
        return
    lead = ""
    context: Claim | None = None
    pasted = text.count("\n") > 8
    for sentence in sentences(text):
        line = sentence.text
        if is_chatter(line) or _SLASH.fullmatch(line) or (pasted and not looks_like_prose(line)):
            continue
        if grammar.FRAGMENT.match(line.lower()):
            lead = f"{line} "
            continue
        judge = _Judge(message, context, len(text) > LONG)
        for part, one in judge.clauses(lead + line):
            yield part, one
            context = context or next(iter(one.claims), None)
        lead = ""


class _Judge(NamedTuple):
    """Tells what clauses of one message say. `context`: what it spoke of before."""

    message: Message
    context: Claim | None
    long: bool

    def clauses(self, sentence: str) -> list[tuple[str, Said]]:
        """The clauses of a sentence that can hold or fall by themselves: those with a claim of
        their own, and rules. All are of one kind, so that they stand together."""
        whole = self.clause(sentence)
        parts = clauses(sentence) if whole.claims else [sentence]
        if len(parts) == 1:
            return [(sentence, whole)]
        joined: list[tuple[str, Said]] = []
        for part in parts:
            one = self.clause(part)
            stands = one.claims or obliges(part.lower()) or part.startswith("with no ")
            stands = stands and not grammar.ANAPHORA.match(part.lower())
            if joined and not (stands and joined[-1][1].claims):
                part = f"{joined.pop()[0]} {part}"
                one = self.clause(part)
            joined.append((part, one))
        if len(joined) == 1:
            return [(sentence, whole)]
        kind = whole.row.kind
        return [
            (part, one._replace(row=msgspec.structs.replace(one.row, kind=kind), asking=False))
            for part, one in joined
        ]

    def clause(self, text: str) -> Said:
        """The kind of a clause, what it claims and what it replaces."""
        low = text.lower()
        names = tuple(slots.replaced(text))
        if text.rstrip().endswith("?") and not grammar.POLITE.match(low):
            return Said(_row(self.message, "ask", text), asking=True)
        hard = obliges(low)
        if grammar.NARRATED.match(low) and not hard:
            return Said(_row(self.message, "note", text))
        found = tuple(self._within(claim) for claim in slots.claims(text))
        kind = self._kind(text, low, hard, found, names)
        if kind == "ask":
            open_end = grammar.left_open(text, low) and not grammar.asks(low)
            row = _todo(self.message, text) if open_end else _row(self.message, "ask", text)
            return Said(row, found, names, not open_end)
        row = _row(self.message, kind, text, found[0] if found else None)
        if not found and kind == "decision" and (value := slots.choice(text)):
            row = msgspec.structs.replace(row, value=value)
        return Said(row, found, names)

    def _kind(
        self, text: str, low: str, hard: bool, found: tuple[Claim, ...], names: tuple[str, ...]
    ) -> RowKind:
        asking = grammar.asks(low)
        weak = not asking and _is_weak(low)
        standing = grammar.SURE.match(low) if asking else grammar.STANDING.search(low)
        standing = standing or (weak and grammar.GENERAL.search(low))
        if hard or (not self.long and (standing or grammar.TASTE.search(low))):
            return "rule"
        if grammar.left_open(text, low):
            return "decision" if found else "ask"
        if names or grammar.DECIDED.search(low):
            return "decision"
        if found:
            return "fact"
        if asking or (weak and not self.long):
            return "ask"
        return "fact" if grammar.STATE.search(low) or grammar.EXACT.search(text) else "note"

    def _within(self, claim: Claim) -> Claim:
        """A next step is the next of what the message spoke of before."""
        if claim.dimension != "next step" or self.context is None:
            return claim
        return claim._replace(scope=(self.context.dimension,))


def _is_weak(low: str) -> bool:
    """Whether a clause, in lower case, says how something should be, and is no report of it."""
    if grammar.WEAK.search(low) is None or grammar.REPORT.match(low):
        return False
    return grammar.WEAK.search(grammar.COMPLAINT.sub(" ", low)) is not None


_SLASH = re.compile(r"/\w*")
_TRACE = re.compile(
    r"^(?:at |File \"|[➜$>#│└├─╭╰|]|\d+[ :|]|\w+@\w+|[A-Z][\w.]*(?:Error|Exception):)"
)


def looks_like_prose(line: str) -> bool:
    """Whether a line of a long message is likely the person's own words, not a pasted output."""
    if _TRACE.match(line) or line.count(" ") < 3:
        return False
    letters = sum(c.isalpha() or c == " " for c in line)
    return letters >= 0.8 * len(line)


def _todo(message: Message, text: str) -> Row:
    """Something left open that no answer closes by itself."""
    return msgspec.structs.replace(_row(message, "ask", text), state="todo")


def _english(text: str) -> bool:
    """Whether a text may be read by this grammar: some of its words are its function words, or it
    has too few words to tell."""
    words = re.findall(r"[^\W\d_]+(?:'[a-z]+)?", text[:1_000].lower())
    plain = sum(word.isascii() for word in words)
    if len(words) < 6:
        return plain == len(words)
    return any(word in STOP or word in VERBS for word in words)


def _assistant(message: Message, text: str) -> Iterator[Said]:
    """What the agent decided, found, did and left open."""
    for sentence in sentences(text):
        line = sentence.text
        low = line.lower()
        if len(line) < 20 or line[-1] == ":" or grammar.WORKING.match(line) or is_chatter(line):
            continue
        if grammar.left_open(line, low):
            yield Said(_todo(message, line))
        elif grammar.DECIDED.search(low) and (len(line) > 45 or grammar.EXACT.search(line)):
            names = tuple(slots.replaced(line))
            found = slots.claims(line)
            row = _row(message, "decision", line, found[0] if found else None)
            if not found and (value := slots.choice(line)):
                row = Row(row.kind, line, row.seq, None, value, row.at, (), row.state)
            yield Said(row, tuple(found), names)
        elif HINT.search(line) and grammar.COPULA.search(low):
            found = [claim for claim in slots.claims(line) if claim.scope]
            if found:
                yield Said(_row(message, "fact", line, found[0]), tuple(found))
            else:
                yield Said(_row(message, "note", line))
        else:
            yield Said(_row(message, "note", line))


def obliges(low: str) -> bool:
    """Whether a clause, in lower case, forbids or obliges; not by a report of one thing, or a
    complaint about it."""
    if grammar.HARD.search(low) is None:
        return False
    low = grammar.COMPLAINT.sub(" ", low)
    if grammar.HARD.search(low) is None:
        return False
    return grammar.STRONG.search(low) is not None or grammar.REPORT.match(low) is None


def is_hard(text: str) -> bool:
    """Whether a rule forbids or obliges without exception."""
    return grammar.HARD.search(text.lower()) is not None


def content_words(text: str) -> list[str]:
    """Words that carry the meaning of a remark."""
    return [w for w in re.findall(r"\w{3,40}", text.lower()) if w not in STOP]
