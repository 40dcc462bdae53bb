"""Host: runs the turns of one profile's conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from clew.compaction.outcome import Outcome
from clew.config.values import Config
from clew.context.build import Context
from clew.domain.conversations import ConversationInfo, NewConversation
from clew.domain.messages import Draft
from clew.domain.turns import CallPlan, TurnKnown, TurnQueued
from clew.errors import ClewError, ContextTooLarge, NotFound
from clew.host import claims
from clew.host.api import Report
from clew.host.events import Compacted, Compacting, Emit, Notice, Queued, Titled, TurnStarted
from clew.host.hearing import heard
from clew.host.lives import Live
from clew.host.points import Point
from clew.host.publisher import Channel, Publisher
from clew.host.running import BY_PERSON, Running
from clew.host.services import Route, Services
from clew.host.specs import specs_of, toolset_of
from clew.host.titles import give_title
from clew.host.toolsets import ensure_pinned, prompt_of, repin
from clew.host.turn import compact_beside, run_turn
from clew.providers.api import Model
from clew.providers.errors import ProviderError
from clew.providers.models import model_of
from clew.providers.registry import Providers
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile
from clew.store.aio.turn import AsyncTurn
from clew.store.holders import new_holder
from clew.tools.toolbox import Toolbox

T = TypeVar("T")


class Host:
    """Runs turns of one profile's conversations; see api.Hosting for what each method does.

    Any number of hosts, in any number of processes, may serve one profile: the store decides who
    runs a conversation. `close` it, or use it in `async with`.
    """

    def __init__(
        self, profile: AsyncProfile, providers: Providers, toolbox: Toolbox, config: Config, *,
        channels: Mapping[str, Channel] | None = None,
        watch: Callable[[Point], None] | None = None,
    ) -> None:  # fmt: skip
        self._services = Services(
            profile, providers, toolbox, config, channels=channels, watch=watch
        )
        self._holder = new_holder()
        """One for all conversations: what this host left open it may take up at once."""
        self._live: dict[str, Live] = {}
        """The newest of each conversation."""
        self._unsent = asyncio.Event()
        """There may be something to publish."""
        self._told: set[str] = set()
        """Tool servers of which a person knows that they are away."""
        self._closed = False

    async def __aenter__(self) -> Host:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def publisher(self) -> Publisher | None:
        """What sends replies by the host's channels; its `run()` sends those of others, too."""
        return self._services.publisher

    # ------------------------------------------------------------------ turns

    async def say(
        self, conv: AsyncConversation, drafts: Sequence[Draft], *, emit: Emit | None = None,
        queue: bool = False,
    ) -> Report:  # fmt: skip
        """As Hosting.say."""
        self._check_open()
        emit = heard(emit)
        self._services.at("received")
        if conv.id in self._live:
            return await self._into(conv, drafts, emit, queue)
        return await self._guarded(conv, lambda live: self._say(live, conv, drafts, emit, queue))

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
        if await self._services.side.stop(_compaction(conv)):
            return True
        compactor = await self._services.compactor(conv, await self._services.route(None))
        return bool(await compactor.cancel(conv))

    async def answer(
        self, conv: AsyncConversation, call_id: str, allow: bool, *, always: bool = False,
        by: str | None = None,
    ) -> bool:  # fmt: skip
        """As Hosting.answer."""
        try:
            return await conv.answer_call(call_id, allow, always=always, by=by)
        except NotFound:  # its turn has ended
            return False

    async def recover(self, *, emit: Emit | None = None) -> int:
        """As Hosting.recover."""
        found = 0
        for conv in await self._services.profile.unfinished():
            (came,) = await asyncio.gather(self.go_on(conv, emit=emit), return_exceptions=True)
            if isinstance(came, BaseException):
                why = str(came) if isinstance(came, ClewError) else type(came).__name__
                heard(emit)(Notice("model", f"{conv.id} could not be gone on with: {why}"))
            else:
                found += came is not None
        if self.publisher is not None:
            await self.publisher.publish()
        return found

    # ------------------------------------------------------------------ contexts and models

    async def new(self, source: str, **fields: Any) -> AsyncConversation:
        """A new conversation with the prompt and the tools of now pinned. Fields are those of
        NewConversation."""
        services = self._services
        new = NewConversation(source=source, **fields)
        now, cwd = services.profile.clock.now(), new.workspace.cwd
        prompt = prompt_of(services.config, cwd, now) if new.prompt is None else new.prompt
        toolset = new.toolset or toolset_of(await services.toolbox.pin(None))
        return await services.profile.create(replace(new, prompt=prompt, toolset=toolset))

    async def compact(self, conv: AsyncConversation, *, emit: Emit | None = None) -> Outcome:
        """As Hosting.compact."""
        told = heard(emit)
        told(Compacting("user"))
        compactor = await self._services.compactor(conv, await self._route(await conv.info()))
        outcome = await compactor.compact(conv, "user")
        told(Compacted(outcome))
        return outcome

    async def context(self, conv: AsyncConversation) -> Context:
        """As Hosting.context."""
        compactor = await self._services.compactor(conv, await self._route(await conv.info()))
        return await compactor.peek(conv)

    async def model_of(self, conv: AsyncConversation) -> Model:
        """As Hosting.model_of."""
        return (await self._route(await conv.info())).model

    async def use_model(self, conv: AsyncConversation, name: str) -> Model:
        """As Hosting.use_model."""
        route = await self._services.route(name)
        await conv.set_workspace(model=route.model.shown)
        return route.model

    async def models(self) -> tuple[Model, ...]:
        """As Hosting.models."""
        services = self._services
        names = (name.partition("/") for name in await services.providers.all_models())
        return tuple(model_of(provider, name, services.config) for provider, _, name in names)

    # ------------------------------------------------------------------ tools

    async def tools(self, conv: AsyncConversation) -> tuple[dict[str, Any], ...]:
        """As Hosting.tools."""
        inputs = await conv.context_inputs()
        allowed = await conv.allowed_tools()
        toolbox = self._services.toolbox
        status = {each.name: each for each in await toolbox.status()}
        return tuple(
            {
                "name": spec.name, "description": spec.description,
                "origin": status[spec.name].origin if spec.name in status else None,
                "policy": toolbox.verdict(spec.name, allowed),
                "available": spec.name in status and status[spec.name].available,
            }
            for spec in specs_of(inputs.toolset)
        )  # fmt: skip

    async def reload_tools(self, conv: AsyncConversation) -> tuple[str, ...]:
        """As Hosting.reload_tools."""
        inputs = await conv.context_inputs()
        await repin(self._services, conv, inputs.toolset)
        return tuple(spec.name for spec in specs_of((await conv.context_inputs()).toolset))

    async def close(self) -> None:
        """As Hosting.close."""
        self._closed = True
        for newest in list(self._live.values()):
            for live in newest.all():
                live.leave()
        while self._live:
            await next(iter(self._live.values())).done.wait()
        self._unsent.set()  # a last look
        await self._services.side.close()
        await self._services.toolbox.close()
        await self._services.providers.close()

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
        drafts, route = claims.marked(drafts, queue), await self._route(await conv.info())
        return await conv.begin_turn(drafts, holder=self._holder, call=_plan(route))

    async def _begun(
        self, live: Live, conv: AsyncConversation, turn: AsyncTurn, emit: Emit
    ) -> Report:
        info = await conv.info()
        return await self._run(live, conv, info, turn, await self._route(info), emit)

    async def _say(
        self, live: Live, conv: AsyncConversation, drafts: Sequence[Draft], emit: Emit,
        queue: bool,
    ) -> Report:  # fmt: skip
        services = self._services
        info = await ensure_pinned(services, conv)
        route = await self._route(info)
        drafts = claims.marked(drafts, queue)
        if info.turn is not None:
            left = await claims.resume(services, conv, self._holder)
            if left is not None:
                await conv.append(drafts)  # into the inbox of the turn that is taken up
                return await self._run(live, conv, info, left, route, emit, resumed=True)
        begun = await conv.begin_turn(drafts, holder=self._holder, call=_plan(route))
        if not isinstance(begun, AsyncTurn):
            return await _elsewhere(conv, begun, emit)
        return await self._run(live, conv, info, begun, route, emit)

    async def _go_on(self, live: Live, conv: AsyncConversation, emit: Emit) -> Report | None:
        info = await conv.info()
        route = await self._route(info)
        left = await claims.left(self._services, conv, _plan(route), self._holder)
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
            if isinstance(report, Report) and report.state == "done":
                self._publish()
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
        self._beside(run, report)
        answered = report.state == "waiting" and not run.stop.is_set()
        return report, waiting > 0 or answered

    async def _left(self, run: Running, report: Report | Exception) -> claims.Left | None:
        """The turn that follows: of what waits; or this one again, if each call that it asked for
        was answered while it still ran."""
        if isinstance(report, Report) and report.state == "waiting":
            return await claims.left(self._services, run.conv, _plan(run.route), self._holder)
        following = await self._next(run.conv, run.route)
        return None if following is None else claims.Left(following, False)

    def _tell_silent(self, emit: Emit) -> None:
        """Say once which tool servers are away: their tools are just not there."""
        for server in self._services.toolbox.silent():
            if server.name not in self._told:
                self._told.add(server.name)
                emit(Notice("tools", f"The tools of {server.origin} are missing: {server.error}"))

    def _publish(self) -> None:
        """Have what is due sent, beside everything else: nobody waits for a slow channel."""
        if self.publisher is not None:
            self._unsent.set()
            self._services.side.start("publishing", self._publishing(self.publisher))

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

    async def _next(self, conv: AsyncConversation, route: Route) -> AsyncTurn | None:
        """A turn for what waits; None when somebody else has begun it."""
        try:
            begun = await conv.begin_turn(holder=self._holder, call=_plan(route))
        except ClewError:
            return None  # nothing waits, somebody else is at it, it has ended: what waits stays
        return begun if isinstance(begun, AsyncTurn) else None

    def _beside(self, run: Running, report: Report) -> None:
        """What is done after a reply while nobody waits for it: a compaction that the next request
        would have to wait for, a title."""
        services, conv, route = self._services, run.conv, run.route
        if report.state != "done":
            return
        if run.filled >= services.budget(route.model).high_tokens:
            services.side.start(_compaction(conv), compact_beside(run))
        untitled = run.info.title_origin in (None, "derived")
        if services.config.chat.titles and untitled and run.number <= TITLED_BY:
            services.side.start(f"title {conv.id}", _title(run))

    async def _route(self, info: ConversationInfo) -> Route:
        """The model that a person chose for this conversation, or the configured one: that of a
        conversation which was begun elsewhere may be unknown here."""
        if info.model is not None and "/" in info.model:
            try:
                return await self._services.route(info.model)
            except ClewError:
                pass
        return await self._services.route(None)


PUT_OFF = 5.0
"""Seconds between two looks for deliveries that were put off."""
TITLED_BY = 3
"""The turn after which no model is asked for a title any more: those before have failed."""


async def _behind(before: Live | None, work: Coroutine[Any, Any, T]) -> T:
    """Work that begins when what runs before it is done."""
    if before is not None:
        await before.done.wait()
    return await work


def _compaction(conv: AsyncConversation) -> str:
    """The name of the side work that compacts a conversation."""
    return f"compaction {conv.id}"


async def _title(run: Running) -> None:
    title = await give_title(run.route.provider, run.route.model, run.conv)
    if title is not None:
        run.emit(Titled(title))


def _plan(route: Route) -> CallPlan:
    return CallPlan(model=route.model.name)


async def _elsewhere(
    conv: AsyncConversation, outcome: TurnQueued | TurnKnown, emit: Emit
) -> Report:
    """Messages that this host does not answer now."""
    if isinstance(outcome, TurnKnown):
        return await claims.known(conv, outcome)
    emit(Queued(outcome.turn, outcome.appended.numbers))
    return Report(turn=outcome.turn, state="queued")
