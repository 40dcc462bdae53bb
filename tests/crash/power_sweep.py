"""Cuts the power after every event of a record, in every way, and looks at what is left.

    python power_sweep.py RECORD FOLDER [--shard N/OF] [--how HOW]... [--seed N] [--share N]
                          [--lie wal|wal/20|checkpoint] [--expect]

Prints one JSON object. A *point* is a moment and a way to cut; points often leave the same files,
and each *image* is looked at once: always by SQLite (survived.look), one of `--share` by opening it
as a store (survived.use), and so is every one that a point of "none" or "all" leaves after an
acknowledgement. `--lie` takes syncs out of the record, as if the disk had only pretended them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from power_disk import HOW, Disk
from recording_vfs import Event
from survived import NAME, Found, Promised, look, use

SEARCHED = 8
"""Of the images that are opened, one in so many has its search file compared with a new one."""


class Sweep:
    """Verdicts by image, and the counts of a run."""

    def __init__(self, folder: Path, share: int) -> None:
        self.folder, self.share = folder, share
        self.images: dict[bytes, Found | str] = {}
        self.points = self.opened = self.searched = 0
        self.wrong: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        self._digests: dict[bytes, bytes] = {}

    def point(self, moment: str, files: dict[str, bytes], promised: Promised, full: bool) -> None:
        """One way to cut the power at one moment."""
        self.points += 1
        image = _digest(files)
        found = self.images.get(image)
        if found is None:
            found = self.images[image] = self._examine(image, files, full)
        wrong = found if isinstance(found, str) else promised.broken(*found)
        if wrong:
            kind = wrong.split()[0].strip(":")
            self.wrong[kind] += 1
            self.first.setdefault(kind, f"{moment}: {wrong}")

    def _examine(self, image: bytes, files: dict[str, bytes], full: bool) -> Found | str:
        self._lay(files)
        found = look(self.folder)
        number = int.from_bytes(image[:4], "big")
        if isinstance(found, str) or not (full or number % self.share == 0):
            return found
        self.opened += 1
        search = self.opened % SEARCHED == 0
        self.searched += search
        return use(self.folder, search) or found

    def _lay(self, files: dict[str, bytes]) -> None:
        for old in self.folder.iterdir():
            old.unlink()
        for name, data in files.items():
            (self.folder / name).write_bytes(data)

    def report(self, seconds: float) -> dict[str, object]:
        return {
            "points": self.points, "images": len(self.images), "opened": self.opened,
            "searched": self.searched, "wrong": dict(self.wrong), "first": self.first,
            "seconds": round(seconds, 2),
        }  # fmt: skip


def _digest(files: dict[str, bytes]) -> bytes:
    digest = hashlib.sha1(usedforsecurity=False)
    for name, data in sorted(files.items()):
        digest.update(f"{name} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


def honest(events: list[Event], lie: str | None) -> Iterator[Event]:
    """The record, without the syncs that the disk only pretended."""
    log = skipped = 0
    for event in events:
        if event.kind == "sync" and lie is not None:
            of_log = event.file == f"{NAME}-wal"
            log += of_log
            if (
                (lie == "wal" and of_log)
                or (lie == "wal/20" and of_log and log % 20 == 0)
                or (lie == "checkpoint" and event.file == NAME)
            ):
                skipped += 1
                continue
        yield event


def sweep(events: list[Event], chosen: argparse.Namespace) -> Sweep:
    """Every prefix of the record; of several shards, each takes every so manieth event."""
    shard, of = map(int, chosen.shard.split("/"))
    disk, promised, told = Disk(), Promised(), 0
    run = Sweep(chosen.folder, chosen.share)
    for at, event in enumerate(honest(events, chosen.lie)):
        disk.take(event)
        while told < len(disk.acknowledged):
            promised.take(disk.acknowledged[told])
            told += 1
        if at % of != shard or NAME not in disk.live:
            continue
        for how in chosen.how or HOW:
            rng = random.Random(f"{chosen.seed} {at} {how}")
            moment = f"after event {at} ({event.kind} {event.file}), unsynced: {how}"
            full = event.kind == "ack" and how in ("none", "all")
            run.point(moment, disk.after_power_cut(how, rng), promised, full)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--how", action="append", choices=HOW)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--share", type=int, default=4)
    parser.add_argument("--lie", choices=("wal", "wal/20", "checkpoint"))
    parser.add_argument("--expect", action="store_true", help="something is to be found wrong")
    chosen = parser.parse_args()
    chosen.folder.mkdir()
    started = perf_counter()
    run = sweep(pickle.loads(chosen.record.read_bytes()), chosen)
    json.dump(run.report(perf_counter() - started), sys.stdout)


if __name__ == "__main__":
    main()
