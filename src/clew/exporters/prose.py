"""The Markdown of a message as HTML, of which every tag and attribute is written here.

markdown-it parses; nothing of its own rendering is used. Raw HTML is text, an image is a link to
it, and a link leads to the web, a mail address or a place of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from clew.exporters.text import shown

LONGEST = 200_000
"""Characters of a text that is parsed; a longer one stands as it is, with its lines."""
_LONGEST_PIECE = 8_000
"""Of a paragraph or table cell. What is inside a line is parsed in more than linear time."""
_DEEPEST = 40
"""Quotes and lists inside each other; markdown-it leaves out what lies deeper."""
_LINK = re.compile(r"(?:https?://|mailto:|#)[^\s<>\"'`\\\x00-\x20\x7f-\x9f]*", re.IGNORECASE)
_URL = re.compile(
    r"https?://[^\s<>\"'`\\\x00-\x20\x7f-\x9f]*[^\s<>\"'`\\\x00-\x20\x7f-\x9f.,;:!?)\]}]"
)
_MARKUP = re.compile(r"[\\`*_\[\]<>&~|]|^[ \t]*(?:[-+#=]|\d{1,9}[.)])|^(?: {4}| {0,3}\t)", re.M)
"""What a text holds that means anything in Markdown, or might."""
_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")
_TAGS = {
    "paragraph": "p", "blockquote": "blockquote", "bullet_list": "ul", "ordered_list": "ol",
    "list_item": "li", "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr",
    "th": "th", "td": "td", "strong": "strong", "em": "em", "s": "s",
}  # fmt: skip
_ALIGNED = {"text-align:right": "right", "text-align:center": "center"}


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return _leads(url)


def _leads(url: str) -> bool:
    """Whether a link may be followed."""
    return _LINK.fullmatch(url) is not None


def _parse_lines(state: StateCore) -> None:
    """As its own rule does, but for pieces that are too long."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        if len(token.content) > _LONGEST_PIECE:
            for row in token.content.split("\n"):
                token.children += (Token("softbreak", "br", 0),) if token.children else ()
                token.children.append(Token("text", "", 0, content=row))
        else:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _parser() -> MarkdownIt:
    found = _Parser("commonmark", {"html": False, "linkify": False, "maxNesting": _DEEPEST})
    found.enable(["table", "strikethrough"])
    # What defines a link for elsewhere is not shown by Markdown; here nothing may be missing.
    found.disable("reference")
    found.core.ruler.at("inline", _parse_lines)
    return found


_PARSER = _parser()


def rendered(text: str) -> str:
    """The text as blocks of HTML, each with its own direction of writing."""
    text = shown(text)
    if not text.strip():
        return ""
    if len(text) > LONGEST:
        return plain(text)
    if _MARKUP.search(text) is None:  # most of what people say, at a tenth of the cost
        pieces = _PARAGRAPHS.split(text.strip())
        return "".join(f'<p dir="auto">{_lines(piece)}</p>\n' for piece in pieces)
    tokens = _PARSER.parse(text)
    if any(token.level >= _DEEPEST - 2 for token in tokens):
        return plain(text)
    return "".join(_blocks(tokens))


def plain(text: str) -> str:
    """The text as it is, with its lines."""
    return f'<div class="text" dir="auto">{escape(shown(text))}</div>'


def code(text: str) -> str:
    """A block of code, or of what a tool returned."""
    return f'<pre dir="auto"><code>{escape(shown(text))}</code></pre>'


def anchor(url: str, label: str) -> str:
    """A link that tells the other side nothing. `label` is HTML already."""
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{label}</a>'


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        match token.type:
            case "inline":
                yield "".join(_Line(token.children or ()).pieces())
            case "fence" | "code_block":
                yield code(token.content.removesuffix("\n"))
            case "hr":
                yield "<hr>\n"
            case _ if not token.hidden:
                yield _tag(token)
            case _:
                pass


def _tag(token: Token) -> str:
    """The begin or end of a block, or of words. KeyError for what no rule of ours makes."""
    kind = token.type.removesuffix("_open").removesuffix("_close")
    name = f"h{min(6, int(token.tag[1:]) + 2)}" if kind == "heading" else _TAGS[kind]
    if token.nesting < 0:
        return f"</{name}>\n" if token.block else f"</{name}>"
    fields = ""
    if kind == "ordered_list" and (start := token.attrGet("start")) is not None:
        fields += f' start="{int(start)}"'
    if (side := _ALIGNED.get(str(token.attrGet("style")))) is not None:
        fields += f' class="{side}"'
    if token.block and (token.level == 0 or kind in ("th", "td")):
        fields += ' dir="auto"'
    return f"<{name}{fields}>"


def _lines(text: str) -> str:
    return "<br>\n".join(_linked(row.strip()) for row in text.split("\n"))


def _linked(text: str) -> str:
    """Text with its addresses of the web as links."""
    pieces: list[str] = []
    at = 0
    for found in _URL.finditer(text):
        pieces += (escape(text[at : found.start()]), anchor(found[0], escape(found[0])))
        at = found.end()
    pieces.append(escape(text[at:]))
    return "".join(pieces)


class _Line:
    """What stands inside a block."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._linked = tokens, False

    def pieces(self) -> Iterator[str]:
        for token in self._tokens:
            yield self._piece(token)

    def _piece(self, token: Token) -> str:
        match token.type:
            case "text" | "text_special":
                # What was written as an entity comes to light only here.
                return self._say(shown(token.content))
            case "code_inline":
                return f"<code>{escape(shown(token.content))}</code>"
            case "softbreak" | "hardbreak":
                return "<br>\n"
            case "link_open":
                # One that leads nowhere, [x](), is parsed as a link, too.
                self._linked = _leads(url := str(token.attrGet("href")))
                return anchor(url, "").removesuffix("</a>") if self._linked else ""
            case "link_close":
                end, self._linked = "</a>" if self._linked else "", False
                return end
            case "image":
                return self._image(token)
            case _:
                return _tag(token)

    def _say(self, text: str) -> str:
        return escape(text) if self._linked else _linked(text)

    def _image(self, token: Token) -> str:
        words = " ".join(("image", *_words(token.children or ()).split()))
        label = f"[{escape(shown(words))}]"
        url = str(token.attrGet("src"))
        return anchor(url, label) if _leads(url) and not self._linked else label


def _words(tokens: Sequence[Token]) -> str:
    """The text of what describes an image."""
    return "".join(
        _words(token.children) if token.children else token.content
        for token in tokens
        if token.content or token.children
    )
