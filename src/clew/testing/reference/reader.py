"""The read half of a conversation's handle, and snapshots."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

from clew.clock import Clock
from clew.domain.compactions import Attempt, BodyItem, Compaction, Ref, Stub
from clew.domain.conversations import ConversationInfo, Page
from clew.domain.cuts import Cut
from clew.domain.messages import Message, Waiting
from clew.domain.notes import Goal, Todo
from clew.domain.turns import Approval, Delivered, ModelCall, ModelUsage, Turn
from clew.errors import InputError, InvalidCursor, NotFound
from clew.store.aliases import Alias
from clew.store.reading import ContextInputs
from clew.testing.reference import approvals, compactions, log, records, usage
from clew.testing.reference.state import State, World


class ReferenceReader:
    """Same methods, values and errors as `clew.ConversationReader`."""

    def __init__(
        self, world: World, id: str, profile: str, frozen: tuple[int, tuple[Cut, ...]] | None = None
    ) -> None:
        self._world, self.id, self.profile, self._frozen = world, id, profile, frozen

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, profile={self.profile!r})"

    @property
    def _now_here(self) -> State:
        """The state to read; a snapshot sees its own head and cuts."""
        state = self._world.get(self.profile, self.id)
        if self._frozen is not None:
            head, cuts = self._frozen
            state = dataclasses.replace(state, messages=state.messages[:head], cuts=list(cuts))
        return state

    def info(self) -> ConversationInfo:
        return records.info_of(self._world, self._world.get(self.profile, self.id))

    def log(
        self, *, limit: int = 100, cursor: str | None = None,
        order: Literal["oldest", "newest"] = "oldest", hidden: bool = False, first: int = 1,
        last: int | None = None,
    ) -> Page[Message]:  # fmt: skip
        self._world.limits.check_page(limit)
        state = self._now_here
        rows = _within(list(state.messages) if hidden else log.visible(state), first, last)
        if order == "newest":
            rows.reverse()
        if cursor is not None:
            if cursor[:1] != order[0] or not cursor[1:].isdecimal():
                raise InvalidCursor(cursor)
            after = int(cursor[1:])
            rows = [m for m in rows if (m.seq > after if order == "oldest" else m.seq < after)]
        following = f"{order[0]}{rows[limit - 1].seq}" if len(rows) > limit else None
        rows = rows[:limit]
        return Page(tuple(rows if hidden else log.shown(state, rows)), following)

    def messages(
        self, *, hidden: bool = False, first: int = 1, last: int | None = None
    ) -> Iterator[Message]:
        state = self._now_here
        rows = _within(list(state.messages) if hidden else log.visible(state), first, last)
        yield from rows if hidden else log.shown(state, rows)

    def message(self, name: str | int) -> Message:
        for message in reversed(self._now_here.messages):
            if name in (message.seq, message.key):
                return message
        for message in reversed(self._now_here.messages):
            if isinstance(name, str) and name.replace("-", "").lower() == message.uid:
                return message
        raise NotFound("message", str(name))

    def blob(self, digest: str) -> bytes:
        data = log.blob_of(self._world, self._now_here, digest)
        if data is None:
            raise NotFound("blob", digest)
        return data

    @property
    def clock(self) -> Clock:
        return self._world.clock

    def context_inputs(self, *, without: int | None = None) -> ContextInputs:
        state = self._now_here
        compaction = compactions.effective(state, state.cuts, state.head, without)
        covered: list[tuple[BodyItem, tuple[Message, ...]]] = []
        first = 1
        if compaction is not None:
            first = compaction.covers_to + 1
            for item in compaction.body:
                match item:
                    case Ref(first=start, last=end):
                        covered.append((item, tuple(log.visible(state, start, end))))
                    case Stub(seq=seq):
                        covered.append((item, (state.messages[seq - 1],)))
                    case _:
                        covered.append((item, ()))
        return ContextInputs(
            conversation=self.info(), prompt=state.prompt, toolset=state.toolset,
            compaction=compaction, covered=tuple(covered),
            messages=tuple(log.shown(state, log.visible(state, first))),
            todos=tuple(state.todos), goal=self.goal(),
        )  # fmt: skip

    def snapshot(self, at: int | None = None) -> ReferenceReader:
        state = self._now_here
        if at is not None and not 0 <= at <= state.head:
            raise InputError(f"seq {at} is not within 0..{state.head}")
        frozen = (state.head if at is None else at, tuple(state.cuts))
        return ReferenceReader(self._world, self.id, self.profile, frozen)

    def cuts(self) -> tuple[Cut, ...]:
        return tuple(self._now_here.cuts)

    def compactions(self) -> tuple[Compaction, ...]:
        return tuple(reversed(self._now_here.compactions))

    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self._now_here.attempts)

    def turns(self, limit: int = 100, before: int = 1 << 62) -> tuple[Turn, ...]:
        found = [turn for turn in reversed(self._now_here.turns) if turn.number < before]
        return tuple(found[:limit])

    def approvals(self) -> tuple[Approval, ...]:
        return approvals.of_turn(self._now_here)

    def allowed_tools(self) -> tuple[str, ...]:
        return approvals.always(self._now_here)

    def calls(self, newest: int | None = None) -> tuple[ModelCall, ...]:
        calls = tuple(self._now_here.calls)
        return calls if newest is None else calls[max(0, len(calls) - newest) :]

    def usage(self) -> tuple[ModelUsage, ...]:
        return usage.by_model(self._now_here.calls)

    def deliveries(self, turn: int) -> tuple[Delivered, ...]:
        return tuple(row for row in self._now_here.deliveries if row.turn == turn)

    def inbox(self) -> tuple[Waiting, ...]:
        return tuple(
            Waiting(
                number=entry.number, uid=entry.named.uid, role=entry.named.draft.role,
                parts=entry.named.draft.parts, received_at=entry.named.at,
                key=entry.named.draft.key, author=entry.named.draft.author,
                meta=entry.named.draft.meta,
            )
            for entry in self._now_here.waiting
        )  # fmt: skip

    def todos(self) -> tuple[Todo, ...]:
        return tuple(self._now_here.todos)

    def goal(self) -> Goal | None:
        return next((goal for goal in self._now_here.goals if goal.state == "active"), None)

    def aliases(self) -> tuple[Alias, ...]:
        rows = [row for row in self._world.aliases if row.conversation == self.id]
        return tuple(
            Alias(
                source=row.source, foreign_id=row.foreign_id, from_seq=row.from_seq,
                kind=row.kind, state=row.state,
            )
            for row in sorted(rows, key=lambda r: (r.from_seq, r.source, r.foreign_id))
        )  # fmt: skip

    def children(self, limit: int = 100) -> tuple[ConversationInfo, ...]:
        states = [
            s for s in self._world.states.values() if s.origin == self.id and s.binned_at is None
        ]
        return tuple(records.info_of(self._world, state) for state in reversed(states))[:limit]


def _within(messages: list[Message], first: int, last: int | None) -> list[Message]:
    return [m for m in messages if first <= m.seq and (last is None or m.seq <= last)]
