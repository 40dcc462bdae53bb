"""The floor of an import: its rows, read back from a store and written bare into a clone of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import floor

_BATCH = 2_000
"""Rows of one transaction, about as the importer has them."""
_TABLES = (
    ("SELECT * FROM message", "DELETE FROM message", "INSERT INTO message VALUES"),
    ("SELECT * FROM model_call", "DELETE FROM model_call", "INSERT INTO model_call VALUES"),
)


def write_again(path: Path, store: Path) -> tuple[float, int]:
    """Seconds of writing the messages and model calls of the store at `path` into the new one at
    `store`, and how many there are."""
    floor.clone(path, store)
    source, target = floor.connect(path), floor.connect(store)
    took, count = 0.0, 0
    for select, delete, insert in _TABLES:
        target.execute(delete)
        for batch in _batches(iter(source.execute(select))):
            marks = ", ".join("?" * len(batch[0]))
            started = time.perf_counter()
            target.execute("BEGIN IMMEDIATE")
            target.executemany(f"{insert} ({marks})", batch)
            target.execute("COMMIT")
            took += time.perf_counter() - started
            count += len(batch)
    target.close()
    source.close()
    return took, count


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch
