"""The turns of a host, each conversation's one after the other, whoever calls and whenever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from clew.compaction.aio import AsyncCompactor
from clew.compaction.engine import Compactor
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Draft
from clew.domain.turns import TurnKnown, TurnQueued
from clew.errors import ClewError, ContextTooLarge, Spooled, StoreError
from clew.host import claims
from clew.host.api import Report
from clew.host.beside import Beside
from clew.host.events import Emit, Notice, Queued, TurnStarted
from clew.host.hearing import heard
from clew.host.lives import Live
from clew.host.running import BY_PERSON, Running, plan_of
from clew.host.services import Route, Services
from clew.host.toolsets import ensure_pinned
from clew.host.turn import run_turn
from clew.providers.errors import ProviderError
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.turn import AsyncTurn
from clew.store.holders import new_holder

T = TypeVar("T")

KEPT = (
    "The store is away. Your message is kept on disk and is not answered yet: it waits for the "
    "next turn as soon as the store takes messages again."
)


class Conductor:
    """Runs turns. What is said while one runs goes into its inbox, or begins the one behind it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.beside = Beside(services)
        self._holder = new_holder()
        """One for all conversations: what this host left open it may take up at once."""
        self._live: dict[str, Live] = {}
        """The newest of each conversation."""
        self._told: set[str] = set()
        """Tool servers of which a person knows that they are away."""
        self._closed = False

    async def say(
        self, conv: AsyncConversation, drafts: Sequence[Draft], *, emit: Emit | None = None,
        queue: bool = False,
    ) -> Report:  # fmt: skip
        """As Hosting.say."""
        self._check_open()
        emit = heard(emit)
        self._services.at("received")
        try:
            if conv.id in self._live:
                return await self._into(conv, drafts, emit, queue)
            return await self._guarded(
                conv, lambda live: self._say(live, conv, drafts, emit, queue)
            )
        except Spooled:
            emit(Notice("store", KEPT))
            raise

    async def go_on(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Report | None:
        """As Hosting.go_on."""
        self._check_open()
        if conv.id in self._live:
            return None
        return await self._guarded(conv, lambda live: self._go_on(live, conv, heard(emit)))

    async def stop(self, conv: AsyncConversation) -> bool:
        """As Hosting.stop."""
        live = self._live.get(conv.id)
        if live is not None:
            lives = live.all()
            for each in lives:
                each.stop.set()
            for each in lives:
                await each.over.wait()
            await self._stop_waiting(conv)
            return True
        if await conv.interrupt_turn(BY_PERSON):
            return True
        if await self.beside.stop(conv):
            return True
        return bool(await AsyncCompactor(Compactor()).cancel(conv))  # by another process

    async def close(self) -> None:
        """Stop what runs, and begin nothing more."""
        self._closed = True
        for newest in list(self._live.values()):
            for live in newest.all():
                live.leave()
        while self._live:
            await next(iter(self._live.values())).done.wait()
        await self.beside.close()

    # ------------------------------------------------------------------ inside

    def _check_open(self) -> None:
        if self._closed:
            raise ClewError("the host is closed; open another one")

    async def _stop_waiting(self, conv: AsyncConversation) -> None:
        """End a turn that came to wait for a person at the moment it was stopped."""
        turn = next(iter(await conv.turns(1)), None)
        if turn is not None and turn.state == "waiting":
            await conv.interrupt_turn(BY_PERSON)

    async def _guarded(
        self, conv: AsyncConversation, work: Callable[[Live], Coroutine[Any, Any, T]]
    ) -> T:
        """Run a conversation's turns in a task of their own, behind those that run: whoever waits
        for them may be cancelled, which stops the turn as a person does, and its end is awaited."""
        before = self._live.get(conv.id)
        live = self._live[conv.id] = Live(before)
        if before is not None:
            live.begun.set()
        if self._closed:
            live.leave()
        task = asyncio.ensure_future(_behind(before, work(live)))
        task.add_done_callback(lambda _: self._leave_off(conv, live))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            live.leave()
            await asyncio.wait((task,))
            raise

    def _leave_off(self, conv: AsyncConversation, live: Live) -> None:
        """Whoever waits no longer (cancelled twice) leaves nothing behind."""
        if self._live.get(conv.id) is live:
            del self._live[conv.id]
        live.leave_off()

    async def _into(
        self, conv: AsyncConversation, drafts: Sequence[Draft], emit: Emit, queue: bool
    ) -> Report:
        """Messages for a conversation that this host is at: into the inbox of its turn. When that
        was over a moment ago they begin one, which is run behind it."""
        async with self._live[conv.id].door:
            put = asyncio.ensure_future(self._put(conv, drafts, queue))
            try:
                begun = await asyncio.shield(put)
            except asyncio.CancelledError:
                await asyncio.wait((put,))
                if not put.cancelled() and isinstance(turn := put.result(), AsyncTurn):
                    await turn.finish(state="interrupted", error=BY_PERSON)
                raise
        if begun is None:
            return await self._guarded(
                conv, lambda live: self._say(live, conv, drafts, emit, queue)
            )
        if not isinstance(begun, AsyncTurn):
            return await _elsewhere(conv, begun, emit)
        return await self._guarded(conv, lambda live: self._begun(live, conv, begun, emit))

    async def _put(
        self, conv: AsyncConversation, drafts: Sequence[Draft], queue: bool
    ) -> AsyncTurn | TurnQueued | TurnKnown | None:
        """Messages behind what was said before, which may not be durable yet. None: this host is
        not at the conversation any more."""
        while (live := self._live.get(conv.id)) is not None and not live.begun.is_set():
            await live.begun.wait()
        if live is None:
            return None
        drafts = claims.marked(drafts, queue)
        info = await self._or_kept(conv, drafts, conv.info())
        route = await self._services.route_of(info)
        return await conv.begin_turn(drafts, holder=self._holder, call=plan_of(route))

    async def _or_kept(
        self, conv: AsyncConversation, drafts: Sequence[Draft], work: Coroutine[Any, Any, T]
    ) -> T:
        """Work that comes before the messages are durable. When the store is away they are kept
        first (Spooled): a person has said them."""
        try:
            return await work
        except StoreError as error:
            begun = await conv.begin_turn(drafts, holder=self._holder)
            if isinstance(begun, AsyncTurn):  # it is back
                await begun.finish(state="interrupted", error=str(error))
            raise

    async def _begun(
        self, live: Live, conv: AsyncConversation, turn: AsyncTurn, emit: Emit
    ) -> Report:
        info = await conv.info()
        return await self._run(live, conv, info, turn, await self._services.route_of(info), emit)

    async def _say(
        self, live: Live, conv: AsyncConversation, drafts: Sequence[Draft], emit: Emit,
        queue: bool,
    ) -> Report:  # fmt: skip
        services = self._services
        drafts = claims.marked(drafts, queue)
        info = await self._or_kept(conv, drafts, ensure_pinned(services, conv))
        route = await self._services.route_of(info)
        if info.turn is not None:
            resuming = claims.resume(services, conv, self._holder)
            left = await self._or_kept(conv, drafts, resuming)
            if left is not None:
                await conv.append(drafts)  # into the inbox of the turn that is taken up
                return await self._run(live, conv, info, left, route, emit, resumed=True)
        begun = await conv.begin_turn(drafts, holder=self._holder, call=plan_of(route))
        if not isinstance(begun, AsyncTurn):
            return await _elsewhere(conv, begun, emit)
        return await self._run(live, conv, info, begun, route, emit)

    async def _go_on(self, live: Live, conv: AsyncConversation, emit: Emit) -> Report | None:
        info = await conv.info()
        route = await self._services.route_of(info)
        left = await claims.left(self._services, conv, plan_of(route), self._holder)
        if left is None:
            return None
        await ensure_pinned(self._services, conv)
        return await self._run(live, conv, info, left.turn, route, emit, resumed=left.resumed)

    async def _run(
        self, live: Live, conv: AsyncConversation, info: ConversationInfo, turn: AsyncTurn,
        route: Route, emit: Emit, *, resumed: bool = False,
    ) -> Report:  # fmt: skip
        """Run a turn, and then those of what came in meanwhile. Gives the report of the first, or
        raises its failure; of the last when the first was taken up from another process."""
        live.begun.set()
        last, outcomes = resumed, list[Report | Exception]()
        while True:
            run = Running(self._services, conv, info, turn, route, emit, live.stop)
            report, waiting = await self._turn(run, resumed)
            outcomes.append(report)
            live.over.set()
            if not waiting or run.lost or live.leaving:
                break
            left = await self._left(run, report)
            if left is None:
                break
            turn, resumed = left
            last = last or resumed
            live.next()
        outcome = outcomes[-1 if last else 0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _turn(self, run: Running, resumed: bool) -> tuple[Report | Exception, bool]:
        """One turn; its report or what it failed with, and whether another may follow."""
        run.emit(TurnStarted(run.number, run.turn.appended.seqs, resumed))
        self._tell_silent(run.emit)
        try:
            report, waiting = await run_turn(run, resumed)
        except (ProviderError, ContextTooLarge) as error:
            return error, True
        self.beside.after(run, report)
        answered = report.state == "waiting" and not run.stop.is_set()
        return report, waiting > 0 or answered

    async def _left(self, run: Running, report: Report | Exception) -> claims.Left | None:
        """The turn that follows: of what waits; or this one again, if each call that it asked for
        was answered while it still ran."""
        if isinstance(report, Report) and report.state == "waiting":
            return await claims.left(self._services, run.conv, run.plan(), self._holder)
        following = await self._next(run.conv, run.route)
        return None if following is None else claims.Left(following, False)

    async def _next(self, conv: AsyncConversation, route: Route) -> AsyncTurn | None:
        """A turn for what waits; None when somebody else has begun it."""
        try:
            begun = await conv.begin_turn(holder=self._holder, call=plan_of(route))
        except ClewError:
            return None  # nothing waits, somebody else is at it, it has ended: what waits stays
        return begun if isinstance(begun, AsyncTurn) else None

    def _tell_silent(self, emit: Emit) -> None:
        """Say once which tool servers are away: their tools are just not there."""
        for server in self._services.toolbox.silent():
            if server.name not in self._told:
                self._told.add(server.name)
                emit(Notice("tools", f"The tools of {server.origin} are missing: {server.error}"))


async def _behind(before: Live | None, work: Coroutine[Any, Any, T]) -> T:
    """Work that begins when what runs before it is done."""
    if before is not None:
        await before.done.wait()
    return await work


async def _elsewhere(
    conv: AsyncConversation, outcome: TurnQueued | TurnKnown, emit: Emit
) -> Report:
    """Messages that this host does not answer now."""
    if isinstance(outcome, TurnKnown):
        return await claims.known(conv, outcome)
    emit(Queued(outcome.turn, outcome.appended.numbers))
    return Report(turn=outcome.turn, state="queued")
