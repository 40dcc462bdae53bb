"""Markdown and HTML: good to read, and nothing of a message acts in them."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from samples import EVIL, IMAGE, TALK, assistant, call, info, of, result, user

import clew
from clew.exporters import html, markdown
from clew.exporters.blocks import Code, blocks
from clew.exporters.transcript import Transcript

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "dl", "dt", "dd", "bdi",
    "nav", "details", "summary", "ol", "li", "a", "main", "div", "article", "h2", "span", "time",
    "pre", "code", "strong", "b", "img", "footer", "p",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "dir", "class", "href", "id", "datetime",
    "rel", "open", "alt", "src", "loading",
}  # fmt: skip
ACTING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.text(
    st.characters() | st.sampled_from("<>&\"'`\n#[]()!\\*_-~=:/ \x1b\u202e\ud83d"), max_size=60
) | st.sampled_from([EVIL, "```\n" + EVIL, "~~~\n```\n</code>", "[a]: javascript:x",
                      "a\n---\n# b"])  # fmt: skip


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
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
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if (id := given.get("id")) is not None:
            self.ids.append(id)
        if (href := given.get("href")) is not None:
            assert re.match(r"#\d+$|https?://", href), href
            self.links.append(href)
        if (src := given.get("src")) is not None:
            assert re.match(r"data:image/(png|jpeg|gif|webp|avif|bmp);base64,[\w+/=]*$", src)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page(source: Transcript) -> Page:
    text = "".join(html.text(source))
    assert not ACTING.search(text)
    return Page(text)


def everywhere(text: str) -> Transcript:
    """A transcript that says a text wherever one can stand."""
    parts = (
        clew.Text(text), clew.Reasoning(text=text), clew.ToolCall(text, text, text),
        clew.Image(media_type=text, url=text), clew.File(name=text, url=text, media_type=text),
        clew.Image(media_type="image/png", url=text), clew.Unknown(text),
        clew.Unknown({text: text}),
    )  # fmt: skip
    about = {
        "id": text, "title": text, "source": text, "model": text, "cwd": text, "git_branch": text,
        "origin": text, "kind": "branch", "base": 1,
    }  # fmt: skip
    child = info(id=text, title=text, kind="delegate")
    record = clew.Compaction(
        generation=1, attempt=None, covers_to=1, cuts=(), kind="foreign", tokens_before=None,
        tokens_after=None, created_at=0, body=(clew.Inline(clew.Role.USER, (clew.Text(text),)),),
    )  # fmt: skip
    drafts = [
        user(*parts, author=text or None), assistant(*parts),
        result(text, text, name=text), result(text, (clew.Text(text), clew.Image(url=text))),
    ]  # fmt: skip
    return of(drafts, about=about, prompt=text, children=(child,), compactions=(record,))


@given(TEXTS)
def test_nothing_of_a_transcript_is_html(text: str) -> None:
    found = page(everywhere(text))
    assert not [link for link in found.links if "javascript" in link.partition("?")[0].lower()[:20]]


def test_an_html_page_shows_all_that_was_said() -> None:
    found = page(of(TALK, prompt="You look.", calls=(call(1, 1),)))
    words = " ".join(found.words)
    for said in ("A talk", "You look.", "I look.", "Hm.", "ls -l", "seen", "be brief", "late",
                 "Done.", "a.pdf", "100 in, 20 out"):  # fmt: skip
        assert said in words
    assert [id for id in found.ids if not id.isdecimal()] == []
    assert sorted(map(int, found.ids)) == list(range(1, len(TALK) + 1))
    assert "https://example.com/b.txt" in found.links


def test_a_result_has_the_name_of_its_tool() -> None:
    drafts = [assistant(clew.ToolCall("c1", "look")), result("c1", "seen"), result("c9", "x")]
    page = "".join(html.text(of(drafts)))
    text = "".join(markdown.text(of(drafts)))
    assert "<bdi>look</bdi></b> <bdi>seen</bdi>" in page
    assert ("Result of look" in text, "Result of c9" in text) == (True, True)


def test_an_outline_names_people_compactions_branches_and_sub_agents() -> None:
    branch = info(id="b", kind="branch", base=1, title="The other way")
    helper = info(id="d", kind="delegate", title="Helper")
    record = clew.Compaction(
        generation=1, attempt=1, covers_to=2, body=(), cuts=(), kind="ours", tokens_before=900,
        tokens_after=80, created_at=0,
    )  # fmt: skip
    undone = clew.Compaction(
        generation=2, attempt=1, covers_to=2, body=(), cuts=(), kind="ours", tokens_before=900,
        tokens_after=80, created_at=0, undone_at=5,
    )  # fmt: skip
    called = info(id="c", kind="delegate", title="Called", meta={"import": {"call": "c3"}})
    lost = info(id="l", kind="delegate", title="Lost", meta={"import": {"call": "c99"}})
    children = (branch, helper, called, lost)
    source = of(TALK, children=children, compactions=(record, undone))
    nav = "".join(html.text(source)).split("<nav>")[1].split("</nav>")[0]
    rows = re.findall(r"<li.*?</li>", nav)
    assert [re.sub("<[^>]+>", "", row)[:24] for row in rows] == [
        "#1 Look at", "branch from #1: The othe", "Compaction 1 stands for ",
        "sub-agent: Called (c)", "#11 a file", "sub-agent: Helper (d)", "sub-agent: Lost (l)",
    ]  # fmt: skip


def test_code_and_links_read_as_such() -> None:
    said = "# Plan\nsee `a<b>` and **now** https://example.com/x?a=1&b=2.\n\n```py\nx = '<b>'\n```"
    text = "".join(html.text(of([assistant(clew.Text(said))])))
    assert '<span class="h">Plan</span>' in text
    assert "<code>a&lt;b&gt;</code>" in text
    assert "<strong>now</strong>" in text
    assert 'href="https://example.com/x?a=1&amp;b=2"' in text
    assert "<code>x = &#x27;&lt;b&gt;&#x27;</code></pre>" in text


def test_the_policy_of_a_page_lets_nothing_in() -> None:
    text = "".join(html.text(of([])))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    assert policy[1].startswith("default-src &#x27;none&#x27;; img-src data:;")
    assert "unsafe" not in policy[1]
    assert text.count("<style>") == 1
    assert "script" not in text


@pytest.mark.browser
def test_a_browser_runs_nothing_and_uses_the_style(tmp_path: Path) -> None:
    """Debian's package `chromium`. Its DOM shows what was run, and whether the style was let in."""
    assert CHROMIUM is not None, "install Chromium, or leave out -m browser"
    evil = EVIL.replace("alert(1)", "document.title='run'").replace("alert", "document.write")
    file = tmp_path / "page.html"
    file.write_text("".join(html.text(everywhere(evil))), "utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile")
    done = subprocess.run(
        [CHROMIUM, *flags, "--dump-dom", file.as_uri()], capture_output=True, check=True,
        encoding="utf-8", timeout=60,
    )  # fmt: skip
    assert "<script" not in done.stdout
    assert "<title>run" not in done.stdout
    assert done.stdout.count("<article") == 4


