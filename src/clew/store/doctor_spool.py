"""What the doctor says of the spool. Makes none, and changes nothing in one."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape, glob
from pathlib import Path

from clew.store.findings import Finding, counted, size_text
from clew.store.spool.place import spool_path
from clew.store.spool.record import HELD
from clew.store.spool.spool import Contents, Spool

_MEND = "Mend what the message names; the next write brings them in, or `clew spool replay` does"


def look(store: Path | None, store_id: str | None) -> Iterator[Finding]:
    """Findings about the spool of a file, or of the server's store of this id."""
    path = spool_path(store, store_id)
    for aside in sorted(glob(f"{escape(str(path))}.damaged-*")):
        yield Finding(
            "warn", "spool", f"{aside} was in the place of the spool and could not be read",
            "It may hold messages of people: keep it until you know what it is",
            code="spool.aside",
        )  # fmt: skip
    if not path.exists():
        yield Finding("ok", "spool", "empty; its room is reserved by the first write")
        return
    try:
        found = Spool(path, 0).contents()
    except OSError as error:
        yield Finding(
            "error", "spool", f"{path} cannot be read: {error.strerror or error}",
            "Check the permissions of the file and of its folder",
            code="spool.unreadable",
        )  # fmt: skip
        return
    yield from _inside(path, found)


def _inside(path: Path, found: Contents) -> Iterator[Finding]:
    waiting, held = found.counted(("pending",)), found.counted(HELD)
    damaged = sum(entry.state == "damaged" for entry in found.entries)
    if waiting:
        last = [e.record for e in found.entries if e.record and e.state == "pending"][-1]
        yield Finding(
            "warn", "spool",
            f"{counted(waiting, 'message')} of {counted(len(found.entries), 'record')} wait in "
            f"{path}: {last.cause}", _MEND,
            code="spool.pending",
        )  # fmt: skip
    if held:
        yield Finding(
            "warn", "spool", f"{counted(held, 'message')} in {path} have no place in this store",
            "`clew spool` lists them; then clew spool export, replay or discard",
            code="spool.held",
        )  # fmt: skip
    if damaged:
        yield Finding(
            "error", "spool", f"{counted(damaged, 'record')} of {path} cannot be read any more",
            "Check the disk; whoever wrote them was told that they were accepted",
            code="spool.damaged",
        )  # fmt: skip
    if found.torn:
        yield Finding(
            "ok", "spool", f"{path} ends in a record that was never acknowledged: a crash"
        )
    if not (waiting or held or damaged):
        yield Finding("ok", "spool", f"empty, {size_text(found.room)} reserved")
