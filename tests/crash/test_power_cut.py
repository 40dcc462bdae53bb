"""A power cut at any moment: every acknowledged message is there, once, and all invariants hold.

What a run wrote and synced is recorded (recording_vfs.py), from the making of the file on; then the
power is cut after each of its events, in each way that a disk allows (power_disk.py), and what is
left is opened. `CLEW_CRASH_POINTS=100000` cuts more often: longer records, other seeds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
STEPS, POINTS = 27, 10_000
"""Steps of a record, and how many points it has at least."""
SHARDS = 2


def record(folder: Path, steps: int, *flags: str) -> Path:
    """What reached the disk while a store was made and used."""
    folder.mkdir()
    result = folder / "record"
    command = [sys.executable, str(HERE / "power_cut.py"), str(folder), str(result), str(steps)]
    subprocess.run([*command, *flags], check=True, timeout=300)
    return result


def sweep(events: Path, *flags: str, shards: int = SHARDS) -> Counter[str]:
    """All points of a record, by several processes; the sum of what they report."""
    children: list[subprocess.Popen[str]] = []
    for n in range(shards):
        folder = events.with_name(f"after {n} {len(flags)}")
        command = [sys.executable, str(HERE / "power_sweep.py"), str(events), str(folder)]
        shard = ["--shard", f"{n}/{shards}"]
        children.append(
            subprocess.Popen([*command, *shard, *flags], stdout=subprocess.PIPE, text=True)
        )
    total: Counter[str] = Counter()
    for child in children:
        said, _ = child.communicate(timeout=3600)
        assert child.returncode == 0
        report: dict[str, Any] = json.loads(said)
        assert not report["first"] or "--lie" in flags or "--expect" in flags, report["first"]
        total.update({name: report[name] for name in ("points", "images", "opened", "searched")})
        total.update(report["wrong"])
    return total


def test_no_acknowledged_message_is_lost(fast_dir: Path) -> None:
    """S51.4 for a power cut: 10,000 points at least."""
    wanted = int(os.environ.get("CLEW_CRASH_POINTS", POINTS))
    total: Counter[str] = Counter()
    for seed in range(max(1, wanted // (10 * POINTS))):
        events = record(fast_dir / f"{seed}", min(10, max(1, wanted // POINTS)) * STEPS)
        total += sweep(events, "--seed", str(seed))
    assert total["points"] >= wanted
    assert (
        total["images"] > total["points"] // 2
    )  # they differ: it is not one state again and again
    assert total["opened"] > total["images"] // 5
    assert total["searched"] > 100


@pytest.mark.parametrize("lie", ["wal", "wal/20", "checkpoint"])
def test_a_disk_that_lies_about_syncs_is_caught(fast_dir: Path, lie: str) -> None:
    """The control of the test above: syncs of the WAL, all or one in twenty, or of the database
    when the WAL is moved into it, are only pretended."""
    events = record(fast_dir / "store", STEPS)
    total = sweep(events, "--how", "none", "--share", "1000", "--lie", lie)
    assert total["lost"] > 0


def test_a_commit_without_a_sync_is_caught(fast_dir: Path) -> None:
    """The control by the store's own setting: with synchronous = NORMAL acknowledged messages are
    lost, and nothing is damaged."""
    events = record(fast_dir / "store", STEPS, "--normal")
    total = sweep(events, "--how", "none", "--share", "1000", "--expect")
    assert total["lost"] > 0
    assert total["corrupt"] == 0
