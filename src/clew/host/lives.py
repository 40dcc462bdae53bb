"""What a host is at: its turns of one conversation, one after the other."""

from __future__ import annotations

import asyncio


class Live:
    """A conversation that this host is at. `before`: what it is at until then."""

    def __init__(self, before: Live | None = None) -> None:
        self.before = before
        self.stop, self.over = asyncio.Event(), asyncio.Event()
        """Of the turn that runs: a person wants it to end; it has ended."""
        self.door = asyncio.Lock() if before is None else before.door
        """Who says something meanwhile comes in here, one after the other."""
        self.begun = asyncio.Event()
        """Its messages are durable, or it has none: others may follow."""
        self.leaving = False
        """No turn is begun after this one."""
        self.done = asyncio.Event()
        """Nothing runs here any more."""

    def next(self) -> None:
        """Another turn begins."""
        self.over.set()
        self.stop, self.over = asyncio.Event(), asyncio.Event()
        if self.leaving:
            self.stop.set()

    def leave(self) -> None:
        """The turn ends now, and none follows."""
        self.leaving = True
        self.stop.set()

    def all(self) -> list[Live]:
        """This one, and those before it."""
        return [self, *(self.before.all() if self.before is not None else ())]

    def leave_off(self) -> None:
        """Nothing runs any more."""
        self.before = None
        for event in (self.begun, self.over, self.done):
            event.set()
