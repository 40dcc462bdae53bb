"""Dimensions: kinds of things that have one value at a time for each subject, such as a deadline, a
port or the person on call, with the words that name them."""

from __future__ import annotations

import re
from typing import NamedTuple

from clew.compaction.ledger import phrases, roles
from clew.compaction.ledger.claim import Claim, Tone
from clew.compaction.ledger.values import Value
from clew.compaction.ledger.words import DENIES, VERBS


class Dimension(NamedTuple):
    """`types`: types of value it takes, best first. `noun`: the words that name it. `thing`: words
    that name it and say which one, such as "launch" of a date. `verb`: what says it without
    naming it. `firm`: without one of these it is only mentioned. `progress`: each
    later statement is a change. `bag`: the scope is all words of the clause, for who has a duty.
    `near`: the scope may be the noun phrase before the value or the subject; else it is only what
    stands at the noun. `drop`: words that are no scope of this dimension.
    """

    name: str
    types: tuple[str, ...]
    noun: str
    thing: str = r"(?!)"
    verb: str = r"(?!)"
    firm: str = ""
    progress: bool = False
    bag: bool = False
    near: bool = True
    drop: str = r"(?!)"


_D = Dimension
_DIMENSIONS = (
    _D("next step", ("rest",), progress=True,
       noun=r"next (?:step|up|task|action)|(?:step|task) after (?:this|that)"),
    _D("current task", ("rest",), progress=True,
       noun=r"current (?:task|focus|goal|objective)|working on now"),
    _D("progress", ("progress",), progress=True,
       noun=r"phase|progress", thing=r"stage|milestone|step|part|sprint"),
    _D("money", ("money",),
       noun=r"budgets?|spend(?:ing)?|costs|expenses?|cap(?:ped)?|ceiling|limit(?:ed)?|allowance"),
    _D("timezone", ("zone",), near=False,
       noun=r"time ?zones?|times?|clocks?|timestamps?|hours"),
    _D("approver", ("person",), bag=True,
       noun=r"approv\w+|authori[sz]e[sd]?|decides",
       thing=r"sign(?:s|ed)?[ -]?off|review(?:s|ed|er)?"),
    _D("owner", ("person",), bag=True,
       noun=r"own(?:s|er|ers|ed)?|on-call|pager|duty|shift|belongs?|handl\w+|leads|leading|led|"
            r"responsible|in charge|takes? over|took over|escalations?|runs",
       thing=r"lead|maintain\w*|contact|assigne\w+|manag\w+"),
    _D("branch", ("path", "code", "quoted"),
       noun=r"branch(?:es)?", verb=r"rebased? onto|check(?:ed|ing)? out",
       firm=r"working|current|active|switch\w*|mov\w+|now|rebas\w+|develop\w+|park\w+|on branch|"
            r"use|base",
       drop="working|active|development|main|default|base|work"),
    _D("commit", ("commit",),
       noun=r"commit|revision|sha", verb=r"branched (?:from|off)|based on",
       firm=r"base\w*|branched|pinned?|head|current", drop="branch|base|work"),
    _D("url", ("url", "host"),
       noun=r"urls?|address|host(?:name)?|link",
       thing=r"repo(?:sitory)?|docs|endpoint|server|api|dashboard|site|wiki|registry|gateway|"
             r"webhook",
       verb=r"(?:lives?|found|available|hosted|reachable|is|runs?|sits?|stands?|answers?|listens?|"
            r"resides?) at|moved to", drop="base"),
    _D("region", ("region",),
       noun=r"regions?|hosted|stored|located|runs?|running|data ?cent(?:er|re)|zone|deployed|"
            r"lives?",
       verb=r"(?:is|are|sits?|now) in"),
    _D("code", ("code", "quoted", "number"),
       noun=r"codes?", thing=r"passcodes?|pass(?:word|phrase)s?|pins?|secrets?", drop="rotation"),
    _D("port", ("number",), noun=r"ports?"),
    _D("date", ("date",),
       noun=r"deadlines?|dates?|timing|schedule[ds]?|due|lands?|land|day|planned|at",
       thing=r"launch\w*|ship\w*|releas\w+|freez\w+|report|review|meeting|demo|cut-?over|cutoff|"
             r"migration|go[- ]live|standup|kick-?off|sprint|starts?|ends?|begins?|beta",
       drop="target|final"),
    _D("time", ("clock",),
       noun=r"runs?|scheduled|daily|at|time|due",
       thing=r"starts?|begins?|ends?|opens?|closes?|meeting|standup|sync|call|backup|job"),
    _D("language", ("spoken",),
       noun=r"repl(?:y|ies)|answers?|respon\w+|explain|everything|write|language|speak|talk",
       thing=r"comments?|docs?|documentation|messages?|names"),
    _D("code language", ("programming",),
       noun=r"(?:examples?|snippets?|samples?)|language", drop="code"),
    _D("units", ("units",), near=False, drop=".*",
       noun=r"units?|measure\w*|use|stick|answers?|repl(?:y|ies)|show|report|values|prefers?|"
            r"wants?|give|temperatures?|distances?"),
)  # fmt: skip
_DENIED = frozenset(("money", "approver", "code", "date", "next step", "current task", "progress"))
"""Dimensions that are also claimed by what forbids: a limit by "never let spending pass $500"."""
_KINDS_OF_UNITS = {"celsius": "temperature", "fahrenheit": "temperature", "miles": "distance",
                   "kilometers": "distance", "kilometres": "distance"}  # fmt: skip


