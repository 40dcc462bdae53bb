"""A page as a browser would take it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "dl", "dt", "dd", "bdi",
    "nav", "details", "summary", "ol", "li", "a", "main", "div", "article", "h2", "span", "time",
    "pre", "code", "strong", "b", "img", "footer", "p", "br", "hr", "em", "s", "ul", "blockquote",
    "table", "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "dir", "class", "href", "id", "datetime",
    "rel", "open", "alt", "src", "loading", "start",
}  # fmt: skip
CLASSES = {
    "prompt", "note", "divider", "who", "text", "thinking", "error", "end", "right", "center",
    "user", "assistant", "tool", "system", "developer", "",
}  # fmt: skip
ACTING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HREF = re.compile(r"(https?://|mailto:|#)[^\s<>\"'`\\]*|[\w.%-]+\.html", re.IGNORECASE)


class Page(HTMLParser):
    """Refuses every tag, attribute, class and link that is not of clew's pages."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        assert not ACTING.search(text)
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        given = dict(attrs)
        assert given.keys() <= ATTRIBUTES, given
        assert given.get("class", "") in CLASSES, given
        assert given.get("start") is None or str(given["start"]).isdecimal()
        if tag not in ("meta", "img", "br", "hr"):
            assert tag != "a" or "a" not in self.open
            self.open.append(tag)
        if (id := given.get("id")) is not None:
            self.ids.append(id)
        if (href := given.get("href")) is not None:
            assert _HREF.fullmatch(href), href
            self.links.append(href)
        if (src := given.get("src")) is not None:
            assert re.match(r"data:image/(png|jpeg|gif|webp|avif|bmp);base64,[\w+/=]*$", src)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
