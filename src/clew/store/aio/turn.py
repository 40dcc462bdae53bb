"""What store/turn.py is, for asyncio.

Generated from that by scripts/aio.py; a change belongs there.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.messages import Appended, Draft
from clew.domain.turns import (
    Ask,
    CallPlan,
    CallResult,
    Delivery,
    Recorded,
    Turn,
    TurnBegun,
    TurnEnded,
    TurnState,
)
from clew.store import turns
from clew.store.aio.database import AsyncDatabase
from clew.store.spool.accepting import OneStep
from clew.store.turns import Step


class AsyncTurn:
    """Held by whoever runs the turn. Every write carries the fence; RightLost and Spooled mean:
    stop."""

    def __init__(self, db: AsyncDatabase, no: int, begun: TurnBegun, profile: str = "") -> None:
        self._db, self._no, self._profile = (db, no, profile)
        self.turn: Turn = begun.turn
        self.right = begun.right
        self.appended: Appended = begun.appended
        "The messages the turn began with."
        self.call = begun.call
        "Number of the first planned model call."
        self._known_head = begun.appended.head

    async def record(
        self,
        drafts: Sequence[Draft] = (),
        *,
        call: int | None = None,
        result: CallResult | None = None,
        next_call: CallPlan | None = None,
        take_inbox: bool = False,
        asks: Sequence[Ask] = (),
        started: Sequence[str] = (),
    ) -> Recorded:
        """Store one finished step in one transaction: the call that ended, its message or the
        tool results, what waits in the inbox (if no tool call is open, and up to a message whose
        `meta.queue` is true: that one waits for the next turn), the next planned call.

        `asks`: calls of the message that a person must allow. `started`: ids of those that were
        allowed and are about to run; stored before they do, so that none runs twice unnoticed.
        """
        step = Step(
            drafts=drafts,
            call=call,
            result=result,
            next_call=next_call,
            take_inbox=take_inbox,
            asks=asks,
            started=started,
        )
        return (await self._record(step))[0]

    async def finish(
        self,
        drafts: Sequence[Draft] = (),
        *,
        call: int | None = None,
        result: CallResult | None = None,
        deliveries: Sequence[Delivery] = (),
        state: TurnState = "done",
        error: str | None = None,
    ) -> TurnEnded:
        """Store the last step, add the deliveries, close the turn, release the right: one
        transaction. The outcome says how many messages wait for the next turn."""
        step = Step(
            drafts=drafts, call=call, result=result, state=state, error=error, deliveries=deliveries
        )
        ended = (await self._record(step))[1]
        assert ended is not None
        return ended

    async def wait(self, drafts: Sequence[Draft] = ()) -> TurnEnded:
        """Let the turn wait for a person: it stays open, the right is released."""
        return await self.finish(drafts, state="waiting")

    async def save_partial(self, call: int, text: str) -> None:
        """Keep what a call has streamed so far, outside the log; at most once a second."""
        await self._db.write(
            lambda tx: turns.save_partial(tx, self._db.kit, self._no, self.right, call, text)
        )

    async def renew(self) -> None:
        """A sign of life, for calls longer than a third of the ttl. RightLost: stop."""
        await self._db.write(lambda tx: turns.renew(tx, self._db.kit, self._no, self.right))

    async def _record(self, step: Step) -> tuple[Recorded, TurnEnded | None]:
        """Spooled: the store cannot take the step; its messages are durable, the turn stops."""
        accepting = OneStep(
            self._db.kit,
            self._profile,
            self._no,
            self.right,
            self.turn.number,
            step,
            self._known_head,
        )
        recorded, ended = await self._db.accept(accepting)
        self._known_head = recorded.appended.head
        return (recorded, ended)
