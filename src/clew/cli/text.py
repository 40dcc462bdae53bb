"""Text on a terminal: nothing in it may act, and it has a width.

Whatever comes from a conversation may hold escape sequences, which would move the cursor, change
the title or worse. They are shown as `less` shows them: ^[ for escape, <9B> for others. So are the
signs that turn the direction of writing, which can make a line say something else than it does;
letters of Hebrew, Arabic and their like are text, and `isolated` on a terminal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

MINTED, SHORT = 26, 8
TAB = 4
CLUSTER = 4
"""Characters for each column that text needs in any script, with accents and joined emoji."""
EMOJI_SIGN = 0xFE0F
"""Makes a wide emoji of the character before it, on some terminals."""
_ALPHABET = frozenset("0123456789abcdefghjkmnpqrstvwxyz")
_DIRECTIONS = frozenset(
    (0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
_VISIBLE_FORMATS = frozenset((*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD))
_RIGHT_TO_LEFT = (
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATE, _END = "\u2068", "\u2069"


def acts(code: int) -> bool:
    """Whether a character does something to a terminal instead of being shown: controls, what
    turns the direction of writing, lone surrogates. Not the line end and the tab."""
    if code < 0xA0:
        return (code < 0x20 and code not in (9, 10)) or code >= 0x7F
    return code in _DIRECTIONS or 0xD800 <= code < 0xE000


class _Shown(dict[int, int | str]):
    """For str.translate: each character that acts, as it is shown. Filled as they come."""

    def __missing__(self, code: int) -> int | str:
        shown: int | str = code
        if acts(code):
            shown = f"<{code:02X}>" if code < 0x100 else f"<U+{code:04X}>"
            if code < 0x20:
                shown = f"^{chr(code + 0x40)}"
        self[code] = shown
        return shown


_SHOWN = _Shown()


def visible(text: str) -> str:
    """Text of several lines, with everything that acts made visible; tabs become spaces."""
    if text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_SHOWN).expandtabs(TAB)


def one_line(text: str) -> str:
    """Text on one line, safe to print."""
    text = " ".join(text.split())
    return text if text.isprintable() else text.translate(_SHOWN)


def glance(text: str, width: int, more: str = "…") -> str:
    """The beginning of a text on one line of at most `width` columns, however long the text is."""
    return fit(one_line(text.lstrip()[: width * CLUSTER + 1]), width, more)


def cells(text: str) -> int:
    """How many columns a terminal needs for a line, at most."""
    return len(text) if text.isascii() else sum(map(cell, text))


def cell(character: str) -> int:
    """Columns of a character. Terminals differ on some (what joins emoji, makes one of a sign, or
    came with a later Unicode); here they have as many as any gives them, so that no line is longer
    than was thought and goes on at the left edge, where only clew writes."""
    code = ord(character)
    if code < 0x300:
        return 1
    if code == EMOJI_SIGN:
        return 1
    if unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 1 if code in _VISIBLE_FORMATS else 0
    wide = unicodedata.east_asian_width(character) in "WF" or 0x1F000 <= code < 0x20000
    return 2 if wide else 1


def fit(text: str, width: int, more: str = "…") -> str:
    """A line cut to a width, with an ellipsis if something is missing. What has no width is bounded
    too: a heap of accents is no line."""
    if len(text) <= width * CLUSTER and cells(text) <= width:
        return text
    used, kept = 0, 0
    for character in text[: width * CLUSTER]:
        used += cell(character)
        if used > width - len(more):
            break
        kept += 1
    return text[:kept].rstrip() + more


def isolated(text: str) -> str:
    """Text for a terminal that turns right-to-left writing: what is in it is ordered by itself, and
    moves nothing that stands beside it on the line. Other text is as it was.

    Only for what is on one line of the screen, and after it was measured: the two signs have no
    width. In text that others wrote they are made visible, so it cannot end its own isolation."""
    if text.isascii() or not _right_to_left().search(text):
        return text
    core = text.strip(" ")
    return text.replace(core, f"{_ISOLATE}{core}{_END}", 1)


@cache
def _right_to_left() -> re.Pattern[str]:
    return re.compile(_RIGHT_TO_LEFT)


def pad(text: str, width: int, right: bool = False) -> str:
    """A line filled up with spaces to a width."""
    space = " " * max(0, width - cells(text))
    return space + text if right else text + space


def short_id(id: str) -> str:
    """The beginning of an id that names its conversation in practice; a foreign one is whole."""
    minted = len(id) == MINTED and _ALPHABET.issuperset(id)
    return id[:SHORT] if minted else one_line(id)


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Short forms that differ from each other."""
    short = {id: short_id(id) for id in ids}
    clashing = len(set(short.values())) < len(short)
    return {id: id for id in short} if clashing else short
