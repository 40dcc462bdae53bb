"""From text to the words of the search index. Pure functions, one rule for both sides.

`segment` turns a text into its words in order, separated by single spaces. The index stores this
string, a scan looks for words in the very same string: what one finds, the other finds. No rule
is left to the tokenizer of the database, whose tables know an older Unicode: it splits at spaces.

* Case, Latin and Greek diacritics, full-width and half-width forms make no difference.
* A run of a script written without spaces (Chinese, Japanese, Korean; also Thai, Lao, Burmese,
  Khmer) becomes its overlapping pairs and its last character: 服务端 -> 服务 务端 端. A query
  of two or more characters is then a phrase of pairs, one character is a prefix: both are exactly
  the substring search. Latin glued to such a run is a word of its own.
* Everything else that is neither letter nor digit separates words, so the parts of snake_case,
  kebab-case and dotted.paths are words, and the whole is a phrase.
* Parts of camelCase and of letters with digits follow after the text as extra groups of words,
  each behind a GAP, which no query can hold: phrases never run across groups.

Regular expressions cost about 10 ns a character, bytes.translate and array slices a tenth of
that; hence the detours below. A 600-character text takes 10-20 us.
"""

from __future__ import annotations

import re
import sys
from array import array
from functools import lru_cache
from unicodedata import is_normalized, normalize

GAP = "\ue000"
"""Stands between groups of words. Private use characters are never part of a word."""

WORD_LIMIT = 64
"""A longer word (base64, a key) is known by its first characters only."""

SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u2e80-\u2fdf\u3005-\u3007"
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7fb\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
"""Scripts written without spaces: Thai and Lao, Burmese, Khmer, Jamo and Hangul, radicals, Kana,
Bopomofo, Han with its extensions and compatibility forms."""

_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
# Vowel signs and other marks are no word characters to Python, but parts of words in the scripts
# that use them. The Indic blocks share one layout, inherited from ISCII.
_INDIC = "".join(
    f"{chr(b)}-{chr(b + 3)}{chr(b + 0x3A)}-{chr(b + 0x4F)}{chr(b + 0x51)}-{chr(b + 0x57)}"
    f"{chr(b + 0x62)}-{chr(b + 0x63)}"
    for b in range(0x900, 0xE00, 0x80)
)
_MARKS = (
    "\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    f"\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed{_INDIC}"
)

_RUN = re.compile(f"[{SPACELESS}]+")
_BREAK = re.compile(rf"[^\x00-\x7f\w{SPACELESS}{_MARKS}]+")
_ONE_EMOJI = re.compile(f"([{_EMOJI}])")
_PIECE = re.compile(rf"([{SPACELESS}]+)|([{_EMOJI}])|(?:[^\W_{SPACELESS}]|[{_MARKS}])+")

