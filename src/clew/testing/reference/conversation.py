"""The handle of a conversation of the reference store: all that can be done to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from clew.context.chat import chat_context
from clew.domain.chat import ChatMessage, draft_of, drafts_of
from clew.domain.compactions import Attempt, Compaction, Proposal, Trigger
from clew.domain.conversations import NewConversation, TitleOrigin, Workspace
from clew.domain.cuts import CutOutcome
from clew.domain.messages import Appended, Draft, Message
from clew.domain.notes import Goal, Todo
from clew.domain.turns import CallPlan, CallResult, Right, Turn, TurnKnown, TurnQueued
from clew.errors import (
    Cancelled,
    CutOvertaken,
    InputError,
    InvalidCompaction,
    NotFound,
    Overtaken,
    RightLost,
    Stale,
    TurnOpen,
)
from clew.testing.reference import approvals, boundaries, compactions, log, records, turns, values
from clew.testing.reference.reader import ReferenceReader
from clew.testing.reference.state import Named, State, World
from clew.testing.reference.turn import ReferenceTurn

T = TypeVar("T")
TTL = 60_000_000


class ReferenceConversation(ReferenceReader):
    """Same methods, values and errors as `clew.Conversation`."""

    # ------------------------------------------------------------------ appending

    def add(self, messages: Iterable[ChatMessage | Draft] | ChatMessage | Draft) -> Appended:
        return self.append(drafts_of(messages))

    def context(self, model: str | None = None) -> list[dict[str, Any]]:
        return chat_context(self.context_inputs(), self.blob, model)

    def append(self, drafts: Sequence[Draft], *, head: int | None = None) -> Appended:
        wanted = values.named(self._world, drafts)
        return self._write(lambda w, s: log.append(w, s, wanted, head, w.clock.now()))

    def withdraw(self, number: int) -> bool:
        def unit(_: World, state: State) -> bool:
            for at, entry in enumerate(state.inbox):
                if entry.number == number and entry.state == "waiting":
                    state.inbox[at] = replace(entry, state="withdrawn")
                    return True
            return False

        return self._write(unit)

    def pop(self, count: int = 1) -> list[Message]:
        if count < 1:
            raise InputError(f"count is {count}; pop at least one message")

        return self._write(lambda w, s: log.pop(w, s, count, w.clock.now()))

    def replace(self, messages: Iterable[ChatMessage | Draft]) -> Appended:
        drafts = drafts_of(messages)
        wanted = values.named_all(self._world, drafts)

        def unit(world: World, state: State) -> Appended:
            there = log.visible(state)
            shared = log.shared(there, wanted)
            values.check_batch(world.limits, len(wanted) - shared)
            if shared < len(there):
                now = world.clock.now()
                log.cut_from(world, state, there[shared].seq, "replace", now)
            rest = [log.renamed(world, state, item) for item in wanted[shared:]]
            kept = there[:shared]
            seqs, uids = tuple(m.seq for m in kept), tuple(m.uid for m in kept)
            if not rest:
                return Appended(seqs, state.head, 0, uids)
            done = log.append(world, state, rest, None, world.clock.now())
            return replace(done, seqs=seqs + done.seqs, uids=uids + done.uids)

        return self._write(unit)

    # ------------------------------------------------------------------ turns

    def begin_turn(
        self, drafts: Sequence[Draft] = (), *, holder: str | None = None, ttl: int = TTL,
        key: str | None = None, call: CallPlan | None = None, head: int | None = None,
    ) -> ReferenceTurn | TurnQueued | TurnKnown:  # fmt: skip
        if ttl <= 0:
            raise InputError(f"ttl is {ttl}; give the microseconds a silent holder keeps the right")
        if drafts and head is not None:
            raise InputError("a turn begins with messages, or answers what stands at a head")
        wanted = values.named(self._world, drafts) if drafts else []
        name = None if key is None else values.key(self._world.limits, "turn key", key)
        holder = turns.holder_name(self._world, holder)

        def unit(world: World, state: State) -> ReferenceTurn | TurnQueued | TurnKnown:
            now, found = world.clock.now(), log.lookup(state, wanted)
            waits = state.waiting and any(f is not None and f.number is not None for f in found)
            if wanted and all(found) and not waits:
                known = log.outcome(state, wanted, found, 0)
                return TurnKnown(turn=turns.turn_of(state, known.seqs), appended=known)
            open_turn = state.open_turn
            if open_turn is not None and turns.is_busy(state, now):
                if not wanted:
                    raise TurnOpen(state.id, open_turn.number, state.holder)
                queued = log.put(world, state, wanted, found, log.fresh_of(wanted, found))
                return TurnQueued(appended=queued, turn=open_turn.number)
            log.check_expected(state, head, None)
            log.interrupt(world, state, now, "its holder was gone")
            log.open_for_append(state, now)
            fresh = log.fresh_of(wanted, found)
            if head is None and not fresh and not state.waiting:
                raise InputError("a turn begins with a message; none was given and none waits")
            number, first = len(state.turns) + 1, state.head + 1
            right = turns.take_right(state, holder, ttl, now)
            turn = Turn(
                number=number, uid=world.ids.uid().hex(), state="running", key=name,
                first_seq=first, started_at=now,
            )  # fmt: skip
            state.turns.append(turn)
            log.take(world, state, number)
            log.check_asked(state, fresh)
            log.insert(world, state, fresh, number)
            planned = None if call is None else turns.plan_call(world, state, call, now, number)
            added = tuple(range(first, state.head + 1))
            uids = log.outcome(state, wanted, found, 0).uids
            appended = Appended(added, state.head, len(added), uids)
            return ReferenceTurn(self, turn, right, appended, planned)

        return self._write(unit)

    def resume_turn(self, *, holder: str | None = None, ttl: int = TTL) -> ReferenceTurn:
        holder = turns.holder_name(self._world, holder)

        def unit(world: World, state: State) -> ReferenceTurn:
            now, turn = world.clock.now(), state.open_turn
            if turn is None:
                raise NotFound("open turn", self.id)
            if not turns.is_free(state, now) and state.holder != holder:
                raise TurnOpen(self.id, turn.number, state.holder)
            right = turns.take_right(state, holder, ttl, now)
            turn = turns.set_turn(state, turn.number, state="running")
            appended = Appended(tuple(range(turn.first_seq, state.head + 1)), state.head, 0)
            return ReferenceTurn(self, turn, right, appended, None)

        return self._write(unit)

    def interrupt_turn(self, why: str | None = None) -> bool:
        def unit(world: World, state: State) -> bool:
            reason = values.label(world.limits, "why", why)
            return log.interrupt(world, state, world.clock.now(), reason) is not None

        return self._write(unit)

    def answer_call(
        self, call_id: str, allow: bool, *, always: bool = False, by: str | None = None
    ) -> bool:
        return self._write(lambda w, s: approvals.answer(w, s, call_id, allow, always, by))

    def plan_call(self, plan: CallPlan, attempt: int | None = None) -> int:
        return self._write(lambda w, s: turns.plan_call(w, s, plan, w.clock.now(), None, attempt))

    def finish_call(self, number: int, result: CallResult) -> None:
        self._write(lambda w, s: turns.finish_call(w, s, number, result))

    # ------------------------------------------------------------------ cuts and branches

    def cut(
        self, uid: str, *, head: int | None = None, view: int | None = None,
        by: str | None = None,
    ) -> CutOutcome:  # fmt: skip
        return self._write(lambda w, s: log.cut_at(w, s, uid, head, view, by))

    def undo_cut(
        self, number: int | None = None, *, head: int | None = None, view: int | None = None
    ) -> CutOutcome:
        def unit(world: World, state: State) -> CutOutcome:
            log.check_expected(state, head, view)
            in_force = [cut for cut in state.cuts if cut.in_force]
            if not in_force or number not in (None, *(cut.number for cut in in_force)):
                raise NotFound("cut in force", str(number))
            newest = in_force[-1]
            if number not in (None, newest.number) or newest.to_seq != state.head:
                raise CutOvertaken(number or newest.number)
            now = world.clock.now()
            log.open_for_append(state, now)
            state.cuts = [
                replace(cut, undone_at=now) if cut is newest else cut for cut in state.cuts
            ]
            log.moved(state, now)
            return CutOutcome(
                newest.number, newest.from_seq, newest.to_seq, (), None, state.head, state.view
            )

        return self._write(unit)

    def edit(
        self, uid: str, draft: Draft | ChatMessage, *, head: int | None = None,
        view: int | None = None, by: str | None = None,
    ) -> Appended:  # fmt: skip
        new = draft_of(draft)
        new = replace(new, meta={**(new.meta or {}), "retry_of": uid})
        wanted = values.named(self._world, [new])

        def unit(world: World, state: State) -> Appended:
            if new.key is not None or new.uid is not None:
                found = log.lookup(state, wanted)
                if all(found):
                    return log.outcome(state, wanted, found, 0)
            log.cut_at(world, state, uid, head, view, by)
            return log.append(world, state, wanted, None, world.clock.now())

        return self._write(unit)

    def retry(
        self, uid: str, *, key: str | None = None, head: int | None = None,
        view: int | None = None,
    ) -> Appended:  # fmt: skip
        old = self.message(uid)
        draft = Draft(role=old.role, parts=old.parts, author=old.author, key=key, meta=old.meta)
        return self.edit(uid, draft, head=head, view=view)

    def branch(
        self, uid: str | None = None, *, at_cut: int | None = None, head: int | None = None,
        new: NewConversation | None = None,
    ) -> ReferenceConversation:  # fmt: skip
        if uid is not None and at_cut is not None:
            raise InputError("give a message or a cut to branch from, not both")

        def unit(world: World, origin: State) -> str:
            given = records.descended(new, origin)
            if (known := records.known_id(world, self.profile, given.id)) is not None:
                return records.again(known, *records.repeated(origin, uid, at_cut))
            if head is not None and head != origin.head:
                raise Stale("head", head, origin.head)
            base, below = records.point(origin, uid, at_cut)
            cuts = [
                replace(cut, to_seq=min(cut.to_seq, base))
                for cut in origin.cuts
                if cut.in_force and cut.from_seq <= base and (below is None or cut.number < below)
            ]
            state = records.create(world, self.profile, given)
            state.kind, state.base = ("branch", base) if base else ("root", 0)
            state.origin = origin.id if base else None
            state.messages = [m.inherited() for m in origin.messages[:base]]
            state.cuts = cuts
            inherited = compactions.effective(origin, cuts, base)
            if inherited is not None:
                at = world.clock.now()
                record = replace(inherited, generation=1, attempt=None, created_at=at)
                state.compactions = [record]
            records.inherit(state, origin, given)
            return state.id

        return ReferenceConversation(self._world, self._write(unit), self.profile)

    def delegate(self, new: NewConversation | None = None) -> ReferenceConversation:
        def unit(world: World, origin: State) -> str:
            given = records.descended(new, origin)
            if (known := records.known_id(world, self.profile, given.id)) is not None:
                return records.again(known, "delegate", origin.id, 0)
            state = records.create(world, self.profile, given)
            state.kind, state.origin, state.attribution = "delegate", origin.id, origin.affinity
            return state.id

        return ReferenceConversation(self._world, self._write(unit), self.profile)

    # ------------------------------------------------------------------ compactions

    def open_attempt(
        self, trigger: Trigger = "soft", *, model: str | None = None, deadline: int | None = None,
        tokens_before: int | None = None,
    ) -> Attempt:  # fmt: skip
        return self._write(
            lambda w, s: compactions.open_attempt(w, s, trigger, model, deadline, tokens_before)
        )

    def commit_attempt(
        self, number: int, proposal: Proposal, *, segment: tuple[str, str] | None = None,
        summary_error: str | None = None, verdict: str | None = None,
    ) -> Compaction:  # fmt: skip
        compactions.check_counts(proposal)
        if not proposal.body or proposal.tokens_after >= proposal.tokens_before:
            raise InvalidCompaction("a compaction must have items, and shrink what it stands for")

        def unit(world: World, state: State) -> Compaction | None:
            for record in state.compactions:
                if record.attempt == number:
                    return record
            attempt, now = compactions.attempt_of(state, number), world.clock.now()
            if attempt.state != "open":
                raise Cancelled(number, attempt.state)
            if attempt.view != state.view:
                compactions.end_attempt(state, number, "overtaken", now)
                return None
            compactions.check(state, proposal)
            compactions.end_attempt(
                state,
                number,
                "committed",
                now,
                verdict=values.remark(world.limits, verdict),
                summary_error=values.remark(world.limits, summary_error),
                tokens_after=proposal.tokens_after,
            )
            made = compactions.compact(world, state, number, proposal, now)
            boundaries.add(
                world, state, "compaction", made.generation, attempt.trigger, now,
                to_id=None if segment is None else segment[1],
            )  # fmt: skip
            if segment is not None:
                records.claim(world, state, *segment, from_seq=state.head + 1, kind="segment")
            return made

        committed = self._write(unit)
        if committed is None:
            raise Overtaken(number)
        return committed

    def cancel_attempt(self, number: int) -> Attempt:
        return self._write(
            lambda w, s: compactions.end_attempt(s, number, "cancelled", w.clock.now())
        )

    def fail_attempt(
        self, number: int, verdict: str, *, summary_error: str | None = None
    ) -> Attempt:
        def unit(world: World, state: State) -> Attempt:
            return compactions.end_attempt(
                state, number, "failed", world.clock.now(),
                verdict=values.remark(world.limits, verdict),
                summary_error=values.remark(world.limits, summary_error),
            )  # fmt: skip

        return self._write(unit)

    def record_foreign_compaction(self, proposal: Proposal) -> Compaction:
        compactions.check_counts(proposal)

        def unit(world: World, state: State) -> Compaction:
            compactions.check(state, proposal)
            return compactions.compact(world, state, None, proposal, world.clock.now())

        return self._write(unit)

    def undo_compaction(self, generation: int, *, tokens: int | None = None) -> bool:
        compactions.check_tokens(tokens or 0)

        def unit(world: World, state: State) -> bool:
            if not 0 < generation <= len(state.compactions):
                raise NotFound("compaction", str(generation))
            record, now = state.compactions[generation - 1], world.clock.now()
            if record.undone_at is not None:
                return False
            state.compactions[generation - 1] = replace(record, undone_at=now, undone_tokens=tokens)
            log.moved(state, now)
            boundaries.add(world, state, "undo", generation, "undo", now)
            return True

        return self._write(unit)

    # ------------------------------------------------------------------ the row

    def set_title(self, title: str | None, origin: TitleOrigin = "user") -> bool:
        def unit(_: World, state: State) -> bool:
            if state.title_locked:
                return False
            state.titles.pop(origin, None)
            if title is not None:
                state.titles[origin] = values.title_of(title)
            return True

        return self._write(unit)

    def lock_title(self, title: str, locked: bool = True) -> bool:
        def unit(_: World, state: State) -> bool:
            if state.title_locked and locked:
                return False
            state.titles["user"] = values.title_of(title)
            state.title_locked = locked
            return True

        return self._write(unit)

    def pin(self, pinned: bool = True) -> None:
        self._set(pinned=pinned)

    def archive(self, archived: bool = True) -> None:
        self._set(archived=archived)

    def mark(self, *, automation: bool | None = None, read_only: bool | None = None) -> None:
        self._set(automation=automation, read_only=read_only)

    def set_workspace(
        self, workspace: Workspace | None = None, *, model: str | None = None
    ) -> None:
        self._set(workspace=workspace, model=model)

    def set_prompt(
        self, prompt: str | None = None, toolset: tuple[dict[str, Any], ...] | None = None
    ) -> None:
        self._set(prompt=prompt, toolset=toolset)

    def _set(self, **fields: Any) -> None:
        def unit(_: World, state: State) -> None:
            for name, value in fields.items():
                if value is not None:
                    setattr(state, name, value)

        self._write(unit)

    def end(self, reason: str = "closed") -> bool:
        def unit(world: World, state: State) -> bool:
            now = world.clock.now()
            log.interrupt(world, state, now, f"ended: {reason}")
            return records.end(state, reason, now)

        return self._write(unit)

    def reopen(self) -> bool:
        def unit(world: World, state: State) -> bool:
            if state.ended_at is None:
                return False
            state.ended_at = state.end_reason = None
            state.reopened_at = world.clock.now()
            return True

        return self._write(unit)

    def claim_alias(self, source: str, foreign_id: str, *, from_seq: int = 1) -> str:
        def unit(world: World, state: State) -> str:
            return records.claim(
                world, state, source, foreign_id, from_seq=from_seq, kind="foreign"
            )

        return self._write(unit)

    def set_todos(self, items: Sequence[Todo]) -> None:
        def unit(world: World, state: State) -> None:
            for todo in items:
                if todo.state not in ("pending", "active", "done", "dropped"):
                    raise InputError(f"{todo.state!r} is no state of a todo")
            limits = world.limits
            state.todos = [
                Todo(values.label(limits, "todo", todo.text) or "", todo.state) for todo in items
            ]

        self._write(unit)

    def set_goal(self, text: str) -> Goal:
        def unit(world: World, state: State) -> Goal:
            wanted = values.label(world.limits, "goal", text) or ""
            for at, goal in enumerate(state.goals):
                if goal.state == "active" and goal.text == wanted:
                    return goal
                if goal.state == "active":
                    state.goals[at] = replace(goal, state="cleared")
            goal = Goal(len(state.goals) + 1, wanted, "active", world.clock.now())
            state.goals.append(goal)
            return goal

        return self._write(unit)

    def close_goal(self, *, done: bool = True) -> bool:
        def unit(_: World, state: State) -> bool:
            for at, goal in enumerate(state.goals):
                if goal.state == "active":
                    state.goals[at] = replace(goal, state="done" if done else "cleared")
                    return True
            return False

        return self._write(unit)

    # ------------------------------------------------------------------ shared

    def _write(self, unit: Callable[[World, State], T]) -> T:
        return self._world.write(lambda world: unit(world, world.get(self.profile, self.id)))

    def named(self, drafts: Sequence[Draft]) -> list[Named]:
        """Checked drafts; for the turn's handle."""
        return values.named(self._world, drafts) if drafts else []

    def under(self, right: Right, unit: Callable[[World, State], T]) -> T:
        """Write under a right; for the turn's handle."""

        def fenced(world: World) -> T:
            state = world.states.get(self.id)
            if state is None or state.binned_at is not None:
                raise RightLost(self.id, right.fence)
            return unit(world, state)

        return self._world.write(fenced)
