"""Lines of clew's JSONL as bytes, and back.

A line is JSON in UTF-8 in which U+2028, U+2029 and U+0085 are escaped: some readers take them for
line ends. So is what acts on a terminal, and lone surrogates. A line that begins with a space holds
a high surrogate right before a low one, as characters of their own (domain.values).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from clew.domain.values import KEPT_APART, escape_text, json_value
from clew.store.transfer_lines import Line

VERSION = 1

_ACTING = re.compile(
    b"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)
"""In UTF-8: DEL and C1 controls, line and paragraph separators, and what turns the direction of
writing. Other controls JSON escapes by itself."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line of a file."""

    clew: int
    """Version of the format."""
    type: str
    """"store" for all of a profile, else "conversations"."""
    made_at: int
    made_by: str
    profile: str


def encode(line: Line | Header) -> bytes:
    """A value as a line, with its line end."""
    try:
        body = _encode(line)
    except UnicodeEncodeError:
        body = escape_text(msgspec.to_builtins(line)).encode()
    if not body.isascii() or b"\x7f" in body:
        body = _ACTING.sub(_escaped, body)
    return body + b"\n"


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def decode(data: bytes) -> Line:
    """A line, without its line end. ValueError says what is wrong with it."""
    try:
        if data[:1] != KEPT_APART.encode():
            try:
                return _decode(data)
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError:
                pass  # lone surrogates, which it does not read, or no JSON
        value: Any = json_value(data.decode())
        return msgspec.convert(value, Line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"no line of clew's JSONL: {error}") from None


def header_of(data: bytes) -> Header | None:
    """The first line, if it is one."""
    try:
        return msgspec.json.decode(data, type=Header)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
