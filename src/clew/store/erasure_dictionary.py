"""What an erasure does with the store's compression dictionary, which may hold pieces of messages.

A dictionary that tells something of what was erased, and of nothing that stays, is made anew:
another one is trained on what is left, every value packed with the old one is packed again, in
bounded steps, and then the old one goes. A handle that still packs with it is refused by a trigger
(I-23), learns the new one and asks for the call to be repeated; the last step has the tables locked
where several write at once, so nothing slips in behind the look.
"""

from __future__ import annotations

from collections.abc import Callable

from clew.store import compactions, dictionary, inbox, log, prompts
from clew.store.backend import Row, Transaction
from clew.store.codec import dictionary_tags
from clew.store.database import Database
from clew.store.needles import Needles

STEP = 200
Packed = Callable[[Transaction, tuple[int, int], tuple[bytes, bytes], int], list[Row]]
Repack = Callable[[Transaction, int, int, bytes], None]
_TABLES: tuple[tuple[Packed, Repack], ...] = (
    (log.packed, log.repack), (inbox.packed, inbox.repack),
    (compactions.packed, compactions.repack),
)  # fmt: skip


def renew(db: Database, needles: Needles | None) -> bool:
    """Make them anew if one tells what is looked for; None: in any case. False: they stay."""
    known = dictionary.known(db.backend)
    if not known:
        return False
    if needles is not None and not any(_tells(db, one, needles) for one in known.values()):
        return False
    dictionary.retrain(db.backend, db.kit, max(known) + 1)
    for version in known:
        while not _is_dropped(db, version):
            _repack_all(db, version)
    return True


def _tells(db: Database, data: bytes, needles: Needles) -> bool:
    """Whether it has pieces of what was erased that nothing which stays has."""
    found = Needles.of({piece for _, piece in needles.find(data)})
    if len(found):
        for value in db.backend.values():
            if value.table != "dictionary":
                for form in value.forms(db.kit):
                    found.discard_in(form)
                if not len(found):
                    break
    return len(found) > 0


def _repack_all(db: Database, version: int) -> None:
    for packed, repack in _TABLES:
        after = (0, 0)
        while True:
            done = db.write(
                lambda tx, p=packed, r=repack, a=after: _repack(tx, db, version, p, r, a)
            )
            if done is None:
                break
            after = done
    while db.write(lambda tx: _repack_prompts(tx, db, version)):
        pass


def _repack(
    tx: Transaction, db: Database, version: int, packed: Packed, repack: Repack,
    after: tuple[int, int],
) -> tuple[int, int] | None:  # fmt: skip
    """One step; where the next begins, None: nothing is left."""
    rows = packed(tx, after, dictionary_tags(version), STEP)
    for no, number, data in rows:
        repack(tx, no, number, db.kit.codec.repacked(data))
    return (rows[-1][0], rows[-1][1]) if rows else None


def _repack_prompts(tx: Transaction, db: Database, version: int) -> bool:
    rows = prompts.packed(tx, dictionary_tags(version), STEP)
    for kind, digest, data in rows:
        prompts.repack(tx, kind, digest, db.kit.codec.repacked(data))
    return bool(rows)


def _is_dropped(db: Database, version: int) -> bool:
    """Drop it, unless something is packed with it yet."""

    def drop(tx: Transaction) -> bool:
        tx.run("erasure_lock")
        tags = dictionary_tags(version)
        for packed, repack in _TABLES:  # the little that came meanwhile
            _repack(tx, db, version, packed, repack, (0, 0))
        if any(packed(tx, (0, 0), tags, 1) for packed, _ in _TABLES) or prompts.packed(tx, tags, 1):
            return False
        dictionary.drop(tx, version)
        return True

    return db.write(drop)
