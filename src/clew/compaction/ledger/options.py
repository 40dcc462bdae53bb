"""Options: a subject in words and its value, whatever it is about: "the session TTL is 900
seconds", "raise the pool size to 16", "cache TTL: 5 minutes"."""

from __future__ import annotations

import re

from clew.compaction.ledger import phrases
from clew.compaction.ledger.claim import Claim, Tone
from clew.compaction.ledger.values import Value
from clew.compaction.ledger.words import DENIES

_LEAD = r"^(?:[\w' ]{0,48}[,:] )?(?:so |and |but |then |therefore )?"
_NP = r"(?P<np>[A-Za-z][\w./' -]{1,60}?)"
_VAL = r"(?P<val>\S.{0,80})"
_DET = r"(?P<det>the |our |my |your |its |this |that )?"
_FROM = r"(?:from [\w.,$€£% -]{1,30} )?"
_TURNED = (
    r"(?:changed|moved|raised|lowered|increased|decreased|reduced|bumped|set|went|go|goes|dropped|"
    r"extended|cut|doubled|switched|updated|upgraded|downgraded|rises|grew|shrank|shrunk|corrected)"
)
_HAS = r"(?:has |have |was |were |is |got |has been |have been )?"
_PATTERNS = (
    re.compile(  # the X is V
        rf"{_LEAD}{_DET}{_NP}(?: (?:should|must|will|has to|needs to|can|shall))?"
        r"(?: now| currently| still| always| only)? "
        r"(?:is|are|be|was|equals|becomes|stays(?: at)?|defaults to|uses)"
        r"(?: now| currently| still| always| going to be| set to| configured (?:to|as)| fixed at|"
        r" capped at| at| limited to|"
        rf" (?:cut|raised|lowered|increased|reduced|extended|changed|moved) to)* {_VAL}",
        re.I,
    ),
    re.compile(  # the X went up to V
        rf"{_LEAD}{_DET}{_NP} {_HAS}(?:should |must |can |will |may )?(?:now )?{_TURNED}"
        rf"(?: up| down| back| out)? {_FROM}to {_VAL}",
        re.I,
    ),
    re.compile(  # the X has been changed, it is V
        rf"{_LEAD}{_DET}{_NP} {_HAS}(?:rotated|changed|updated|replaced|renewed|moved|different|"
        r"regenerated|reset)(?: today| now| yesterday| again)?[,;:.]\s+(?:so |and )?"
        r"(?:it'?s|it is|it is now|now|now it'?s|they are|the new (?:one|value|\w+) is|"
        rf"new (?:one|value):?|use) (?:now )?{_VAL}",
        re.I,
    ),
    re.compile(  # set X to V
        rf"{_LEAD}(?:(?:please|also|now|then|let's|we|we've|i|i've|they|you|to|should|must|will|"
        r"can you|just|actually,?|and|have) ){0,3}"
        r"(?P<verb>set|changed?|bump|bumped|raised?|lower|lowered|increased?|decreased?|reduced?|"
        r"switch|switched|moved?|updated?|pin|pinned|make|made|cap|capped|limit|limited|keep|kept|"
        r"extend|extended|cut|configured?|upgraded?|downgraded?|drop|dropped|use|"
        r"doubled?|halved?|stretch|stretched|shorten|shortened|shrink|bring|brought|dial|turn|relax|"
        r"tighten|adjust|reset|correct|trim|put|lift) "
        rf"{_DET}{_NP}(?: back| up| down)? {_FROM}(?:to|at|=|as|below|under|above|over) {_VAL}",
        re.I,
    ),
    re.compile(  # use V as the X
        rf"{_LEAD}(?:please |now )?(?:use|take) (?P<val>\S+(?: \S+)?) (?:as|for) {_DET}{_NP}"
        r"(?: now| instead| again)?[.!]?$",
        re.I,
    ),
    re.compile(rf"^{_DET}{_NP}(?:: | ?= ?){_VAL}", re.I),  # X: V
)
_MAKE = re.compile(
    r"^(?:[\w' ]{0,48}[,:] )?(?:(?:please|now|then|so|and|but|just|also|let'?s|(?:can|could) you|"
    r"i want you to|you can) ){0,3}(?:make|makes|made) (?:the|our|my|your|this|its) (?=\w)",
    re.I,
)
_MADE_END = re.compile(r"(?:,? (?:now|please|instead|again|from now on|for now|then|today))*[.!?]*")
_SETS_WORDS = frozenset(
    [
        "set",
        "change",
        "changed",
        "bump",
        "bumped",
        "raise",
        "raised",
        "lower",
        "lowered",
        "increase",
        "increased",
        "decrease",
        "decreased",
        "reduce",
        "reduced",
        "switch",
        "switched",
        "move",
        "moved",
        "update",
        "updated",
        "pin",
        "pinned",
        "cap",
        "capped",
        "limit",
        "limited",
        "extend",
        "extended",
        "cut",
        "configure",
        "configured",
        "upgrade",
        "upgraded",
        "downgrade",
        "downgraded",
        "drop",
        "dropped",
    ]
)
"""Verbs whose value may be a plain word: "set the theme to dark"."""
_COLON = len(_PATTERNS) - 1
_AS = _COLON - 1
_VALUE_END = re.compile(
    r"[.;!?]?$|[.;!?]\s|,\s|\s\(|\s(?:because|since|so that|so|and|but|which|that|when|while|for|"
    r"in|on|from|"
    r"instead|rather|until|before|after|as|if|unless|not|per|now)\b"
)
_WEAK_WORDS = """
problem issue question answer thing reason idea goal point file code test error result output
function it that this what which he she they there one something class method approach way next
step difference fix solution bug cause plan key line part case example only first second
last best rest other following same here task message text list item type todo fixme
"""
_WEAK = frozenset(_WEAK_WORDS.split())
"""Subjects that are about something else each time."""
_BARE = re.compile(r"[\w./#$€£@:+-]+(?: [\w./#%+-]+){0,3}")
_NOT_VALUES = re.compile(
    r"(?:a|an|the|another|not|no|very|too|also|already|going|being|to|in|on|at|there|here|now|just|only|"
    r"still|good|bad|ok|okay|fine|done|"
    r"true that|broken|correct|wrong|right|sure|clear|ready|important|necessary|possible|able|"
    r"supposed|required|needed|used|called|"
    r"\w+ing|\w+ed|\w+ly|it|that|this|what|how|why|because|more|less|great|nice|better|worse|"
    r"missing|fixed|likely)\b",
    re.I,
)


