"""The handle of an open turn of the reference store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec.structs import replace

from clew.domain.messages import Appended, Draft
from clew.domain.parts import call_ids
from clew.domain.turns import (
    Ask,
    CallPlan,
    CallResult,
    Delivery,
    Recorded,
    Right,
    Turn,
    TurnEnded,
    TurnState,
)
from clew.errors import InputError, RightLost
from clew.testing.reference import approvals, log, outbox, turns, values
from clew.testing.reference.state import Named, State, World

T = TypeVar("T")


class Writer(Protocol):
    """The conversation, as its turn needs it."""

    def named(self, drafts: Sequence[Draft]) -> list[Named]: ...

    def under(self, right: Right, unit: Callable[[World, State], T]) -> T: ...


class ReferenceTurn:
    """Same methods, values and errors as `clew.TurnHandle`."""

    def __init__(
        self, conversation: Writer, turn: Turn, right: Right, appended: Appended,
        call: int | None,
    ) -> None:  # fmt: skip
        self._conversation = conversation
        self.turn, self.right, self.appended, self.call = turn, right, appended, call

    def record(
        self, drafts: Sequence[Draft] = (), *, call: int | None = None,
        result: CallResult | None = None, next_call: CallPlan | None = None,
        take_inbox: bool = False, asks: Sequence[Ask] = (), started: Sequence[str] = (),
    ) -> Recorded:  # fmt: skip
        wanted = self._conversation.named(drafts)
        made = {id for draft in drafts for id in call_ids(draft.parts)}
        for one in asks:
            if one.call_id not in made:
                raise InputError(f"{one.call_id!r} is no call of these messages")

        def unit(world: World, state: State) -> Recorded:
            done = self._step(world, state, wanted, call, result, next_call, take_inbox)
            approvals.ask(world, state, self.turn.number, asks)
            approvals.start(state, started)
            return done

        return self._conversation.under(self.right, unit)

    def finish(
        self, drafts: Sequence[Draft] = (), *, call: int | None = None,
        result: CallResult | None = None, deliveries: Sequence[Delivery] = (),
        state: TurnState = "done", error: str | None = None,
    ) -> TurnEnded:  # fmt: skip
        if state not in ("done", "failed", "interrupted", "waiting"):
            raise InputError(f"a turn does not end as {state!r}")
        how, wanted = state, self._conversation.named(drafts)

        def unit(world: World, state: State) -> TurnEnded:
            self._step(world, state, wanted, call, result, None, False)
            if how == "waiting":
                turns.set_turn(state, self.turn.number, state="waiting")
                state.holder = None
                state.fence += 1
            else:
                outbox.add(world, state, self.turn.number, deliveries)
                reason = values.label(world.limits, "turn error", error)
                turns.close_turn(state, how, world.clock.now(), reason)
            waiting = len(state.waiting)
            return TurnEnded(number=self.turn.number, state=how, waiting=waiting, head=state.head)

        return self._conversation.under(self.right, unit)

    def wait(self, drafts: Sequence[Draft] = ()) -> TurnEnded:
        return self.finish(drafts, state="waiting")

    def save_partial(self, call: int, text: str) -> None:
        def unit(world: World, state: State) -> None:
            turns.held(state, self.right.fence)
            if 0 < call <= len(state.calls) and state.calls[call - 1].state == "planned":
                state.calls[call - 1] = replace(state.calls[call - 1], partial=text)
            state.held_at = world.clock.now()

        self._conversation.under(self.right, unit)

    def renew(self) -> None:
        def unit(world: World, state: State) -> None:
            if state.fence != self.right.fence or state.holder is None:
                raise RightLost(state.id, self.right.fence)
            state.held_at = world.clock.now()

        self._conversation.under(self.right, unit)

    def _step(
        self, world: World, state: State, wanted: list[Named], call: int | None,
        result: CallResult | None, next_call: CallPlan | None, take_inbox: bool,
    ) -> Recorded:  # fmt: skip
        turns.held(state, self.right.fence, self.turn.number)
        number, now = self.turn.number, world.clock.now()
        found = log.lookup(state, wanted)
        fresh = log.fresh_of(wanted, found)
        log.check_asked(state, fresh)
        added = log.insert(world, state, fresh, number)
        if call is not None and result is not None:
            turns.finish_call(world, state, call, result)
        taken: tuple[int, ...] = ()
        if take_inbox and not turns.open_calls(state, number):
            taken = log.take(world, state, number, steering=True)
        planned = None
        if next_call is not None:
            planned = turns.plan_call(world, state, next_call, now, number)
        state.held_at = now
        appended = log.outcome(state, wanted, found, len(fresh), added)
        appended = replace(appended, numbers=())
        return Recorded(appended=appended, taken=taken, call=planned)
