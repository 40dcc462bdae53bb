"""Reading the context of a conversation of 1,000 messages, in stores of three sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import clew
from benchmarks import clew_adapter, floor, stores, workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Target, interleave, typical
from clew.store.codec import Codec

_SIZES = {"20k": 20_000, "200k": 200_000, "1m": 1_000_000}
_CALLS = 3
_DICTIONARIES = "SELECT version, bytes FROM dictionary"
_FLAT = 1.25
"""How much slower a read may be than in the store of 20,000: what noise makes of "flat"."""


class _Sides:
    """The reads of one store: clew's and the floor's, over its twelve long conversations."""

    def __init__(self, size: int, stack: ExitStack) -> None:
        path = stores.grown(size)
        store = stack.enter_context(clew.open(path))
        self._under = floor.Floor(path)
        stack.callback(self._under.close)
        profile = store.profile(clew_adapter.PROFILE)
        found = self._under.rows(
            "SELECT id, no FROM conversation ORDER BY no LIMIT ?", (workload.BIG,)
        )
        self._handles = [profile.open(str(id)) for id, _ in found]
        for handle in self._handles:
            assert len(handle.context_inputs().messages) == workload.BIG_MESSAGES
        self._numbers = [int(no) for _, no in found]
        self._turn = 0

    def _sample(self, read: Callable[[int], object]) -> float:
        """Milliseconds of a typical read, one conversation after the other."""
        self._turn = (self._turn + 1) % workload.BIG
        return typical(_CALLS, lambda: read(self._turn)) * 1e3

    def lazy(self) -> float:
        """Rows that decode on access."""
        return self._sample(lambda at: self._handles[at].context_inputs().messages)

    def typed(self) -> float:
        """The same with every message decoded to typed parts."""
        handles = self._handles
        return self._sample(lambda at: [m.parts for m in handles[at].context_inputs().messages])

    def bare(self) -> float:
        return self._sample(lambda at: self._under.context(self._numbers[at]))

    def bare_decoded(self) -> float:
        """The floor's read of the same rows, their bodies decompressed and given to json.loads."""
        json_of = Codec(lambda: dict(self._under.rows(_DICTIONARIES))).json

        def read(at: int) -> object:
            return floor.decode(self._under.context(self._numbers[at]), json_of)

        return self._sample(read)


def contexts(bench: Bench) -> Readings:
    """All sizes are open at once, so that growth is measured in interleaved rounds too."""
    labels = [label for label in _SIZES if f"context_lazy_{label}" in bench.wanted]
    with ExitStack() as stack:
        sides = {label: _Sides(_SIZES[label], stack) for label in labels}
        actions: dict[str, Callable[[], float]] = {}
        for label, side in sides.items():
            actions[f"lazy {label}"] = side.lazy
            actions[f"typed {label}"] = side.typed
            actions[f"floor {label}"] = side.bare
            actions[f"floor + json.loads {label}"] = side.bare_decoded
        interleave(1, actions)
        samples = interleave(bench.pick(5, 25), actions)
    for label in labels:
        yield from _of(samples, label)


def _of(samples: Interleaved, label: str) -> Readings:
    lazy, typed = f"lazy {label}", f"typed {label}"
    yield f"context_lazy_{label}", samples.ratio(lazy, f"floor {label}", "ms")
    yield f"context_typed_{label}", samples.ratio(typed, f"floor + json.loads {label}", "ms")
    if label != "20k":
        yield f"context_flat_{label}", samples.ratio(lazy, "lazy 20k", "ms")


def _targets(label: str, size: int) -> list[Target]:
    read = f"read a context of 1,000 messages, store of {label}"
    targets = [
        Target(f"context_lazy_{label}", 1.5, size=size, says=f"{read}, decoding on access"),
        Target(
            f"context_typed_{label}",
            0.6,
            sides=("clew", "floor + json.loads"),
            size=size,
            says=f"{read}, fully typed",
        ),
    ]
    if label != "20k":
        sides = (f"at {label}", "at 20k")
        says = f"{read}, against a store of 20k"
        targets.append(Target(f"context_flat_{label}", _FLAT, sides=sides, size=size, says=says))
    return targets


CONTEXT = Job(
    "context",
    contexts,
    tuple(target for label, size in _SIZES.items() for target in _targets(label, size)),
    stores=("grown-20000", "grown-200000"),
)
