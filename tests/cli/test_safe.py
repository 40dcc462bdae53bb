"""Whatever a transcript holds: on a screen it is text, within it, and nobody else's line."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import clew
from clew import (
    Cut,
    File,
    Image,
    Inline,
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from clew.cli import dividers, outline, text
from clew.cli.heading import heading
from clew.cli.lines import Line, PlainWriter
from clew.cli.parts import Look, text_lines
from clew.cli.screen import Screen
from clew.cli.styled import StyledWriter
from clew.cli.timeline import Facts, Timeline
from clew.context.entries import Entry, entry_of
from clew.domain.conversations import ConversationInfo
from clew.domain.parts import Parts
from clew.testing.clock import FakeClock
from clew.testing.reference import ReferenceStore

from .helpers import Demo, Run

NASTY = (
    "\x1b[31mred\x1b[0m", "\x1b]0;owned\x07", "\x1b]8;;http://evil\x1b\\link", "\x1b]52;c;aGk=\x07",
    "\x9b2J", "\x9d0;t\x9c", "\rover", "a\tb", "\b\b", "\x7f", "\x85", "\u2028", "\u2029",
    "\u202eevil\u202c", "\u2066x", "\u2069", "\u200f", "\u061c", "\ud800", "\u200b\u200d", "\x0b",
    "\nassistant  #9  2026-01-01 10:00\n", "\n─── cut 1 ───\n", "\n\n", " " * 60, "x" * 120,
    "日本語の長い文章です。", "👨‍👩‍👧", "❤️", "e" + "\u0301" * 40, "שלום 12 (כן)", "مرحبا 34",
    "\U0001fae8", "🇩🇪", "\u0600", "word word word ",
)  # fmt: skip
nasty = st.lists(
    st.sampled_from(NASTY) | st.text(st.characters(codec=None), max_size=8), max_size=6
).map("".join)
maybe = st.none() | nasty

plain_parts = (
    st.builds(Text, nasty)
    | st.builds(Image, nasty, url=maybe, width=st.none() | st.integers(0, 9), height=st.just(7))
    | st.builds(File, nasty, name=maybe, url=maybe, size=st.none() | st.integers(0, 10**12))
    | st.builds(Unknown, st.recursive(nasty, lambda v: st.dictionaries(nasty, v, max_size=2)))
)
some_parts = st.lists(
    plain_parts
    | st.builds(Reasoning, nasty, data=maybe)
    | st.builds(ToolCall, nasty, nasty, nasty)
    | st.builds(
        ToolResult, nasty, nasty | st.lists(plain_parts, max_size=2).map(tuple), maybe,
        st.booleans(),
    ),
    max_size=4,
).map(tuple)  # fmt: skip


@st.composite
def entries(draw: st.DrawFn) -> list[Entry]:
    found: list[Entry] = []
    for seq in range(1, draw(st.integers(1, 4)) + 1):
        parts: Parts = draw(some_parts)
        given_facts = {name: draw(maybe) for name in Facts.__struct_fields__}
        message = Message.of(
            seq=seq, uid=f"{seq:032x}", role=draw(st.sampled_from(Role)), parts=parts,
            created_at=10**15 + seq, author=draw(maybe), meta={"import": given_facts},
        )  # fmt: skip
        found.append(entry_of(message))
    return found


def shown(lines: Iterable[Line], width: int | None, color: bool = False) -> str:
    """As it is printed: into a pipe, or on a terminal of so many columns."""
    out = io.StringIO()
    if width is None:
        PlainWriter(Screen(out)).write(lines)
    else:
        StyledWriter(out, width, color).write(lines)
    return out.getvalue()


def harmless(printed: str, width: int | None, color: bool = False) -> None:
    """No control, no turn of direction but what ends where it began, no line beyond the screen."""
    if color:
        printed = re.sub(r"\x1b\[\d+(;\d+)*m", "", printed)
    printed.encode("utf-8")
    for row in printed.split("\n"):
        controls = [c for c in row if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
        assert controls == [], row
        turned = re.sub("\u2068[^\u2068\u2069]*\u2069", "", row) if width else row
        assert not [c for c in turned if text.acts(ord(c))], row
        assert width is None or text.cells(row) <= width, row
        assert len(row) <= 20_000


HEADS = re.compile(r"(user|assistant|tool|system|developer)( |$)|· ")

widths = st.none() | st.sampled_from([40, 57, 80, 100])
looks = st.builds(Look, full=st.booleans(), width=st.sampled_from([40, 57, 80, 100]))


@given(entries(), looks, widths, st.booleans())
def test_messages(found: list[Entry], look: Look, width: int | None, color: bool) -> None:
    """And what stands at the left edge is a head of ours: as many as there are messages."""
    printed = shown(Timeline(look).lines(found), width, color)
    harmless(printed, width, color and width is not None)
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed).split("\n")
    edge = [row for row in plain if row and not row.startswith(" ")]
    assert all(HEADS.match(row) for row in edge), edge
    roles = [row for row in edge if not row.startswith("· ")]
    heads = [entry for entry in found if entry.role is not Role.TOOL]
    assert len(heads) <= len(roles) <= len(found)


def fake_info() -> ConversationInfo:
    return ReferenceStore(clock=FakeClock()).profile("p").create().info()


INFO = fake_info()


@st.composite
def infos(draw: st.DrawFn) -> ConversationInfo:
    return replace(
        INFO, id=draw(nasty), profile=draw(nasty), source=draw(nasty), title=draw(maybe),
        preview=draw(maybe), cwd=draw(maybe), git_root=draw(maybe), git_branch=draw(maybe),
        model=draw(maybe), end_reason=draw(maybe), origin=draw(maybe),
        kind=draw(st.sampled_from(["root", "branch", "delegate"])), base=draw(st.integers(0, 3)),
        ended_at=draw(st.none() | st.just(5)),
        meta=draw(st.sampled_from([None, {"import": {"call": "c"}}])),
    )  # fmt: skip


@st.composite
def compactions(draw: st.DrawFn) -> clew.Compaction:
    inline = st.builds(Inline, st.sampled_from(Role), some_parts)
    body = draw(st.lists(inline | st.builds(clew.Stub, st.integers(1, 9), nasty), max_size=3))
    return clew.Compaction(
        generation=1, attempt=None, covers_to=1, body=tuple(body), cuts=(), kind="foreign",
        tokens_before=None, tokens_after=None, created_at=5,
    )  # fmt: skip


@given(infos(), infos(), compactions(), maybe, looks, widths, st.booleans())
def test_what_stands_between_and_above_messages(
    info: ConversationInfo, child: ConversationInfo, compaction: clew.Compaction, by: str | None,
    look: Look, width: int | None, color: bool,
) -> None:  # fmt: skip
    cut = Cut(number=1, from_seq=1, to_seq=2, by=by, at=5)

    def lines() -> Iterator[Line]:
        yield from heading(info, 10)
        between = [
            *dividers.of_compactions([compaction], [cut], True, look),
            *dividers.of_cuts([cut], 10, look), *dividers.of_branches([child], look),
            *dividers.of_agents([child], look), *dividers.of_origin(info, look),
        ]  # fmt: skip
        for one in between:
            yield from one.lines
        for rows in dividers.under_calls({"c": [child]}, look).values():
            yield from rows
        yield from outline.lines([turn(child, cut, compaction, info.title or "")], look, 10)

    harmless(shown(lines(), width, color), width, color and width is not None)


def turn(child: ConversationInfo, cut: Cut, compaction: clew.Compaction, said: str) -> outline.Turn:
    """A turn in which everything happened, and again in a branch of it, down to the deepest."""
    inside: tuple[outline.Event, ...] = (
        outline.Hiding(cut), outline.Summary(compaction, "in effect"),
    )  # fmt: skip
    for _ in range(outline.DEEPEST):
        one = outline.Turn(seq=1, at=5, text=said, messages=7, inside=inside)
        inside = (*inside[:2], outline.Child(info=child, call=None, inside=(one,)))
    return outline.Turn(seq=1, at=5, text=said, messages=7, inside=inside)


@given(nasty, st.integers(1, 40))
def test_a_glance_is_short_however_long_the_text(value: str, width: int) -> None:
    for more in ("…", "..."):
        seen = text.glance(value * 50, width, more)
        assert text.cells(seen) <= max(width, len(more))
        assert len(seen) <= width * text.CLUSTER + len(more)
        harmless(seen, None)


def test_right_to_left_text_moves_nothing_beside_it() -> None:
    line = Line(0, (("שלום 12", "bold"), ("  7 messages", "dim")))
    assert shown([line], 80) == "\u2068שלום 12\u2069  7 messages\n"
    assert shown([line], None) == "שלום 12  7 messages\n"
    rows = shown([Line(0, (("שלום " * 30, ""),))], 40).splitlines()
    assert len(rows) > 3
    assert all(row.strip()[0] == "\u2068" and row[-1] == "\u2069" for row in rows)
    assert text.isolated("plain – 京都") == "plain – 京都"


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ("one two three four five six", ["one two three four", "five six"]),
        ("    if indented: code goes on", ["    if indented:", "code goes on"]),
        ("x" * 45, ["x" * 20, "x" * 20, "xxxxx"]),
        ("日本語の文章はどこでも折り返す", ["日本語の文章はどこで", "も折り返す"]),
        ("see 日本語の文章は折り返す", ["see 日本語の文章は折", "り返す"]),
        ("a" * 20 + "\u0301b", ["a" * 20 + "\u0301", "b"]),
        ("", [""]),
        ("blanks" + " " * 40 + "between", ["blanks", "between"]),
    ],
)
def test_wrapping(value: str, rows: list[str]) -> None:
    """At blanks, behind any wide character, or where nothing else is left."""
    out = io.StringIO()
    StyledWriter(out, 22, False).write([Line(2, ((value, ""),))])
    assert [row[2:] for row in out.getvalue().split("\n")[:-1]] == rows


def test_a_line_of_text_goes_on_under_its_indent() -> None:
    rows = shown(text_lines("  - a point that is longer than one row has room for"), 40)
    assert rows == "    - a point that is longer than one\n      row has room for\n"
    assert shown(text_lines(" " * 38 + "x y"), 40) == "  x y\n"


def test_a_line_at_the_left_edge_goes_on_further_in() -> None:
    """Else a long name could make what looks like the next message."""
    rows = shown([Line(0, (("word " * 20 + "assistant  #9", ""),))], 40).splitlines()
    assert not rows[0].startswith(" ")
    assert all(row.startswith("  ") for row in rows[1:])


def test_every_command_shows_it_as_text(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        profile = store.profile("default")
        bad = "".join(piece for piece in NASTY if piece != "\ud800")
        one = profile.create(title=bad, source="a\x1b[2J", model=bad)
        one.append([
            clew.Draft(role=Role.USER, author=bad, parts=(Text(f"needle {bad}"), Unknown(bad))),
            clew.Draft(role=Role.ASSISTANT, parts=(ToolCall(bad, bad, bad),)),
        ])  # fmt: skip
        one.branch(new=clew.NewConversation(title=bad)).add(clew.user(bad))
        one.delegate(clew.NewConversation(title=bad, meta={"import": {"call": bad}}))
        one.cut(one.message(2).uid, by=bad)
        id = one.id
    for args in (
        ["show", id], ["show", id, "--full"], ["show", id, "--log"], ["show", id, "--context"],
        ["show", id, "--outline"], ["show", id, "--around", "1"], ["search", "needle"], ["list"],
        ["resume", id], ["show", id, "--json"], ["show", id, "--outline", "--json"],
    ):  # fmt: skip
        printed = run(*args).stdout
        controls = {c for c in printed if unicodedata.category(c) == "Cc"}
        assert controls <= ({"\n", "\t"} if args[0] in ("search", "list") else {"\n"}), args
        assert not [c for c in printed if text.acts(ord(c))], args
