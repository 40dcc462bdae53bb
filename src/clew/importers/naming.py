"""Names in the log for what a source calls its records and chats. The same in every run."""

from __future__ import annotations

from hashlib import blake2b

from clew.domain.text import clean

LONGEST = 900
"""Characters of a chat's name; a longer one is named by its hash. Branches add 33."""


def uid_of(format: str, chat: str, record: str, version: int = 0) -> bytes:
    """The uid of a record: its own id where that is a UUID, else a hash. `version` counts how
    often the tool has written it anew."""
    if len(record) == 36 and not version:
        try:
            return bytes.fromhex(record.replace("-", ""))
        except ValueError:
            pass
    return _hash(format, chat, record, str(version) if version else "")


def chain_start(format: str, chat: str) -> bytes:
    """What the records without ids of a chat begin their chain with."""
    return _hash(format, chat)


def chained(previous: bytes, content: bytes) -> bytes:
    """The uid of a record without id: it and all before it, so a changed one changes the rest."""
    return blake2b(content, digest_size=16, key=previous).digest()


def cut_uid(record: bytes) -> bytes:
    """The uid of the cut that makes room for a record."""
    return blake2b(record, digest_size=16, person=b"clew cut").digest()


def chat_name(chat: str) -> str:
    """The foreign id of a chat: its id, or a hash of one that no key can hold."""
    if len(chat) <= LONGEST and chat and clean(chat) == chat:
        return chat
    return "sha256:" + _hash(chat).hex()


def branch_name(chat: str, first: bytes) -> str:
    """The foreign id of a branch that an import made, by its first record."""
    return f"{chat}#{first.hex()}"


def record_name(uid: bytes) -> str:
    """The foreign id by which a chat is known whose records have ids unique everywhere."""
    return f"record:{uid.hex()}"


def _hash(*texts: str) -> bytes:
    # Lengths in front: no two lists of texts are one.
    data = b"".join(
        len(raw).to_bytes(8, "big") + raw
        for raw in (text.encode("utf-8", "surrogatepass") for text in texts)
    )
    return blake2b(data, digest_size=16).digest()
