"""Reading cuts: apart from making them, since the log itself has to know what is hidden."""

from __future__ import annotations

from clew.domain.cuts import Cut
from clew.store.backend import Transaction


def all_of(tx: Transaction, no: int) -> list[Cut]:
    """All cuts of a conversation, undone ones too, by number."""
    return [
        Cut(number=r[0], from_seq=r[1], to_seq=r[2], by=r[3], at=r[4], undone_at=r[5])
        for r in tx.rows("cut_all", no=no)
    ]
