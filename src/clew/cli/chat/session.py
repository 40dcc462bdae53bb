"""What a chat does, whatever it is shown on: the conversation that is open, messages, commands.

A conversation is made with the first thing that belongs into it, so that a chat in which nothing
was said leaves none.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from clew.cli.beginning import new_conversation
from clew.cli.chat import recap
from clew.cli.chat.place import Places, place
from clew.cli.chat.starting import FIRST, Options, Started, bring_demo
from clew.cli.chat.status import Status
from clew.cli.chat.watch import Watcher
from clew.cli.lines import Line
from clew.cli.registry import load
from clew.cli.screen import Piece
from clew.cli.settings import Settings
from clew.cli.text import one_line, short_id
from clew.domain.conversations import ListFilter
from clew.domain.messages import Draft
from clew.domain.parts import ToolCall
from clew.errors import Ambiguous, ClewError, Ended, InputError, NotFound
from clew.host.api import Report
from clew.host.events import Emit, Event, Queued, TurnStarted
from clew.store.aio.conversation import AsyncConversation

REGISTRY = "clew.cli.chat.commands.registry"
REACHING = "clew.cli.chat.commands.reaching"
ALONE = frozenset(("help", "quit"))
"""Commands for which no conversation is made; one that stays empty is deleted at the end."""
ARCHIVIST = "archivist"
"""The provider that answers where no model is connected."""
LOOK = 50
"""Newest messages among which calls that wait are looked for."""


class Session(ABC):
    """A chat of one profile. `clew.cli.chat.api.Chat`, with the screen left to others."""

    def __init__(self, settings: Settings, start: Started, options: Options) -> None:
        self.settings, self.start, self.options = settings, start, options
        self.host, self.profile, self.config = start.host, start.profile, start.config
        self.place = place()
        self.places = Places(f"{settings.where} {self.profile.name}")
        self.status = Status()
        self.watcher = Watcher(self, self.status, self.config.chat.reasoning)
        self.code_error: ClewError | None = None
        """The last one that a turn ended with."""
        self.shown: set[int] = set()
        """Numbers of messages that were shown as they came."""
        self._conv: AsyncConversation | None = None
        self._made = False
        self._making, self._accepting = asyncio.Lock(), asyncio.Lock()

    @property
    def conv(self) -> AsyncConversation:
        """The one that is open. InputError before there is one."""
        if self._conv is None:
            raise InputError("nothing was said yet; type a message, or /resume to go on elsewhere")
        return self._conv

    @conv.setter
    def conv(self, conv: AsyncConversation) -> None:
        self._conv, self._made = conv, False

    @property
    def is_open(self) -> bool:
        """Whether there is one."""
        return self._conv is not None

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    @abstractmethod
    def unicode(self) -> bool: ...

    @abstractmethod
    def text(self, text: str, thinking: bool = False) -> None: ...

    @abstractmethod
    def flush(self) -> None: ...

    @abstractmethod
    def cut(self) -> None: ...

    @abstractmethod
    def write(self, *pieces: Piece | str) -> None: ...

    @abstractmethod
    def write_lines(self, lines: Iterable[Line]) -> None: ...

    @abstractmethod
    def ask(self, calls: Iterable[ToolCall]) -> None: ...

    @abstractmethod
    def queued(self) -> None:
        """What was sent waits for a turn that runs, here or elsewhere."""
        ...

    @abstractmethod
    def changed(self) -> None: ...

    @abstractmethod
    def markdown(self, text: str) -> None: ...

    async def ensure(self) -> AsyncConversation:
        """The conversation that is open; made if there is none."""
        async with self._making:
            if self._conv is None:
                new = new_conversation(self.config, "chat")
                self._conv, self._made = await self.profile.create(new), True
                if self.options.model is not None:
                    await self._choose(self.options.model)
            return self._conv

    async def greet(self) -> None:
        """Say what answers in a new conversation; if that is no model, how to connect one, and
        bring something to ask about where nothing is stored."""
        try:
            model = await self.start.model()
        except ClewError as error:
            self.write((one_line(str(error)), "yellow"))
            return
        if self._conv is None:
            self.status.model = model
        if model.provider == ARCHIVIST:
            first: Any = load(FIRST)
            demo = await bring_demo(self.start)
            for pieces in first.lines(self.settings):
                self.write(*pieces)
            if demo is not None:
                await first.tell(self, demo)
        self.changed()

    async def _choose(self, model: str) -> None:
        try:
            self.status.model = await self.host.use_model(self.conv, model)
        except ClewError:
            await self.forget_empty()
            self._conv = None
            raise

    async def open(self, conv: AsyncConversation, *, recap: bool = True) -> None:
        """Go on in this conversation: remembered for `--continue`, its recap shown."""
        if self._conv is not None and self._conv.id != conv.id:
            await self.forget_empty()
        self.conv = conv
        info = await conv.info()
        self._made = not info.message_count and not info.waiting
        if not self._made:
            self.places.remember(self.place, conv.id)
        self.status.tokens = self.status.limit = 0
        self.status.begin()
        self.status.waiting = info.waiting
        if recap:
            await self._recap(conv)
        self.status.model = await self.host.model_of(conv)
        self.changed()

    async def _recap(self, conv: AsyncConversation) -> None:
        facts = await recap.look(conv)
        self.write_lines(recap.lines(facts, conv.clock.now(), self.width))

    async def forget_empty(self) -> None:
        """Delete the conversation that was made here and that nothing was put into."""
        conv = self._conv
        if conv is None or not self._made:
            return
        info = await conv.info()
        kept = info.message_count or info.waiting or info.turn or info.title or info.pinned
        if not kept and not await conv.todos() and await conv.goal() is None:
            self._conv, self._made = None, False
            await self.profile.delete(conv.id)

    async def begin(self) -> None:
        """Open what the options ask for."""
        options = self.options
        found = None
        if options.resume is not None:
            found = await self._named(options.resume)
        elif options.last:
            found = await self._last()
        if found is not None:
            await self.open(found)
            if options.model is not None:
                self.status.model = await self.host.use_model(found, options.model)

    async def _named(self, text: str) -> AsyncConversation:
        """By its id, or as /resume finds it: by words of its title."""
        try:
            return await self.profile.resolve(text)
        except Ambiguous:
            raise
        except NotFound:
            reaching: Any = load(REACHING)
            found = await reaching.find(self.profile, text) if text.strip() else None
            if found is not None and found.several:
                several = [short_id(each.id) for each in found.several]
                raise Ambiguous(one_line(text), several) from None
            if found is None or found.conv is None:
                raise
            return found.conv

    async def _last(self) -> AsyncConversation | None:
        """The newest of this terminal and folder, or of this folder."""
        if (id := self.places.last(self.place)) is not None:
            try:
                return await self.profile.open(id)
            except LookupError:
                pass  # it was deleted
        here = new_conversation(self.config, "chat").workspace
        project = here.git_root or here.cwd
        page = await self.profile.list(ListFilter(project=project), limit=1)
        if page.items:
            return await self.profile.open(page.items[0].id)
        self.write(("There is nothing to continue in this folder; this is a new one.", "yellow"))
        return None

    async def say(self, drafts: Sequence[Draft]) -> None:
        """Send messages as if they were typed, and show the turn to its end."""
        await self._shown(self._say(drafts))

    async def _say(self, drafts: Sequence[Draft]) -> Report:
        """One message after the other is accepted, so that they stand in the order they were sent
        in; what then becomes of each does not hold up the next."""
        accepted = asyncio.Event()

        def emit(event: Event) -> None:
            if isinstance(event, TurnStarted | Queued):
                accepted.set()
            self.watcher(event)

        async with self._accepting:
            conv = await self.ensure()
            self.places.remember(self.place, conv.id)
            turn = asyncio.ensure_future(self._send(conv, drafts, emit))
            turn.add_done_callback(lambda _: accepted.set())
            try:
                await accepted.wait()
            except asyncio.CancelledError:
                turn.cancel()
                raise
        return await turn

    async def _send(self, conv: AsyncConversation, drafts: Sequence[Draft], emit: Emit) -> Report:
        queue = self.config.chat.busy == "queue"
        try:
            return await self.host.say(conv, drafts, emit=emit, queue=queue)
        except Ended:
            await conv.reopen()
            return await self.host.say(conv, drafts, emit=emit, queue=queue)

    async def go_on(self) -> None:
        """Continue what is open (host.go_on), and show it to its end."""
        await self._shown(self.host.go_on(self.conv, emit=self.watcher))

    async def _shown(self, turn: Any) -> None:
        """Await a turn; what it ends with is shown, and the chat goes on."""
        try:
            report: Report | None = await turn
        except ClewError as error:
            self.flush()
            self.status.doing, self.code_error = "", error
            self.watcher.running.clear()
            self.watcher.error(str(error))
        else:  # its last event has flushed; while it is queued another turn goes on
            if report is not None and report.state == "queued":
                self.queued()
            if report is not None:
                self.shown.update(report.seqs)
            if report is not None and report.state == "done":
                self.code_error = None
                if report.text and not self.watcher.spoke:
                    self.markdown(report.text)
        self.changed()

    async def waiting_calls(self) -> list[ToolCall]:
        """Calls of the open turn that a person has not answered."""
        asked = [one for one in await self.conv.approvals() if one.state == "asked"]
        if not asked:
            return []
        page = await self.conv.log(limit=LOOK, order="newest")
        parts = (part for message in page.items for part in message.parts)
        calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
        return [calls.get(one.call_id) or ToolCall(one.call_id, one.name) for one in asked]

    async def take_up(self) -> None:
        """What was left in the conversation that was opened: a question, a turn, messages."""
        info = await self.conv.info()
        if calls := await self.waiting_calls():
            self.ask(calls)
        elif info.turn is not None or info.waiting:
            await self.go_on()

    async def command(self, typed: str, busy: bool = False) -> bool:
        """Run a command, as it was typed; whether another conversation is open then."""
        name, _, rest = typed[1:].partition(" ")
        registry: Any = load(REGISTRY)
        found = registry.find(name)
        if found is None:
            self.write((one_line(registry.unknown(name)), "red"))
            return False
        if busy and not found.during:
            self.write((f"/{found.name} has to wait until the turn has ended", "yellow"))
            return False
        if self._conv is None and found.name not in ALONE:
            await self.ensure()
        before = self._conv
        try:
            await found.run(self, rest.strip())
        except (ClewError, OSError) as error:
            self.write((one_line(str(error)), "red"))
        return self._conv is not None and self._conv is not before

    async def interrupt(self) -> bool:
        """Stop the turn that runs; false when none does."""
        return self._conv is not None and await self.host.stop(self._conv)

    async def close(self) -> None:
        """Leave: what is empty goes, the host stops what runs."""
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        try:
            await self.host.close()
            await self.forget_empty()
        finally:
            await self.start.store.close()
