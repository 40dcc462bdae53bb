"""Clients that are threads of this process, and the messages they append."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import clew
from benchmarks import clew_adapter
from benchmarks.clew_adapter import ClewAdapter
from benchmarks.measure import Interleaved
from benchmarks.workload import Chat

Client = Callable[[int, int], None]
"""Appends its messages from..to, one after the other."""


class Group:
    """Clients that append a chat each, in portions of equal size; the same for every side.

    `title` is that of the one conversation they all append to, if it is not one for each.
    """

    def __init__(self, chats: list[Chat], each: int, title: str = "") -> None:
        self.chats, self.each, self.shared = chats, each, bool(title)
        self.titles = [title or chat.name for chat in chats]
        self.costs = Interleaved()
        """Microseconds of this process's CPU per message."""
        self._taken: dict[str, int] = {}

    def run(self, side: str, clients: Sequence[Client]) -> float:
        """The next portion of a side; messages per second."""
        low = self._taken.get(side, 0)
        self._taken[side] = high = low + self.each
        cpu = time.process_time()
        took = _together([partial(client, low, high) for client in clients])
        count = self.each * len(clients)
        self.costs.add(side, (time.process_time() - cpu) / count * 1e6)
        return count / took

    def clew(self, side: str, store: clew.Store, ids: dict[str, str]) -> Callable[[], float]:
        """The side of clew: all clients share an open store. `ids` by title."""
        profile = store.profile(clew_adapter.PROFILE)
        native = ClewAdapter().native
        clients: list[Client] = []
        for chat, title in zip(self.chats, self.titles, strict=True):
            drafts = [[native(message)] for message in chat.messages]
            clients.append(partial(_append, profile.open(ids[title]), drafts))
        return lambda: self.run(side, clients)

    def note(self) -> str:
        """What the messages cost this process."""
        costs = (f"{side} {self.costs.median(side):.0f}" for side in self.costs.samples)
        return f"CPU of the clients, µs per message: {', '.join(costs)}"


def _append(
    conversation: clew.Conversation, drafts: list[list[clew.Draft]], low: int, high: int
) -> None:
    append = conversation.append
    for draft in drafts[low:high]:
        append(draft)


def _together(clients: Sequence[Callable[[], None]]) -> float:
    """Seconds from the start of all clients, each a thread, to the end of the last."""
    start = threading.Barrier(len(clients) + 1)
    failures: list[BaseException] = []

    def run(client: Callable[[], None]) -> None:
        start.wait()
        try:
            client()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failures.append(error)

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    start.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    if failures:
        raise failures[0]
    return took
