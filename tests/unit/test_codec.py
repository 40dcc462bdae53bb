"""Values as bytes: unchanged, small, and a typed error for every kind of damage."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import Corrupt, InputError, Reasoning, Text, TooLarge, ToolCall, ToolResult, Unknown
from clew.domain.parts import check_parts
from clew.domain.values import check_json
from clew.store.codec import (
    ESCAPED,
    PLAIN,
    ZSTD,
    ZSTD_DICTIONARY,
    Codec,
    json_text,
    json_value,
    train,
)

TEXT = st.text(st.characters(codec=None), max_size=300) | st.text(
    st.sampled_from('a\\"u\0 \ud83d\ude00\U0001f600é'), max_size=12
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PART = st.one_of(
    st.builds(Text, TEXT),
    st.builds(Reasoning, TEXT, signature=st.none() | TEXT),
    st.builds(ToolCall, TEXT, TEXT, TEXT),
    st.builds(ToolResult, TEXT, TEXT),
    st.builds(Unknown, JSON),
)


@given(st.lists(PART, max_size=4).map(tuple))
def test_parts_come_back_unchanged(parts: tuple[Any, ...]) -> None:
    codec = Codec()
    packed = codec.pack(parts)
    assert codec.parts(packed) == parts
    if any(ord(c) in range(0xD800, 0xE000) for c in str(parts)):
        assert packed[0] & ESCAPED or b"\\ud" in packed


@given(JSON)
def test_values_come_back_unchanged(value: Any) -> None:
    codec = Codec()
    assert codec.value(codec.pack(value), Any) == value
    text = json_text(value)
    assert json_value(text) == value
    assert text is None or not any(0xD800 <= ord(c) < 0xE000 or c == "\0" for c in text)


def test_surrogates_are_kept_apart() -> None:
    for value in ("a\ud83d\ude00b", "\ud83d\ude00\U0001f600", "\\ud83d\ud83d\ude00\\"):
        assert list(json_value(json_text({value: [value]}))) == [value]
        assert Codec().parts(Codec().pack((Text(value),))) == (Text(value),)
    assert (json_text("\U0001f600") or "").isascii()


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


BAD = {
    "nan": [1, {"a": float("nan")}], "infinity": float("-inf"), "deep": deep(60),
    "deeper": deep(100_000), "cyclic": cyclic(), "object": object(), "key": {1: 2},
    "digits": 10**5000,
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_would_not_come_back_is_refused(what: str) -> None:
    for write in (json_text, check_json, Codec().pack):
        with pytest.raises(InputError):
            write(BAD[what]) if write is not check_json else check_json("x", BAD[what])
    with pytest.raises(InputError, match=r"Unknown\.value"):
        check_parts((Unknown(BAD[what]),))


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(InputError, match=r"meta\['a'\]\[1\] is nan"):
        json_text({"a": [1, float("nan")]}, "meta")
    assert json_value(json_text(deep(50))) == deep(50)


def test_the_tag_says_how_it_is_packed() -> None:
    codec = Codec()
    assert codec.pack((Text("a"),))[0] == PLAIN
    assert codec.pack((Text("a" * 500),))[0] == PLAIN
    assert codec.pack((Text("a" * 2000),))[0] == ZSTD
    assert codec.pack((Text("\ud800"),))[0] == PLAIN | ESCAPED
    assert codec.pack((Text("\ud800" * 500),))[0] == ZSTD | ESCAPED
    assert len(codec.pack((Text("a" * 100_000),))) < 200


def test_what_does_not_get_smaller_is_not_compressed() -> None:
    noise = "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(120))
    packed = Codec().pack((Text(noise),))
    assert len(packed) <= len(noise.encode()) + 40


def test_the_limit_is_on_the_text_however_small_it_packs() -> None:
    codec, parts = Codec(), (Text("a" * 1000),)
    size = len(codec.json(codec.pack(parts)))
    assert codec.parts(codec.pack(parts, size)) == parts
    with pytest.raises(TooLarge) as refused:
        codec.pack(parts, size - 1)
    assert (refused.value.size, refused.value.limit) == (size, size - 1)


def test_what_json_cannot_hold_is_refused() -> None:
    for value in (object(), {"x": object()}, [1, 2j]):
        with pytest.raises(InputError):
            Codec().pack((Unknown(value),))


@pytest.fixture(scope="module")
def dictionary() -> bytes:
    texts = [f'[{{"type":"text","text":"message {n} about the weather"}}]' for n in range(5000)]
    return train([text.encode() for text in texts], 4096)


def test_a_dictionary_makes_short_messages_smaller(dictionary: bytes) -> None:
    with_it, without = Codec(lambda: {1: dictionary}), Codec()
    parts = (Text("message 17 about the weather " * 10 + "and so on"),)
    packed = with_it.pack(parts)
    assert packed[:2] == bytes((ZSTD_DICTIONARY, 1))
    assert len(packed) <= len(without.pack(parts))
    assert with_it.parts(packed) == parts
    # old rows keep what they were written with
    assert with_it.parts(without.pack(parts)) == parts


def test_a_dictionary_that_another_process_trained_is_learned(dictionary: bytes) -> None:
    known: dict[int, bytes] = {}
    mine = Codec(lambda: known)
    assert mine.current == 0
    parts = (Text("message 17 about the weather " * 20),)
    theirs = Codec(lambda: {1: dictionary}).pack(parts)
    with pytest.raises(Corrupt):
        mine.parts(theirs)
    known[1] = dictionary
    assert mine.parts(theirs) == parts


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"\x7f", b"\x00", b"\x00{", b"\x00[1]", b'\x00[{"type":"nobody"}]', b"\x01",
        b"\x01garbage", b"\x02", b"\x02\x09garbage", b"\x80[{]", b'\x80[{"type":"text"}]',
        b"\x00\xff\xfe",
    ],
)  # fmt: skip
def test_damage_is_told_as_such(damage: bytes) -> None:
    with pytest.raises(Corrupt):
        Codec().parts(damage)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for read in (Codec().parts, lambda d: Codec().value(d, dict)):
        try:
            read(data)
        except Corrupt:
            pass


def test_a_cut_off_value_is_damage() -> None:
    codec = Codec()
    packed = codec.pack((Text("long enough to be compressed " * 40),))
    for length in range(1, len(packed)):
        with pytest.raises(Corrupt):
            codec.parts(packed[:length])


def test_threads_share_a_codec() -> None:
    codec, wrong = Codec(), list[int]()

    def work(n: int) -> None:
        for round in range(200):
            parts = (Text(f"{n} {round} " * 100),)
            if codec.parts(codec.pack(parts)) != parts:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
