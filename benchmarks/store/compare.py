"""Side by side with every peer on W1. No targets: durability, search and units differ."""

from __future__ import annotations

from pathlib import Path

from benchmarks import children, clew_adapter, envs
from benchmarks.children import Remote
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Interleaved, NotRun, Reading, Target, file_bytes

_CONVERSATIONS, _MESSAGES, _ROUNDS = 20, 100, 5


def all_peers(bench: Bench) -> Readings:
    """Each peer against clew with the peer's own unit (a message, or a turn of four)."""
    for name in envs.of("store"):
        try:
            yield from _against(bench, name)
        except NotRun as reason:
            for figure in _FIGURES:
                yield f"peer_{figure}_vs_{name}", reason


def _against(bench: Bench, name: str) -> Readings:
    with (
        children.start(name, bench.folder) as peer,
        children.start("clew", bench.folder) as clew,
    ):
        remotes = (peer, clew)
        paths = {remote.name: str(bench.path(f"{name}-{remote.name}")) for remote in remotes}
        version = peer.ask("open", path=paths[name])["version"]
        clew.ask("open", path=paths["clew"])
        made = {"unit": 1, "first": 0, "conversations": _CONVERSATIONS, "messages": _MESSAGES}
        lined = peer.ask("prepare", **made)
        clew.ask("prepare", **{**made, "unit": lined["unit"]})
        units = lined["units"] // _ROUNDS
        costs = _costs(remotes, units)
        note = f"{version}; {lined['unit']} per commit"
        yield f"peer_append_cpu_vs_{name}", costs.ratio("clew", name, "µs per message", note)
        yield (
            f"peer_read_vs_{name}",
            _reads(remotes).ratio("clew", name, "ms", f"{_MESSAGES} messages"),
        )
        yield f"peer_disk_vs_{name}", _disk(remotes, paths, lined["payload"])


def _costs(remotes: tuple[Remote, Remote], units: int) -> Interleaved:
    """Microseconds of CPU per message, in turns."""
    samples = Interleaved()
    for _ in range(_ROUNDS):
        for remote in remotes:
            answer = remote.ask("append", units=units)
            if answer["errors"]:
                raise NotRun(f"{remote.name} failed: {answer['errors'][0]}")
            samples.add(remote.name, answer["cpu"] / answer["messages"] * 1e6)
    return samples


def _reads(remotes: tuple[Remote, Remote]) -> Interleaved:
    """Milliseconds to load a conversation, in turns."""
    samples = Interleaved()
    for number in range(_ROUNDS):
        for remote in remotes:
            answer = remote.ask("read", name=f"w1-{number:06d}", calls=5)
            samples.add(remote.name, sorted(answer["seconds"])[2] * 1e3)
    return samples


def _disk(remotes: tuple[Remote, Remote], paths: dict[str, str], payload: int) -> Reading:
    """Bytes per byte of payload once closed; for clew with its search file, filled."""
    shares: dict[str, float] = {}
    for remote in remotes:
        remote.ask("close")
        if remote.name == "clew":
            clew_adapter.index(Path(paths["clew"]))
        total = file_bytes(paths[remote.name], f"{paths[remote.name]}.search")
        shares[remote.name] = total / payload
    peer, ours = remotes[0].name, shares["clew"]
    return Reading(ours / shares[peer], ours, shares[peer], "bytes per byte of payload")


_FIGURES = {
    "append_cpu": "append, CPU per message",
    "read": "load 100 messages",
    "disk": "bytes on disk",
}

COMPARE = Job(
    "compare",
    all_peers,
    tuple(
        Target(
            f"peer_{figure}_vs_{name}", None, sides=("clew", name), says=f"{says}, against {name}"
        )
        for name in envs.of("store")
        for figure, says in _FIGURES.items()
    ),
    quick=False,
)
