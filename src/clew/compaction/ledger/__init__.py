"""The ledger: what a stretch of conversation said and did, as typed rows with references into the
log, made without a model. `write_epoch` makes it, `fold` makes one of several."""

from __future__ import annotations

from clew.compaction.ledger.checks import rows_of
from clew.compaction.ledger.epochs import epoch_of, fold, inline_of, write_epoch
from clew.compaction.ledger.gather import holding
from clew.compaction.ledger.rows import Add, Close, Epoch, Operation, Row, RowKind, Supersede

__all__ = [
    "Add", "Close", "Epoch", "Operation", "Row", "RowKind", "Supersede", "epoch_of",
    "fold", "holding", "inline_of", "rows_of", "write_epoch",
]  # fmt: skip
