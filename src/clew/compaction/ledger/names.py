"""Names: what something is called, which way of answering is wanted, what is chosen, and what is
named as replaced."""

from __future__ import annotations

import re

from clew.compaction.ledger import phrases
from clew.compaction.ledger.claim import Claim, Tone
from clew.compaction.ledger.values import same
from clew.compaction.ledger.words import DENIES, GENERIC, STOP, UNSURE

_NAMED = re.compile(
    r"(?:\b(?P<head>(?i:code ?name|label|nickname|name|alias|title))"
    r"(?: for (?P<of>[\w' -]{2,40}?))?(?i:(?: now)? (?:is|has changed to|changed to|will be|"
    r"should be|is now|becomes|to)(?: now)?|:| =)? |"
    r"\b(?i:are|'re|were|start|be) calling (?P<what>[\w' -]{2,40}?) |"
    r"\b(?i:(?:is|are|be|was|get|gets) (?:now |internally |also )?)?(?P<as>(?i:called|named|"
    r"designated|known as|code-?named|label(?:l)?ed|renamed(?: to)?|dubbed)) |"
    r"(?<!never )\b(?:(?i:call|named|nicknamed|dubbed)|"
    r"(?:(?i:team|company|client|every(?:one|body))|[A-Z][a-z]+) (?:now )?calls) "
    r"(?i:the|our|my|this|that) (?P<calls>[\w' -]{2,40}?) |"
    r"\b(?P<by>(?:goes|go) by(?: the name(?: of)?)?) (?=[\"'“`]?[A-Z])|"
    r"\b(?i:refer to|renamed?|renaming) (?P<ref>[\w' -]{2,40}?) (?i:by the code ?name|as|by|to) )"
    r"[\"'“`]?(?P<value>[A-Z][\w.-]*(?: [A-Z][\w.-]*)?|[a-z]+[-_][\w-]+|"
    r"(?!once|twice|daily|hourly|often|again|now|when|from|by|with|every|after|before|that|this|"
    r"it\b)[a-z]\w{2,30}(?=(?: now| instead| from now on)?[.,;!]?$))"
)
_NAME_WORDS = frozenset(
    ("code", "codename", "name", "label", "nickname", "alias", "title", "internal", "official")
)
_NAMINGS = (
    "name", "call", "label", "alias", "title", "designated", "known as", "dubbed", "refer to",
    "goes by", "go by", "renam",
)  # fmt: skip
"""One of these stands wherever that expression finds something; a quick first look."""
_INVOKED = re.compile(
    r"API|SDK|CLI|URL|\w+ly|\w+(?:tion|ing|ed)|(?:handle|help|load|read|writ|work|pars|serv|build|"
    r"wrapp|render)er|(?:end)?points?|functions?|methods?|services?|hooks?|callback|client|script|"
    r"command|tool|constructor|library|module|model|procedure|routine|database|first|last|later|here|"
    r"there|too|tomorrow|today|tonight|anyway|back|code|thing|shot|office|customer|user|gateway",
    re.I,
)
"""What is no name when it ends "call the ...": then somebody runs or phones something."""
_NEEDS_SUBJECT = frozenset(("name", "title", "alias", "named", "called"))
_MANNER = (
    r"(?:terse|concise|brief|short|succinct|compact|verbose|detailed|long|thorough|playful|warm|"
    r"formal|informal|casual|friendly|light|serious|dry|technical|simple|chatty|professional|"
    r"neutral|humorous)\b"
)
_STYLE = re.compile(
    rf"\b(?P<a>{_MANNER}(?:,? (?:and |but |or )?{_MANNER})*)|"
    r"\bin (?:an? |the )?(?P<b>[A-Z]?[\w-]+) (?:style|tone|voice)\b|"
    r"\b(?:style|tone|voice) (?:is|should be|to|:) ?(?P<c>[\w-]+)"
)
_REPLY = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|respon[sd]\w*|style|tone|explanations?|summaries|messages)\b",
    re.I,
)
_SHAPES = re.compile(
    r"\b(?:make|keep|want|wants|prefer|prefers|rather|get|please|style|tone|answer|reply|respond|"
    r"like|be)\b",
    re.I,
)


