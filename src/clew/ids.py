"""The only place where ids are made, from an injected clock and random source.

Conversation ids are 128 random bits in 26 characters, so that chats of one minute differ in their
first characters and a short prefix names one. All other ids are UUIDs of version 7 (RFC 9562) in
32 hexadecimal characters: they sort by time. An id is the idempotency key of what it names.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from clew.clock import Clock, SystemClock

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, so that a person can read an id aloud."""

CONVERSATION_ID_LENGTH = 26


def encode_base32(value: int) -> str:
    """128 bits as 26 characters, highest first."""
    return "".join(ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def random_bits(count: int) -> int:
    """Bits from the operating system: no state, so a forked child has no twin of them."""
    size = (count + 7) // 8
    return int.from_bytes(os.urandom(size), "big") >> (size * 8 - count)


class Ids:
    """Mints ids. `bits(n)` returns n random bits; tests pass a seeded one."""

    def __init__(
        self, clock: Clock | None = None, bits: Callable[[int], int] = random_bits
    ) -> None:
        self._clock = clock or SystemClock()
        self._bits = bits

    def conversation(self) -> str:
        """A conversation id: 26 characters, random from the first on."""
        return encode_base32(self._bits(128))

    def uid(self) -> bytes:
        """A message uid: 16 bytes, UUIDv7. Shown as 32 hexadecimal characters."""
        millis = self._clock.now() // 1000
        random = self._bits(74)
        value = (
            (millis & 0xFFFFFFFFFFFF) << 80
            | 0x7 << 76
            | (random >> 62) << 64
            | 0b10 << 62
            | (random & 0x3FFFFFFFFFFFFFFF)
        )
        return value.to_bytes(16, "big")
