"""The part of a text that says most of what was asked, word for word."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MOST_PLACES = 2_000


def excerpt(text: str, weights: Mapping[str, float], room: int) -> str:
    """At most about `room` characters of a text around the place where most stems stand together;
    all of it when it is short. `weights`: what each stem counts. Without any, the beginning."""
    text = text.strip()
    if len(text) <= room:
        return text
    first, last = _best(text, weights, room * 3 // 4)
    start = max(0, min(first - (room - (last - first)) // 3, len(text) - room))
    end = min(len(text), start + room)
    start, end = _at_words(text, start, end, first, last)
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _best(text: str, weights: Mapping[str, float], width: int) -> tuple[int, int]:
    """From the first to behind the last word of the best window; the first one among equals."""
    places = _places(text, weights)
    best, score = (0, 0), 0.0
    for number, (start, end, _) in enumerate(places):
        said: dict[str, float] = {}
        for other, behind, name in places[number:]:
            if other > start + width:
                break
            said[name], end = weights[name], behind
        if sum(said.values()) > score:
            best, score = (start, end), sum(said.values())
        if len(said) == len(weights):
            break
    return best


def _places(text: str, weights: Mapping[str, float]) -> list[tuple[int, int, str]]:
    """Where words begin with a stem: (start, end, stem). A final i stands for y, too."""
    if not weights:
        return []
    names = sorted(weights, key=len, reverse=True)
    forms = (re.escape(name[:-1] if name.endswith("i") else name) for name in names)
    found: list[tuple[int, int, str]] = []
    for match in re.finditer(
        rf"(?:{'|'.join(f'({form})' for form in forms)})", text, re.IGNORECASE
    ):
        found.append((match.start(), match.end(), names[(match.lastindex or 1) - 1]))
        if len(found) == _MOST_PLACES:
            break
    return found


def _at_words(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The window, drawn in to where words begin and end, as long as its middle stays whole."""
    if start:
        space = text.find(" ", start, min(first, start + 24))
        start = space + 1 if space >= 0 else start
    if end < len(text):
        space = text.rfind(" ", max(last, end - 24), end)
        end = space if space >= 0 else end
    return start, end
