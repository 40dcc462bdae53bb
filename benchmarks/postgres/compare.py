"""Eight clients of clew and of each peer on the same server, each side in a process of its own.

Every round begins conversations of its own and grows them, one for each client, because what a
peer writes may depend on how long a conversation is.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import children
from benchmarks.children import Remote
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, NotRun, Target
from benchmarks.postgres import server

_CLIENTS = 8


@dataclass(frozen=True)
class _Kind:
    """A way in which a peer appends: so many messages at once, in conversations so long."""

    unit: int
    says: str
    quick: int
    full: int = 100


_PEERS = {
    "openai-agents-sqlalchemy": (_Kind(1, "SQLAlchemySession of openai-agents", 24),),
    "langgraph-postgres": (
        _Kind(1, "PostgresSaver of LangGraph, a put per message", 100),
        _Kind(4, "a LangGraph graph, a turn of four per invoke", 12),
    ),
}


def all_peers(bench: Bench) -> Readings:
    """One peer after the other, each in turns with clew."""
    for name, kinds in _PEERS.items():
        try:
            with (
                children.start(name, bench.folder) as theirs,
                children.start("clew", bench.folder) as ours,
            ):
                told = theirs.ask("open", path=server.create(f"{name}-theirs"))["version"]
                ours.ask("open", path=server.create(f"{name}-ours"))
                for kind in kinds:
                    samples = _samples(bench, kind, (theirs, ours))
                    note = f"{told}; {kind.unit} per commit"
                    reading = samples.ratio("clew", name, "messages/s", note)
                    yield _name(name, kind), reading
        except NotRun as reason:
            for kind in kinds:
                yield _name(name, kind), reason
        finally:
            for side in ("theirs", "ours"):
                server.drop(f"{name}-{side}")


def _name(peer: str, kind: _Kind) -> str:
    return f"pg_append_vs_{peer}{'' if kind.unit == 1 else '_turns'}"


def _samples(bench: Bench, kind: _Kind, remotes: tuple[Remote, ...]) -> Interleaved:
    """Messages per second; the first round warms up."""
    samples = Interleaved()
    rounds, messages = bench.pick(3, 7), bench.pick(kind.quick, kind.full)
    for number in range(rounds + 1):
        for remote in remotes if number % 2 else reversed(remotes):
            lined = remote.ask(
                "prepare",
                first=100_000 * kind.unit + 1_000 * number,
                conversations=_CLIENTS,
                messages=messages,
                unit=kind.unit,
            )
            answer = remote.ask("append", units=lined["units"], clients=_CLIENTS)
            if answer["errors"]:
                raise NotRun(f"{remote.name} failed: {answer['errors'][0]}")
            if number:
                samples.add(remote.name, answer["messages"] / answer["wall"])
    return samples


def _target(name: str, kind: _Kind) -> Target:
    says = f"appends by {_CLIENTS} clients, messages per second, against {kind.says}"
    return Target(_name(name, kind), 3.0, at_least=True, sides=("clew", name), says=says)


COMPARE = Job(
    "compare",
    all_peers,
    tuple(_target(name, kind) for name, kinds in _PEERS.items() for kind in kinds),
)
