"""The jobs of `scripts/bench crash` run and answer every target; no figure is judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import jobs  # noqa: E402
from benchmarks.crash import kills, power, year  # noqa: E402
from benchmarks.measure import Reading  # noqa: E402


@pytest.mark.parametrize("name", ["power", "kills", "year"])
def test_a_quick_job_answers_every_target(
    fast_dir: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "_STEPS", 2)
    monkeypatch.setattr(kills, "_STORE", 8)
    monkeypatch.setattr(kills, "_WRITERS", (2,))
    monkeypatch.setattr(year, "_DAYS", 30)
    job = next(job for job in jobs.jobs("crash") if job.name == name)
    asked = jobs.wanted(job, quick=True)
    if name == "year":
        monkeypatch.setattr(year, "_SIZES", (600,))
    said = dict(job.run(jobs.Bench(True, fast_dir, asked)))
    assert all(isinstance(reading, Reading) for reading in said.values())
    if name == "year":
        assert set(said) == {"year_size_600", "year_search_600", "year_wait_600"}
    else:
        assert set(said) == asked
    bad = {"lost", "doubled", "corrupt", "problems"}
    assert all(
        reading.value == 0
        for target, reading in said.items()
        if target.rpartition("_")[2] in bad and isinstance(reading, Reading)
    )
