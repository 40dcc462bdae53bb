"""What images cost, by the examples that providers publish; sizes read from headers."""

from __future__ import annotations

import base64
import struct
import zlib
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew import File, Image, Part, Reasoning, ToolResult, Unknown
from clew.context.families import Family, family_of
from clew.context.images import RULES, TYPICAL, dimensions, file_tokens, image_tokens, sized
from clew.context.measure import Measure
from clew.context.tokens import count_text


def cost(rule: str, width: int, height: int, detail: str | None = None) -> int:
    return image_tokens(Image(width=width, height=height, detail=detail), rule)


def test_openai_tiles() -> None:
    assert cost("gpt-4o", 1024, 1024, "high") == 765
    assert cost("gpt-4o", 2048, 4096, "high") == 1105
    assert cost("gpt-4o", 4096, 8192, "low") == 85
    assert cost("gpt-4o", 512, 512) == 255
    assert cost("gpt-4o", 1, 1) == 255
    assert cost("gpt-4o-mini", 1024, 1024, "auto") == 2833 + 4 * 5667
    assert cost("gpt-5", 1024, 1024) == 70 + 4 * 140
    assert cost("o-series", 1024, 1024) == 75 + 4 * 150


def test_openai_patches() -> None:
    assert cost("mini", 1024, 1024) == ceil(1024 * 1.72)
    assert cost("mini", 1800, 2400) == ceil(1452 * 1.72)
    assert cost("mini", 2048, 768) == ceil(1536 * 1.72)
    assert cost("nano", 32, 32) == ceil(2.46)
    assert cost("gpt-5.2", 1024, 1024) == ceil(1024 * 1.2)
    assert cost("gpt-5.2", 1024, 1024, "low") == ceil(256 * 1.2)
    assert cost("gpt-5.2", 8000, 8000) <= 3000 < cost("gpt-5.2", 8000, 8000, "original") <= 12_000


def test_anthropic() -> None:
    assert cost("claude", 200, 200) == 54
    assert cost("claude", 1000, 1000) == 1334
    assert cost("claude", 1092, 1092) == 1590
    assert cost("claude", 8000, 8000) == 1600
    assert cost("claude", 1568, 100) == cost("claude", 3136, 200)
    assert cost("claude-high", 1000, 1000) == 1334
    assert cost("claude-high", 2576, 2576) == 4784


def test_gemini() -> None:
    assert cost("gemini", 384, 384) == 258
    assert cost("gemini", 960, 540) == 6 * 258
    assert cost("gemini", 1536, 1536) == 4 * 258
    assert cost("gemini-3", 99, 4000) == 1120


@given(
    st.sampled_from([*RULES]), st.integers(1, 60_000), st.integers(1, 60_000),
    st.sampled_from([None, "low", "high", "auto", "original", "?"]),
)  # fmt: skip
@example("mini", 60_000, 1, None)
def test_every_image_has_a_cost(rule: str, width: int, height: int, detail: str | None) -> None:
    tokens = cost(rule, width, height, detail)
    assert 1 <= tokens <= 300_000
    if rule not in ("gemini", "gpt-4o-mini"):
        assert tokens <= 25_000
    if rule != "gpt-4o-mini":
        assert cost(rule, width, height, "low") <= cost(rule, width, height) or not detail


@pytest.mark.parametrize("rule", RULES)
def test_an_image_of_unknown_size_costs_as_a_large_screenshot(rule: str) -> None:
    known = image_tokens(Image(width=TYPICAL[0], height=TYPICAL[1]), rule)
    assert image_tokens(Image(url="https://example.com/a.png"), rule) == known
    assert image_tokens(Image(width=0, height=-3), rule) == known


# ------------------------------------------------------------------ headers


def png(width: int, height: int) -> bytes:
    header = struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def jpeg(width: int, height: int, before: bytes = b"", frame: int = 0xC0) -> bytes:
    exif = b"\xff\xe1" + struct.pack(">H", len(before) + 2) + before
    size = struct.pack(">HBHH", 17, 8, height, width)
    return b"\xff\xd8" + exif + b"\xff\xff\xff" + bytes([frame]) + size + bytes(12)


def webp(width: int, height: int, kind: bytes) -> bytes:
    match kind:
        case b"VP8 ":
            body = bytes(10) + struct.pack("<HH", width, height)
        case b"VP8L":
            body = bytes(4) + b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14)
        case _:
            sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            body = bytes(8) + sides
    return b"RIFF" + struct.pack("<I", 4 + 4 + len(body)) + b"WEBP" + kind + body


SIDES = st.integers(1, 16_383)


@given(SIDES, SIDES, st.binary(max_size=300), st.sampled_from([0xC0, 0xC1, 0xC2, 0xCF]))
def test_sizes_are_read_from_headers(w: int, h: int, noise: bytes, frame: int) -> None:
    for data in (
        png(w, h), gif(w, h), jpeg(w, h, noise, frame), webp(w, h, b"VP8 "), webp(w, h, b"VP8L"),
        webp(w, h, b"VP8X"),
    ):  # fmt: skip
        assert dimensions(data) == (w, h)
        assert dimensions(data + noise) == (w, h)
        assert all(dimensions(data[:end]) in (None, (w, h)) for end in range(len(data)))