def option(text: str, found: list[Value], tone: Tone) -> Claim | None:
    """The claim of a clause about some option, or None."""
    text = text[:200]
    if claim := _made(text, found, tone):
        return claim
    for at, pattern in enumerate(_PATTERNS):
        match = pattern.match(text)
        claim = _read(match, at, found, tone) if match else None
        if claim is not None:
            return claim
    return None


def _made(text: str, found: list[Value], tone: Tone) -> Claim | None:
    """The claim of "make the page size 50": a subject, and then a typed value that ends it."""
    match = _MAKE.match(text)
    value = found[-1] if match and found else None
    if match is None or value is None or not _MADE_END.fullmatch(text, value.end):
        return None
    words = phrases.words_of(text[match.end() : value.start])
    scope = phrases.scope_of(phrases.tail(words))
    if not scope or len(scope) > 5 or (len(scope) == 1 and scope[0] in _WEAK):
        return None
    return Claim("option", scope, value.text, not tone.adds, tone.changes)


def _read(match: re.Match[str], at: int, found: list[Value], tone: Tone) -> Claim | None:
    words = phrases.words_of(match["np"])
    scope = phrases.scope_of(phrases.tail(words))
    if not scope or (len(scope) == 1 and scope[0] in _WEAK) or len(scope) > 5:
        return None
    raw = match["val"]
    end = _VALUE_END.search(raw)
    short = raw[: end.start()].rstrip() if end else raw
    start = match.start("val")
    typed = next((v for v in found if start <= v.start < start + len(short) + 1), None)
    if DENIES.search(match.string[: typed.start if typed else start]):
        return None
    plain = (
        len(short) <= 40
        and _BARE.fullmatch(short)
        and (short.isupper() or not _NOT_VALUES.match(short))
    )
    verb = match.groupdict().get("verb")
    if at == _AS and typed is None:
        return None
    if at == _COLON and (
        len(words) > 4 or not plain or not (tone.changes or raw.rstrip(". ") == short)
    ):
        return None
    if typed is None and not (plain and (match["det"] or verb or tone.changes)):
        return None
    if typed is None and verb is not None and verb.lower() not in _SETS_WORDS:
        return None
    value = short if plain else typed.text if typed else short
    return Claim("option", scope, value, not tone.adds, tone.changes or at in (1, 2))
