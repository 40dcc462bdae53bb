"""One question to a host, until it is answered: here, or by whoever runs the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from clew.cli import ask_answer
from clew.cli.ask_answer import ENDED, Answer
from clew.cli.beginning import new_conversation
from clew.cli.text import short_id
from clew.config.values import Config
from clew.domain.messages import Draft, Message, Role
from clew.domain.parts import Parts
from clew.domain.turns import Turn
from clew.errors import ClewError, NotFound, Spooled
from clew.host.api import Hosting
from clew.host.events import Event, Notice, TurnStarted
from clew.host.toolsets import prompt_of
from clew.ids import Ids
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile

SOURCE = "ask"
POLL = 0.2
"""Seconds between two looks for an answer that somebody else gives."""
EVERY = 10
"""Looks between two tries to go on ourselves: who runs the turn may be gone."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked, and where."""

    parts: Parts
    bound: str | None = None
    """Key of the conversation."""
    resume: str | None = None
    """Id of the conversation."""
    key: str | None = None
    """Of the message."""
    model: str | None = None
    system: bool = False
    """The configuration has a system prompt that is meant for this conversation."""
    wait: bool = True
    timeout: float | None = None
    """Seconds."""


class Asking:
    """One question. `emit` sees the turn, `note` is told what a person should know."""

    def __init__(
        self, host: Hosting, profile: AsyncProfile, config: Config, question: Question,
        emit: Callable[[Event], None], note: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._host, self._profile, self._config = host, profile, config
        self._question = question
        self._watch, self._note = emit, note
        self._name, self._tried = question.key or f"ask:{Ids().uid().hex()}", 1
        self._refused: list[str] = []
        self._notices: list[str] = []
        self._turns: set[int] = set()
        """That were run here."""

    async def run(self) -> Answer:
        """Ask, and give what came of it. Cancelling it stops the turn."""
        conv, made = await self._conversation()
        try:
            await self._prepare(conv)
            async with asyncio.timeout(self._question.timeout):
                answer = await self._ask(conv)
        except TimeoutError:
            answer = await self._stopped(conv)
        except Spooled:  # it is kept, and so is where it belongs
            raise
        except ClewError:
            if made and not (await conv.info()).head:  # what could not begin leaves nothing
                await self._profile.delete(conv.id)
            raise
        return replace(answer, refused=tuple(self._refused), notices=tuple(self._notices))

    async def _conversation(self) -> tuple[AsyncConversation, bool]:
        """Where it is asked, and whether that was made for it."""
        question = self._question
        if question.resume is not None:
            return await self._profile.resolve(question.resume), False
        bound = question.bound or question.key
        new = new_conversation(self._config, SOURCE)
        if bound is None:
            return await self._profile.create(new), True
        return await self._profile.conversation(bound, source=SOURCE, new=new), False

    async def _prepare(self, conv: AsyncConversation) -> None:
        """Have the model and the system prompt be those that were asked for."""
        if self._question.model is not None:
            await self._host.use_model(conv, self._question.model)
        if self._question.system:
            await self._instruct(conv)

    async def _instruct(self, conv: AsyncConversation) -> None:
        """Give a conversation that has a system prompt another one, if it is another one."""
        info = await conv.info()
        prompt = prompt_of(self._config, info.cwd, info.created_at)
        if info.prompt_hash not in (None, sha256(prompt.encode()).hexdigest()):
            await conv.set_prompt(prompt)

    async def _ask(self, conv: AsyncConversation) -> Answer:
        draft = Draft(role=Role.USER, parts=self._question.parts, key=self._key)
        report = await self._host.say(conv, [draft], emit=self._emit, queue=True)
        if report.state == "queued":
            if not self._question.wait:
                return Answer(conversation=conv.id, state="queued")
            self._note("a turn runs there already; waiting for it to end")
            return await self._elsewhere(conv)
        if report.state == "waiting":
            await self._refuse(conv)
        if report.state == "known":
            await self._newest_try(conv)
        return await self._outcome(conv, again=report.state == "known")

    async def _refuse(self, conv: AsyncConversation) -> None:
        """Refuse what a person would have to allow, and go on."""
        while asked := [each for each in await conv.approvals() if each.state == "asked"]:
            for each in asked:
                await self._host.answer(conv, each.call_id, False, by=SOURCE)
                if each.name not in self._refused:
                    self._refused.append(each.name)
                    self._note(
                        f"{each.name} was refused, since nobody is asked here; --allow {each.name} "
                        "lets it run"
                    )
            if await self._host.go_on(conv, emit=self._emit) is None:
                return

    async def _outcome(self, conv: AsyncConversation, again: bool = False) -> Answer:
        """What came of our message. `again`: it was there before, so that it is asked once more if
        its turn failed then."""
        message = await self._message(conv)
        turn = None if message is None else await ask_answer.turn_for(conv, message)
        if message is None or turn is None or turn.state not in ENDED:
            return await self._elsewhere(conv)
        if again and turn.state != "done":
            return await self._try_again(conv, message, turn)
        return await ask_answer.read(conv, turn.number)

    async def _try_again(self, conv: AsyncConversation, message: Message, turn: Turn) -> Answer:
        """In its place, if it was the last thing said; else at the end, since nothing that others
        have said may be cut away."""
        info = await conv.info()
        newest = (await conv.log(limit=1, order="newest")).items
        self._tried += 1
        if newest and newest[0].turn in (turn.number, message.turn):
            await conv.retry(message.uid, key=self._key, head=info.head, view=info.view)
            await self._host.go_on(conv, emit=self._emit)
        else:
            return await self._ask(conv)
        await self._refuse(conv)
        return await self._outcome(conv)

    async def _newest_try(self, conv: AsyncConversation) -> None:
        """Have our message be the last one that was tried by its key."""
        while await self._message(conv) is not None:
            self._tried += 1
        self._tried = max(1, self._tried - 1)

    @property
    def _key(self) -> str:
        """Of our message: that of the first try, or that with the number of a later one."""
        return self._name if self._tried == 1 else f"{self._name}:{self._tried}"

    async def _elsewhere(self, conv: AsyncConversation) -> Answer:
        """Wait until the message is answered by whoever runs the conversation; by us, when nobody
        does any more."""
        for look in range(1 << 62):
            if (answer := await self._look(conv)) is not None:
                return answer
            if (await conv.info()).turn is None or look % EVERY == EVERY - 1:
                report = await self._host.go_on(conv, emit=self._emit)
                if report is not None and report.state == "waiting":
                    await self._refuse(conv)
                if report is not None:
                    continue
            await asyncio.sleep(POLL)
        raise AssertionError

    async def _look(self, conv: AsyncConversation) -> Answer | None:
        """The answer, if there is one; or that there will be none."""
        message = await self._message(conv)
        if message is None and all(each.key != self._key for each in await conv.inbox()):
            if await self._message(conv) is None:
                text = "somebody took the message back before it was answered"
                return Answer(conversation=conv.id, state="withdrawn", error=text)
            return None
        if message is not None:
            turn = await ask_answer.turn_for(conv, message)
        else:
            open = (await conv.info()).turn
            turn = None if open is None else await ask_answer.turn_of(conv, open)
        if turn is None:
            return None
        if turn.state == "waiting":
            text = (
                f"turn {turn.number} waits there for a person's answer; the message is kept and "
                f"answered after it: `clew chat --resume {short_id(conv.id)}`"
            )
            return Answer(conversation=conv.id, turn=turn.number, state="queued", error=text)
        if message is not None and turn.state in ENDED:
            return await ask_answer.read(conv, turn.number)
        return None

    async def _message(self, conv: AsyncConversation) -> Message | None:
        """Our message in the log."""
        try:
            return await conv.message(self._key)
        except NotFound:
            return None

    async def _stopped(self, conv: AsyncConversation) -> Answer:
        """What there is when the time is over."""
        message = await self._message(conv)
        text = f"stopped after {self._question.timeout:g} seconds (--timeout)"
        if message is None:
            return Answer(conversation=conv.id, state="queued", error=text)
        turn = await ask_answer.turn_for(conv, message)
        number = None if turn is None else turn.number
        answer = await ask_answer.read(conv, number, "interrupted")
        return replace(answer, error=text)

    def _emit(self, event: Event) -> None:
        if isinstance(event, Notice):
            if event.kind in ("limit", "loop"):
                self._notices.append(event.text)
            self._note(event.text)
        if isinstance(event, TurnStarted):
            if event.resumed and event.turn not in self._turns:
                self._note(f"turn {event.turn} was left unfinished there; going on with it")
            self._turns.add(event.turn)
        self._watch(event)
