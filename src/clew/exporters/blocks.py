"""The code blocks in a message's text, by the fences of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")


class Code(NamedTuple):
    """A code block: its lines, without the fences."""

    text: str
    language: str


def blocks(text: str) -> Iterator[Code | str]:
    """Code blocks and what stands between them, in order. One that is not closed goes on to the
    end."""
    lines: list[str] = []
    fence, language = "", ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence and found:
            yield "\n".join(lines)
            named = _LANGUAGE.match(found[2])
            fence, language, lines = found[1], named[0] if named else "", []
        elif fence and found and found[1].startswith(fence) and not found[2].strip():
            yield Code("\n".join(lines), language)
            fence, lines = "", []
        else:
            lines.append(line)
    if fence:
        yield Code("\n".join(lines), language)
    else:
        yield "\n".join(lines)
