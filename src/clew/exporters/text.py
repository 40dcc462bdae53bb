"""Text for files: JSON that is harmless to a terminal, times, sizes, and text that cannot act."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from clew.domain.chat import BlobReader
from clew.domain.parts import File, Image
from clew.errors import NotFound

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ESCAPED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udfff]+")
_ACTING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
RASTER = frozenset((
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp",
))  # fmt: skip
"""Images that are nothing but pixels."""

ID_LENGTH = 5000
"""Characters of an id that are shown: all. Other tools' are longer than they should be."""


def dumps(value: object) -> str:
    """One line of JSON; what acts on a terminal, ends lines or is no UTF-8 stands escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() and "\x7f" not in text else _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def json_list(
    values: Iterable[Any], fields: Mapping[str, object], name: str,
    after: Mapping[str, object] | None = None,
) -> Iterator[str]:  # fmt: skip
    """An object with these fields, a list, one value a line, as they come, and fields `after` it.

    No line of several is a value of its own, and what tells the form comes first: else a reader
    that looks at the head takes it for JSON lines, or for nothing it knows. For other tools, of
    which many refuse lone surrogates: each becomes U+FFFD."""
    head = "".join(f"{_field(*field)},\n" for field in fields.items())
    yield f"{{{head}{dumps(name)}:["
    separator = "\n "
    for value in values:
        yield separator + _foreign(value)
        separator = ",\n "
    yield "]" + "".join(f",\n{_field(*field)}" for field in (after or {}).items()) + "}\n"


def _field(name: str, value: object) -> str:
    return f"{dumps(name)}:{_foreign(value)}"


def _foreign(value: object) -> str:
    """As `dumps`, without surrogates: a pair becomes what it means, a lone one U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if text.isascii() and "\x7f" not in text:
        return text
    return _ESCAPED.sub(_escape, _SURROGATES.sub(_character, text))


def _character(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return units.decode("utf-16-be", "replace")


def shown(text: str) -> str:
    """Text in which nothing acts: controls, what turns the direction of writing and lone
    surrogates are named. Line feeds and tabs stay."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isprintable():
        return text
    return _ACTING.sub(lambda found: _named(ord(found[0])), text)


def _named(code: int) -> str:
    return f"^{chr(code + 0x40)}" if code < 0x20 else f"<U+{code:04X}>"


def one_line(text: str, most: int = 1000) -> str:
    """The same, on one line."""
    text = " ".join(shown(text[: most * 2]).split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def iso(at: int) -> str:
    """Microseconds as ISO 8601, UTC."""
    return _moment(at).isoformat().replace("+00:00", "Z")


def minute(at: int) -> str:
    """For people: UTC, to the minute."""
    return _moment(at).strftime("%Y-%m-%d %H:%M UTC")


def _moment(at: int) -> datetime:
    """The last moments that a store takes lie beyond what datetime knows."""
    try:
        return _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def pretty(arguments: str) -> str:
    """JSON with its fields on lines of their own; anything else as it is."""
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def attachment(part: Image | File) -> str:
    """What it is, in a few words."""
    name = part.name if isinstance(part, File) else None
    size = "" if part.size is None else f"{part.size:,} bytes"
    kind = "image" if isinstance(part, Image) else "file"
    return one_line(" ".join(filter(None, (kind, name, part.media_type, size))))


def unknown(value: object) -> str:
    """What a part that clew does not know is, by its type."""
    kind = cast(dict[str, object], value).get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind.strip():
        return f"{one_line(kind, 100)} (a kind that clew does not know)"
    return "Something clew does not know"


def bytes_of(part: Image | File, blob: BlobReader) -> bytes | None:
    """Its bytes, where the store has them."""
    if part.data is not None or part.hash is None:
        return part.data
    try:
        return blob(part.hash)
    except NotFound:
        return None


def raster_url(part: Image, blob: BlobReader) -> str | None:
    """A data URL of an image that is nothing but pixels."""
    kind = part.media_type.lower()
    if kind not in RASTER:
        return None
    data = bytes_of(part, blob)
    return None if data is None else f"data:{kind};base64,{base64.b64encode(data).decode()}"


def web_url(url: str | None) -> str | None:
    """A link that may be followed: http or https, nothing in it that would end it."""
    found = url is not None and re.fullmatch(r"https?://[^\s<>\"'`\\\x00-\x20\x7f-\x9f]+", url)
    return url if found else None
