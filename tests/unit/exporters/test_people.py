"""Markdown and HTML: good to read, and nothing of a message acts in them."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from html_page import ACTING, Page
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from samples import EVIL, IMAGE, TALK, assistant, call, info, of, result, user

import clew
from clew.exporters import html, html_index, markdown
from clew.exporters.blocks import Code, blocks
from clew.exporters.transcript import Transcript

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TEXTS = st.text(
    st.characters() | st.sampled_from("<>&\"'`\n#[]()!\\*_-~=:/ \x1b\u202e\ud83d"), max_size=60
) | st.sampled_from([EVIL, "```\n" + EVIL, "~~~\n```\n</code>", "[a]: javascript:x",
                      "a\n---\n# b"])  # fmt: skip


def page(source: Transcript) -> Page:
    return Page("".join(html.text(source)))


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
    assert '<h3 dir="auto">Plan</h3>' in text
    assert "<code>a&lt;b&gt;</code>" in text
    assert "<strong>now</strong>" in text
    assert 'href="https://example.com/x?a=1&amp;b=2"' in text
    assert "<code>x = &#x27;&lt;b&gt;&#x27;</code></pre>" in text


def test_a_result_says_how_many_lines_it_has() -> None:
    for said, told in (("a.txt\n", ""), ("a\nb\n", "2 lines"), ("a\nb", "2 lines"), ("a", ""),
                       ("", ""), ("\n", ""), ("a\n\n", "2 lines")):  # fmt: skip
        text = "".join(html.text(of([result("c", said)])))
        assert re.findall(r"\d+ lines", text) == [told] * bool(told), said


def test_joined_records_have_all_their_numbers() -> None:
    drafts = [user(clew.Text("q"))] + [assistant(clew.Text(t), api_group="g") for t in "abc"]
    assert '<a href="#2">#2-4</a>' in "".join(html.text(of(drafts)))
    assert "## \\#2-4 assistant" in "".join(markdown.text(of(drafts)))
    drafts = [*drafts[:3], result("c", "x"), drafts[3]]
    assert ">#2-3,5</a>" in "".join(html.text(of(drafts)))


def test_what_clew_does_not_know_has_the_name_of_its_type() -> None:
    drafts = [assistant(clew.Unknown({"type": "web_search_call", "id": "w"}), clew.Unknown([1]),
                        clew.Unknown({"type": "<b>"}))]  # fmt: skip
    for form in (html, markdown):
        text = "".join(form.text(of(drafts)))
        for said in (
            "web_search_call (a kind",
            "Something clew does not know",
            "&lt;b&gt; (a kind",
        ):
            assert f"<summary>{said}" in text


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"stopReason": "aborted", "errorMessage": "Request was aborted."},
         "Ended: aborted: Request was aborted."),
        ({"error": "MessageAbortedError"}, "Ended: MessageAbortedError"),
        ({"error": True}, "Ended: error"), ({"unfinished": True}, "Ended: unfinished"),
        ({"finish_reason": "length"}, "Ended: length"), ({"finish": "stop"}, "Nothing to read"),
        ({"stop_reason": 5}, "Nothing to read"), ([], "Nothing to read"),
    ],
)  # fmt: skip
def test_an_empty_answer_says_why(about: object, said: str) -> None:
    draft = assistant(clew.Reasoning(data="opaque"), meta={"import": about})
    assert f'<p class="end" dir="auto">{said}</p>' in "".join(html.text(of([draft])))
    assert f"*{said}*\n" in "".join(markdown.text(of([draft])))
    whole = "".join(html.text(of([assistant(clew.Text("All."), meta={"import": about})])))
    assert (said in whole) == (said != "Nothing to read")


def test_an_answer_that_ended_oddly_cannot_say_html() -> None:
    draft = assistant(meta={"import": {"errorMessage": EVIL, "stopReason": EVIL, "error": EVIL}})
    assert page(of([draft])).links == ["#1"]


def test_branches_and_sub_agents_are_links_to_their_pages() -> None:
    long = "sub:" + "x" * 1500
    children = (
        info(id="b", kind="branch", base=1, title="Other"), info(id=long, kind="delegate"),
        info(id="c", kind="delegate", title="Called", meta={"import": {"call": "c3"}}),
    )  # fmt: skip
    about = {"origin": "o", "kind": "branch", "base": 3}
    pages = {"b": "Other-b.html", long: "京-1.html", "c": "c.html", "o": "origin.html"}
    source = of(TALK, children=children, about=about)
    linked = Page("".join(html.text(source, pages)))
    assert {"Other-b.html", "%E4%BA%AC-1.html", "c.html", "origin.html"} <= {*linked.links}
    assert f"({long})" in "".join(linked.words)
    alone = Page("".join(html.text(source, {})))
    assert not [link for link in alone.links if link.endswith(".html")]
    assert f"({long})" in "".join(alone.words)
    assert f"({long})" in "".join(markdown.text(source))


def test_an_index_lists_pages_the_last_active_first() -> None:
    old = html_index.Page(info(id="a", title=EVIL, message_count=1234), "a-1.html")
    new = html_index.Page(info(id="b", kind="delegate", active_at=1 << 52), "ü.html")
    text = "".join(html_index.text("All", [old, new]))
    found = Page(text)
    assert found.links == ["%C3%BC.html", "a-1.html"]
    assert "1,234" in text
    assert "2025-10-09 08:53 UTC" in text
    assert "(sub-agent)" in text


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


def test_markdown_has_the_summary_of_a_compaction_and_names_sub_agents() -> None:
    body = (clew.Inline(clew.Role.USER, (clew.Text("We <b>had</b> *looked*."),)),)
    record = clew.Compaction(
        generation=1, attempt=1, covers_to=2, body=body, cuts=(), kind="ours", tokens_before=900,
        tokens_after=80, created_at=0,
    )  # fmt: skip
    child = info(id="d", kind="delegate", title="Helper")
    about = {"kind": "delegate", "origin": "o"}
    text = "".join(markdown.text(of(TALK, compactions=(record,), children=(child,), about=about)))
    assert "<summary>Its summary</summary>\n\nWe \\<b>had\\</b> *looked*.\n" in text
    assert "- Sub-agent: Helper (d)\n" in text
    assert "- Sub-agent of: o\n" in text
    assert "elegate" not in text


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