class _Matcher(NamedTuple):
    dimension: Dimension
    noun: re.Pattern[str]
    plain: re.Pattern[str]
    verb: re.Pattern[str]
    firm: re.Pattern[str] | None
    drop: re.Pattern[str]


def _matcher(d: Dimension) -> _Matcher:
    firm = re.compile(rf"\b(?:{d.firm})\b", re.I) if d.firm else None
    return _Matcher(
        d, re.compile(rf"\b(?:{d.noun}|{d.thing})\b", re.I), re.compile(d.noun, re.I),
        re.compile(rf"\b(?:{d.verb})\b", re.I), firm, re.compile(d.drop),
    )  # fmt: skip


_MATCHERS = [_matcher(d) for d in _DIMENSIONS]
_FREE = [at for at, d in enumerate(_DIMENSIONS) if d.types == ("rest",)]
_BY_TYPE = {
    kind: [at for at, d in enumerate(_DIMENSIONS) if kind in d.types]
    for kind in {kind for d in _DIMENSIONS for kind in d.types}
}
_REST = re.compile(r"(?: (?:is|are|will be|now)(?: now| to)?|:)\s+(\S.{3,120})")
_OWNING = re.compile(
    r"(?:approv\w*|own\w*|belong\w*|handl\w+|leads|leading|led|responsible|charge|duty|"
    r"escalation|first|before|"
    r"must|need\w*|merge[sd]?|sign\w*|decides|person|takes?|took|"
    r"rotation|explicit|internal|current|temporarily)",
    re.I,
)
_BETWEEN = re.compile(
    r"[\s:=#]*(?:(?:is|now|was|to|at|be|should|will|must|has|been|changed|moved|number|"
    r"set)[\s:=#]*){0,5}"
)
_BECOMES = re.compile(r"\b(?:to|now|is|be|becomes)(?: the)?\s+$")
_BREAK = re.compile(r"[;(]|,\s(?:and|but|so|then)\s|(?<=\w): (?=\w+ \w+ \w+)")
_PREPOSITIONS = re.compile(
    r"(?:\b(?:in|on|at|to|by|with|for|from|as|is|are|of|the|port|region|now)\s*)+$"
)


def claims_of(text: str, by_type: dict[str, list[Value]], tone: Tone) -> list[Claim]:
    """The claims of all dimensions for which a clause has a value and a word."""
    out: list[Claim] = []
    for at in sorted({at for kind in by_type for at in _BY_TYPE.get(kind, ())} | set(_FREE)):
        claim = _claim(_MATCHERS[at], text, by_type, tone)
        if claim and all(claim.value != c.value and claim.dimension != c.dimension for c in out):
            out.append(claim)
    return out


