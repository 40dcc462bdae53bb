"""Whether a conversation that is here is the beginning of the one in a file, and what is new."""

from __future__ import annotations

import hashlib

from clew.domain.values import json_text
from clew.errors import Refused
from clew.store import conversations, log
from clew.store.backend import Transaction
from clew.store.codec import escape_json
from clew.store.kit import Kit
from clew.store.transfer_rows import KEYS
from clew.store.transfer_step import Step, diverged, existing, went_on

STANDS_IN = {"lost": True}
"""The meta of a message that stands in the place of one whose line is damaged."""
_STANDS_IN = json_text(STANDS_IN)


class Compare:
    """A reader that compares a step with what is here. Gives what of it is new, which never is a
    message; Refused when something differs."""

    def __init__(self, kit: Kit, profile: str, no: int, id: str, step: Step) -> None:
        self._kit, self._profile, self._no, self._id, self._step = kit, profile, no, id, step

    def __call__(self, tx: Transaction) -> Step:
        self._messages(tx)
        new = Step()
        self._records(tx, new)
        for digest in self._step.blobs.keys() - known_blobs(tx, self._no, set(self._step.blobs)):
            new.blobs[digest] = self._step.blobs[digest]
            new.size += len(self._step.blobs[digest])
        self._aliases(tx, new)
        self._prompts(tx, new)
        new.count = new.held()
        return new

    def _messages(self, tx: Transaction) -> None:
        listed = self._step.messages
        if not listed:
            return
        row = conversations.peek(tx, self._no)
        if row is None:
            raise Refused(f"{self._id} was deleted while it was imported")
        parts = log.segments(tx, row.no, row.base, row.origin, row.head)
        here = [
            found
            for no, first, last in log.ranges(parts, (), listed[0]["seq"], listed[-1]["seq"])
            for found in tx.rows("message_uids", no=no, after=first - 1, last=last)
        ]
        json = self._kit.codec.json
        for (seq, uid, _, packed), values in zip(here, listed, strict=False):
            same = uid == values["uid"] and json(packed) == json(values["parts"])
            if not same and values["meta"] != _STANDS_IN:
                raise diverged(self._id, f"seq {seq}")

    def _records(self, tx: Transaction, new: Step) -> None:
        for table, listed in self._step.records.items():
            here = existing(tx, self._no, table, *self._step.numbers(table))
            for values in listed:
                there = here.get(values[KEYS.get(table, "number")])
                if there is None or went_on(self._kit, table, values, there):
                    new.record(table, values)

    def _aliases(self, tx: Transaction, new: Step) -> None:
        for values in self._step.aliases:
            key = {"foreign_id": values["foreign_id"], "source": values["source"]}
            known = tx.rows("alias_find", profile=self._profile, **key)
            if all(found[1] != self._id or found[4] == "deleted" for found in known):
                new.aliases.append(values)

    def _prompts(self, tx: Transaction, new: Step) -> None:
        step = self._step
        if not step.prompts and not step.toolsets:
            return
        used = {row[1] for row in tx.rows("copy_prompt_use_rows", first=self._no, last=self._no)}

        def is_new(value: object) -> bool:
            return hashlib.sha256(escape_json(value)).digest() not in used

        new.prompts += filter(is_new, step.prompts)
        new.toolsets += filter(is_new, step.toolsets)


def known_blobs(tx: Transaction, no: int, wanted: set[bytes]) -> set[bytes]:
    """Those that a conversation has."""
    return {h for h in wanted if tx.row("blob_known", no=no, hash=h) is not None}
