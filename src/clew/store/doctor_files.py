"""The part of a diagnosis that looks at files: only stat, never open."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path

from clew.store.findings import Finding, size_text

LOW_DISK = 100 << 20
"""Bytes."""
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "ncpfs"})


def no_file(store: Path) -> Iterator[Finding]:
    """Why there may be no store."""
    if os.path.exists(f"{store}-wal"):
        yield Finding(
            "error", "file", f"{store} is gone, but its -wal is there",
            "Bring the file back from where it was moved to; if it is lost, move the -wal away "
            "and restore a backup",
        )  # fmt: skip
        return
    yield Finding(
        "warn", "file", f"there is no store at {store}",
        "Nothing is wrong if you have not added a conversation yet: `clew import --discover`, or "
        "opening the store from Python, makes it. Else give the right path (--store, CLEW_STORE)",
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
        )  # fmt: skip
    for name, what in ((store, "store"), (store.parent, "folder")):
        if not os.access(name, os.W_OK):
            yield Finding(
                "error", "permissions", f"you may not write to the {what} {name}",
                "Run as the user who owns it, or change its owner (chown)",
            )  # fmt: skip
            return
    if not open_to_others:
        yield Finding("ok", "permissions", "only its owner can read it")


def folder(store: Path) -> Iterator[Finding]:
    """Whether SQLite's locks work where the store lies."""
    kind = file_system(store.parent.resolve())
    if kind in NETWORK:
        yield Finding(
            "error", "folder", f"the store lies on a network file system ({kind})",
            "Move it to a local disk: several machines on one file will damage it",
        )  # fmt: skip


def file_system(folder: Path) -> str | None:
    """Kind of the file system a folder is on; None where that is not told."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = folder == Path(point) or Path(point) in folder.parents
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def disk(store: Path) -> Iterator[Finding]:
    """Whether the next messages, and a restore, will fit."""
    free, size = shutil.disk_usage(store.parent).free, store.stat().st_size
    if free < LOW_DISK:
        yield Finding(
            "error", "disk", f"{size_text(free)} are free on the disk; writes will soon fail",
            "Free some space, or move the store to another disk",
        )  # fmt: skip
    elif free < 2 * size:
        yield Finding(
            "warn", "disk", f"{size_text(free)} are free, the store has {size_text(size)}",
            "Free some space: a restore keeps the old store beside the new one",
        )  # fmt: skip
    else:
        yield Finding("ok", "disk", f"{size_text(free)} are free")


def leftovers(store: Path) -> Iterator[Finding]:
    """Files beside the store that nobody needs, or that nobody should delete."""
    stale = [*_beside(store, ".restore-*"), *_beside(store, ".partial-*")]
    if stale:
        names = " ".join(str(name) for name in stale)
        yield Finding(
            "warn", "leftovers", f"an interrupted backup or restore left {names}",
            f"If none is running: rm {names}",
        )  # fmt: skip
    if os.path.exists(f"{store}-journal"):
        yield Finding(
            "warn", "leftovers", f"{store}-journal lies beside the store, which clew never makes",
            "Another program has changed the store; do not delete the journal, run clew verify",
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