def _claim(m: _Matcher, text: str, by_type: dict[str, list[Value]], tone: Tone) -> Claim | None:
    d = m.dimension
    named = m.noun.search(text)
    if named is None and m.verb.search(text) is None:
        return None
    if d.types == ("rest",):
        rest = _REST.match(text, named.end()) if named else None
        return Claim(d.name, (), rest[1].rstrip(". "), True, True) if rest else None
    value = next((v for kind in d.types if (v := _pick(by_type.get(kind, []), text, named))), None)
    if value is None or (d.name not in _DENIED and DENIES.search(text[: value.start])):
        return None
    scope = _bag(text, value) if d.bag else _scope(m, text, value)
    if d.name == "code" and not scope:
        return None
    asserts = m.firm is None or tone.changes or m.firm.search(text) is not None
    if d.bag and " " not in value.text:  # several people may have one duty, unless it changes hands
        asserts = tone.changes
    if d.bag and roles.also(text, value):
        return Claim(d.name, scope, value.text, False, False)
    return Claim(d.name, scope, value.text, asserts and not tone.adds, tone.changes or d.progress)


def _pick(found: list[Value], text: str, named: re.Match[str] | None) -> Value | None:
    """The value that is meant, of those of one type: a plain number only next to the noun ("port
    8080", "port is now 8080"); of several what it becomes, not what it was."""
    if found and found[0].type == "number":
        end = named.end() if named else len(text)
        near = (v for v in found if v.start >= end and _BETWEEN.fullmatch(text, end, v.start))
        return next(near, None)
    if len(found) > 1:
        found = [v for v in found if _BECOMES.search(text[: v.start][-12:])] or found
    return found[0] if found else None


def _scope(m: _Matcher, text: str, value: Value) -> tuple[str, ...]:
    """Which one is meant: at the noun; else before the value; else the subject of the clause."""
    masked = f"{text[: value.start]} {phrases.MASK} {text[value.end :]}"
    scope = _kept(m, _around(m, masked))
    if m.dimension.name == "units":
        kind = _KINDS_OF_UNITS.get(value.text.lower(), "")
        return (kind,) if kind else ()
    if scope or not m.dimension.near:
        return scope
    head = _PREPOSITIONS.sub("", text[: value.start][-90:].rstrip() + " ").rstrip()
    return _kept(m, phrases.before(head)) or _kept(m, phrases.subject(masked))


def _around(m: _Matcher, masked: str) -> list[str]:
    words: list[str] = []
    for match in m.noun.finditer(masked):
        words += phrases.before(masked[: match.start()].removesuffix("-"))
        if not m.plain.fullmatch(match[0]):
            words.append(match[0])
        words += phrases.after(masked[match.end() :])
    return words


def _kept(m: _Matcher, words: list[str]) -> tuple[str, ...]:
    scope = phrases.scope_of(word for word in words if not m.plain.fullmatch(word))
    return tuple(w for w in scope if not m.drop.fullmatch(w) and not m.plain.fullmatch(w))


def _bag(text: str, value: Value) -> tuple[str, ...]:
    """All words of a clause but its value and what says that somebody has the duty."""
    start = end = 0
    for end in [*(m.start() for m in _BREAK.finditer(text)), len(text)]:
        if end > value.start:
            break
        start = end
    if roles.does(text, value):
        start = value.start
    rest = f"{text[start : value.start]} {text[value.end : max(end, value.end)]}"
    words = phrases.words_of(rest)
    kept = [
        word for at, word in enumerate(words)
        if word[0].isalpha() and word.lower() not in VERBS and not _OWNING.fullmatch(word)
        and (at == 0 or not word[0].isupper() or word.isupper())
    ]  # fmt: skip
    return phrases.scope_of(kept)[:4]
