"""The part of a diagnosis that looks at files: only stat, never open."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path

from clew.store import filesystem
from clew.store.findings import Finding, size_text
from clew.store.wal_holders import lost_by

LOW_DISK = 100 << 20
"""Bytes."""


def no_file(store: Path) -> Iterator[Finding]:
    """Why there may be no store."""
    if os.path.exists(f"{store}-wal"):
        yield Finding(
            "error", "file",
            f"{store} is {'empty' if store.exists() else 'gone'}, but its -wal is there",
            "Bring the file back from where it was moved to; if it is lost, move the -wal away "
            "and restore a backup",
            code="file.gone",
        )  # fmt: skip
        return
    yield Finding(
        "warn", "file", f"there is no store at {store}",
        "Nothing is wrong if you have not added a conversation yet: `clew import --discover`, or "
        "opening the store from Python, makes it. Else give the right path (--store, CLEW_STORE)",
        code="file.missing",
    )  # fmt: skip


def permissions(store: Path) -> Iterator[Finding]:
    """Who else can read the store, and whether its user can write to it."""
    if os.name == "nt":
        return
    open_to_others: list[str] = []
    for name in (store, *(Path(f"{store}{side}") for side in ("-wal", "-shm", ".search"))):
        with suppress(FileNotFoundError):
            if stat.S_IMODE(name.stat().st_mode) & 0o077:
                open_to_others.append(str(name))
    if open_to_others:
        yield Finding(
            "warn", "permissions", f"others may read or write {', '.join(open_to_others)}",
            f"chmod 600 {' '.join(open_to_others)}",
            code="permissions.open",
        )  # fmt: skip
    for name, what in ((store, "store"), (store.parent, "folder")):
        if not os.access(name, os.W_OK):
            yield Finding(
                "error", "permissions", f"you may not write to the {what} {name}",
                "Run as the user who owns it, or change its owner (chown)",
                code="permissions.write",
            )  # fmt: skip
            return
    if not open_to_others:
        yield Finding("ok", "permissions", "only its owner can read it")


def folder(store: Path) -> Iterator[Finding]:
    """Whether SQLite's locks work where the store lies."""
    kind = filesystem.file_system(store.parent.resolve())
    if filesystem.is_network(kind):
        yield Finding(
            "error", "folder", f"the store lies on a network file system ({kind})",
            "Move it to a local disk (`clew copy`), or to PostgreSQL: several machines on one file "
            "will damage it",
            code="folder.network",
        )  # fmt: skip


def holders(store: Path) -> Iterator[Finding]:
    """Whether somebody works on in a -wal that has no name any more."""
    lost = lost_by(os.path.realpath(store))
    if lost is not None:
        pid, name = lost
        yield Finding(
            "error", "holders",
            f"{name} was deleted while process {pid} had the store open: its newest commits are "
            f"only there",
            "Let that process end by itself, which saves them (no kill -9), and open the store "
            "nowhere else before",
            code="holders.wal-deleted",
        )  # fmt: skip


def disk(store: Path) -> Iterator[Finding]:
    """Whether the next messages, and a restore, will fit."""
    free, size = shutil.disk_usage(store.parent).free, store.stat().st_size
    if free < LOW_DISK:
        yield Finding(
            "error", "disk", f"{size_text(free)} are free on the disk; writes will soon fail",
            "Free some space, or move the store to another disk",
            code="disk.full",
        )  # fmt: skip
    elif free < 2 * size:
        yield Finding(
            "warn", "disk", f"{size_text(free)} are free, the store has {size_text(size)}",
            "Free some space: a restore keeps the old store beside the new one",
            code="disk.low",
        )  # fmt: skip
    else:
        yield Finding("ok", "disk", f"{size_text(free)} are free")


def leftovers(store: Path) -> Iterator[Finding]:
    """Files beside the store that nobody needs, or that nobody should delete."""
    stale = [
        *_beside(store, ".restore-*"), *_beside(store, ".partial-*"), *_beside(store, ".repair-*"),
        *sorted(store.parent.glob(f"{escape(store.stem)}.repaired-*{store.suffix}.partial-*")),
    ]  # fmt: skip
    if stale:
        names = " ".join(str(name) for name in stale)
        yield Finding(
            "warn", "leftovers", f"an interrupted backup, restore or repair left {names}",
            f"If none is running: rm {names}",
            code="leftovers.interrupted",
        )  # fmt: skip
    if os.path.exists(f"{store}-journal"):
        yield Finding(
            "warn", "leftovers", f"{store}-journal lies beside the store, which clew never makes",
            "Another program has changed the store; do not delete the journal, run clew verify",
            code="leftovers.journal",
        )  # fmt: skip
    kept = sorted(store.parent.glob(f"{escape(store.stem)}.replaced-*{store.suffix}"))
    if kept:
        total = size_text(sum(name.stat().st_size for name in kept))
        yield Finding(
            "ok", "leftovers", f"{len(kept)} replaced by a restore and kept, {total}: {kept[-1]}",
            "Delete what you no longer need",
        )  # fmt: skip


def _beside(store: Path, pattern: str) -> list[Path]:
    return sorted(store.parent.glob(f"{escape(store.name)}{pattern}"))
