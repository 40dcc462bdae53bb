"""The page that lists the pages of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from clew.domain.conversations import ConversationInfo
from clew.exporters.html import END, begin, beside
from clew.exporters.text import minute, one_line
from clew.exporters.transcript import kind_of

NAME = "index.html"


class Page(NamedTuple):
    """A conversation, and the name of its page."""

    info: ConversationInfo
    name: str


def text(title: str, pages: Iterable[Page]) -> Iterator[str]:
    """The page, piece by piece, the conversation that was active last first."""
    label = escape(one_line(title, 200))
    yield begin(title)
    yield f'<main>\n<h1 dir="auto">{label}</h1>\n<table>\n<thead><tr><th>Title</th><th>Begun</th>'
    yield "<th>Last message</th><th>Messages</th></tr></thead>\n<tbody>\n"
    for page in sorted(pages, key=lambda page: page.info.active_at, reverse=True):
        yield _row(page)
    yield f"</tbody>\n</table>\n</main>\n{END}"


def _row(page: Page) -> str:
    info = page.info
    title = escape(one_line(info.title or info.preview or "(untitled)", 200))
    kind = "" if info.kind == "root" else f" ({kind_of(info)})"
    link = beside(page.name, f"<bdi>{title}</bdi>")
    return (
        f"<tr><td>{link}{kind}</td><td>{minute(info.created_at)}</td>"
        f'<td>{minute(info.active_at)}</td><td class="right">{info.message_count:,}</td></tr>\n'
    )