@given(
    st.sampled_from([b"", png(2, 3)[:16], gif(2, 3)[:6], b"\xff\xd8", b"RIFF1234WEBPVP8X"]),
    st.binary(max_size=100),
)
def test_what_is_no_image_has_no_size(start: bytes, rest: bytes) -> None:
    """Any bytes may stand in an image that a user sends."""
    pixels = dimensions(start + rest)
    assert pixels is None or min(pixels) > 0


def test_no_bytes_make_the_reader_slow_or_loop() -> None:
    assert dimensions(b"\xff\xd8" + b"\xff\xd0" * 500_000) is None
    assert dimensions(b"\xff\xd8" + b"\xff" * 1_000_000) is None
    assert dimensions(b"\xff\xd8" + b"\xff\xe0\0\0" * 250_000) is None


def test_a_given_size_is_kept() -> None:
    data = png(640, 480)
    assert sized(Image(), data) == Image(width=640, height=480)
    assert sized(Image(width=3), data) == Image(width=3)
    assert sized(Image(), b"no image") == Image()
    assert sized(File(), data) == File()


# ------------------------------------------------------------------ every shape


DATA = png(1024, 1024) + bytes(300_000)
PACKED = base64.b64encode(DATA).decode()
WRAPPED = "\n".join(PACKED[at : at + 76] for at in range(0, len(PACKED), 76))
KNOWN = Image(width=1024, height=1024)
URL = f"data:image/png;base64,{PACKED}"
FOREIGN: list[object] = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PACKED}},
    {"type": "input_image", "image_url": URL},
    {"type": "image_url", "image_url": {"url": URL, "x": 1}},
    {"inlineData": {"mimeType": "image/png", "data": PACKED}},
    {"inline_data": {"mime_type": "image/png", "data": PACKED.replace("+", "-")}},
    {"type": "image", "mimeType": "image/png", "data": WRAPPED},
    {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": URL}},
    [[PACKED]], PACKED,
]  # fmt: skip


@pytest.mark.parametrize("value", FOREIGN, ids=str)
@pytest.mark.parametrize("inside", [False, True])
def test_an_image_in_a_foreign_piece_costs_what_it_is(value: object, inside: bool) -> None:
    """S26: never its 300,000 bytes as text."""
    measure = Measure(family_of("gpt-4o"), 1.0)
    part: Part = ToolResult("c", (Unknown(value),)) if inside else Unknown(value)
    assert 765 <= measure.parts((part,)) <= 765 + 60


@pytest.mark.parametrize(
    "image", [KNOWN, Image(url=URL), Image(url=URL, detail="high"), sized(Image(), DATA)],
    ids=["known", "data url", "detail", "read"],
)  # fmt: skip
def test_an_image_costs_what_it_is(image: Image) -> None:
    for family, tokens in (("gpt-4o", 765), ("claude-sonnet-4-5", 1399), ("gemini-2.5-pro", 1032)):
        measure = Measure(family_of(family), 2.0)
        assert measure.parts((image,)) == tokens
        assert measure.parts((ToolResult("c", (image, image)),)) == 2 * tokens + 8


@pytest.mark.parametrize(
    "value",
    [
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "image", "source": {"type": "file", "file_id": "file-1"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "x": 1}},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://images/a.png"}},
    ],
    ids=str,
)
def test_an_image_elsewhere_costs_as_a_large_one(value: object) -> None:
    tokens = Measure(family_of("gpt-4o"), 1.0).parts((Unknown(value),))
    assert 765 <= tokens <= 765 + 340 + 60


def test_a_document_of_text_is_text() -> None:
    text = "The window is full. " * 100
    source = {"type": "text", "media_type": "text/plain", "data": text}
    value = {"type": "document", "source": source}
    tokens = Measure(family_of("gpt-4o"), 1.0).parts((Unknown(value),))
    assert count_text(text) < tokens < count_text(text) + 60


def test_files_are_guessed_by_kind_and_size() -> None:
    assert file_tokens(File("text/plain", data=b"a" * 4000)) == 1000
    assert file_tokens(File("application/json", size=4000)) == 1000
    assert file_tokens(File("application/pdf", size=500_000)) == 10 * 2500
    assert file_tokens(File("application/pdf", size=1)) == 2500
    assert file_tokens(File("audio/wav", size=160_000)) == 10_000
    assert file_tokens(File(file_id="file-1")) == 10_000
    paper = base64.b64encode(b"%PDF-1.7 " + bytes(400_000)).decode()
    measure = Measure(Family(name="x"), 1.0)
    assert (
        9 * 2500 <= measure.parts((Unknown({"type": "document", "data": paper}),)) <= 9 * 2500 + 60
    )


def test_encrypted_thinking_costs_what_it_hides() -> None:
    """Its signature costs nothing: it is not shown to the model."""
    measure = Measure(Family(name="x"), 1.0)
    assert measure.parts((Reasoning(data="A" * 1600),)) == 300
    assert measure.parts((Reasoning("", signature="A" * 1600),)) == 0
