"""What `clew ask` sends: the words of the command line, standard input, and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from clew.domain.parts import File, Image, Part, Parts, Text
from clew.errors import InputError, TooLarge

LARGEST = 64 * 1024 * 1024
"""Bytes that are read of standard input or a file."""
IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif",
}  # fmt: skip
"""By how the files begin."""
PDF = b"%PDF-"
_FENCE = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def asked_text(words: Sequence[str], piped: str) -> str:
    """The words, then what was piped in: alone it is the message, behind words it stands in a
    fence, so that a model sees where it begins and ends."""
    text, piped = " ".join(words).strip(), piped.strip("\r\n")
    if not piped.strip():
        return text
    return f"{text}\n\n{fenced(piped)}" if text else piped


def fenced(text: str, name: str = "") -> str:
    """A text in a fence that nothing in it can close."""
    longest = max((len(found[1]) for found in _FENCE.finditer(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{name}\n{text}\n{fence}"


def piped_text(stream: TextIO | None) -> str:
    """All of standard input, unless it is closed or a terminal. InputError for what is no text."""
    if stream is None or stream.isatty():
        return ""
    raw = getattr(stream, "buffer", None)
    if raw is None:
        return stream.read(LARGEST)
    data: bytes = raw.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise TooLarge("standard input", len(data), LARGEST)
    return _decoded(data, "standard input")


def parts_of(text: str, files: Sequence[Path]) -> Parts:
    """The parts of the message. InputError: there is nothing to ask."""
    parts: list[Part] = [*map(_part, files)]
    if text:
        parts.insert(0, Text(text))
    if not parts:
        raise InputError('nothing to ask; give a text, as in `clew ask "Why?"`, or pipe one in')
    return tuple(_joined(parts))


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    """Texts that follow each other as one, with a blank line between."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
            continue
        if texts:
            yield Text("\n\n".join(texts))
            texts = []
        yield part
    if texts:
        yield Text("\n\n".join(texts))


def _part(path: Path) -> Part:
    """A file: an image or a PDF by how it begins, else its text, under its name."""
    data = _read(path)
    kind = next((kind for sign, kind in IMAGES.items() if data.startswith(sign)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is not None:
        return Image(data=data, media_type=kind)
    if data.startswith(PDF):
        return File(data=data, media_type="application/pdf", name=path.name)
    return Text(f"{path.name}:\n\n{fenced(_decoded(data, str(path)).strip())}")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; check --file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; check --file") from None
    if len(data) > LARGEST:
        raise TooLarge(str(path), len(data), LARGEST)
    return data


def _decoded(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(
            f"{where} is no text in UTF-8, and no image or PDF; give what a model can read"
        )
    return text
