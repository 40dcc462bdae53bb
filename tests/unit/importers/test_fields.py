"""Fields of a stranger's values: right ones are read, all others are none, nothing is raised."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.clock import LATEST
from clew.domain.parts import File, Image, Unknown, check_parts
from clew.importers import fields
from clew.importers.bridges import Bridges, Recent

NOON = 1_755_691_200_000_000


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ("2025-08-20T12:00:00Z", NOON),
        ("2025-08-20T12:00:00.000001+00:00", NOON + 1),
        ("2025-08-20T12:00:00", NOON),
        ("2025-08-20T14:00:00+02:00", NOON),
        (1_755_691_200, NOON),
        (1_755_691_200.25, NOON + 250_000),
        (1_755_691_200_000, NOON),
        (1_755_691_200_000_000, NOON),
        (1_755_691_200_000_000_000, NOON),
        ("1755691200.5", NOON + 500_000),
        (0, 0),
        (-1, None),
        ("1969-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        (1e300, None),
        (10**400, None),
        (math.nan, None),
        ("soon", None),
        ("", None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_moments(value: object, micros: int | None) -> None:
    assert fields.moment(value) == micros


READERS: list[Callable[[object], object]] = [
    fields.text, fields.ident, fields.number, fields.whole, fields.flag, fields.mapping,
    fields.listed, fields.moment, fields.arguments, fields.unknown, fields.decoded,
    fields.image_at, fields.file_at, fields.compact, fields.canonical,
]  # fmt: skip
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800")
    | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)  # fmt: skip


@given(ANY)
@settings(max_examples=6 * settings.default.max_examples)
def test_whatever_stands_there_nothing_is_raised(value: Any) -> None:
    for reader in READERS:
        reader(value)
    for also in (value, {"type": value}):
        check_parts((fields.unknown(also),))
        assert fields.small({"a": also, "b": 1}) is not None
    found = fields.moment(value)
    assert found is None or 0 <= found <= LATEST


def test_numbers_counts_and_ids() -> None:
    assert [fields.number(value) for value in (1, 1.5, True, "1", math.inf)] == [
        1.0, 1.5, None, None, None,
    ]  # fmt: skip
    assert (fields.whole(fields.COUNT), fields.whole(fields.COUNT + 1)) == (fields.COUNT, None)
    assert [fields.whole(value) for value in (3, 3.0, 3.5, -3, True, 1 << 70)] == [
        3, 3, None, None, None, None,
    ]  # fmt: skip
    assert [fields.ident(value) for value in ("a", 7, "", "x" * 1025, True, 1.5)] == [
        "a", "7", None, None, None, None,
    ]  # fmt: skip


def test_a_canonical_form_does_not_depend_on_the_order_of_keys() -> None:
    one, two = {"a": 1, "b": {"c": 2, "d": "\ud800"}}, {"b": {"d": "\ud800", "c": 2}, "a": 1}
    assert fields.canonical(one) == fields.canonical(two)
    assert fields.canonical([1, 2]) != fields.canonical([2, 1])


def test_arguments_are_the_models_text_or_compact_json() -> None:
    assert fields.arguments('{"a": 1') == '{"a": 1'
    assert fields.arguments({"b": [1, None], "a": "é"}) == '{"b":[1,null],"a":"é"}'
    assert json.loads(fields.arguments({"a": "\ud800"})) == {"a": "\ud800"}
    assert fields.arguments(None) == ""


def test_images_and_files() -> None:
    data = base64.b64encode(b"bytes").decode()
    assert fields.image(data, "image/gif") == Image("image/gif", b"bytes")
    assert fields.image(data[:4] + "\n" + data[4:], 17) == Image("image/png", b"bytes")
    assert fields.image("no base64", None) is None
    assert fields.image_at(f"data:image/gif;base64,{data}", "low") == Image(
        "image/gif", b"bytes", detail="low"
    )
    broken = "data:image/gif;base64,***"
    assert fields.image_at(broken) == Image(url=broken)
    assert fields.image_at("https://x.test/a.png") == Image(url="https://x.test/a.png")
    assert fields.file_at(f"data:text/plain;charset=utf-8;base64,{data}", "n") == File(
        "text/plain", "n", b"bytes"
    )


def test_what_is_over_a_limit_is_not_decoded() -> None:
    assert fields.decoded(base64.b64encode(b"x" * 101).decode(), 100) is None
    assert fields.decoded(base64.b64encode(b"x" * 100).decode(), 100) == b"x" * 100


def test_what_no_store_would_take_becomes_text() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    assert isinstance(fields.unknown(deep).value, str)
    assert fields.unknown({"a": [1]}) == Unknown({"a": [1]})


def test_small_facts_are_kept() -> None:
    assert fields.meta(a=1, b=None, c=False, d="", e="x" * 3000, f=[math.nan], g=True, h={}) == {
        "a": 1, "g": True,
    }  # fmt: skip
    assert fields.meta(a=None) is None


def test_all_small_facts_together_are_small_as_a_store_writes_them() -> None:
    many = {f"{n}": "\u4f60" * 2000 for n in range(9)} | {"last": 1}
    assert fields.small(many) == {"0": "\u4f60" * 2000, "last": 1}
    plain = {f"{n}": "x" * 2000 for n in range(9)}
    assert fields.small(plain) == {f"{n}": "x" * 2000 for n in range(8)}


def test_a_file_is_named_by_its_address_or_its_id() -> None:
    assert fields.file_named("a/b", "n", "", 7) == File("a/b", name="n", file_id="7")
    assert fields.file_named("a/b", 5, "http://x", None) == File("a/b", url="http://x")
    assert fields.file_named("a/b", "n", "", {}) is None


def test_bridges_lead_over_what_is_no_message() -> None:
    bridges = Bridges()
    bridges.bridge("b", "a")
    bridges.bridge("c", bridges.kept("b"))
    bridges.bridge("d", "d")
    assert [bridges.kept(id) for id in ("a", "b", "c", "d", None)] == ["a", "a", "a", None, None]
    bridges.is_message("c")
    assert bridges.kept("c") == "c"


def test_the_newest_are_remembered() -> None:
    recent = Recent()
    for number in range(100_000):
        recent.put(str(number), None)
    assert "99999" in recent
    assert "80000" in recent
    assert len(recent) <= 40_000
