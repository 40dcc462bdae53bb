"""CPU of an append: one message, one durable commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import children, floor, stores, workload
from benchmarks.clew_adapter import ClewAdapter
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, NotRun, Target, interleave, timed

_CONVERSATIONS = 10
_UNIT = "µs of CPU per message"


def _order(chats: list[workload.Chat]) -> list[tuple[str, int]]:
    """(conversation, position) of all messages, turn by turn across the conversations."""
    length = len(chats[0].messages)
    return [
        (chat.name, position)
        for start in range(0, length, 4)
        for chat in chats
        for position in range(start, min(start + 4, length))
    ]


@dataclass
class Sides:
    """The same appends for clew and for the floor, taken in portions of equal size."""

    path: Path
    clew: ClewAdapter
    floor: floor.Floor
    chats: dict[str, workload.Chat]
    rows: dict[str, list[floor.Append]]
    order: list[tuple[str, int]]
    portion: int

    def __post_init__(self) -> None:
        self._drafts = {
            name: [self.clew.native(message) for message in chat.messages]
            for name, chat in self.chats.items()
        }
        self._numbers = self.floor.numbers()
        self._taken = {"clew": 0, "floor": 0}

    def _next(self, side: str) -> list[tuple[str, int]]:
        start = self._taken[side]
        self._taken[side] = start + self.portion
        return self.order[start : start + self.portion]

    def run_clew(self) -> float:
        """Microseconds of CPU per message."""
        work = [(name, [self._drafts[name][at]]) for name, at in self._next("clew")]
        append = self.clew.append
        with timed() as span:
            for name, drafts in work:
                append(name, drafts)
        return span.cpu / len(work) * 1e6

    def run_floor(self) -> float:
        work = [(self.rows[name][at], self._numbers[name]) for name, at in self._next("floor")]
        append = self.floor.append
        with timed() as span:
            for row, number in work:
                append(row, number)
        return span.cpu / len(work) * 1e6

    def close(self) -> None:
        """Make sure that both have written the same, and close them."""
        self.clew.close()
        bare = floor.volume(self.floor.path)
        self.floor.close()
        if bare != floor.volume(self.path):
            raise RuntimeError("the floor has not written the same rows as clew")


def prepare(bench: Bench, label: str, base: Path | None, messages: int, rounds: int) -> Sides:
    """Both sides on stores of the same content; `base` is cloned where there is one."""
    each = -(-messages * (rounds + 1) // _CONVERSATIONS)
    chats = list(workload.w1(_CONVERSATIONS, each, first=500_000))
    rows = stores.rows_of(bench, f"{label}-rows", chats, base)
    path, bare = bench.path(f"{label}-clew"), bench.path(f"{label}-floor")
    if base is not None:
        floor.clone(base, path)
    adapter = ClewAdapter()
    adapter.open(str(path))
    for chat in chats:
        adapter.create(chat.name)
    floor.clone(path, bare)
    by_name = {chat.name: chat for chat in chats}
    return Sides(path, adapter, floor.Floor(bare), by_name, rows, _order(chats), messages)


def against_floor(bench: Bench) -> Readings:
    """A young store."""
    messages, rounds = bench.pick(100, 800), bench.pick(5, 9)
    sides = prepare(bench, "young", None, messages, rounds)
    sides.run_clew()
    sides.run_floor()
    yield "append_cpu_vs_floor", _sample(sides, rounds).ratio("clew", "floor", _UNIT)
    sides.close()


def against_hermes(bench: Bench) -> Readings:
    """Both in processes of their own, kept alive through the rounds."""
    messages, rounds = bench.pick(60, 500), bench.pick(3, 7)
    each = -(-messages * (rounds + 1) // _CONVERSATIONS)
    with (
        children.start("hermes", bench.folder) as hermes,
        children.start("clew", bench.folder) as clew,
    ):
        for remote in (hermes, clew):
            remote.ask("open", path=str(bench.path(f"{remote.name}-w1")))
            remote.ask("prepare", first=0, conversations=_CONVERSATIONS, messages=each)
            remote.ask("append", units=messages)
        samples = Interleaved()
        for _ in range(rounds):
            for remote in (hermes, clew):
                answer = remote.ask("append", units=messages)
                if answer["errors"]:
                    raise NotRun(f"{remote.name} failed: {answer['errors'][0]}")
                samples.add(remote.name, answer["cpu"] / answer["messages"] * 1e6)
    yield "append_cpu_vs_hermes", samples.ratio("clew", "hermes", _UNIT)


_GROWN = ((20_000, "20k"), (200_000, "200k"), (1_000_000, "1m"))


def grown(bench: Bench) -> Readings:
    """The same in stores that hold something."""
    for size, label in _GROWN:
        name = f"append_cpu_vs_floor_{label}"
        if name in bench.wanted:
            sides = prepare(bench, label, stores.grown(size), bench.pick(100, 500), rounds := 5)
            sides.run_clew()
            sides.run_floor()
            yield name, _sample(sides, rounds).ratio("clew", "floor", _UNIT)
            sides.close()


def _sample(sides: Sides, rounds: int) -> Interleaved:
    return interleave(rounds, {"clew": sides.run_clew, "floor": sides.run_floor})


def _grown_targets() -> Iterator[Target]:
    for size, label in _GROWN:
        says = f"CPU of an append, one commit per message, store of {label}"
        yield Target(f"append_cpu_vs_floor_{label}", 2.0, size=size, says=says)


APPEND = Job(
    "append",
    against_floor,
    (Target("append_cpu_vs_floor", 2.0, says="CPU of an append, one commit per message"),),
)
APPEND_HERMES = Job(
    "append-hermes",
    against_hermes,
    (
        Target(
            "append_cpu_vs_hermes",
            0.15,
            sides=("clew", "hermes"),
            says="CPU of an append, one commit per message",
        ),
    ),
)
APPEND_GROWN = Job(
    "append-grown", grown, tuple(_grown_targets()), stores=("grown-20000", "grown-200000")
)
