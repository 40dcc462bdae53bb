"""What tests of exports share: all rows of a store that a file of clew's JSONL carries, and files
of stores."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import clew
from clew.domain.compactions import BodyItem
from clew.exporters import clew_jsonl as exporter
from clew.importers import clew_jsonl as importer
from clew.store.backend import Transaction
from clew.store.copy import conversations
from clew.store.copy.conversations import COLUMNS, Item
from clew.store.copy.tables import RECORDS, ROUTES, walk
from clew.store.transfer_rows import EXPORTED

LEFT_OUT = {"inbox", "approval", "presence", "outbox", "boundary"}
"""Tables that no file carries."""
NOT_CARRIED = {"profile", "holder", "held_at", "held_ttl", "waiting", "binned_at"}
ALIASES = next(table for table in ROUTES if table.name == "alias")


def rows(store: clew.Store, profile: str) -> dict[str, Any]:
    """Every row of a profile that an export carries, by conversation, as it has to come back:
    decoded, without inner numbers."""

    def read(tx: Transaction) -> dict[str, Any]:
        found: dict[str, Any] = {
            item.id: _conversation(store, tx, item)
            for items in conversations.pages(tx)
            for item in items
            if item.row[1] == profile and item.row[COLUMNS.index("binned_at")] is None
        }
        listed = [row for row in walk(tx, ALIASES) if row[0] == profile and row[6] != "deleted"]
        return found | {"aliases": [row[1:] for row in listed]}

    return store._db.read(read)


def _conversation(store: clew.Store, tx: Transaction, item: Item) -> dict[str, Any]:
    codec = store._db.kit.codec
    row = dict(zip(COLUMNS, item.row, strict=True))
    found: dict[str, Any] = {n: value for n, value in row.items() if n not in NOT_CARRIED}
    everything = {"no": item.no, "first": 1, "last": 1 << 60, "limit": 1 << 30}
    found["messages"] = [
        (codec.parts(message[10]), *message[2:10], *message[11:])
        for message in tx.rows("copy_message_range", **everything)
    ]
    for table, listed in zip(RECORDS, item.records, strict=True):
        if table.name not in LEFT_OUT:
            found[f"{table.name}s"] = [dict(zip(table.columns, r, strict=False)) for r in listed]
    for record in found["compactions"]:
        record["body"] = codec.value(record["body"], tuple[BodyItem, ...])
    found["bytes"] = [tx.row("blob_get", no=item.no, hash=b["hash"]) for b in found["blobs"]]
    for turn in found["turns"]:
        if turn["state"] == "running":
            end = max(turn["started_at"], row["active_at"])
            turn.update(state="interrupted", ended_at=end, error=EXPORTED)
            found["turn"] = None
    return found


def exported(
    profile: clew.Profile, *ids: str, branches: bool = True, delegates: bool = True
) -> bytes:
    """A file of these conversations, or of all."""
    out = io.BytesIO()
    out.write(exporter.header(profile.name, 1, "test", not ids))
    family = profile.transfer().family(*ids, branches=branches, delegates=delegates)
    exporter.write(profile, family, out.write)
    return out.getvalue()


def brought(profile: clew.Profile, data: bytes, **options: Any) -> importer.Brought:
    return importer.bring(profile, io.BytesIO(data), **options)


def lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def file_of(kept: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in kept)
