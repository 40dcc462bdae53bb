"""The tables that a copy brings over, beside conversations and their messages.

`change` is none of them: its rows tell followers and the search index of one store about ids of
that store, and those of the copy begin anew. What is deleted in a copy is noted there.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from clew.store.backend import Row, Transaction, Value

PAGE = 500
"""Rows of a table read at once."""

_encode = msgspec.msgpack.Encoder().encode


class Records(NamedTuple):
    """A table keyed by conversation; the first `keys` columns are the key inside it."""

    name: str
    columns: tuple[str, ...]
    rows: str
    insert: str
    delete: str
    keys: int = 1


class Wide(NamedTuple):
    """A table of the whole store. `start`: a key before all others; its length is the key's."""

    name: str
    start: tuple[Value, ...]
    columns: tuple[str, ...]
    rows: str
    insert: str
    delete: str
    one: str | None = None
    """The whole row of a key, where `rows` gives no more than the key."""

    def key(self, row: Row) -> dict[str, Value]:
        """The key of a row as parameters."""
        return dict(zip(self.columns, row[: len(self.start)], strict=False))


def _records(
    name: str, columns: str, rows: str, insert: str, delete: str, keys: int = 1
) -> Records:
    return Records(name, tuple(columns.split()), rows, insert, delete, keys)


RECORDS = (
    _records(
        "cut", "number uid from_seq to_seq by at undone_at",
        "copy_cut_rows", "copy_cut_insert", "copy_cut_delete",
    ),
    _records(
        "attempt", "number uid view base_generation state trigger model verdict summary_error "
        "deadline started_at ended_at tokens_before tokens_after",
        "copy_attempt_rows", "copy_attempt_insert", "copy_attempt_delete",
    ),
    _records(
        "compaction", "generation attempt covers_to body cuts kind tokens_before tokens_after "
        "created_at undone_at undone_tokens receipt",
        "copy_compaction_rows", "copy_compaction_insert", "copy_compaction_delete",
    ),
    _records(
        "turn", "number uid state key first_seq started_at ended_at error",
        "copy_turn_rows", "copy_turn_insert", "copy_turn_delete",
    ),
    _records(
        "model_call", "number turn purpose after_attempt model prompt_hash toolset_hash "
        "generation up_to_seq expected_tokens settings state input_tokens output_tokens "
        "cached_tokens reasoning_tokens cost latency prefix_hash partial error started_at "
        "api_group",
        "copy_model_call_rows", "copy_model_call_insert", "copy_model_call_delete",
    ),
    _records(
        "inbox", "number uid key role author parts meta tokens received_at state seq",
        "copy_inbox_rows", "copy_inbox_insert", "copy_inbox_delete",
    ),
    _records(
        "todo", "number text state at",
        "copy_todo_rows", "copy_todo_insert", "copy_todo_delete",
    ),
    _records(
        "goal", "number text state at",
        "copy_goal_rows", "copy_goal_insert", "copy_goal_delete",
    ),
    _records(
        "approval", "turn call_id name state always by asked_at answered_at",
        "copy_approval_rows", "copy_approval_insert", "copy_approval_delete", 2,
    ),
    _records(
        "presence", "owner heartbeat label",
        "copy_presence_rows", "copy_presence_insert", "copy_presence_delete",
    ),
    _records(
        "outbox", "number turn route payload state attempts next_at error",
        "copy_outbox_rows", "copy_outbox_insert", "copy_outbox_delete",
    ),
    _records(
        "boundary", "number subscriber profile kind generation reason source from_id to_id at "
        "attempts next_at error",
        "copy_boundary_rows", "copy_boundary_insert", "copy_boundary_delete", 2,
    ),
    _records(
        "prompt_use", "hash",
        "copy_prompt_use_rows", "copy_prompt_use_insert", "copy_prompt_use_delete",
    ),
    _records(
        "blob", "hash",
        "copy_blob_rows", "copy_blob_insert", "copy_blob_delete",
    ),
)  # fmt: skip

DICTIONARY = Wide(
    "dictionary", (0,), ("version", "bytes", "created_at"),
    "copy_dictionary_rows", "copy_dictionary_insert", "copy_dictionary_delete",
)  # fmt: skip
PROMPTS = (
    Wide(
        "prompt", (b"",), ("hash", "text"),
        "copy_prompt_rows", "copy_prompt_insert", "copy_prompt_delete", "copy_prompt_one",
    ),
    Wide(
        "toolset", (b"",), ("hash", "names", "schemas"),
        "copy_toolset_rows", "copy_toolset_insert", "copy_toolset_delete", "copy_toolset_one",
    ),
)  # fmt: skip
ROUTES = (
    Wide(
        "inbound", ("",) * 4, ("profile", "source", "account", "key", "conversation", "result",
        "at"), "copy_inbound_rows", "copy_inbound_insert", "copy_inbound_delete",
    ),
    Wide(
        "binding", ("",) * 3, ("profile", "source", "key", "conversation", "at"),
        "copy_binding_rows", "copy_binding_insert", "copy_binding_delete",
    ),
    Wide(
        "alias", ("",) * 4, ("profile", "foreign_id", "source", "conversation", "from_seq",
        "kind", "state", "at"), "copy_alias_rows", "copy_alias_insert", "copy_alias_delete",
    ),
)  # fmt: skip
NAMES = ROUTES[1:]
"""Without the deliveries, which expire."""
JOB = Wide(
    "job", ("",), ("name", "holder", "fence", "at", "ttl", "done_at"),
    "copy_job_rows", "copy_job_insert", "copy_job_delete",
)  # fmt: skip
SUBSCRIBER = Wide(
    "subscriber", ("",) * 2, ("profile", "name", "created_at"),
    "copy_subscriber_rows", "copy_subscriber_insert", "copy_subscriber_delete",
)  # fmt: skip
"""Records name it: it comes before them, and goes after them."""
WIDE = (DICTIONARY, *PROMPTS, *ROUTES, JOB, SUBSCRIBER)


def page(tx: Transaction, table: Wide, after: Row) -> list[Row]:
    """The rows of a table that follow a row, or its `start`."""
    return tx.rows(table.rows, **table.key(after), limit=PAGE)


def walk(tx: Transaction, table: Wide) -> Iterator[Row]:
    """All rows of a table, in the order of its key."""
    after: Row = table.start
    while rows := page(tx, table, after):
        yield from rows
        after = rows[-1]


def digest(value: object) -> bytes:
    """Names rows by their content: equal on every engine."""
    return blake2b(_encode(value), digest_size=16).digest()
