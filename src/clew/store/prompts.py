"""System prompts and tool sets: immutable, stored once by hash; a conversation points at one."""

from __future__ import annotations

import hashlib
from typing import Any

from clew.errors import InputError, TooLarge
from clew.store.backend import Transaction
from clew.store.codec import escape_json
from clew.store.kit import Kit

ToolSchemas = tuple[dict[str, Any], ...]


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
    for digest in hashes:
        tx.run("prompt_delete", hash=digest)
        tx.run("toolset_delete", hash=digest)


def _store_prompt(tx: Transaction, kit: Kit, prompt: str) -> bytes:
    digest = _digest(kit, "prompt", escape_json(prompt))
    tx.run("prompt_insert", hash=digest, text=kit.codec.pack(prompt))
    return digest


def _store_toolset(tx: Transaction, kit: Kit, toolset: ToolSchemas) -> bytes:
    digest = _digest(kit, "tool set", escape_json(toolset))
    names = kit.json("tool names", [tool_name(schema) for schema in toolset])
    tx.run("toolset_insert", hash=digest, names=names, schemas=kit.codec.pack(toolset))
    return digest


def _digest(kit: Kit, what: str, body: bytes) -> bytes:
    if len(body) > kit.limits.prompt:
        raise TooLarge(what, len(body), kit.limits.prompt)
    return hashlib.sha256(body).digest()


def tool_name(schema: dict[str, Any]) -> str:
    """The name in a tool's schema, flat (Anthropic, Responses) or under "function"."""
    name = schema.get("name") or schema.get("function", {}).get("name")
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
