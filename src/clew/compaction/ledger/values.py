"""Exact values in a sentence, and what type each is of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SMALL = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million"
).replace(" ", "|")
_WORDS = rf"(?:(?:{_SMALL})(?:[ -](?:and )?(?:{_SMALL})){{0,5}})"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_UNIT = (
    r"(?:milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|ms|"
    r"s|m|h|bytes?|[kmgt]i?b|percent|%|requests?|retries|attempts|replicas?|workers?|threads?|rows?|"
    r"items?|chars|characters?|tokens?|rps|qps|points?|px|times)"
)
_NO_PLACE = (
    "The|This|That|Our|My|Your|Its|Each|Every|Any|Some|No|First|Last|Next|Same|What|Which|Run|Real|"
    "Start|End|Response|Build|Wait|Set|Make|Local|Full|Part|Long|Short|At|In|On|For"
)
"""What stands before "time" and names no place."""
PROGRAMMING = (
    r"Python|JavaScript|TypeScript|Rust|Golang|Go|Kotlin|Swift|Java|Ruby|PHP|C\+\+|C#|Scala|Elixir|"
    r"Haskell|Perl|Bash|SQL|OCaml|Clojure|Zig|Lua|Julia|Dart|F#|R"
)
SPOKEN = (
    r"(?:British |American |Brazilian |Simplified |Traditional |plain )?(?:English|German|French|"
    r"Spanish|Portuguese|Italian|Dutch|Polish|Russian|Ukrainian|Turkish|Arabic|Hebrew|Hindi|"
    r"Chinese|Mandarin|Japanese|Korean|Swedish|Norwegian|Danish|Finnish|Czech|Greek|Latin|"
    r"Vietnamese|Thai|Indonesian|Romanian|Hungarian)"
)
PATTERNS: dict[str, str] = {
    "url": r"(?i:https?|wss?|postgres(?:ql)?|redis|mysql|s3|ssh|amqp)://[^\s\"'<>)\]]{3,200}",
    "mail": r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}",
    "money":
        r"[$€£¥]\s?\d[\d,.]*\d?\s?(?:[kKmM]\b)?|"
        r"\b\d[\d,.]*\s?(?i:k )?(?i:dollars?|euros?|pounds?|usd|eur|gbp|chf)\b|"
        rf"\b(?i:{_WORDS} (?:dollars?|euros?|pounds?))\b",
    "date":
        rf"\b\d{{4}}-\d{{2}}(?:-\d{{2}})?\b|"
        rf"\b(?i:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b|"
        rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?i:{_MONTH})\b(?:,? \d{{4}})?|"
        r"\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b|"
        r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\bQ[1-4](?: \d{4})?\b",
    "zone":
        r"\b(?:UTC|GMT|CES?T|EES?T|WES?T|[PECM][SD]T|IST|JST|BST|AES?T)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|"
        r"\b(?:Africa|America|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc|Zone|US)/[A-Z]\w+|"
        r"\b(?:Pacific|Eastern|Mountain|Central|Atlantic)(?=(?: standard| daylight)?\s+(?i:time))|"
        rf"\b(?!(?:{_NO_PLACE})\b)[A-Z][a-z]+(?= (?:local )?time\b)",
    "region": r"\b(?:af|ap|ca|cn|eu|il|me|sa|us|gcp|europe|asia)-(?:gov-)?[a-z]+-?\d{1,2}[a-z]?\b",
    "progress": r"\b\d+ (?:of|out of) \d+\b|\b\d+/\d+\b",
    "code": r"\b[A-Z][A-Z0-9]{1,12}-\d[\w-]{0,20}\b|\b[a-z]{2,20}-\d[\w-]{0,20}\b",
    "commit": r"\b(?=[0-9a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b|"
        r"(?<=commit )[0-9a-f]{7,40}\b",
    "clock": r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[aApP]\.?[mM]\b)?|\b\d{1,2} ?[aApP][mM]\b",
    "version": r"\bv?\d+\.\d+(?:\.\d+){0,2}(?:-[\w.]+)?\b(?! ?(?:%|seconds?|ms|minutes?|hours?))",
    "path": r"(?<![\w/])[~.]{0,2}/?(?:[\w@.-]{1,80}/){1,12}[\w@.-]{1,80}",
    "host": r"\b[\w-]{1,60}(?:\.[\w-]{1,60}){0,5}\.(?:internal|local|com|io|dev|org|net|test|"
        r"example)\b",
    "quoted": r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”",
    "number": rf"#\d+\b|\b\d[\d,_]*(?:\.\d+)?\s?(?:{_UNIT}\b|%)?|\b(?i:{_WORDS})\s{_UNIT}\b|"
        rf"[#]\w{{3,8}}\b",
    "spoken": rf"\b{SPOKEN}\b",
    "programming": rf"(?<![\w-])(?:{PROGRAMMING})(?![\w+#-])",
    "units": r"\b(?i:metric|imperial|celsius|fahrenheit|SI units|kilomet(?:re|er)s|miles)\b",
    "person": r"\b[A-Z][a-zà-ÿ'’-]+(?: [A-Z][a-zà-ÿ'’-]+){1,2}\b(?![/\w])",
    "name": r"\b[A-Z][A-Za-z]*[A-Z0-9][\w-]*\b",
}  # fmt: skip
_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in PATTERNS.items()))
_START = re.compile(r"(?<![\w./-])(?:([a-z]+)(?=[\s,;!?)]|\.(?!\w)|:(?!//)|$)|[\w$€£¥#`\"“~./@])")
"""Where a value may begin: at any character that begins no plain word. Of plain words only those
of `_PLAIN` begin one; nearly all text is skipped by this."""
_PLAIN = frozenset(
    f"{_SMALL}|jan|january|feb|february|mar|march|apr|april|may|jun|june|jul|july|aug|august|sep|"
    "sept|september|oct|october|nov|november|dec|december|metric|imperial|celsius|fahrenheit|"
    "kilometers|kilometres|miles|plain".split("|")
)
HINT = re.compile(r"[\d$€£/`\"“]|\b[A-Z][a-z]+ [A-Z]|\b(?:hundred|thousand|dollars)\b|\b[A-Z]{2}")
"""What nearly every sentence with a typed value has; a quick first look."""


class Value(NamedTuple):
    type: str
    text: str
    start: int
    end: int


def values(text: str) -> Iterator[Value]:
    """The typed values of a sentence, from left to right, none inside another."""
    end = 0
    for start in _START.finditer(text):
        at = start.start()
        if at < end or (start[1] is not None and start[1] not in _PLAIN):
            continue
        if match := _ANY.match(text, at):
            found = match[0].rstrip(".,:;'’ ")
            end = at + len(found)
            yield Value(match.lastgroup or "", found, at, end)


def same(value: str) -> str:
    """A value as it is compared: without case, quotes and closing marks."""
    return value.strip("`\"“”'.,;: ").lower()