# ---------------------------------------------------------------- Markdown


def test_markdown_shows_all_that_was_said() -> None:
    text = "".join(markdown.text(of(TALK, prompt="You look.")))
    for said in ("# A talk", "You look.", "I look.", "Hm.", "ls -l", "seen", "be brief", "late",
                 "## \\#1 user", "Done.", "![image image/png 8 bytes](data:image/png;base64,",
                 "[file b.txt application/octet-stream](<https://example.com/b.txt>)"):  # fmt: skip
        assert said in text


FENCE = re.compile(r"(`{3,})(\S*)$")


def outside(text: str) -> list[str]:
    """The lines of a page that are in no fence, by the rule that a fence ends with as many
    backticks as it began with."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            assert not line.startswith("<details>")
            fence = "" if found and not found[2] and len(found[1]) >= len(fence) else fence
        elif found:
            fence = found[1]
        else:
            kept.append(line)
    assert not fence
    return kept


OURS = re.compile(
    r"\*\*Call\*\* (`+).*(?<!`)\1$|^<details><summary>[^<>]*</summary>$|^</details>$"
    r"|\]\(<https?://[^<>]*>\)"
)


@given(TEXTS)
def test_nothing_of_a_transcript_is_markup_of_the_page(text: str) -> None:
    whole = "".join(markdown.text(everywhere(text)))
    assert not ACTING.search(whole)
    heads = [line for line in outside(whole) if line.startswith("## ")]
    assert [line.split(" ")[1] for line in heads] == ["\\#1", "\\#2", "\\#3", "\\#4"]
    for line in outside(whole):
        bare = re.sub(r"\\[^\w\s]", "·", OURS.sub("", line))
        assert not re.search(r"<[A-Za-z/!?]", bare), line
        assert not re.search(r"\]\((?!https?://|mailto:|<https?://|data:image/png)", bare), line
        assert not re.search(r"!\[(?!image)", bare), line
        assert not re.match(r"\s{0,3}(>\s*)*\[[^\]]*\]:", bare), line


class Rendered(HTMLParser):
    """What a renderer makes of Markdown that lets raw HTML and every link through."""

    TAGS = frozenset((
        "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "em", "strong", "s", "code",
        "pre", "blockquote", "a", "hr", "br", "img", "details", "summary", "table", "thead",
        "tbody", "tr", "th", "td",
    ))  # fmt: skip

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.heads = 0
        renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        renderer.validateLink = lambda url: True  # type: ignore[method-assign]
        self.feed(renderer.render(text))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.TAGS, tag
        self.heads += tag in ("h1", "h2")
        for name, value in attrs:
            assert name in {"href", "src", "alt", "class", "start", "title", "style"}, name
            if name == "href":
                assert re.match(r"(https?://|mailto:)", value or ""), value
            if name == "src":
                assert re.match(r"data:image/(png|jpeg|gif|webp|avif|bmp);base64,", value or "")
            if name == "style":
                assert re.fullmatch(r"text-align:(left|right|center)", value or ""), value


TOKENS = st.lists(
    st.sampled_from([
        "<", ">", "<b", "<script>", "</details>", "<!--", "<?", "]", "[", "](", "![", "]:", ")",
        "javascript:x", "data:text/html,x", "https://e.com", "&#106;", "`", "``", "```", "````",
        "~~~", "~~~~", "\\", "\n", "\n\n", "    ", "\t", "> ", "- ", "1. ", "# ", "---", "===", "*",
        "_", "|", "|-|", "a", " ", "\r", "\"", "'", "&lt;", "$", "<U+", "ı",
    ]), max_size=14,
).map("".join)  # fmt: skip


@given(TEXTS | TOKENS)
def test_a_renderer_that_lets_all_through_finds_nothing(text: str) -> None:
    """By CommonMark itself: no tag, link or heading of the page but ours."""
    found = Rendered("".join(markdown.text(everywhere(text))))
    assert found.heads == 1 + 4


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("<b>", "\\<b>"), ("\\<b>", "\\<b>"), ("\\\\<b>", "\\\\\\<b>"), ("a < b", "a < b"),
        ("![x](https://e.com/p.png)", "\\![x](https://e.com/p.png)"),
        ("[x](javascript:alert(1))", "[x\\](javascript:alert(1))"),
        ("[x](\njavascript:alert(1))", "[x\\](\njavascript:alert(1))"),
        ("[x](java&#115;cript:a)", "[x\\](java&#115;cript:a)"),
        ("[x](https://e.com)", "[x](https://e.com)"),
        ("[x]: javascript:a", "\\[x]: javascript:a"), ("[x][y]", "[x\\][y]"),
        ("# a\n###### b", "### a\n###### b"), ("a\n---", "a\n\\---"), ("a\n===", "a\n\\==="),
    ],
)  # fmt: skip
def test_prose_keeps_its_text(said: str, written: str) -> None:
    assert markdown.prose(said) == written + "\n\n"


@pytest.mark.parametrize("inner", ["```", "````\nx\n````", "~~~", "a ``` b", ""])
def test_code_cannot_leave_its_fence(inner: str) -> None:
    text = "".join(markdown.text(of([result("c", inner + "\n# out\n<script>")])))
    assert "# out" not in outside(text)
    assert "<script>" not in outside(text)


def test_blocks() -> None:
    text = "a\n```py\nb\n~~~\n```\nc\n  ~~~~ x y\nd\n~~~\n~~~~~\ne\n```\nf"
    assert list(blocks(text)) == [
        "a",
        Code("b\n~~~", "py"),
        "c",
        Code("d\n~~~", "x"),
        "e",
        Code("f", ""),
    ]
    assert list(blocks("a ``` b")) == ["a ``` b"]
    assert list(blocks("")) == [""]


def test_images_that_are_more_than_pixels_are_named() -> None:
    odd = [clew.Image(media_type=kind, data=b"<svg onload=x>") for kind in
           ("image/svg+xml", "text/html", 'image/png" onerror="x', "image/png;x")]  # fmt: skip
    found = page(of([user(IMAGE, *odd)]))
    assert "".join(html.text(of([user(*odd)]))).count("<img") == 0
    assert "svg" in " ".join(found.words)
