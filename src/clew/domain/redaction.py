"""What is taken out of a text before others see it: keys, passwords, homes, on request people.

Functions of a text and rules; what comes out has nothing left that a rule would find, so doing it
again changes nothing. Forms of keys are those by which the configuration knows them
(`config.keylike`). What has no form, and stands nowhere that says what it is, is not found: a rule
cannot know that the name of a dog is a password.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

from msgspec import Struct

from clew.config.keylike import FORMS, may_hold

MARK = "REDACTED"
"""Stands for what was taken out. A plain word: harmless in JSON, a URL, Markdown and HTML."""
HIDDEN = "***"
"""The same in errors."""
SHORTEST = 6
"""Characters of a known secret, or of what is left of one that was cut off. Shorter ones would take
ordinary words with them."""
_ROUNDS = 20
_NAMES = (
    r"(?:password|passwd|passphrase|secret|token|credentials?"
    r"|(?:api|access|private|secret)[_-]?key)"
)
_PASSWORDS = (
    r"(://[^/\s:@]*:)[^\s\"]{1,500}@"
    r"|(\b[\w-]{0,40}(?:password|passwd)=)[^\s&'\"]+"
)
"""Compiled only when needed: that takes a millisecond."""
_NAMED = (
    rf"(?i)(\b[\w-]{{0,40}}{_NAMES}(?P<end>\\{{0,4}}[\"'])?\s{{0,9}}[:=]\s{{0,9}}"
    r"(?P<quote>\\{0,4}[\"']))(?P<value>[^\n]{4,500}?)(?P=quote)"
)
"""A value in quotes behind a name, also in JSON inside JSON, whose quotes are escaped."""
_ASSIGNED = rf"(?i)(\b[\w-]{{0,40}}{_NAMES}=)(?=[^\s&'\"]*\d)[^\s&'\"\\,;(){{}}\[\]]{{6,}}"
_HOMES = (
    r"(?<![\w~.-])(?:/home|/Users)/[^/\s\"'`<>:;,()\[\]{}\\|]+"
    r"|(?<!\w)[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)[^\\/\s\"'`<>:;,()\[\]{}|]+"
)
_PEOPLE = (
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"  # mail
    r"|(?<![\w+.])\+\d[\d ()./-]{6,18}\d(?!\w)"  # +49 ...
    r"|(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])"  # (555) 123-4567
    r"|(?<![\w.-])0\d{2,4}[ /-]\d[\d /-]{4,12}\d(?![\w-])"  # 030/123 456
)
_CUT = (
    r"(?:\b(?:(?:sk|pk|rk)-|gh[pousr]_|github_pat_|glpat-|xai-|gsk_|AIza|hf_|AKIA|ASIA|xox[a-z]-|r8_"
    r"|pplx-|nvapi-|eyJ)[\w.-]*|-----BEGIN [A-Z -]*|://[^/\s:@]*:[^\s@]*"
    r"|(?i:\b(?:bearer|basic) )\S*)…?\Z"
)
"""The beginning of a key at the end of a text that was cut off, such as a title."""


class Rules(Struct, frozen=True, kw_only=True):
    """What is taken out, besides what has the form of a key. Never shows the secrets."""

    secrets: tuple[str, ...] = ()
    """Known ones, wherever they stand."""
    homes: bool = False
    """Home folders become ~, those of any system."""
    home: str | None = None
    """One that does not look like one, such as /root."""
    people: bool = False
    """Addresses of mail, phone numbers, authors."""
    names: tuple[str, ...] = ()
    """User names, as whole words, with `people`."""
    mark: str = MARK

    def __repr__(self) -> str:
        return f"Rules({len(self.secrets)} secrets, homes={self.homes}, people={self.people})"


class Redaction:
    """A function from a text to one without what the rules name."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._known = sorted(set(_spellings(rules.secrets)), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without it. Again: the same."""
        for _ in range(_ROUNDS):  # what stands behind one key may make another of the next sign
            fresh = self._once(text)
            if fresh == text:
                break
            text = fresh
        return text

    def cut(self, text: str) -> str:
        """The same, of a text that was cut off: half a key at its end is one, too."""
        text = self(text)
        if not text.endswith("…"):
            return text
        return self(_of(_CUT).sub(f"{self.rules.mark}…", self._without_beginnings(text)))

    def __repr__(self) -> str:
        return f"Redaction({self.rules!r})"

    def _once(self, text: str) -> str:
        mark = self.rules.mark
        for known in self._known:
            text = text.replace(known, mark)
        text = _keys(text, mark)
        if "=" in text or ":" in text:
            text = _of(_NAMED).sub(lambda m: f"{m[1]}{mark}{m['quote']}", text)
            text = _of(_ASSIGNED).sub(lambda m: f"{m[1]}{mark}", text)
        if self.rules.homes:
            text = self._homeless(text)
        return self._without_people(text) if self.rules.people else text

    def _homeless(self, text: str) -> str:
        home = self.rules.home
        if home and len(home) > 3 and home in text:
            text = re.sub(rf"(?<![\w~.-]){re.escape(home)}(?![\w-]|\.\w)", "~", text)
        return _of(_HOMES).sub("~", text) if "/" in text or "\\" in text else text

    def _without_people(self, text: str) -> str:
        text = _of(_PEOPLE).sub(self.rules.mark, text)
        for name in self.rules.names:
            if len(name) > 2 and name != self.rules.mark:
                text = re.sub(rf"(?i)(?<![^\W_]){re.escape(name)}(?![^\W_])", self.rules.mark, text)
        return text

    def _without_beginnings(self, text: str) -> str:
        """Without the beginning of a known secret at the end of a text that was cut off."""
        plain = text.rstrip("…")
        for known in self._known:
            for size in range(min(len(known), len(plain)), SHORTEST - 1, -1):
                if plain.endswith(known[:size]):
                    return f"{plain[:-size]}{self.rules.mark}…"
        return text


def without_passwords(text: str, mark: str = HIDDEN) -> str:
    """A text in which no URL and no connection string shows its password."""
    if "://" not in text and "=" not in text:
        return text
    return _of(_PASSWORDS, re.IGNORECASE).sub(
        lambda m: f"{m[1]}{mark}@" if m[1] else f"{m[2]}{mark}", text
    )


def _keys(text: str, mark: str) -> str:
    """A text without what has the form of a key, and without passwords."""
    text = without_passwords(text, mark)
    if not may_hold(text):
        return text
    return _of(FORMS).sub(lambda m: f"{m['scheme'] or m['field'] or ''}{mark}", text)


def _spellings(secrets: tuple[str, ...]) -> Iterator[str]:
    """Secrets as they may be written: as they are, in JSON, in JSON inside JSON, in a URL."""
    for secret in secrets:
        if len(secret) >= SHORTEST and secret not in (MARK, HIDDEN):
            once = json.dumps(secret)[1:-1]
            yield from (secret, once, json.dumps(once)[1:-1], quote(secret, safe=""), quote(secret))
            yield json.dumps(secret, ensure_ascii=False)[1:-1]


@cache
def _of(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)
