"""What images and files cost a model: by their pixels and pages, never by their bytes as text.

Each provider has a rule of its own; a family of models names it. Where width and height are not
known, an image is taken to be a large screenshot, which is near the most that most rules charge.
"""

from __future__ import annotations

from math import ceil, sqrt
from struct import error, unpack_from
from typing import NamedTuple

from msgspec.structs import replace

from clew.domain.parts import File, Image

TYPICAL = (1568, 1176)
"""Pixels of an image of unknown size."""


class Tiles(NamedTuple):
    """OpenAI, by tiles: shrunk into a square of 2048 pixels, then to a short side of 768; `base`
    tokens and `each` per tile of 512. At low detail `base` alone."""

    base: int
    each: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        if detail == "low":
            return self.base
        shrink = min(1.0, 2048 / max(width, height))
        shrink = min(shrink, 768 / min(width, height))
        across, down = (max(1, ceil(round(side * shrink) / 512)) for side in (width, height))
        return self.base + self.each * across * down


class Patches(NamedTuple):
    """OpenAI's later models and open ones, by patches of `side` pixels: an image of more than
    `most` is shrunk until they suffice. `factor`: tokens per patch."""

    side: int
    most: int
    factor: float

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        if detail == "low":
            shrink = min(1.0, 512 / max(width, height))
            width, height = max(1, round(width * shrink)), max(1, round(height * shrink))
        most = 10_000 if detail == "original" else self.most
        patches = ceil(width / self.side) * ceil(height / self.side)
        if patches > most:
            shrink = sqrt(self.side**2 * most / (width * height))
            across, down = width * shrink / self.side, height * shrink / self.side
            shrink = min(max(1, int(across)) / across, max(1, int(down)) / down)
            patches = min(most, ceil(across * shrink) * ceil(down * shrink))
        return ceil(patches * self.factor)


class Area(NamedTuple):
    """Anthropic: a token for 750 pixels, shrunk to a long side of `edge`; at most `most`."""

    edge: int
    most: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        shrink = min(1.0, self.edge / max(width, height))
        return min(self.most, ceil(width * shrink * height * shrink / 750))


class Crops(NamedTuple):
    """Gemini: `each` for a small image, and for each crop of a larger one. A crop is two thirds
    of the short side, within 256 and 768 pixels."""

    each: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        if max(width, height) <= 384:
            return self.each
        unit = min(768, max(256, int(min(width, height) / 1.5)))
        return self.each * ceil(width / unit) * ceil(height / unit)


class Fixed(NamedTuple):
    """The same for every image."""

    each: int

    def tokens(self, width: int, height: int, detail: str | None) -> int:
        return self.each


RULES: dict[str, Tiles | Patches | Area | Crops | Fixed] = {
    "gpt-4o": Tiles(85, 170),
    "gpt-4o-mini": Tiles(2833, 5667),
    "gpt-5": Tiles(70, 140),
    "o-series": Tiles(75, 150),
    "mini": Patches(32, 1536, 1.72),
    "nano": Patches(32, 1536, 2.46),
    "gpt-5.2": Patches(32, 2500, 1.2),
    "claude": Area(1568, 1600),
    "claude-high": Area(2576, 4784),
    "gemini": Crops(258),
    "gemini-3": Fixed(1120),
    "open": Patches(28, 4096, 1.0),
    "qwen": Patches(28, 16384, 1.0),
    "llama": Fixed(6404),
    "grok": Fixed(1792),
}
"""By name, as far as providers and their users tell (2025 and 2026)."""

PAGE_BYTES, PAGE_TOKENS = 50_000, 2_500
"""Of a PDF: a page is read as text and as an image."""
ELSEWHERE = 4 * PAGE_TOKENS
"""A file of which not even the size is known."""


def image_tokens(image: Image, rule: str) -> int:
    """Tokens of an image by the rule of that name in RULES."""
    width, height = image.width or 0, image.height or 0
    if width <= 0 or height <= 0:
        width, height = TYPICAL
    return RULES[rule].tokens(width, height, image.detail)


def file_tokens(file: File) -> int:
    """A guess at the tokens of a file: pages of a PDF, a token for four bytes of text, for sixteen
    of anything else."""
    size = len(file.data) if file.data is not None else file.size
    if size is None:
        return ELSEWHERE
    if file.media_type == "application/pdf":
        return PAGE_TOKENS * max(1, ceil(size / PAGE_BYTES))
    is_text = file.media_type.startswith("text/") or file.media_type.endswith(("json", "xml"))
    return ceil(size / (4 if is_text else 16))


def sized(part: Image | File, data: bytes) -> Image | File:
    """An image with the width and height that its bytes tell, if nobody gave them."""
    if isinstance(part, Image) and part.width is None and part.height is None:
        pixels = dimensions(data)
        return part if pixels is None else replace(part, width=pixels[0], height=pixels[1])
    return part


def dimensions(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, JPEG, GIF or WebP, from its header; None if it is none."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            width, height = unpack_from(">II", data, 16)
        elif data.startswith((b"GIF87a", b"GIF89a")):
            width, height = unpack_from("<HH", data, 6)
        elif data.startswith(b"\xff\xd8"):
            width, height = _jpeg(data)
        elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            width, height = _webp(data)
        else:
            return None
    except (IndexError, ValueError, error):  # cut off, or no such file after all
        return None
    return (width, height) if width > 0 and height > 0 else None


def _jpeg(data: bytes) -> tuple[int, int]:
    """Of the frame's header, behind segments that each say how long they are."""
    at = 2
    while True:
        while data[at] == 0xFF and data[at + 1] == 0xFF:
            at += 1  # filling
        if data[at] != 0xFF:
            raise ValueError
        kind = data[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + (0 if 0xD0 <= kind <= 0xD8 else max(2, unpack_from(">H", data, at + 2)[0]))


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8 ":
            width, height = unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, more, height, most = unpack_from("<HBHB", data, 24)
            return (width | more << 16) + 1, (height | most << 16) + 1
        case _:
            raise ValueError
