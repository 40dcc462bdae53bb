"""Markdown that comes in pieces: each block once, whatever the pieces."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from clew.cli.chat.rows import Answer, markdown_rows
from clew.cli.chat.stream import LINES, Block, Splitter

LINE = st.sampled_from([
    "words of a paragraph", "# heading", "## other", "- item", "* item two", "1. first",
    "7) seventh",
    "  - inner", "    indented", "\tby a tab", "> quote", ">", "```", "```python", "~~~", "````",
    "  ```", "| a | b |", "|---|:-:|", "| 1 | 2 |", "---", "***", "===", "", "", "   ", "京都 🎉",
    "\x1b[31mred", "&#x202e;turned", "a\rb", "[link](http://x.example)", "`code`", "1999. a year",
])  # fmt: skip
TEXT = st.lists(LINE, max_size=30).map("\n".join) | st.text(max_size=200)


def split(text: str, *cuts: int) -> list[Block]:
    """All blocks of a text that comes in pieces."""
    splitter, found = Splitter(), list[Block]()
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        found += splitter.feed(text[start:end])
        _ = splitter.tail
    return [*found, *splitter.finish()]


@given(TEXT, st.lists(st.integers(0, 10_000), max_size=12))
def test_how_it_comes_does_not_matter(text: str, cuts: list[int]) -> None:
    assert split(text, *cuts) == split(text)


@given(TEXT)
def test_nothing_is_lost_or_doubled(text: str) -> None:
    """Every line stands in one block, in its order; only fences and blank lines are in none."""
    blocks = split(text)
    kept = [line for block in blocks for line in block.text.split("\n")]
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    fence = re.compile(r" {0,3}(`{3,}|~{3,})")
    assert [x for x in kept if x.strip() and not fence.match(x)] == [
        x for x in lines if x.strip() and not fence.match(x)
    ]


@given(TEXT, st.lists(st.integers(0, 10_000), max_size=6), st.integers(10, 90), st.booleans())
def test_what_is_printed_piece_by_piece_is_the_whole(
    text: str, cuts: list[int], width: int, color: bool
) -> None:
    answer, rows = Answer(), list[str]()
    places = sorted(cut % (len(text) + 1) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        rows += answer.add(text[start:end], width, color)
        answer.tail(width, color, 10)
    assert rows + answer.end(width, color) == markdown_rows(text, width, color)


@given(st.text(max_size=300), st.booleans())
def test_nothing_that_acts_is_printed(text: str, color: bool) -> None:
    """Neither a control character, nor one that an entity stands for."""
    for row in markdown_rows(text + "\n\n&#x1b;[2J &#x9b;A &#x202e;", 60, color):
        bare = re.sub(r"\x1b\[[\d;]*m", "", row) if color else row
        assert not re.search("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", bare)


def test_kinds() -> None:
    text = "# A\ntext\n\n- one\n- two\n\n  more\n\n1. x\n\n```py\ncode\n```\n"
    text += "|a|b|\n|-|-|\n|1|2|\n\n> q\n***"
    assert [block.kind for block in split(text)] == [
        "text", "text", "item", "item", "item", "code", "table", "quote", "rule",
    ]  # fmt: skip


def test_items_stand_apart_as_they_were_written() -> None:
    assert [b.apart for b in split("- a\n- b\n\n- c\ntext\n\nnext")] == [
        False, False, True, True,
    ]  # fmt: skip


def test_code_in_an_item_is_not_taken_apart() -> None:
    (item,) = split("- run:\n  ```\n  - not an item\n  # nor a heading\n  ```\n")
    assert item.kind == "item"


def test_long_code_is_given_in_parts() -> None:
    """And printed as one: one fence at each end."""
    text = "```\n" + "\n".join(map(str, range(LINES * 3 + 1))) + "\n```\n"
    assert [len(b.text.split("\n")) for b in split(text)] == [LINES, LINES, LINES, 1]
    rows = markdown_rows(text, 40, False)
    assert rows == ["```", *map(str, range(LINES * 3 + 1)), "```"]


def test_the_tail_is_short_however_long_a_line_is() -> None:
    splitter = Splitter()
    for _ in range(1000):
        assert not [*splitter.feed("word " * 100)]
    tail = splitter.tail
    assert tail is not None
    assert len(tail.text) <= 2000


def test_a_long_answer_costs_as_much_per_block_at_its_end_as_at_its_beginning() -> None:
    """Counted in blocks that are read, not in seconds: each is given once."""
    splitter, given_out = Splitter(), 0
    for n in range(5000):
        given_out += len([*splitter.feed(f"paragraph {n}\n\n")])
        assert splitter.tail is None
    assert given_out == 5000
