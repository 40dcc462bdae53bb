"""Whatever fails or happens meanwhile: nothing is lost, doubled or forked, the context is right.

`CLEW_SIMULATIONS=1000` runs so many seeds.
"""

from __future__ import annotations

import os

import compaction_faults
import compaction_kills
import pytest

COUNT = int(os.environ.get("CLEW_SIMULATIONS", "100"))
_SLICE = 20


@pytest.mark.parametrize("first", range(1, COUNT + 1, _SLICE))
def test_nothing_is_lost_whatever_fails(first: int) -> None:
    """Summarisers that fail in every way, and others that append, cut, edit, undo, cancel and
    compact between the steps."""
    report = compaction_faults.run(range(first, min(first + _SLICE, COUNT + 1)))
    assert not report.problems
    assert not report.faulty


def test_the_simulation_meets_everything() -> None:
    """Every fault is injected and every outcome is reached: else the test above shows nothing."""
    report = compaction_faults.run(range(1, 101))
    assert set(report.summaries) == set(compaction_faults.FAULTS)
    assert set(report.outcomes) >= {"committed", "refused", "cancelled", "overtaken"}


@pytest.mark.parametrize("step", compaction_kills.steps())
def test_killed_at_a_step(step: str) -> None:
    """kill -9: the log is whole, the context right, and the next attempt succeeds."""
    report = compaction_faults.Report()
    compaction_kills.kill_at(step, report)
    assert not report.problems
    assert not report.faulty
    assert report.outcomes["committed"] == 1
