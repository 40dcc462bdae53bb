"""The Markdown of messages as HTML: good to read, and nothing of it acts."""

from __future__ import annotations

import re

import pytest
from html_page import Page
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from samples import EVIL

from clew.exporters.prose import LONGEST, rendered

PIECES = st.lists(
    st.sampled_from([
        "<", ">", "<b", "<script>", "</p>", "</pre>", "<!--", "<?", "]", "[", "](", "![", "]:", ")",
        "javascript:x", "java\tscript:x", "data:text/html,x", "https://e.com/a_b", "mailto:a@b.c",
        "&#106;", "&#x202e;", "&#27;", "&lt;", "&quot;", "`", "``", "```", "~~~", "\\", "\n",
        "\n\n", "    ", "\t", "> ", "- ", "1. ", "-1. ", "9999999999. ", "# ", "---", "===", "*",
        "**", "_", "~~", "|", "|-|", "|-:|\n", "\n|a|\n|-|\n", "a", "é", "א", " ", "\r", '"', "'",
        "\x1b", "\u202e", "\ud83d", "\0", " onx=y", '" style="', EVIL,
    ]), max_size=24,
).map("".join)  # fmt: skip


@given(PIECES | st.text(max_size=80))
def test_nothing_of_a_text_is_html(text: str) -> None:
    for link in Page(rendered(text)).links:
        assert not link.lower().startswith(("javascript", "data", "file", "vbscript"))


@given(PIECES)
def test_no_word_is_lost(text: str) -> None:
    """Whatever quotes, lists, fences and tables begin in a text, every line of it is there."""
    rows = text.split("\n")
    said = "".join(f"{row} seen{at}\n" for at, row in enumerate(rows))
    words = "".join(Page(rendered(said)).words)
    for at in range(len(rows)):
        assert f"seen{at}" in words or _names_a_language(rows[at]) or "|" in text


def _names_a_language(row: str) -> bool:
    return "```" in row or "~~~" in row


@given(st.text(st.sampled_from("ab .,:;!?()/\n'\"éא"), max_size=60))
def test_what_holds_no_markup_is_rendered_as_markdown_would(text: str) -> None:
    """The short way and the long one are one."""
    plain = MarkdownIt("commonmark", {"breaks": True}).render(text)
    assert _words(rendered(text)) == _words(plain)


def _words(page: str) -> str:
    page = page.replace("<br />", "<br>").replace(' dir="auto"', "").replace("&#x27;", "'")
    return re.sub(r"\n", "", page)


def test_what_people_write_reads_as_such() -> None:
    said = (
        "# Plan\n## Then\n*now* **or** ~~never~~\n> said\n> before\n\n3. three\n   - inner\n     "
        "```sh\n     ls <b>\n     ```\n4. four\n\n| a | b | c |\n|---|--:|:-:|\n| 1 | 2 | 3 |\n\n"
        "[site](https://e.com/x?a=1&b=2 'T') <mailto:a@b.c> [up](#2)\n\n---\n"
    )
    page = rendered(said)
    Page(page)
    for wanted in (
        '<h3 dir="auto">Plan</h3>', '<h4 dir="auto">Then</h4>', "<em>now</em>",
        "<strong>or</strong>", "<s>never</s>", '<blockquote dir="auto"><p>said<br>\nbefore</p>',
        '<ol start="3" dir="auto"><li>three<ul><li>inner',
        '<pre dir="auto"><code>ls &lt;b&gt;</code></pre>', '<th dir="auto">a</th>',
        '<td class="right" dir="auto">2</td>', '<td class="center" dir="auto">3</td>',
        'href="https://e.com/x?a=1&amp;b=2" rel="noopener noreferrer nofollow">site</a>',
        'href="mailto:a@b.c"', 'href="#2"', "<hr>",
    ):  # fmt: skip
        assert wanted in page, wanted


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "JaVaScRiPt:a", "java&#115;cript:a", "&#106;avascript:a", "/x",
     "x.html", "file:///etc/passwd", "vbscript:x", "//e.com/x", "ftp://e.com", "\x01javascript:a",
     "blob:x", "about:blank", "<javascript:a>", "data:text/html,x"],
)  # fmt: skip
def test_links_to_elsewhere_are_text(url: str) -> None:
    for said in (f"[x]({url})", f"![x]({url})", f"<{url}>", f"[x]\n\n[x]: {url}"):
        assert Page(rendered(said)).links == []


@pytest.mark.parametrize("said", ["[seen]()", "![seen]()", "[seen](<>)", "[![seen]()]()"])
def test_a_link_to_nowhere_is_its_text(said: str) -> None:
    found = Page(rendered(said))
    assert found.links == []
    assert "seen" in "".join(found.words)


def test_an_image_is_a_link_and_never_loaded() -> None:
    page = rendered("![a *cat*](https://e.com/cat.png) [![in](https://e.com/i.png)](https://e.com)")
    assert "<img" not in page
    assert Page(page).links == ["https://e.com/cat.png", "https://e.com"]
    assert "[image a cat]</a>" in page
    assert "[image in]</a>" in page


def test_addresses_in_a_text_are_links_but_in_code_and_links_are_not() -> None:
    page = rendered("see https://e.com/a. `https://e.com/b` [https://e.com/c](https://e.com/d)")
    assert Page(page).links == ["https://e.com/a", "https://e.com/d"]
    assert Page(rendered("see https://e.com/a.")).links == ["https://e.com/a"]


def test_definitions_of_links_are_shown() -> None:
    assert "hidden" in rendered("[//]: # (hidden)")
    assert "[a]: " in rendered("*x*\n\n[a]: https://e.com")


@pytest.mark.parametrize("sign", ["> ", "- ", "1. "])
def test_what_lies_too_deep_stands_as_it_is(sign: str) -> None:
    for depth in range(10, 130, 3):
        assert "bottom" in rendered(sign * depth + "bottom")


def test_a_long_paragraph_and_a_huge_text_keep_their_lines() -> None:
    row = "a *b* <c>\n"
    long = rendered(row * 2000)
    assert long.startswith('<p dir="auto">a *b* &lt;c&gt;<br>\na')
    huge = rendered(row * (LONGEST // len(row) + 1))
    assert huge.startswith('<div class="text" dir="auto">a *b* &lt;c&gt;\na')
    for page in (long, huge):
        Page(page)


def test_only_short_pieces_of_a_line_are_parsed() -> None:
    """What is inside a line costs the square of its length."""
    assert "<em>" in rendered("*a* " * 2000)
    assert "<em>" not in rendered("*a* " * 2001)
    assert rendered("*a* " * 2001 + "\n\n*b*").endswith("<em>b</em></p>\n")
