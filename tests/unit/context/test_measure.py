"""The measure of messages: adds up, grows with them, learns from what providers report."""

from __future__ import annotations

import base64
import json
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import (
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from clew.context.families import family_of
from clew.context.measure import FRAME, FRAME_BYTES, Measure, Reading, bytes_of, measure_for
from clew.context.tokens import count_parts, count_text
from clew.domain.chat import chat_of, split_results

MODELS = ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "llama3.1:8b", "qwen3", "house-model")
WORDS = st.text(max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)
MEDIA = st.one_of(
    st.builds(Image, data=st.binary(max_size=900), detail=st.sampled_from([None, "low", "high"])),
    st.builds(Image, url=WORDS), st.builds(File, data=st.binary(max_size=900), name=WORDS),
    st.builds(File, file_id=WORDS),
)  # fmt: skip
SAID = st.one_of(st.builds(Text, WORDS), MEDIA, st.builds(Unknown, OBJECTS))
PIECES = st.one_of(
    SAID, st.builds(Reasoning, WORDS),
    st.builds(ToolCall, WORDS, WORDS, WORDS, st.sampled_from(["function", "custom"]),
              st.none() | OBJECTS),
)  # fmt: skip
RESULTS = st.builds(ToolResult, WORDS, WORDS | st.lists(SAID, max_size=3).map(tuple), WORDS)
PARTS = st.lists(PIECES | RESULTS, max_size=6).map(tuple)
SCALES = st.sampled_from([0.5, 0.95, 1.0, 1.2, 1.45, 3.0])


def message(parts: tuple[Part, ...], tokens: int | None = None) -> Message:
    return Message.of(seq=1, uid="0" * 32, role=Role.USER, parts=parts, created_at=1, tokens=tokens)


@given(st.sampled_from(MODELS), SCALES, PARTS, PARTS)
def test_it_adds_up_and_grows(
    model: str, scale: float, some: tuple[Part, ...], more: tuple[Part, ...]
) -> None:
    """Up to rounding: the whole is never more than its pieces, and at most one less."""
    measure = Measure(family_of(model), scale)
    one, two, both = measure.parts(some), measure.parts(more), measure.parts(some + more)
    assert one + two - 1 <= both <= one + two
    assert both >= max(one, two)
    assert bytes_of(some + more) == bytes_of(some) + bytes_of(more)


@given(PARTS)
def test_it_grows_with_the_scale(parts: tuple[Part, ...]) -> None:
    sizes = [Measure(family_of("gpt-4o"), scale).parts(parts) for scale in (0.5, 1, 1.2, 3)]
    assert sizes == sorted(sizes)


@given(st.sampled_from(MODELS), PARTS)
def test_the_stored_count_says_the_same(model: str, parts: tuple[Part, ...]) -> None:
    """Counted at the append or now."""
    measure = measure_for(model)
    counted = measure.message(message(parts))
    assert measure.message(message(parts, count_parts(parts))) == counted
    assert measure.parts(parts) <= counted <= measure.parts(parts) + ceil(FRAME * measure.scale)


def test_a_model_with_an_encoding_of_its_own_is_counted_in_it() -> None:
    """Qwen makes a token of each digit: half as many again for a table of numbers, which no scale
    for all texts could know."""
    table = "\n".join(f"{n * 7919 % 100_000},{n * 104_729 % 1_000_000}" for n in range(300))
    measure = measure_for("qwen3-32b")
    assert measure.text(table) == count_text(table, "qwen3") > 1.3 * count_text(table)
    assert measure.message(message((Text(table),), 1)) == measure.text(table) + FRAME
    assert measure_for("gpt-4o").message(message((Text(table),), 1)) == 1 + FRAME


def test_a_model_without_one_is_counted_with_a_margin() -> None:
    text = "The window is full. " * 50
    assert measure_for("claude-sonnet-4-5").text(text) == ceil(count_text(text) * 1.2)
    assert measure_for(None).text(text) == measure_for("gpt-5").text(text) == count_text(text)


# ------------------------------------------------------------------ calibration


def readings(model: str, *ratios: float, expected: int = 10_000) -> list[Reading]:
    return [Reading(model, expected, round(expected * ratio), 0) for ratio in ratios]


