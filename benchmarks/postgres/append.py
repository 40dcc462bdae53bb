"""Appends of one message, one durable commit, by 1, 8 and 64 clients, each a thread.

clew's clients share one open store; each of the floor's has a connection of its own. All append to
conversations of their own; at last eight append to one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import clew
from benchmarks import workload
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, Reading, Target, interleave
from benchmarks.postgres import floor, server, stores
from benchmarks.postgres.clients import Client, Group

_EACH = {1: (80, 800), 8: (20, 120), 64: (4, 15)}
"""Messages of a client in a round, quick and full. Below 10,000 in all: then clew trains a
dictionary, each store its own, and the rows would differ."""
_SHARED = "shared"
_SHARERS = 8


def appends(bench: Bench) -> Readings:
    """A young store for each number of clients, of the same content on both sides."""
    rounds = bench.pick(4, 9)
    for count in _EACH:
        yield f"pg_append_{count}", _measure(_group(bench, count, rounds), rounds)
    shared = _group(bench, _SHARERS, rounds, _SHARED)
    yield "pg_append_shared", _measure(shared, rounds)


def _measure(group: Group, rounds: int) -> Reading:
    rows = stores.rows_of("append-rows", group.chats)
    ours, bare = stores.twins("append", dict.fromkeys(group.titles))
    floors = [floor.Floor(bare) for _ in group.chats]
    with clew.open(ours) as store:
        sides = {
            "clew": group.clew("clew", store, floor.ids(bare)),
            "floor": _bare(floors, group, floor.numbers(bare), rows),
        }
        interleave(1, sides)
        group.costs = Interleaved()
        samples = interleave(rounds, sides)
    for under in floors:
        under.close()
    if floor.volume(ours) != floor.volume(bare):
        raise RuntimeError("the floor has not written the same rows as clew")
    server.drop("append-clew")
    server.drop("append-floor")
    return samples.ratio("clew", "floor", "messages/s", group.note())


def _group(bench: Bench, count: int, rounds: int, title: str = "") -> Group:
    each = bench.pick(*_EACH[count])
    first = 100_000 + 1_000 * count + 100 * len(title)
    return Group(list(workload.w1(count, each * (rounds + 1), first)), each, title)


def _bare(
    floors: list[floor.Floor],
    group: Group,
    numbers: dict[str, int],
    rows: dict[str, list[floor.Append]],
) -> Callable[[], float]:
    clients: list[Client] = []
    for under, chat, title in zip(floors, group.chats, group.titles, strict=True):
        append = under.append_next if group.shared else under.append
        clients.append(partial(_write, append, numbers[title], rows[chat.name]))
    return lambda: group.run("floor", clients)


def _write(
    append: Callable[[floor.Append, int], None],
    no: int,
    rows: list[floor.Append],
    low: int,
    high: int,
) -> None:
    for row in rows[low:high]:
        append(row, no)


def _target(count: int) -> Target:
    says = f"appends by {count} client{'s' if count > 1 else ''}, messages per second"
    return Target(f"pg_append_{count}", 0.6, at_least=True, says=says)


APPEND = Job(
    "append",
    appends,
    (
        *map(_target, _EACH),
        Target(
            "pg_append_shared",
            None,
            at_least=True,
            says=f"appends by {_SHARERS} clients to one conversation, messages per second",
        ),
    ),
)
