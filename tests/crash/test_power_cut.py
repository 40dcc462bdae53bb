"""A power cut at any moment: every acknowledged message is there, once, and all invariants hold.

What a run wrote and synced is recorded (recording_vfs.py); then the power is cut after many of
its events, with the unsynced writes there, gone, partly there or torn.
"""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from recording_vfs import Disk, Event

import clew

CHILD = Path(__file__).with_name("power_cut.py")
CUTS = 60
HOW = ("none", "all", "some", "torn")


def record(path: Path, how: str) -> tuple[Disk, list[Event]]:
    """The disk before the run, and what reached it."""
    result = path.with_name("result")
    command = [sys.executable, str(CHILD), str(path), str(result), how]
    subprocess.run(command, check=True, timeout=60)
    start, events = pickle.loads(result.read_bytes())
    return Disk({name: bytearray(data) for name, data in start.items()}), events


def states(disk: Disk, events: list[Event], rng: random.Random) -> Iterator[tuple[str, Disk]]:
    """The disk at random moments, and at the end."""
    moments = set(rng.sample(range(1, len(events)), CUTS)) | {len(events)}
    for at, event in enumerate(events, 1):
        disk.take(event)
        if at in moments:
            yield f"after event {at} ({event.kind} {event.file})", disk


def reopen(folder: Path, files: dict[str, bytes], acknowledged: list[str]) -> str | None:
    """What is wrong with these files as a store; None if nothing is."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        with clew.open(folder / "store.db") as store:
            problems = store.verify()
            conv = store.profile("p").open("c")
            keys = [message.key for message in conv.messages(hidden=True) if message.key]
            for message in conv.messages(hidden=True):
                for part in message.parts:
                    if isinstance(part, clew.Image):
                        conv.blob(part.hash or "")
            conv.append([clew.user("and on", key="and on")])
    except clew.ClewError as error:
        return f"{type(error).__name__}: {error}"
    if problems:
        return str(problems)
    if lost := set(acknowledged) - set(keys):
        return f"lost {sorted(lost)}"
    return None if len(keys) == len(set(keys)) else "doubled"


def test_no_acknowledged_message_is_lost(fast_dir: Path) -> None:
    disk, events = record(fast_dir / "store.db", "honest")
    assert {event.kind for event in events} >= {"write", "sync", "ack"}
    checkpoints = [e for e in events if e.kind == "write" and e.file == "store.db"]
    assert checkpoints  # the WAL was written back into the database on the way
    rng, folder = random.Random(3), fast_dir / "after"
    folder.mkdir()
    for moment, state in states(disk, events, rng):
        for how in HOW:
            wrong = reopen(folder, state.after_power_cut(how, rng), state.acknowledged)
            assert wrong is None, f"{moment}, unsynced writes: {how}: {wrong}"


def test_a_disk_that_lies_about_syncs_is_caught(fast_dir: Path) -> None:
    """The control: one in five syncs of the WAL does nothing, and the check above sees it."""
    disk, events = record(fast_dir / "store.db", "lying")
    rng, folder = random.Random(3), fast_dir / "after"
    folder.mkdir()
    found = [
        wrong
        for _, state in states(disk, events, rng)
        if (wrong := reopen(folder, state.after_power_cut("none", rng), state.acknowledged))
    ]
    assert any(wrong.startswith("lost") for wrong in found)
