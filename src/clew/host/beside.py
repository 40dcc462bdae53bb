"""What a host does beside its turns, while nobody waits: compactions, titles, sending replies."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from clew.domain.policy import policy_of
from clew.errors import ClewError
from clew.host.api import Report
from clew.host.backups import back_up
from clew.host.events import Titled
from clew.host.publisher import Publisher
from clew.host.running import Running
from clew.host.services import Services
from clew.host.titles import give_title
from clew.host.turn import compact_beside
from clew.store.aio.conversation import AsyncConversation
from clew.store.scheduled import schedule_of

PUT_OFF = 5.0
"""Seconds between two looks for deliveries that were put off."""
LOOK = 3600.0
"""Seconds between two looks whether the daily retention run, or a backup, is due."""
TITLED_BY = 3
"""The turn after which no model is asked for a title any more: those before have failed."""


class Beside:
    """The side work of one host."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._unsent = asyncio.Event()
        """There may be something to send."""
        self._closed = False
        self._next_look = 0.0
        """When the loop's clock says so, somebody looks what is due."""

    def after(self, run: Running, report: Report) -> None:
        """What a turn that was answered leaves to do."""
        if report.state != "done":
            return
        side, conv = self._services.side, run.conv
        now = asyncio.get_running_loop().time()
        if now >= self._next_look:
            self._next_look = now + LOOK
            self._daily()
        if self._services.publisher is not None:
            self._unsent.set()
            side.start("publishing", self._publishing(self._services.publisher))
        if run.filled >= self._services.budget(run.route.model).high_tokens:
            side.start(_compaction(conv), compact_beside(run))
        untitled = run.info.title_origin in (None, "derived")
        if self._services.config.chat.titles and untitled and run.number <= TITLED_BY:
            side.start(f"title {conv.id}", _title(run))

    async def stop(self, conv: AsyncConversation) -> bool:
        """End the compaction of a conversation that is being made here; false when none is."""
        return await self._services.side.stop(_compaction(conv))

    async def close(self) -> None:
        """Send once more what is due, and end what takes too long."""
        self._closed = True
        self._unsent.set()
        await self._services.side.close()

    def _daily(self) -> None:
        """What is done once a day, or as often as the configuration says, by one for all."""
        side, config = self._services.side, self._services.config
        if config.retention.auto:
            side.start("retention", self._retention())
        schedule = schedule_of(config.backup)
        if schedule is not None:
            work = back_up(self._services.profile, schedule, lambda: not self._closed)
            side.start("backup", work)

    async def _retention(self) -> None:
        """What the policy says, if nobody has done so today; ended by `close` between two
        conversations."""
        policy = policy_of(self._services.config.retention)
        await self._services.profile.retain(policy, going=lambda: not self._closed)

    async def _publishing(self, publisher: Publisher) -> None:
        """Send what is due whenever there is something, and what was put off when its time has
        come. What cannot be sent stays in the outbox."""
        while True:
            self._unsent.clear()
            with suppress(ClewError):
                await publisher.publish()
            if self._closed and not self._unsent.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(PUT_OFF):
                    await self._unsent.wait()


def _compaction(conv: AsyncConversation) -> str:
    """The name of the side work that compacts a conversation."""
    return f"compaction {conv.id}"


async def _title(run: Running) -> None:
    title = await give_title(run.route.provider, run.route.model, run.conv)
    if title is not None:
        run.emit(Titled(title))
