"""The elements of an array, however the file is cut into chunks."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from clew.importers.jsonarray import items

TEXT = st.text(st.sampled_from('a,"\\[]{}: \n'), max_size=8)
VALUE = st.recursive(
    TEXT | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
MIB = 1 << 20


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(st.lists(VALUE, max_size=5), st.integers(1, 40), st.sampled_from([None, 1]))
def test_every_element_comes_out(values: list[object], size: int, indent: int | None) -> None:
    data = json.dumps(values, indent=indent).encode()
    assert [json.loads(each) for each in items(chunked(data, size), MIB)] == values


def test_one_that_is_too_large_is_named_and_the_rest_comes_out() -> None:
    data = b'[1,{"a":"' + b"x" * 3 * MIB + b'"},["' + b"[],{}" * 10 + b'"],2]'
    found = list(items(chunked(data, 1000), MIB))
    assert found == [b"1", "larger than 1 MiB", b'["' + b"[],{}" * 10 + b'"]', b"2"]


def test_a_file_that_was_cut_off_says_so() -> None:
    *there, last = items([b'[1,{"a":2},{"b'], MIB)
    assert there == [b"1", b'{"a":2}']
    assert last == "the file ends in the middle of an element or array"