# Forms that differ in width or shape only. Not all of NFKC: "Clew™" must not become "clewtm".
_FORM = (
    "\u2e80-\u2fdf\u3130-\u318f\u3300-\u33ff\uf900-\ufaff\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a"
    "\uff41-\uff5a\uff65-\uffdc\U0001d400-\U0001d7ff\U0002f800-\U0002fa1f"
)
_FORMS = re.compile(f"[{_FORM}]+")
_ACCENTED = re.compile("[\u00aa\u00b5\u00ba\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_VARIANT = re.compile(f"[\u00aa\u00b5\u00ba\u00c0-\u024f\u0300-\u03ff\u1e00-\u1fff{_FORM}]")
_ASCII = bytes(range(128))
_BLANK_ASCII = bytes(c if c > 127 or chr(c).isalnum() else 32 for c in range(256))

_HUMP = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_HEX = re.compile("(?=.*[0-9])(?:[0-9a-f]{7,}|[0-9A-F]{7,})")
_LONGEST_IDENTIFIER = 48

_UTF32 = f"utf-32-{sys.byteorder[0]}e"
_BLANK = array("I", [32])
_END = array("I", [10])


def _form(match: re.Match[str]) -> str:
    return normalize("NFKC", match[0])


def _unaccented(match: re.Match[str]) -> str:
    return _ACCENTS.sub("", normalize("NFD", match[0]))


def _not_ascii(text: str) -> str:
    """The characters beyond ASCII: few in most texts, so that searching them is cheap."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode(
        "utf-8", "surrogatepass"
    )  # fmt: skip


def bare(text: str) -> str:
    """The text without differences of width, composition and diacritics; case is kept."""
    if text.isascii():
        return text
    if not is_normalized("NFC", text):
        text = normalize("NFC", text)
    rest = _not_ascii(text)
    if _VARIANT.search(rest) is None:
        return text
    if _FORMS.search(rest):
        text = normalize("NFC", _FORMS.sub(_form, text))
    if _ACCENTED.search(rest):
        text = _ACCENTED.sub(_unaccented, text)
    return _ACCENTS.sub("", text) if _ACCENTS.search(rest) else text


def fold(text: str) -> str:
    """The text as it is compared: `bare` and without case."""
    return text.lower() if text.isascii() else bare(text).casefold()


def _paired(text: str) -> str:
    """The text with each run replaced by its pairs and last character, between spaces.

    All runs at once, as an array of code points: each one is followed by its successor and a
    space. Runs are kept apart by line ends, which come out as pieces of their own.
    """
    runs = _RUN.findall(text)
    if not runs:
        return text
    points = array("I", "\n".join(runs).encode(_UTF32))
    woven = _BLANK * (3 * len(points))
    woven[0::3] = points
    woven[1::3] = points[1:] + _END
    found = woven.tobytes().decode(_UTF32).split("\n")[::2]
    others = _RUN.split(text)
    out = [others[0], found[0], others[1]]
    for pairs, other in zip(found[1:], others[2:], strict=False):
        # A line end was paired with the first character of the run behind it: "x " is left of it.
        out += (pairs[2:], other)
    return " ".join(out)


def _broken(match: re.Match[str]) -> str:
    return f" {' '.join(_ONE_EMOJI.findall(match[0]))} "


def _split(text: str) -> list[str]:
    """The words of a bare text, case kept, in order."""
    blanked = text.encode("utf-8", "surrogatepass").translate(_BLANK_ASCII)
    if text.isascii():
        words = blanked.decode("ascii").split()
    else:
        known = _BREAK.sub(_broken, blanked.decode("utf-8", "surrogatepass"))
        words = _paired(known).split()
    if words and len(max(words, key=len)) > WORD_LIMIT:
        return [word[:WORD_LIMIT] for word in words]
    return words


@lru_cache(maxsize=4096)
def parts(word: str) -> tuple[str, ...]:
    """The parts of an identifier, folded: getHTTPResponse -> get http response. () if it is one.

    Hashes and random ids have none: two characters a part on average is the least that reads like
    words.
    """
    if not word.isascii() or len(word) > _LONGEST_IDENTIFIER or _HEX.fullmatch(word):
        return ()
    found: list[str] = _HUMP.findall(word)
    if len(found) < 2 or len(word) < 2 * len(found):
        return ()
    return tuple(part.lower() for part in found)


def segment(text: str) -> str:
    """All words of a text, separated by single spaces: what is indexed and what is scanned.

    Any text is accepted; the result holds no NUL and no surrogate.
    """
    words = _split(bare(text))
    groups = [" ".join(words).casefold()]
    for word in dict.fromkeys(words):
        # Nearly every word ends at one of these tests, made in the order of their success.
        if (word.isalpha() and (word.islower() or word.istitle())) or not word.isascii():
            continue
        if found := parts(word):
            groups.append(" ".join(found))
    return f" {GAP} ".join(groups)


def pieces(text: str) -> list[tuple[str, bool]]:
    """The runs and words of a bare text with their case; True for a run without spaces.

    For query texts, where the words of a run depend on what follows it.
    """
    found: list[tuple[str, bool]] = []
    for match in _PIECE.finditer(text):
        run = match[1] is not None
        found.append((match[0] if run else match[0][:WORD_LIMIT], run))
    return found


def pairs(run: str) -> list[str]:
    """The overlapping pairs of a run, without its last character alone."""
    return [run[i : i + 2] for i in range(len(run) - 1)]


def joins(character: str) -> bool:
    """Whether this character, next to a word, would be part of it."""
    match = _PIECE.match(character)
    return match is not None and match[1] is None and match[2] is None
