"""Bytes on disk, search included, against the payload: the JSON of the messages in UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import clew_adapter, workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target
from benchmarks.workload import Chat

_LEARNED_FROM = 100
"""Conversations of 100 messages from which the dictionary is trained: as soon as it may be."""


def sizes(bench: Bench) -> Readings:
    """Written once, indexed, closed; there is nothing to repeat."""
    w1 = list(workload.w1())
    yield "disk_w1", _grown_by(bench.path("w1"), w1)
    realistic = list(workload.realistic(bench.pick(30, 200)))
    yield "disk_realistic", _grown_by(bench.path("realistic"), realistic)
    yield (
        "disk_w1_dictionary",
        _with_dictionary(bench.path("dictionary"), w1[: bench.pick(60, 200)]),
    )


def _with_dictionary(path: Path, chats: Sequence[Chat]) -> Reading:
    """What W1 adds to a store that has trained its dictionary on 10,000 other messages."""
    clew_adapter.write(path, workload.w1(_LEARNED_FROM, first=300_000))
    clew_adapter.maintain(path)
    return _grown_by(path, chats)


def _grown_by(path: Path, chats: Sequence[Chat]) -> Reading:
    """Bytes that writing and indexing these conversations add to a store's files."""
    before = _sizes(path)
    clew_adapter.write(path, chats)
    clew_adapter.index(path)
    added = {name: size - before.get(name, 0) for name, size in _sizes(path).items()}
    messages = [message for chat in chats for message in chat.messages]
    payload = sum(workload.payload(message) for message in messages)
    parts = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sorted(added.items()) if size)
    note = f"{len(messages):,} messages; {parts}"
    total = sum(added.values())
    return Reading(total / payload, total / 1e6, payload / 1e6, "MB", note=note)


def _sizes(path: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in clew_adapter.files(path)}


_SIDES = ("on disk", "payload")

DISK = Job(
    "disk",
    sizes,
    (
        Target("disk_w1", 1.35, sides=_SIDES, says="bytes on disk with search, W1"),
        Target(
            "disk_realistic", 1.1, sides=_SIDES, says="bytes on disk with search, realistic sizes"
        ),
        Target(
            "disk_w1_dictionary",
            1.2,
            sides=_SIDES,
            says="bytes on disk with search, W1 with the store's dictionary",
        ),
    ),
)