def name(text: str, tone: Tone) -> Claim | None:
    """What something is called."""
    low = text.lower()
    if not any(sign in low for sign in _NAMINGS):
        return None
    match = _NAMED.search(text)
    if match is None or DENIES.search(text[: match.start("value")]):
        return None
    of = match["of"] or match["what"] or match["ref"] or match["calls"]
    if match["calls"] and _INVOKED.fullmatch(match["value"]):
        return None
    if of:
        words = phrases.words_of(of)
    else:
        head = text[: match.start()]
        words = (phrases.before(head) or phrases.subject(head)) + phrases.after(text[match.end() :])
    scope = phrases.scope_of(word for word in words if word.lower() not in _NAME_WORDS)
    said = (match["head"] or match["as"] or "").lower()
    if (said in _NEEDS_SUBJECT or match["calls"] or match["by"]) and not scope:
        return None
    value = match["value"].rstrip(".,")
    asserts = match["calls"] is None or not value.isalpha() or not value.islower()
    return Claim("name", scope, value, (asserts or tone.changes) and not tone.adds, tone.changes)


def style(text: str, tone: Tone) -> Claim | None:
    """How answers should be: terse, playful, "in X style"."""
    if not _REPLY.search(text) or not _SHAPES.search(text):
        return None
    match = _STYLE.search(text)
    if match is None:
        return None
    value = match["a"] or match["b"] or match["c"]
    return Claim("style", ("answer",), value, not tone.adds, tone.changes)


_NEW = r"(?:the |our |my |using |old |all )*[\"'“`]?"
_REPLACED = (
    re.compile(
        r"\b(?:instead of|rather than|in place of|no longer (?:use|using|on|need)|stop using|"
        r"(?:switch|switched|switching|move|moved|moving|migrate|migrated|migrating|change|changed|"
        rf"went) (?:away )?from)\s+{_NEW}(?P<name>[\w@./+#-]{{2,60}})",
        re.I,
    ),
    re.compile(
        r"\b(?:replace|replaced|replaces|replacing|rename|renamed|renaming|swap|swapped|supersede|"
        rf"supersedes)\s+{_NEW}(?P<name>[\w@./+#-]{{2,60}})[\"'”`]? "
        r"(?:with|by|to|for|as|in favou?r)\b",
        re.I,
    ),
    re.compile(
        r"\b(?i:drop|dropped|dropping|ditch|abandon|abandoned|retire|retired|deprecate|deprecated)\s+"
        rf"{_NEW}(?P<name>[A-Z@][\w@./+#-]{{1,60}}|\w+[-_./\d][\w@./+#-]{{0,60}})"
    ),
    re.compile(
        r"(?P<name>[A-Za-z@][\w@./+#-]{1,60}) (?:is|are|was|were|has been|have been) (?:now |"
        r"no longer |)(?:retired|obsolete|deprecated|superseded|dropped|abandoned|replaced|gone|"
        r"(?<=no longer )(?:valid|used|in use|needed))\b",
        re.I,
    ),
)
_SIGNS = (
    "instead", "rather", "in place", "no longer", "stop using", "from", "replac", "renam", "swap",
    "drop", "ditch", "abandon", "retire", "deprecat", "supersede", "obsolete", "gone",
)  # fmt: skip
"""One of these stands wherever those expressions find something; a quick first look."""


def replaced(text: str) -> list[str]:
    """Names that a clause says are replaced by something else, compared as `same` has them."""
    low = text.lower()
    if not any(sign in low for sign in _SIGNS) or UNSURE.search(low):
        return []
    out: list[str] = []
    for pattern in _REPLACED:
        for match in pattern.finditer(text):
            name = same(match["name"])
            if not name.isdecimal() and name not in STOP and name not in GENERIC:
                out.append(name)
    return out


_CHOICE = re.compile(
    r"\b(?:use|using|go(?:ing)? with|chose|choose|chosen|pick(?:ed)?|adopt(?:ed)?|switch(?:ed|"
    r"ing)? to|"
    r"mov(?:e|ed|ing) to|migrat(?:e|ed|ing) to|settled on|opt(?:ed)? for|decided on)\s+"
    r"(?:the |an? |to |use )?[\"'“`]?(?P<name>[A-Za-z@][\w@./+#-]{1,60})",
    re.I,
)


def choice(text: str) -> str | None:
    """The name that a decision chooses: "we will use X", "going with X"."""
    match = _CHOICE.search(text)
    if match is None:
        return None
    name = match["name"].rstrip(".")
    return None if name.lower() in STOP or name.lower() in GENERIC else name
