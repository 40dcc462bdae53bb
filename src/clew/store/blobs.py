"""Bytes of images and files, once per conversation, by SHA-256. They go with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from clew.domain.parts import File, Image, Parts, ToolResult
from clew.errors import InputError, NotFound
from clew.store.backend import Transaction


def insert(tx: Transaction, numbers: Sequence[int], blobs: Mapping[bytes, bytes | None]) -> None:
    """Store bytes in the first of these conversations; what is there already stays. Where only the
    hash is known, one of them has to have the bytes: the first gets its own copy, so that what it
    says never needs the bytes of another, which may be deleted."""
    for digest, data in blobs.items():
        if data is not None:
            tx.run("blob_insert", no=numbers[0], hash=digest, bytes=data)
            continue
        known = (no for no in numbers if tx.row("blob_known", no=no, hash=digest) is not None)
        holder = next(known, None)
        if holder is None:
            raise InputError(
                f"no bytes with the hash {digest.hex()} are stored in this conversation; pass them"
            )
        if holder != numbers[0]:
            copy(tx, numbers[0], holder, {digest})


def get(tx: Transaction, numbers: Sequence[int], digest: str) -> bytes:
    """The bytes of a hash in a conversation or in those it inherits from; NotFound."""
    wanted = digest_of(digest)
    for no in numbers:
        row = tx.row("blob_get", no=no, hash=wanted)
        if row is not None:
            return row[0]
    raise NotFound("blob", digest)


def hashes(parts: Parts) -> set[bytes]:
    """The blobs that these parts refer to."""
    found: set[bytes] = set()
    for part in parts:
        pieces = part.content if isinstance(part, ToolResult) else (part,)
        for piece in () if isinstance(pieces, str) else pieces:
            if isinstance(piece, Image | File) and piece.hash is not None:
                found.add(digest_of(piece.hash))
    return found


def digest_of(hash: str) -> bytes:
    """The bytes of a hash as people write it."""
    try:
        return bytes.fromhex(hash)
    except ValueError:
        raise InputError(f"blob hash {hash[:80]!r} is not hexadecimal") from None


def copy(tx: Transaction, branch: int, no: int, digests: set[bytes]) -> None:
    """Give a branch its own copy of blobs it refers to."""
    for digest in sorted(digests):
        tx.run("blob_copy", branch=branch, no=no, hash=digest)


def damaged(tx: Transaction, no: int) -> Iterator[str]:
    """Hashes of a conversation's blobs whose bytes are others by now."""
    for (digest,) in tx.rows("blob_hashes", no=no):
        row = tx.row("blob_get", no=no, hash=digest)
        if row is not None and hashlib.sha256(row[0]).digest() != digest:
            yield bytes(digest).hex()


def delete(tx: Transaction, no: int) -> None:
    tx.run("blob_delete", no=no)


def drop(tx: Transaction, no: int, digest: bytes) -> bytes | None:
    """Remove bytes that nothing names any more; gives them."""
    row = tx.row("blob_get", no=no, hash=digest)
    tx.run("blob_drop", no=no, hash=digest)
    return None if row is None else bytes(row[0])
