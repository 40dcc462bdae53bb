"""What issue 5 promises of compaction, in the order in which a quick run spends its time."""

from contextlib import nullcontext as running

from benchmarks.compaction.commit import COMMIT
from benchmarks.compaction.conformance import GENERATED, STANDARD
from benchmarks.compaction.constraints import CONSTRAINTS
from benchmarks.compaction.drift import DRIFT
from benchmarks.compaction.faults import FAULTS
from benchmarks.compaction.prefix import PREFIX
from benchmarks.compaction.rounds import ROUNDS
from benchmarks.compaction.speed import SPEED

__all__ = ["JOBS", "facts", "forget", "has", "prepare", "running"]

JOBS = (STANDARD, GENERATED, DRIFT, SPEED, COMMIT, ROUNDS, PREFIX, CONSTRAINTS, FAULTS)


def facts(quick: bool) -> dict[str, str]:
    """What is compacted."""
    runs = "30" if quick else "1,000"
    return {
        "kits": "each in its own environment and process; what they ask is answered by clew here",
        "workload": "the kits' corpora; generated histories of a coding agent, by seed; a pi "
        f"session of 914 messages, a Claude Code session of 437 records; {runs} simulated runs",
    }


def prepare() -> None:
    """Nothing is kept between runs."""


def forget() -> None:
    """As `prepare`."""


def has(_: str) -> bool:
    return False
