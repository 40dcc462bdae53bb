"""Parts and other structured values as bytes: one tag byte, then JSON, maybe compressed.

JSON is msgspec's. It refuses lone surrogates in both directions, so a value that holds one is
written as escaped JSON by the standard library and marked (a space in front tells that surrogates
are kept apart, see `domain.values`); everything reads back unchanged.
The tag's low bits say how it is compressed, its high bit that it is escaped:

    0x00 JSON | 0x01 zstd | 0x02 zstd with the dictionary numbered by the next byte | 0x80 escaped
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import zstandard

from clew.domain.parts import Part, Parts
from clew.domain.values import check_json, escape_text, json_text, json_value
from clew.errors import Busy, Corrupt, InputError, TooLarge

__all__ = ["Codec", "escape_json", "json_text", "json_value", "train"]

T = TypeVar("T")


class DictionaryGone(Busy):
    """A value was packed with a dictionary that an erasure has taken away meanwhile. What packs it
    again, after `Codec.learn`, uses the new one."""


PLAIN, ZSTD, ZSTD_DICTIONARY, ESCAPED = 0x00, 0x01, 0x02, 0x80
COMPRESS_FROM, COMPRESS_WITH_DICTIONARY_FROM = 1024, 256
"""Bytes. Below the first, zstd alone saves a third of a message and costs more time, at every
reading, than all other decoding. With the store's dictionary it saves two thirds, in less time."""
LEVEL = 3
MAX_DECODED = 1 << 30
"""Bytes; a frame that claims more is damaged."""

_PARAMETERS = zstandard.ZstdCompressionParameters.from_level(  # pyright: ignore[reportUnknownMemberType]
    LEVEL,
    format=zstandard.FORMAT_ZSTD1_MAGICLESS,
    write_content_size=1,
    write_checksum=0,
    write_dict_id=0,
)
"""The tag says what a frame is and which dictionary it needs, so the frame need not: a checksum,
a magic number and an id would be a tenth of a short message."""

_encode = msgspec.json.Encoder().encode
_decode_parts = msgspec.json.Decoder(tuple[Part, ...]).decode
_PARTS = tuple[Part, ...]


