"""Ids for records that have none: a running number and a hash of all that was said so far.

A file that grew gives its old records the same ids. From a changed record on all ids are new, and
the first of them follows the last common record. A copy of a conversation's beginning in another
file has the ids of the original.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Place(NamedTuple):
    """Where one is in a conversation."""

    number: int = 0
    digest: str = ""

    @property
    def id(self) -> str:
        """Such as "12:9f86d081884c7d65"."""
        return f"{self.number}:{self.digest}"

    def next(self, content: bytes) -> Place:
        """The place after a record that says this."""
        seed = self.digest.encode()
        found = hashlib.blake2b(content, digest_size=8, key=seed)
        return Place(self.number + 1, found.hexdigest())


def number_of(id: str) -> int:
    """The running number in an id."""
    return int(id.partition(":")[0])