def scale(model: str, *found: list[Reading]) -> float:
    return measure_for(model, [reading for each in found for reading in each]).scale


def test_few_readings_say_nothing() -> None:
    assert scale("claude-sonnet-4-5", readings("claude-sonnet-4-5", 2.0, 2.0)) == 1.2
    assert scale("claude-sonnet-4-5", readings("claude-sonnet-4-5", 2.0, 2.0, 2.0)) == 2.0


def test_other_families_say_nothing() -> None:
    assert scale("claude-sonnet-4-5", readings("gpt-4o", *[2.0] * 20)) == 1.2
    assert scale("house-a", readings("house-b", *[2.0] * 20)) == 1.15
    assert scale("anthropic/claude-opus-4", readings("claude-haiku-4-5", *[1.4] * 9)) == 1.4


@given(
    st.floats(0.6, 2.5), st.lists(st.floats(0.001, 1000), max_size=9), st.randoms()
)  # fmt: skip
def test_odd_readings_do_not_move_it(ratio: float, odd: list[float], random: object) -> None:
    """A retry that was billed twice, a cache that was not: fewer than half of the newest."""
    ratios = [ratio] * (len(odd) + 1 + 2) + odd
    getattr(random, "shuffle")(ratios)  # noqa: B009
    assert abs(scale("gpt-4o", readings("gpt-4o", *ratios)) - ratio) < 0.026


@given(st.floats(0.001, 100))
def test_it_moves_in_steps_within_bounds(ratio: float) -> None:
    found = scale("gpt-4o", readings("gpt-4o", ratio, ratio, ratio, expected=1_000_000))
    assert 0.5 <= found <= 3.0
    assert round(found * 20) == pytest.approx(found * 20)


def test_the_newest_count() -> None:
    found = [readings("gpt-4o", *[2.0] * 50), readings("gpt-4o", *[1.1] * 20)]
    assert scale("gpt-4o", *found) == 1.1


def test_readings_that_say_nothing_are_left_out() -> None:
    """Nobody expected anything, or nothing was reported, or the tools weighed more."""
    empty = [Reading("gpt-4o", 0, 500), Reading("gpt-4o", 5000, 0), Reading("gpt-4o", 20, 900)]
    assert scale("gpt-4o", empty * 9) == 1.0
    assert scale("gpt-4o", empty * 9, readings("gpt-4o", 1.3, 1.3, 1.3)) == 1.3


# ------------------------------------------------------------------ bytes


@given(st.lists(PIECES, max_size=6).map(tuple) | st.lists(RESULTS, max_size=4).map(tuple))
def test_the_bytes_of_a_request_are_not_more(parts: tuple[Part, ...]) -> None:
    """Than what the rendering of the same parts takes, and not by far less."""
    role = Role.TOOL if any(isinstance(part, ToolResult) for part in parts) else Role.ASSISTANT
    sent = [chat_of(role, piece, lambda _: b"") for piece in split_results(parts)]
    text = json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode("utf-8", "surrogatepass"))
    assert size <= bytes_of(parts) + FRAME_BYTES
    nested = sum(len(part.content) for part in parts if isinstance(part, ToolResult))
    assert bytes_of(parts) <= size + (len(parts) + nested) * 2 * FRAME_BYTES + 6 * 60


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, 1_000_001])
def test_images_and_files_are_sent_as_base64(size: int) -> None:
    sent = len(base64.b64encode(bytes(size)))
    for part in (Image(data=bytes(size)), Image(hash="0" * 64, size=size), File(data=bytes(size))):
        for parts in ((part,), (ToolResult("c", (part,)),)):
            assert sent <= bytes_of(parts) <= sent + 300


def test_an_image_elsewhere_is_sent_as_its_address() -> None:
    assert bytes_of((Image(url="https://example.com/a.png", size=10**9),)) < 200
    assert bytes_of((Image(hash="0" * 64),)) > 500_000


def test_escapes_and_surrogates_are_counted() -> None:
    assert bytes_of((Text('"\n' * 1000),)) >= 4000
    assert bytes_of((Text("\0" * 1000),)) >= 6000
    assert bytes_of((Text("窗" * 1000),)) >= 3000
    assert bytes_of((Text("\ud800" * 1000),)) >= 3000
    assert bytes_of((Unknown({"a": "\ud800"}),)) > 0
