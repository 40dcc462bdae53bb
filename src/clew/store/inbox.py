"""The inbox: messages accepted while a turn runs, durable, not yet in the log.

They get their seq when their turn begins, when the open turn takes them at a step boundary, or
before the next plain append. Writing a key twice returns the first message here, too.
"""

from __future__ import annotations

from itertools import takewhile

from clew.domain.messages import ROLES, Appended, Message, Role, Waiting, wants_next
from clew.domain.text import shorten
from clew.errors import InboxFull, ReadOnly
from clew.store import blobs, conversations, log
from clew.store.backend import Row, Transaction
from clew.store.codec import json_value
from clew.store.conversations import Locked
from clew.store.drafts import TITLE, Prepared, preview_of
from clew.store.kit import Kit


def put(
    tx: Transaction, kit: Kit, row: Locked, prepared: tuple[Prepared, ...],
    found: list[log.Found | None],
) -> Appended:  # fmt: skip
    """Queue what is not there yet; the outcome names log seqs or inbox numbers."""
    count = log.missing(prepared, found)
    if count and row.read_only:
        raise ReadOnly(row.id)
    if row.waiting + count > kit.limits.inbox:
        raise InboxFull(row.id, kit.limits.inbox)
    numbers = list(log.numbers(found))
    last = tx.row("inbox_last", no=row.no)
    number = last[0] if last else 0
    for item in prepared[len(prepared) - count :]:
        number += 1
        _insert(tx, row.no, number, item)
        numbers.append(number)
    if count:
        log.keep_blobs(tx, row, prepared[-count:])
        conversations.count_waiting(tx, row, count)
    return Appended(
        seqs=log.seqs(found),
        head=row.head,
        new=count,
        uids=log.uids(prepared, found),
        numbers=tuple(numbers),
    )


def _insert(tx: Transaction, no: int, number: int, item: Prepared) -> None:
    tx.run(
        "inbox_insert", no=no, number=number, uid=item.uid, key=item.key, role=item.role,
        author=item.author, parts=item.parts, meta=item.meta, tokens=item.tokens, at=item.at,
    )  # fmt: skip


def take(
    tx: Transaction, kit: Kit, row: Locked, turn: int | None = None, *, steering: bool = False
) -> tuple[Locked, tuple[int, ...]]:
    """Move what waits into the log, in order; gives the row then and the inbox numbers. `steering`:
    into a turn that runs, up to the first message that wants the next one (`meta.queue`)."""
    if not row.waiting:
        return row, ()
    waiting = list(tx.rows("inbox_waiting", no=row.no))
    if steering:
        waiting = list(takewhile(lambda entry: not wants_next(json_value(entry[7])), waiting))
        if not waiting:
            return row, ()
    prepared = tuple(_prepared(kit, entry) for entry in waiting)
    first = row.head + 1
    row = log.insert(tx, row, prepared, turn)
    for seq, entry in enumerate(waiting, first):
        tx.run("inbox_taken", no=row.no, number=entry[0], seq=seq)
    return conversations.count_waiting(tx, row, -len(waiting)), tuple(entry[0] for entry in waiting)


def _prepared(kit: Kit, entry: Row) -> Prepared:
    message = Message(
        (0, entry[1], entry[2], entry[3], entry[4], *[None] * 7), kit.codec.parts
    )  # fmt: skip
    preview = preview_of(message)
    return Prepared(
        uid=entry[1], minted=False, after=0, key=entry[5], role=entry[2], author=entry[6],
        api_group=None, replaces=None, parts=entry[3], meta=entry[7], tokens=entry[10],
        at=entry[4], preview=preview,
        title=shorten(preview, TITLE) if preview and message.role is Role.USER else None, blobs={},
    )  # fmt: skip


def withdraw(tx: Transaction, row: Locked) -> tuple[Locked, tuple[int, ...]]:
    """Withdraw all that waits; gives the numbers."""
    if not row.waiting:
        return row, ()
    numbers = tuple(sorted(r[0] for r in tx.rows("inbox_withdraw", no=row.no)))
    return conversations.count_waiting(tx, row, -len(numbers)), numbers


def withdraw_one(tx: Transaction, row: Locked, number: int) -> bool:
    """Withdraw one message; False when it was taken or withdrawn already."""
    if tx.changed("inbox_withdraw_one", no=row.no, number=number) == 0:
        return False
    conversations.count_waiting(tx, row, -1)
    return True


def waiting(tx: Transaction, kit: Kit, no: int) -> tuple[Waiting, ...]:
    """What waits, in order of arrival."""
    return tuple(
        Waiting(
            number=entry[0], uid=entry[1].hex(), role=ROLES[entry[2]],
            parts=kit.codec.parts(entry[3]), received_at=entry[4], key=entry[5],
            author=entry[6], meta=json_value(entry[7]), state=entry[8], seq=entry[9],
        )
        for entry in tx.rows("inbox_waiting", no=no)
    )  # fmt: skip


def carry(tx: Transaction, kit: Kit, row: Locked, to: Locked) -> Locked:
    """Move what waits into the conversation that follows a reset; there it waits on."""
    if not row.waiting:
        return row
    tx.run("inbox_carry", no=row.no, to=to.no)
    digests = set[bytes]()
    for entry in tx.rows("inbox_waiting", no=row.no):
        digests |= blobs.hashes(kit.codec.parts(entry[3]))
    for no in log.holders(tx, row):
        blobs.copy(tx, to.no, no, digests)
    conversations.count_waiting(tx, to, row.waiting)
    return withdraw(tx, row)[0]


def delete(tx: Transaction, no: int) -> None:
    tx.run("inbox_delete", no=no)


def erasable(tx: Transaction, no: int) -> list[Row]:
    """All of a conversation: (number, parts, key, author, meta, seq, state)."""
    return tx.rows("inbox_erasable", no=no)


def authored(tx: Transaction, profile: str, author: str) -> list[int]:
    """Conversations whose inbox has messages of an author."""
    return [row[0] for row in tx.rows("inbox_authored", profile=profile, author=author)]


def erase(tx: Transaction, no: int, number: int, parts: bytes) -> None:
    """What a message was while it waited."""
    tx.run("inbox_erase", no=no, number=number, parts=parts, mark=log.MARK)


def packed(tx: Transaction, after: tuple[int, int], tags: tuple[bytes, bytes], n: int) -> list[Row]:
    """At most n messages that are packed in one of two ways."""
    plain, escaped = tags
    return tx.rows("inbox_packed", no=after[0], seq=after[1], plain=plain, escaped=escaped, limit=n)


def repack(tx: Transaction, no: int, number: int, new: bytes) -> None:
    """The same parts, packed in another way."""
    tx.run("inbox_repack", no=no, seq=number, new=new)
