"""Every call of every operation fails once: the error is one of the disk, nothing is half written,
what was acknowledged stays, and the next call goes through as soon as the disk does (faulty.py).

The set of calls is recorded first, by the same operations without a fault.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FAULTY = Path(__file__).with_name("faulty.py")
REACHED = {
    *(f"{method} db" for method in ("xOpen", "xRead", "xWrite", "xSync", "xTruncate", "xLock")),
    *(f"{method} -wal" for method in ("xOpen", "xRead", "xWrite", "xSync", "xDelete", "xAccess")),
    "xFileSize db", "xFileSize -wal", "xAccess -journal",
    *(f"{method} search db" for method in ("xOpen", "xRead")),
    *(f"{method} search -wal" for method in ("xOpen", "xWrite", "xSync")),
}  # fmt: skip
"""What the operations must at least come across, or the test would show little."""


def _failed(folder: Path, *flags: str, of: int = 2) -> dict[str, Any]:
    """Two of so many shares of all faults, by two processes."""
    children = [
        subprocess.Popen(
            [sys.executable, str(FAULTY), str(folder / f"{n}"), "--shard", f"{n}/{of}", *flags],
            stdout=subprocess.PIPE, text=True,
        )
        for n in range(2)
    ]  # fmt: skip
    reports: list[dict[str, Any]] = []
    for child in children:
        said, _ = child.communicate(timeout=300)
        assert child.returncode == 0
        reports.append(json.loads(said))
    first, second = reports
    assert first["wrong"] + second["wrong"] == []
    print(json.dumps(first["methods"]), json.dumps(first["seen"]))
    seen = {kind for report in reports for kind in report["seen"]}
    missed = sum(report["seen"].get("missed", 0) for report in reports)
    assert missed < sum(report["faults"] for report in reports) / 10
    return {**first, "faults": first["faults"] + second["faults"], "seen": seen}


def test_a_call_that_fails_once_loses_nothing(fast_dir: Path) -> None:
    """A commit that fails is tried once more, so that most callers notice nothing at all."""
    report = _failed(fast_dir)
    assert set(report["methods"]) >= REACHED
    assert {call.split()[0] for call in report["methods"]} == set(report["known"])
    assert report["faults"] > 1_500
    assert report["seen"] >= {"nothing", "StoreUnusable", "SearchUnavailable"}


@pytest.mark.parametrize(("spool", "of"), [((), 4), (("--spool",), 6)], ids=["alone", "spool"])
def test_a_disk_that_stays_broken_is_told_and_costs_nothing(
    fast_dir: Path, spool: tuple[str, ...], of: int
) -> None:
    """From the call on, every one of its kind fails until the operation has ended. With a spool,
    messages go there, and are in the log after the next write."""
    report = _failed(fast_dir, "--on", *spool, of=of)
    assert report["faults"] > 600
    assert report["seen"] >= {"StoreUnusable", "StoreFull"}