class Codec:
    """Encodes for one store.

    `source` gives the store's dictionaries by number, from 1. It is asked before the first packing
    and whenever a value needs a dictionary that this codec lacks: another process has trained it.
    """

    def __init__(self, source: Callable[[], Mapping[int, bytes]] = dict) -> None:
        self._source = source
        self._dictionaries: dict[int, zstandard.ZstdCompressionDict] | None = None
        self._current = 0
        self._local = _PerThread()

    @property
    def current(self) -> int:
        """Number of the dictionary that new values are compressed with; 0: none."""
        if self._dictionaries is None:
            self.learn()
        return self._current

    def learn(self) -> None:
        """Read the store's dictionaries; the newest is used from now on."""
        known = dict(self._dictionaries or {})
        for version, dictionary in self._source().items():
            if version not in known:
                known[version] = zstandard.ZstdCompressionDict(dictionary)
                known[version].precompute_compress(compression_params=_PARAMETERS)  # pyright: ignore[reportUnknownMemberType]
        # Two threads may learn at once: both end with the same, dictionaries never change.
        self._dictionaries, self._current = known, max(known, default=0)

    def pack(self, value: Any, limit: int | None = None) -> bytes:
        """Any JSON-encodable value as tagged bytes; TooLarge when its JSON is over the limit,
        however small it packs; InputError when it is no JSON. With a limit: parts that were
        checked, since the encoder would write NaN as null."""
        try:
            if limit is None:
                check_json("value", msgspec.to_builtins(value))
            body, escaped = _encode(value), 0
        except UnicodeEncodeError:
            body, escaped = escape_json(msgspec.to_builtins(value)), ESCAPED
        except (TypeError, OverflowError, RecursionError) as error:
            raise InputError(f"not a JSON value: {error}") from None
        if limit is not None and len(body) > limit:
            raise TooLarge("message", len(body), limit)
        return self._packed(body, escaped)

    def _packed(self, body: bytes, escaped: int) -> bytes:
        if len(body) >= COMPRESS_WITH_DICTIONARY_FROM:
            version = self.current
            if version or len(body) >= COMPRESS_FROM:
                packed = self._compressor(version)(body)
                if len(packed) + 1 < len(body):
                    if version:
                        return bytes((ZSTD_DICTIONARY | escaped, version)) + packed
                    return bytes((ZSTD | escaped,)) + packed
        return bytes((PLAIN | escaped,)) + body

    def repacked(self, data: bytes) -> bytes:
        """The same JSON text, packed with the dictionary that new values are packed with."""
        return self._packed(self.json(data), data[0] & ESCAPED)

    def json(self, data: bytes) -> bytes:
        """The JSON text of packed bytes."""
        try:
            kind = data[0] & ~ESCAPED
            if kind == ZSTD:
                return self._decompressor(0)(data[1:], MAX_DECODED)
            if kind == ZSTD_DICTIONARY:
                return self._decompressor(data[1])(data[2:], MAX_DECODED)
            if kind == PLAIN:
                return data[1:]
        except (IndexError, zstandard.ZstdError) as error:
            raise Corrupt(f"a stored value cannot be decompressed: {error}") from error
        raise Corrupt(f"a stored value has the unknown tag {data[0]:#04x}")

    def parts(self, data: bytes) -> Parts:
        """Packed parts as values."""
        text = self.json(data)
        try:
            if data[0] < ESCAPED:
                return _decode_parts(text)
            return msgspec.convert(json_value(text.decode()), _PARTS)
        except ValueError as error:
            raise Corrupt(f"stored parts cannot be decoded: {error}") from error

    def value(self, data: bytes, kind: Callable[..., T] | Any) -> Any:
        """A packed value as the msgspec type `kind`."""
        text = self.json(data)
        try:
            if data[0] & ESCAPED:
                return msgspec.convert(json_value(text.decode()), kind)
            return msgspec.json.decode(text, type=kind)
        except ValueError as error:
            raise Corrupt(f"a stored value cannot be decoded: {error}") from error

    def _compressor(self, version: int) -> Callable[[bytes], bytes]:
        found = self._local.compressors.get(version)
        if found is None:
            found = self._local.compressors[version] = zstandard.ZstdCompressor(
                dict_data=self._dictionary(version), compression_params=_PARAMETERS
            ).compress
        return found

    def _decompressor(self, version: int) -> Callable[[bytes, int], bytes]:
        found = self._local.decompressors.get(version)
        if found is None:
            found = self._local.decompressors[version] = zstandard.ZstdDecompressor(
                dict_data=self._dictionary(version), format=zstandard.FORMAT_ZSTD1_MAGICLESS
            ).decompress
        return found

    def _dictionary(self, version: int) -> zstandard.ZstdCompressionDict | None:
        if version == 0:
            return None
        if version not in (self._dictionaries or {}):
            self.learn()
        found = (self._dictionaries or {}).get(version)
        if found is None:
            raise Corrupt(f"a stored value needs dictionary {version}, which the store lacks")
        return found


def dictionary_tags(version: int) -> tuple[bytes, bytes]:
    """How values begin that need this dictionary: plain ones, and escaped ones."""
    return bytes((ZSTD_DICTIONARY, version)), bytes((ZSTD_DICTIONARY | ESCAPED, version))


class _PerThread(threading.local):
    """A compressor shared by two threads crashes the process, so each thread has its own."""

    def __init__(self) -> None:
        self.compressors: dict[int, Callable[[bytes], bytes]] = {}
        self.decompressors: dict[int, Callable[[bytes, int], bytes]] = {}


def escape_json(value: Any) -> bytes:
    """JSON that no encoder refuses, lone surrogates included, and that reads back unchanged."""
    return escape_text(value).encode()


def train(samples: list[bytes], size: int = 64 * 1024) -> bytes:
    """A dictionary from the JSON texts of some thousand messages.

    With the segment size and match length given, nothing is searched for: 30 ms for 2,000 messages,
    and within 1 % of the size that a search for the best ones reaches (measured).
    """
    return zstandard.train_dictionary(size, [*samples], k=256, d=8, level=LEVEL).as_bytes()
