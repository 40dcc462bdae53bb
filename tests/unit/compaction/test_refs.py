"""Names of messages as an agent writes them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.compaction.refs import MOST, Span, parse, written
from clew.errors import InputError


@pytest.mark.parametrize(
    ("ref", "spans"),
    [
        (12, [Span(12, 12)]),
        ("12", [Span(12, 12)]),
        ("@12", [Span(12, 12)]),
        ("[@12]", [Span(12, 12)]),
        ("recall(12)", [Span(12, 12)]),
        ("message 12", [Span(12, 12)]),
        ("12-40", [Span(12, 40)]),
        ("40-12", [Span(12, 40)]),
        ("@12..@40", [Span(12, 40)]),
        ("[@12] to [@40]", [Span(12, 40)]),
        ("12 – 40", [Span(12, 40)]),
        ("12,15,20-22", [Span(12, 12), Span(15, 15), Span(20, 22)]),
        ("[@12][@15]; 20 - 22", [Span(12, 12), Span(15, 15), Span(20, 22)]),
        ("20-22, 12 21,13", [Span(12, 13), Span(20, 22)]),
        ("12+18000", [Span(12, 12, 18000)]),
        ("12+18000,13-40", [Span(12, 40, 18000)]),
        ("12+5,12", [Span(12, 12)]),
    ],
)
def test_a_ref_is_read_as_it_is_meant(ref: Any, spans: list[Span]) -> None:
    assert parse(ref) == spans


@pytest.mark.parametrize("ref", ["3-", "3-head", "[@3]..end"])
def test_a_ref_may_go_to_the_end(ref: str) -> None:
    assert parse(ref)[0].open
    assert written(parse(ref)) == "3-"


@pytest.mark.parametrize(
    "ref",
    ["", "  ", ",", "twelve", "12-abc", "-3", "12+", "1.5", "9" * 13, "1," * MOST, None, True, 1.5,
     [12], 0, -1, 10**40],
)  # fmt: skip
def test_what_names_no_message_is_refused_with_an_example(ref: Any) -> None:
    with pytest.raises(InputError, match='"12-40"'):
        parse(ref)


spans_of = st.lists(
    st.builds(
        lambda first, more, start: Span(first, first + more, start),
        st.integers(1, 99), st.integers(0, 9), st.sampled_from([0, 0, 7]),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip


def test_a_number_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(InputError, match="no message has"):
        parse(10**5000)


@given(spans_of)
def test_what_is_written_is_read_again(spans: list[Span]) -> None:
    normal = parse(written(spans))
    assert parse(written(normal)) == normal
    assert normal == sorted(normal)
    assert all(before.last < after.first for before, after in pairwise(normal))
    named = {seq for span in spans for seq in range(span.first, span.last + 1)}
    assert {seq for span in normal for seq in range(span.first, span.last + 1)} == named


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(ref: str) -> None:
    try:
        assert parse(ref)
    except InputError:
        pass
