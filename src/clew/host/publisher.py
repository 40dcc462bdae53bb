"""Publishing: replies leave the outbox by channels, at least once and in order.

A delivery's route begins with the name of a channel and a colon: `telegram:42` goes to the channel
`telegram`, which is given `42`. Deliveries whose channel nobody has here wait for who has it.
Channels do not wait for each other; within a conversation the next delivery waits for the one
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol

from clew.domain.turns import Delivered
from clew.errors import ClewError, InputError
from clew.host.points import Point
from clew.store.aio.profile import AsyncProfile

SENDING = 45.0
"""Seconds that one sending may take: well below the minute after which the delivery comes due again
and another publisher takes it."""
POLL = 1.0


class NotSent(ClewError):
    """A sending failed and is tried again later. The text is kept with the delivery and shown: no
    secret may be in it. Of other errors their kind alone is kept."""


class Undeliverable(NotSent):
    """It can never be sent (the chat is gone, the bot was blocked): no further try."""


class Channel(Protocol):
    """What sends replies to people."""

    async def send(self, route: str, payload: Any, key: str) -> None:
        """Send one reply. `route`: without the channel's name; `payload`: JSON, as the turn wrote
        it; `key`: the same whenever this delivery is sent again, so that one that knows it can
        leave it. Raises to have it tried again; Undeliverable to have it given up."""
        ...


class Publisher:
    """Sends what is due of one profile. Any number may run, in any process."""

    def __init__(
        self, profile: AsyncProfile, channels: Mapping[str, Channel],
        watch: Callable[[Point], None] = lambda _: None,
    ) -> None:  # fmt: skip
        for name in channels:
            if not name or ":" in name:
                raise InputError(f"a channel is named {name!r}; give a name without a colon")
        self._profile, self._channels, self._watch = profile, dict(channels), watch

    async def publish(self, limit: int = 100) -> int:
        """Send what is due, at most `limit` by each channel; gives how many were sent. Cancelled,
        what is being sent comes due again within a minute."""
        work = [
            asyncio.ensure_future(self._publish(name, channel, limit))
            for name, channel in self._channels.items()
        ]
        try:
            return sum(await asyncio.gather(*work))
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def run(self, poll: float = POLL) -> None:
        """Publish for ever, looking every `poll` seconds; ends when it is cancelled."""
        while True:
            await self.publish()
            await asyncio.sleep(poll)

    async def _publish(self, name: str, channel: Channel, limit: int) -> int:
        sent = 0
        for _ in range(limit):
            taken = await self._profile.take_delivery(f"{name}:")
            if taken is None:
                break
            self._watch("publishing")
            sending = await _send(channel, taken, taken.route[len(name) + 1 :])
            if sending.error is None:
                sent += 1
                self._watch("sent")
            await self._profile.settle_delivery(taken, sending.error, give_up=sending.give_up)
            self._watch("published")
        return sent


class _Sending:
    """Around a call of a channel: an error of it is kept as text. What ends a task passes."""

    error: str | None = None
    give_up = False

    def __enter__(self) -> _Sending:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:  # fmt: skip
        if not isinstance(error, Exception):
            return False
        self.give_up = isinstance(error, Undeliverable)
        self.error = type(error).__name__
        if isinstance(error, NotSent):  # others may have a token in their text, or what was sent
            self.error += f": {error}"
        return True


async def _send(channel: Channel, taken: Delivered, route: str) -> _Sending:
    with _Sending() as sending:
        async with asyncio.timeout(SENDING):
            await channel.send(route, taken.payload, taken.key)
    return sending
