"""System prompts and tool sets: immutable, stored once by hash; a conversation points at one."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, cast

from clew.errors import InputError, TooLarge
from clew.store.backend import Transaction, Value
from clew.store.codec import escape_json
from clew.store.kit import Kit

ToolSchemas = tuple[dict[str, Any], ...]


class _Kind(NamedTuple):
    """The statements of one of the two tables, which live alike."""

    insert: str
    hold: str
    lock: str
    delete: str
    packed: str
    repack: str


_PROMPT = _Kind(
    "prompt_insert", "prompt_hold", "prompt_lock", "prompt_delete", "prompt_packed", "prompt_repack"
)
_TOOLSET = _Kind(
    "toolset_insert", "toolset_hold", "toolset_lock", "toolset_delete", "toolset_packed",
    "toolset_repack",
)  # fmt: skip


def store(
    tx: Transaction, kit: Kit, prompt: str | None, toolset: ToolSchemas | None
) -> tuple[bytes | None, bytes | None]:
    """Store what is given and return the hashes; None for what is not."""
    return (
        None if prompt is None else _store_prompt(tx, kit, prompt),
        None if toolset is None else _store_toolset(tx, kit, toolset),
    )


def use(tx: Transaction, no: int, *hashes: bytes | None) -> None:
    """Note that a conversation points at these: they stay while it does."""
    for digest in hashes:
        if digest is not None:
            tx.run("prompt_use_insert", no=no, hash=digest)


def copy_use(tx: Transaction, origin: int, branch: int) -> None:
    tx.run("prompt_use_copy", no=origin, branch=branch)


def release(tx: Transaction, no: int) -> None:
    """Forget a deleted conversation's prompts and tool sets, and those that nobody else uses."""
    hashes = [row[0] for row in tx.rows("prompt_use_of", no=no)]
    tx.run("prompt_use_delete", no=no)
    for digest in sorted(hashes):  # the lock order of two that release the same
        for kind in (_PROMPT, _TOOLSET):
            if tx.row(kind.lock, hash=digest) is not None:
                tx.run(kind.delete, hash=digest)


def _store_prompt(tx: Transaction, kit: Kit, prompt: str) -> bytes:
    digest = _digest(kit, "prompt", escape_json(prompt))
    return _store(tx, _PROMPT, digest, text=kit.codec.pack(prompt))


def _store_toolset(tx: Transaction, kit: Kit, toolset: ToolSchemas) -> bytes:
    digest = _digest(kit, "tool set", escape_json(toolset))
    names = kit.json("tool names", [tool_name(schema) for schema in toolset])
    return _store(tx, _TOOLSET, digest, names=names, schemas=kit.codec.pack(toolset))


def _store(tx: Transaction, kind: _Kind, digest: bytes, **columns: Value) -> bytes:
    """Insert, unless it is there. Between looking and holding, the last conversation that used it
    may have been deleted, and it with it: then it is inserted again."""
    while True:
        tx.run(kind.insert, hash=digest, **columns)
        if tx.row(kind.hold, hash=digest) is not None:
            return digest


def _digest(kit: Kit, what: str, body: bytes) -> bytes:
    if len(body) > kit.limits.prompt:
        raise TooLarge(what, len(body), kit.limits.prompt)
    return hashlib.sha256(body).digest()


def tool_name(schema: dict[str, Any]) -> str:
    """The name in a tool's schema, flat (Anthropic, Responses) or under "function"."""
    name, function = schema.get("name"), schema.get("function")
    if not name and isinstance(function, dict):
        name = cast(dict[str, Any], function).get("name")
    if not isinstance(name, str):
        raise InputError("a tool schema needs a name, at its top or under 'function'")
    return name


def prompt_of(tx: Transaction, kit: Kit, no: int) -> str | None:
    """The conversation's system prompt."""
    row = tx.row("prompt_of", no=no)
    return None if row is None else kit.codec.value(row[0], str)


def toolset_of(tx: Transaction, kit: Kit, no: int) -> ToolSchemas | None:
    """The conversation's tool schemas, in the order they were given."""
    row = tx.row("toolset_of", no=no)
    return None if row is None else kit.codec.value(row[0], tuple[dict[str, Any], ...])


def packed(tx: Transaction, tags: tuple[bytes, bytes], n: int) -> list[tuple[_Kind, bytes, bytes]]:
    """At most n prompts and tool sets that are packed in one of two ways."""
    return [
        (kind, row[0], row[1])
        for kind in (_PROMPT, _TOOLSET)
        for row in tx.rows(kind.packed, plain=tags[0], escaped=tags[1], limit=n)
    ]


def repack(tx: Transaction, kind: _Kind, digest: bytes, new: bytes) -> None:
    """The same, packed in another way."""
    tx.run(kind.repack, hash=digest, new=new)
