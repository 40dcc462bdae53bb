"""Parts and other structured values as bytes: one tag byte, then JSON, maybe compressed.

JSON is msgspec's. It refuses lone surrogates in both directions, so a value that holds one is
written as ASCII-escaped JSON by the standard library and marked; everything reads back unchanged.
The tag's low bits say how it is compressed, its high bit that it is escaped:

    0x00 JSON | 0x01 zstd | 0x02 zstd with the dictionary numbered by the next byte | 0x80 escaped
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import zstandard

from clew.domain.parts import Part, Parts
from clew.errors import Corrupt

T = TypeVar("T")

PLAIN, ZSTD, ZSTD_DICTIONARY, ESCAPED = 0x00, 0x01, 0x02, 0x80
COMPRESS_FROM = 256
"""Bytes; below it zstd saves nothing worth its time (measured on chat messages)."""
LEVEL = 3
MAX_DECODED = 1 << 30
"""Bytes; a frame that claims more is damaged."""

_encode = msgspec.json.Encoder().encode
_decode_parts = msgspec.json.Decoder(tuple[Part, ...]).decode
_PARTS = tuple[Part, ...]


class Codec:
    """Encodes for one store. Dictionaries are immutable; `add` makes the newest the one in use."""

    def __init__(self, dictionaries: Mapping[int, bytes] | None = None) -> None:
        self._dictionaries: dict[int, zstandard.ZstdCompressionDict] = {}
        self._current = 0
        # A compressor shared by two threads crashes the process, so each thread has its own.
        self._local = threading.local()
        for version in sorted(dictionaries or {}):
            self.add(version, (dictionaries or {})[version])

    @property
    def current(self) -> int:
        """Version of the dictionary new values are compressed with; 0: none."""
        return self._current

    def add(self, version: int, dictionary: bytes) -> None:
        """Make a stored dictionary known. Versions are 1..255."""
        loaded = zstandard.ZstdCompressionDict(dictionary)
        loaded.precompute_compress(level=LEVEL)  # pyright: ignore[reportUnknownMemberType]
        self._dictionaries[version] = loaded
        self._current = max(self._current, version)

    def pack(self, value: Any) -> bytes:
        """Any msgspec-encodable value as tagged bytes."""
        try:
            body, escaped = _encode(value), 0
        except UnicodeEncodeError:
            body, escaped = escape_json(msgspec.to_builtins(value)), ESCAPED
        if len(body) >= COMPRESS_FROM:
            packed = self._compressor()(body)
            if len(packed) + 1 < len(body):
                if self._current:
                    return bytes((ZSTD_DICTIONARY | escaped, self._current)) + packed
                return bytes((ZSTD | escaped,)) + packed
        return bytes((PLAIN | escaped,)) + body

    def json(self, data: bytes) -> bytes:
        """The JSON text of packed bytes."""
        try:
            kind = data[0] & ~ESCAPED
            if kind == PLAIN:
                return data[1:]
            if kind == ZSTD:
                return self._decompressor(0)(data[1:], MAX_DECODED)
            if kind == ZSTD_DICTIONARY:
                return self._decompressor(data[1])(data[2:], MAX_DECODED)
        except (IndexError, zstandard.ZstdError) as error:
            raise Corrupt(f"a stored value cannot be decompressed: {error}") from error
        raise Corrupt(f"a stored value has the unknown tag {data[0]:#04x}")

    def parts(self, data: bytes) -> Parts:
        """Packed parts as values."""
        try:
            if data[0] & ESCAPED:
                return msgspec.convert(json.loads(self.json(data)), _PARTS)
            return _decode_parts(self.json(data))
        except (IndexError, ValueError) as error:
            raise Corrupt(f"stored parts cannot be decoded: {error}") from error

    def value(self, data: bytes, kind: Callable[..., T] | Any) -> Any:
        """A packed value as the msgspec type `kind`."""
        text = self.json(data)
        try:
            if data[0] & ESCAPED:
                return msgspec.convert(json.loads(text), kind)
            return msgspec.json.decode(text, type=kind)
        except ValueError as error:
            raise Corrupt(f"a stored value cannot be decoded: {error}") from error

    def _compressor(self) -> Callable[[bytes], bytes]:
        version = self._current
        found = getattr(self._local, "compressor", None)
        if found is None or found[0] != version:
            compressor = zstandard.ZstdCompressor(
                level=LEVEL,
                dict_data=self._dictionaries.get(version),
                write_checksum=False,
                write_dict_id=False,
            )
            found = self._local.compressor = (version, compressor.compress)
        return found[1]

    def _decompressor(self, version: int) -> Callable[[bytes, int], bytes]:
        table: dict[int, Callable[[bytes, int], bytes]] | None
        table = getattr(self._local, "decompressors", None)
        if table is None:
            table = self._local.decompressors = {}
        found = table.get(version)
        if found is None:
            if version and version not in self._dictionaries:
                raise UnknownDictionary(version)
            dictionary = self._dictionaries.get(version)
            found = table[version] = zstandard.ZstdDecompressor(dict_data=dictionary).decompress
        return found


class UnknownDictionary(Corrupt):
    """A value names a dictionary that this codec has not read yet (another process trained it)."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"a stored value needs dictionary {version}, which the store lacks")


def escape_json(value: Any) -> bytes:
    """ASCII JSON: what no encoder refuses, lone surrogates included."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def json_text(value: Any) -> str | None:
    """A small JSON value for a TEXT column (meta, settings, receipts): ASCII, or None.

    Escaped, so that a NUL or lone surrogate inside never reaches the column as such.
    """
    return None if value is None else json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def json_value(text: str | None) -> Any:
    """Back from `json_text`."""
    return None if text is None else json.loads(text)


def train(samples: list[bytes], size: int = 64 * 1024) -> bytes:
    """A dictionary from JSON texts of messages. Needs some thousands of them."""
    trained = zstandard.train_dictionary(size, [*samples], level=LEVEL)
    return trained.as_bytes()
