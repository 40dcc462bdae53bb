"""Rules of the domain, without a store: cuts and ranges, compactions, parts, texts, titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import (
    Cut,
    Draft,
    Image,
    InputError,
    Message,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from clew.domain.compactions import Compaction, in_effect
from clew.domain.conversations import shown_title
from clew.domain.cuts import hidden, in_force_at, visible_ranges
from clew.domain.parts import (
    answered_ids,
    call_ids,
    plain_text,
    result_text,
    searchable,
    unasked_ids,
)
from clew.domain.text import clean, exact, shorten


def cut(number: int, first: int, last: int, undone: bool = False) -> Cut:
    return Cut(
        number=number, from_seq=first, to_seq=last, by=None, at=0, undone_at=1 if undone else None
    )


CUTS = st.lists(
    st.builds(
        lambda first, length, undone: cut(1, first, first + length, undone),
        st.integers(1, 30), st.integers(0, 10), st.booleans(),
    ),
    max_size=5,
)  # fmt: skip


@given(CUTS, st.integers(1, 30), st.integers(0, 30))
def test_visible_ranges_are_what_no_cut_hides(cuts: list[Cut], first: int, last: int) -> None:
    """Overlapping and nested cuts too."""
    ranges = visible_ranges(cuts, first, last)
    seqs = [seq for start, end in ranges for seq in range(start, end + 1)]
    assert seqs == [seq for seq in range(first, last + 1) if not hidden(cuts, seq)]
    assert all(start <= end for start, end in ranges)


def test_a_cut_counts_where_it_hides_something_below() -> None:
    cuts = [cut(2, 5, 9), cut(1, 3, 9), cut(3, 1, 2, undone=True)]
    assert [in_force_at(cuts, to) for to in (2, 3, 4, 5)] == [(), (1,), (1,), (1, 2)]


def record(generation: int, covers_to: int, *cuts: int, undone: bool = False) -> Compaction:
    return Compaction(
        generation=generation, attempt=None, covers_to=covers_to, body=(), cuts=cuts, kind="ours",
        tokens_before=2, tokens_after=1, created_at=0, undone_at=1 if undone else None,
    )  # fmt: skip


def test_the_newest_compaction_whose_cuts_are_those_in_force_is_in_effect() -> None:
    one, two, three = record(1, 4), record(2, 8, 1), record(3, 9, undone=True)
    records = [one, two, three]
    assert in_effect(records, []) is one
    assert in_effect(records, [cut(1, 5, 6)]) is two
    assert in_effect(records, [cut(1, 3, 6)]) is two
    assert in_effect(records, [cut(2, 3, 6)]) is None
    assert in_effect(records, [cut(1, 5, 6, undone=True)]) is one


def test_texts_and_ids_of_parts() -> None:
    parts = (
        Reasoning("why"), Text("a"), ToolCall("c1", "run", "x"), ToolCall("c2", "run"), Text("b"),
    )  # fmt: skip
    answer = ToolResult("c1", (Text("out"), Image(url="u"), Text("put")))
    assert plain_text(parts) == "a\nb"
    assert call_ids(parts) == ("c1", "c2")
    assert answered_ids((answer,)) == ("c1",)
    assert (result_text(answer), result_text(ToolResult("c", "t"))) == ("out\nput", "t")
    assert list(searchable((*parts, answer))) == [
        "why", "a", "run", "x", "run", "", "b", "out\nput",
    ]  # fmt: skip


def test_a_result_is_asked_for_by_a_call_before_it() -> None:
    call, answer = (ToolCall("c", "run"),), (ToolResult("c"),)
    assert unasked_ids([call, answer]) == set()
    assert unasked_ids([answer, call]) == {"c"}


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("  two\n words ", 20, "two words"),
        ("", 5, None),
        (" \n\t", 5, None),
        ("x" * 10, 5, "xxxx…"),
        ("ab cdefgh", 4, "ab…"),
        (" " * 60 + "late", 10, "late"),
        ("a\0\ud800b", 9, "a\ufffd\ufffdb"),
    ],
)
def test_a_text_is_shortened_to_words_of_one_line(text: str, limit: int, short: str | None) -> None:
    assert shorten(text, limit) == short


@given(st.text(st.characters(codec=None), max_size=60), st.integers(1, 20))
def test_a_short_text_is_short_and_clean(text: str, limit: int) -> None:
    short = shorten(text, limit)
    if short is not None:
        assert 0 < len(short) <= limit
        assert clean(short) == short
        short.encode()


def test_names_are_exact() -> None:
    assert exact("key", "e\u0301") == "e\u0301"
    for bad in ("", "\0", "a\udfff"):
        with pytest.raises(InputError):
            exact("key", bad)


@given(*[st.none() | st.sampled_from("abc")] * 3)
def test_a_persons_title_comes_first(
    user: str | None, llm: str | None, derived: str | None
) -> None:
    given_titles = {"user": user, "llm": llm, "derived": derived}
    title, origin = shown_title(user, llm, derived)
    if title is None:
        assert origin is None
        assert set(given_titles.values()) == {None}
    else:
        names = list(given_titles)
        assert given_titles[origin or ""] == title
        assert all(given_titles[name] is None for name in names[: names.index(origin or "")])


def test_a_message_is_a_value() -> None:
    fields = {
        "seq": 3, "uid": "ab" * 16, "role": Role.USER, "parts": (Text("a"),), "created_at": 5,
        "key": "k", "turn": 2, "author": "Ada", "meta": {"x": 1}, "tokens": 4,
    }  # fmt: skip
    message, same = Message.of(**fields), Message.of(**fields)
    assert message == same
    assert hash(message) == hash(same)
    assert message != Message.of(**{**fields, "parts": (Text("b"),)})
    assert message.draft() == Draft(
        role=Role.USER, parts=(Text("a"),), uid="ab" * 16, key="k", after=2, author="Ada",
        tokens=4, meta={"x": 1}, created_at=5,
    )  # fmt: skip
    inherited = message.inherited()
    assert (inherited.turn, inherited.uid, inherited.text) == (None, message.uid, "a")
    assert repr(message) == "Message(seq=3, role='user', text='a')"
