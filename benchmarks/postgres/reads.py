"""Reading the context of a conversation of 1,000 messages, in stores of several sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import clew
from benchmarks import clew_adapter, workload
from benchmarks.floor import decode
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Target, interleave, typical
from benchmarks.postgres import floor, server, stores
from clew.store.codec import Codec

_SIZES = {"5k": 5_000, "50k": 50_000, "500k": 500_000}
_CALLS = 3
_DICTIONARIES = "SELECT version, bytes FROM dictionary"
_FLAT = 1.25
"""How much slower a read may be than in the store a tenth of its size: what noise makes of flat."""


class _Sides:
    """The reads of one store: clew's and the floor's, over its long conversations."""

    def __init__(self, size: int, stack: ExitStack) -> None:
        url = server.url(stores.grown(size))
        store = stack.enter_context(clew.open(url))
        self._under = floor.Floor(url)
        stack.callback(self._under.close)
        profile = store.profile(clew_adapter.PROFILE)
        ids, numbers = floor.ids(url), floor.numbers(url)
        big = [title for title in ids if title.startswith("big-")]
        self._handles = [profile.open(ids[title]) for title in big]
        for handle in self._handles:
            assert len(handle.context_inputs().messages) == workload.BIG_MESSAGES
        self._numbers = [numbers[title] for title in big]
        self._turn = 0

    def _sample(self, read: Callable[[int], object]) -> float:
        """Milliseconds of a typical read, one conversation after the other."""
        self._turn = (self._turn + 1) % len(self._numbers)
        return typical(_CALLS, lambda: read(self._turn)) * 1e3

    def lazy(self) -> float:
        """Rows that decode on access."""
        return self._sample(lambda at: self._handles[at].context_inputs().messages)

    def chat(self) -> float:
        """What is sent to a model."""
        return self._sample(lambda at: self._handles[at].context())

    def bare(self) -> float:
        return self._sample(lambda at: self._under.context(self._numbers[at]))

    def bare_decoded(self) -> float:
        """The floor's read of the same rows, their bodies decompressed and given to json.loads."""
        json_of = Codec(lambda: dict(self._under.rows(_DICTIONARIES))).json

        def read(at: int) -> object:
            return decode(self._under.context(self._numbers[at]), json_of)

        return self._sample(read)


def contexts(bench: Bench) -> Readings:
    """All sizes are open at once, so that growth is measured in interleaved rounds too."""
    labels = [label for label in _SIZES if f"pg_context_{label}" in bench.wanted]
    with ExitStack() as stack:
        sides = {label: _Sides(_SIZES[label], stack) for label in labels}
        actions: dict[str, Callable[[], float]] = {}
        for label, side in sides.items():
            actions[f"lazy {label}"] = side.lazy
            actions[f"chat {label}"] = side.chat
            actions[f"floor {label}"] = side.bare
            actions[f"floor + json.loads {label}"] = side.bare_decoded
        interleave(1, actions)
        samples = interleave(bench.pick(7, 25), actions)
    for at, label in enumerate(labels):
        yield from _of(samples, label, labels[at - 1] if at else "")


def _of(samples: Interleaved, label: str, smaller: str) -> Readings:
    chat = f"chat {label}"
    yield f"pg_context_{label}", samples.ratio(f"lazy {label}", f"floor {label}", "ms")
    yield f"pg_context_chat_{label}", samples.ratio(chat, f"floor + json.loads {label}", "ms")
    if smaller:
        yield f"pg_context_flat_{label}", samples.ratio(chat, f"chat {smaller}", "ms")


def _targets() -> list[Target]:
    """Growth is promised to be flat; the rest is compared."""
    targets: list[Target] = []
    labels = list(_SIZES)
    for at, (label, size) in enumerate(_SIZES.items()):
        read = f"read a context of 1,000 messages, store of {label}"
        bare = ("clew", "floor + json.loads")
        lazy = f"{read}, decoding on access"
        chat = f"{read}, as the messages of a chat"
        targets.append(Target(f"pg_context_{label}", None, size=size, says=lazy))
        targets.append(Target(f"pg_context_chat_{label}", None, sides=bare, size=size, says=chat))
        if at:
            sides = (f"at {label}", f"at {labels[at - 1]}")
            says = f"{read}, against one of {labels[at - 1]}"
            name = f"pg_context_flat_{label}"
            targets.append(Target(name, _FLAT, sides=sides, size=size, says=says))
    return targets


CONTEXT = Job("context", contexts, tuple(_targets()))
