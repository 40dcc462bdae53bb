"""Larger stores out of smaller ones: the rows of one, copied (COPY) with other numbers."""

from __future__ import annotations

from benchmarks.postgres import floor

_STEP = 1 << 42
"""Between the numbers of a conversation and of its copy."""
_SPACING = 1 << 10
"""Between the ids of a message and of its copy. The last 20 bits are the copy's: above them is the
transaction, and a conversation has no more than 1,000 messages."""
_INDEX = "search_text_words"
_DEFINITION = "SELECT pg_get_indexdef(CAST(%s AS regclass))"
_MARK = "SELECT format, profile, rows FROM search_mark"
_SET_MARK = """
INSERT INTO search_mark(format, profile, rows, store_id, stamp, message, change)
SELECT %s, %s, %s, (SELECT value FROM meta WHERE name = 'store_id'),
  (SELECT value FROM meta WHERE name = 'stamp'), clew_settled(pg_current_snapshot()) - 1,
  clew_settled(pg_current_snapshot()) - 1
"""


def fill(source: str, url: str, times: int, already: int) -> None:
    """Copy an indexed store so often into an empty one, which is indexed then, too.

    `already`: of how many copies the source consists.
    """
    with floor.connect(source) as origin, floor.connect(url) as target:
        definition = target.execute(_DEFINITION, (_INDEX,)).fetchall()[0][0]
        target.execute(f"DROP INDEX {_INDEX}".encode())
        for nth in range(times):
            step = f"CAST({nth * already * _STEP} AS BIGINT)"
            named = {"no": f"no + {step}", "id": f"id || '-{nth}'"}
            moved = {"id": f"id + {nth * already * _SPACING}"}
            _copy(origin, target, "conversation_id", named)
            _copy(origin, target, "conversation", named)
            _copy(
                origin, target, "message", {**moved, "conversation_no": f"conversation_no + {step}"}
            )
            _copy(origin, target, "search_text", moved)
        target.execute(definition)
        format, profile, rows = origin.execute(_MARK).fetchall()[0]
        target.execute(_SET_MARK, (format, profile, rows * times))


def _copy(
    origin: floor.Connection, target: floor.Connection, table: str, changed: dict[str, str]
) -> None:
    """Copy the rows of a table, with some columns changed."""
    names = floor.columns(origin, table)
    values = ", ".join(changed.get(name, name) for name in names)
    read = f"COPY (SELECT {values} FROM {table}) TO STDOUT (FORMAT binary)"  # noqa: S608
    write = f"COPY {table}({', '.join(names)}) FROM STDIN (FORMAT binary)"
    with (
        origin.cursor().copy(read.encode()) as out,
        target.cursor().copy(write.encode()) as into,
    ):
        for block in out:
            into.write(block)
