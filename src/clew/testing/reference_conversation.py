"""The handles of one conversation of the reference store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from clew.context.chat import chat_context
from clew.domain.chat import ChatMessage, draft_of
from clew.domain.compactions import (
    Attempt,
    AttemptState,
    BodyItem,
    Compaction,
    Proposal,
    Ref,
    Stub,
    Trigger,
)
from clew.domain.conversations import (
    ConversationInfo,
    NewConversation,
    Page,
    TitleOrigin,
    Workspace,
    shown_title,
)
from clew.domain.cuts import Cut, CutOutcome, hidden
from clew.domain.messages import Appended, Draft, Message, Waiting
from clew.domain.notes import Goal, Todo
from clew.domain.turns import (
    CallPlan,
    CallResult,
    Delivered,
    Delivery,
    ModelCall,
    Recorded,
    Right,
    Turn,
    TurnEnded,
    TurnKnown,
    TurnQueued,
    TurnState,
)
from clew.errors import (
    Cancelled,
    CutOvertaken,
    InputError,
    InvalidCompaction,
    InvalidCursor,
    NotFound,
    Overtaken,
    RightLost,
    Stale,
    TurnOpen,
)
from clew.store.aliases import Alias
from clew.store.reading import ContextInputs
from clew.testing import reference_rules as rules
from clew.testing.reference_state import AliasRow, Named, State, World

T = TypeVar("T")
TTL = 60_000_000


class ReferenceConversation:
    """Same methods, values and errors as `clew.Conversation`."""

    def __init__(
        self, world: World, id: str, profile: str, frozen: tuple[int, tuple[Cut, ...]] | None = None
    ) -> None:
        self._world, self.id, self.profile, self._frozen = world, id, profile, frozen

    def __repr__(self) -> str:
        return f"ReferenceConversation({self.id!r}, profile={self.profile!r})"

    # ------------------------------------------------------------------ reading

    @property
    def _now_here(self) -> State:
        """The state to read; a snapshot sees its own head and cuts."""
        state = self._world.get(self.profile, self.id)
        if self._frozen is not None:
            head, cuts = self._frozen
            state = rules.at_head(state, head, cuts)
        return state

    def info(self) -> ConversationInfo:
        return info_of(self._world, self._world.get(self.profile, self.id))

    def log(
        self, *, limit: int = 100, cursor: str | None = None,
        order: Literal["oldest", "newest"] = "oldest", hidden: bool = False,
    ) -> Page[Message]:  # fmt: skip
        self._world.limits.check_page(limit)
        state = self._now_here
        rows = list(state.messages) if hidden else rules.visible(state)
        if order == "newest":
            rows.reverse()
        if cursor is not None:
            if cursor[:1] != order[0] or not cursor[1:].isdecimal():
                raise InvalidCursor(cursor)
            after = int(cursor[1:])
            rows = [m for m in rows if (m.seq > after if order == "oldest" else m.seq < after)]
        following = f"{order[0]}{rows[limit - 1].seq}" if len(rows) > limit else None
        rows = rows[:limit]
        return Page(tuple(rows if hidden else rules.shown(state, rows)), following)

    def messages(self, *, hidden: bool = False) -> Iterator[Message]:
        state = self._now_here
        yield from state.messages if hidden else rules.shown(state, rules.visible(state))

    def message(self, name: str | int) -> Message:
        for message in reversed(self._now_here.messages):
            if name in (message.seq, message.key):
                return message
        for message in reversed(self._now_here.messages):
            if isinstance(name, str) and name.replace("-", "").lower() == message.uid:
                return message
        raise NotFound("message", str(name))

    def blob(self, digest: str) -> bytes:
        try:
            return self._now_here.blobs[digest]
        except KeyError:
            raise NotFound("blob", digest) from None

    def context_inputs(self) -> ContextInputs:
        state = self._now_here
        compaction = rules.effective(state, state.cuts, state.head)
        covered: list[tuple[BodyItem, tuple[Message, ...]]] = []
        first = 1
        if compaction is not None:
            first = compaction.covers_to + 1
            for item in compaction.body:
                match item:
                    case Ref(first=start, last=end):
                        covered.append((item, tuple(rules.visible(state, start, end))))
                    case Stub(seq=seq):
                        covered.append((item, (state.messages[seq - 1],)))
                    case _:
                        covered.append((item, ()))
        return ContextInputs(
            conversation=self.info(), prompt=state.prompt, toolset=state.toolset,
            compaction=compaction, covered=tuple(covered),
            messages=tuple(rules.shown(state, rules.visible(state, first))),
            todos=tuple(state.todos), goal=self.goal(),
        )  # fmt: skip

    def context(self, model: str | None = None) -> list[dict[str, Any]]:
        return chat_context(self.context_inputs(), self.blob, model)

    def snapshot(self, at: int | None = None) -> ReferenceConversation:
        state = self._now_here
        if at is not None and not 0 <= at <= state.head:
            raise InputError(f"seq {at} is not within 0..{state.head}")
        frozen = (state.head if at is None else at, tuple(state.cuts))
        return ReferenceConversation(self._world, self.id, self.profile, frozen)

    def cuts(self) -> tuple[Cut, ...]:
        return tuple(self._now_here.cuts)

    def compactions(self) -> tuple[Compaction, ...]:
        return tuple(reversed(self._now_here.compactions))

    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self._now_here.attempts)

    def turns(self, limit: int = 100, before: int = 1 << 62) -> tuple[Turn, ...]:
        found = [turn for turn in reversed(self._now_here.turns) if turn.number < before]
        return tuple(found[:limit])

    def calls(self) -> tuple[ModelCall, ...]:
        return tuple(self._now_here.calls)

    def deliveries(self, turn: int) -> tuple[Delivered, ...]:
        return tuple(row for number, row in self._now_here.deliveries if number == turn)

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
        states = [s for s in self._world.states.values() if s.origin == self.id]
        return tuple(info_of(self._world, state) for state in reversed(states))[:limit]

    # ------------------------------------------------------------------ appending

    def add(self, messages: Iterable[ChatMessage | Draft] | ChatMessage | Draft) -> Appended:
        if isinstance(messages, Draft | Mapping):
            return self.append([draft_of(messages)])
        return self.append([draft_of(message) for message in messages])

    def append(self, drafts: Sequence[Draft], *, head: int | None = None) -> Appended:
        wanted = rules.named(self._world, drafts)
        return self._write(lambda w, s: rules.append(w, s, wanted, head, w.clock.now()))

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

        def unit(world: World, state: State) -> list[Message]:
            found = rules.visible(state)[-count:]
            if found:
                rules.cut_from(state, found[0].seq, "pop", world.clock.now())
            return found

        return self._write(unit)

    def replace(self, messages: Iterable[ChatMessage | Draft]) -> Appended:
        drafts = [draft_of(message) for message in messages]
        wanted = rules.named(self._world, drafts) if drafts else []

        def unit(world: World, state: State) -> Appended:
            there = rules.visible(state)
            shared = 0
            while shared < min(len(there), len(wanted)) and _alike(there[shared], wanted[shared]):
                shared += 1
            if shared < len(there):
                now = world.clock.now()
                rules.cut_from(state, there[shared].seq, "replace", now)
            rest = [rules.renamed(world, state, item) for item in wanted[shared:]]
            kept = there[:shared]
            seqs, uids = tuple(m.seq for m in kept), tuple(m.uid for m in kept)
            if not rest:
                return Appended(seqs, state.head, 0, uids)
            done = rules.append(world, state, rest, None, world.clock.now())
            return replace(done, seqs=seqs + done.seqs, uids=uids + done.uids)

        return self._write(unit)

    # ------------------------------------------------------------------ turns

    def begin_turn(
        self, drafts: Sequence[Draft] = (), *, holder: str | None = None, ttl: int = TTL,
        key: str | None = None, call: CallPlan | None = None,
    ) -> ReferenceTurn | TurnQueued | TurnKnown:  # fmt: skip
        if ttl <= 0:
            raise InputError(f"ttl is {ttl}; give the microseconds a silent holder keeps the right")
        wanted = rules.named(self._world, drafts) if drafts else []
        name = None if key is None else rules.key(self._world.limits, "turn key", key)

        def unit(world: World, state: State) -> ReferenceTurn | TurnQueued | TurnKnown:
            now, found = world.clock.now(), rules.lookup(state, wanted)
            waits = state.waiting and any(f is not None and f.seq is None for f in found)
            if wanted and all(found) and not waits:
                return TurnKnown(
                    turn=_turn_of(state, found), appended=rules.outcome(state, wanted, found, 0)
                )
            fresh = rules.fresh_of(wanted, found)
            open_turn = state.open_turn
            if open_turn is not None and rules.is_busy(state, now):
                if not wanted:
                    raise TurnOpen(state.id, open_turn.number, state.holder)
                queued = rules.put(world, state, wanted, found, fresh)
                return TurnQueued(appended=queued, turn=open_turn.number)
            rules.interrupt(state, now, "its holder was gone")
            rules.open_for_append(state, now)
            if not fresh and not state.waiting:
                raise InputError("a turn begins with a message; none was given and none waits")
            number, first = len(state.turns) + 1, state.head + 1
            right = _take_right(state, holder or f"reference-{world.ids.uid().hex()}", ttl, now)
            turn = Turn(
                number=number, uid=world.ids.uid().hex(), state="running", key=name,
                first_seq=first, started_at=now,
            )  # fmt: skip
            state.turns.append(turn)
            rules.take(state, number)
            rules.check_asked(state, fresh)
            rules.insert(state, fresh, number)
            planned = None if call is None else rules.plan_call(world, state, call, now, number)
            added = tuple(range(first, state.head + 1))
            uids = rules.outcome(state, wanted, found, 0).uids
            appended = Appended(added, state.head, len(added), uids)
            return ReferenceTurn(self, turn, right, appended, planned)

        return self._write(unit)

    def resume_turn(self, *, holder: str | None = None, ttl: int = TTL) -> ReferenceTurn:
        def unit(world: World, state: State) -> ReferenceTurn:
            now, turn = world.clock.now(), state.open_turn
            if turn is None:
                raise NotFound("open turn", self.id)
            if not rules.is_free(state, now) and state.holder != holder:
                raise TurnOpen(self.id, turn.number, state.holder)
            right = _take_right(state, holder or f"reference-{world.ids.uid().hex()}", ttl, now)
            turn = rules.set_turn(state, turn.number, state="running")
            appended = Appended(tuple(range(turn.first_seq, state.head + 1)), state.head, 0)
            return ReferenceTurn(self, turn, right, appended, None)

        return self._write(unit)

    def interrupt_turn(self, why: str | None = None) -> bool:
        def unit(world: World, state: State) -> bool:
            reason = rules.label(world.limits, "why", why)
            return rules.interrupt(state, world.clock.now(), reason) is not None

        return self._write(unit)

    def plan_call(self, plan: CallPlan, attempt: int | None = None) -> int:
        return self._write(lambda w, s: rules.plan_call(w, s, plan, w.clock.now()))

    def finish_call(self, number: int, result: CallResult) -> None:
        self._write(lambda w, s: rules.finish_call(w, s, number, result))

    # ------------------------------------------------------------------ cuts and branches

    def cut(
        self, uid: str, *, head: int | None = None, view: int | None = None,
        by: str | None = None,
    ) -> CutOutcome:  # fmt: skip
        return self._write(lambda w, s: _cut(w, s, uid, head, view, by))

    def undo_cut(
        self, number: int | None = None, *, head: int | None = None, view: int | None = None
    ) -> CutOutcome:
        def unit(world: World, state: State) -> CutOutcome:
            rules.check_expected(state, head, view)
            in_force = [cut for cut in state.cuts if cut.in_force]
            if not in_force or number not in (None, *(cut.number for cut in in_force)):
                raise NotFound("cut in force", str(number))
            newest = in_force[-1]
            if number not in (None, newest.number) or newest.to_seq != state.head:
                raise CutOvertaken(number or newest.number)
            now = world.clock.now()
            rules.open_for_append(state, now)
            state.cuts = [
                replace(cut, undone_at=now) if cut is newest else cut for cut in state.cuts
            ]
            rules.moved(state, now)
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
        wanted = rules.named(self._world, [new])

        def unit(world: World, state: State) -> Appended:
            if new.key is not None or new.uid is not None:
                found = rules.lookup(state, wanted)
                if all(found):
                    return rules.outcome(state, wanted, found, 0)
            _cut(world, state, uid, head, view, by)
            return rules.append(world, state, wanted, None, world.clock.now())

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
            given = new or NewConversation(source=origin.source)
            if (known := _known_id(world, self.profile, given.id)) is not None:
                return known
            if head is not None and head != origin.head:
                raise Stale("head", head, origin.head)
            base, below = _point(origin, uid, at_cut)
            cuts = [
                replace(cut, to_seq=min(cut.to_seq, base))
                for cut in origin.cuts
                if cut.in_force and cut.from_seq <= base and (below is None or cut.number < below)
            ]
            state = create(world, self.profile, given)
            state.kind, state.base = ("branch", base) if base else ("root", 0)
            state.origin = origin.id if base else None
            state.messages = [m.inherited() for m in origin.messages[:base]]
            state.cuts, state.blobs = cuts, dict(origin.blobs)
            inherited = rules.effective(origin, cuts, base)
            if inherited is not None:
                at = world.clock.now()
                record = replace(inherited, generation=1, attempt=None, created_at=at)
                state.compactions = [record]
            _inherit(state, origin, given)
            return state.id

        return ReferenceConversation(self._world, self._write(unit), self.profile)

    def delegate(self, new: NewConversation | None = None) -> ReferenceConversation:
        def unit(world: World, origin: State) -> str:
            given = new or NewConversation(source=origin.source)
            if (known := _known_id(world, self.profile, given.id)) is not None:
                return known
            state = create(world, self.profile, given)
            state.kind, state.origin, state.attribution = "delegate", origin.id, origin.affinity
            return state.id

        return ReferenceConversation(self._world, self._write(unit), self.profile)

    # ------------------------------------------------------------------ compactions

    def open_attempt(
        self, trigger: Trigger = "soft", *, model: str | None = None, deadline: int | None = None,
        tokens_before: int | None = None,
    ) -> Attempt:  # fmt: skip
        def unit(world: World, state: State) -> Attempt:
            now = world.clock.now()
            for attempt in state.attempts:
                late = attempt.deadline is not None and attempt.deadline < now
                if attempt.state == "open" and late:
                    _end_attempt(state, attempt.number, "failed", now, verdict="abandoned")
            attempt = Attempt(
                number=len(state.attempts) + 1, view=state.view,
                base_generation=len(state.compactions), state="open", trigger=trigger,
                started_at=now, model=rules.label(world.limits, "model", model),
                deadline=deadline, tokens_before=tokens_before,
            )  # fmt: skip
            state.attempts.append(attempt)
            return attempt

        return self._write(unit)

    def commit_attempt(
        self, number: int, proposal: Proposal, *, segment: tuple[str, str] | None = None
    ) -> Compaction:
        if proposal.tokens_after >= proposal.tokens_before:
            raise InvalidCompaction("a compaction must shrink what it stands for")

        def unit(world: World, state: State) -> Compaction | None:
            for record in state.compactions:
                if record.attempt == number:
                    return record
            attempt, now = _attempt(state, number), world.clock.now()
            if attempt.state != "open":
                raise Cancelled(number, attempt.state)
            if attempt.view != state.view:
                _end_attempt(state, number, "overtaken", now)
                return None
            rules.check(state, proposal)
            _end_attempt(state, number, "committed", now, tokens_after=proposal.tokens_after)
            if segment is not None:
                claim(world, state, *segment, from_seq=state.head + 1, kind="segment")
            return rules.compact(world, state, number, proposal, now)

        committed = self._write(unit)
        if committed is None:
            raise Overtaken(number)
        return committed

    def cancel_attempt(self, number: int) -> Attempt:
        return self._write(
            lambda w, s: _end_attempt(s, number, "cancelled", w.clock.now())
        )

    def fail_attempt(
        self, number: int, verdict: str, *, summary_error: str | None = None
    ) -> Attempt:
        def unit(world: World, state: State) -> Attempt:
            return _end_attempt(
                state, number, "failed", world.clock.now(),
                verdict=rules.label(world.limits, "verdict", verdict),
                summary_error=rules.label(world.limits, "summary error", summary_error),
            )  # fmt: skip

        return self._write(unit)

    def record_foreign_compaction(self, proposal: Proposal) -> Compaction:
        def unit(world: World, state: State) -> Compaction:
            rules.check(state, proposal)
            return rules.compact(world, state, None, proposal, world.clock.now())

        return self._write(unit)

    def undo_compaction(self, generation: int) -> bool:
        def unit(world: World, state: State) -> bool:
            if not 0 < generation <= len(state.compactions):
                raise NotFound("compaction", str(generation))
            record, now = state.compactions[generation - 1], world.clock.now()
            if record.undone_at is not None:
                return False
            state.compactions[generation - 1] = replace(record, undone_at=now)
            rules.moved(state, now)
            return True

        return self._write(unit)

    # ------------------------------------------------------------------ the row

    def set_title(self, title: str | None, origin: TitleOrigin = "user") -> bool:
        def unit(_: World, state: State) -> bool:
            if state.title_locked:
                return False
            state.titles.pop(origin, None)
            if title is not None:
                state.titles[origin] = rules.title_of(title)
            return True

        return self._write(unit)

    def lock_title(self, title: str, locked: bool = True) -> bool:
        def unit(_: World, state: State) -> bool:
            if state.title_locked and locked:
                return False
            state.titles["user"] = rules.title_of(title)
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
            rules.interrupt(state, now, f"ended: {reason}")
            return end(state, reason, now)

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
            return claim(world, state, source, foreign_id, from_seq=from_seq, kind="foreign")

        return self._write(unit)

    def set_todos(self, items: Sequence[Todo]) -> None:
        def unit(world: World, state: State) -> None:
            for todo in items:
                if todo.state not in ("pending", "active", "done", "dropped"):
                    raise InputError(f"{todo.state!r} is no state of a todo")
            limits = world.limits
            state.todos = [
                Todo(rules.label(limits, "todo", todo.text) or "", todo.state) for todo in items
            ]

        self._write(unit)

    def set_goal(self, text: str) -> Goal:
        def unit(world: World, state: State) -> Goal:
            wanted = rules.label(world.limits, "goal", text) or ""
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
        if self._frozen is not None:
            raise AttributeError("a snapshot takes no writes")
        return self._world.write(lambda world: unit(world, world.get(self.profile, self.id)))

    def named(self, drafts: Sequence[Draft]) -> list[Named]:
        """Checked drafts; for the turn's handle."""
        return rules.named(self._world, drafts) if drafts else []

    def under(self, right: Right, unit: Callable[[World, State], T]) -> T:
        """Write under a right; for the turn's handle."""

        def fenced(world: World) -> T:
            state = world.states.get(self.id)
            if state is None:
                raise RightLost(self.id, right.fence)
            return unit(world, state)

        return self._world.write(fenced)


class ReferenceTurn:
    """Same methods, values and errors as `clew.TurnHandle`."""

    def __init__(
        self, conversation: ReferenceConversation, turn: Turn, right: Right, appended: Appended,
        call: int | None,
    ) -> None:  # fmt: skip
        self._conversation = conversation
        self.turn, self.right, self.appended, self.call = turn, right, appended, call

    def record(
        self, drafts: Sequence[Draft] = (), *, call: int | None = None,
        result: CallResult | None = None, next_call: CallPlan | None = None,
        take_inbox: bool = False,
    ) -> Recorded:  # fmt: skip
        wanted = self._conversation.named(drafts)

        def unit(world: World, state: State) -> Recorded:
            return self._step(world, state, wanted, call, result, next_call, take_inbox)

        return self._conversation.under(self.right, unit)

    def finish(
        self, drafts: Sequence[Draft] = (), *, call: int | None = None,
        result: CallResult | None = None, deliveries: Sequence[Delivery] = (),
        state: TurnState = "done", error: str | None = None,
    ) -> TurnEnded:  # fmt: skip
        how, wanted = state, self._conversation.named(drafts)

        def unit(world: World, state: State) -> TurnEnded:
            self._step(world, state, wanted, call, result, None, False)
            if how == "waiting":
                rules.set_turn(state, self.turn.number, state="waiting")
                state.holder = None
            else:
                for delivery in deliveries:
                    row = Delivered(
                        number=len(state.deliveries) + 1, route=delivery.route, attempts=0,
                        payload=rules.plain_json(world.limits, "payload", delivery.payload),
                        state="pending",
                    )  # fmt: skip
                    state.deliveries.append((self.turn.number, row))
                reason = rules.label(world.limits, "turn error", error)
                rules.close_turn(state, how, world.clock.now(), reason)
            waiting = len(state.waiting)
            return TurnEnded(
                number=self.turn.number, state=how, waiting=waiting, head=state.head
            )

        return self._conversation.under(self.right, unit)

    def wait(self, drafts: Sequence[Draft] = ()) -> TurnEnded:
        return self.finish(drafts, state="waiting")

    def save_partial(self, call: int, text: str) -> None:
        def unit(world: World, state: State) -> None:
            rules.held(state, self.right.fence)
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
        rules.held(state, self.right.fence, self.turn.number)
        number, now = self.turn.number, world.clock.now()
        found = rules.lookup(state, wanted)
        fresh = rules.fresh_of(wanted, found)
        rules.check_asked(state, fresh)
        added = rules.insert(state, fresh, number)
        if call is not None and result is not None:
            rules.finish_call(world, state, call, result)
        taken: tuple[int, ...] = ()
        if take_inbox and not rules.open_calls(state, number):
            taken = rules.take(state, number)
        planned = None
        if next_call is not None:
            planned = rules.plan_call(world, state, next_call, now, number)
        state.held_at = now
        appended = rules.outcome(state, wanted, found, len(fresh), added)
        appended = replace(appended, numbers=())
        return Recorded(appended=appended, taken=taken, call=planned)


# ------------------------------------------------------------------ what handles share


def create(world: World, profile: str, new: NewConversation) -> State:
    """A new conversation in the world."""
    now = world.clock.now() if new.created_at is None else new.created_at
    limits, place = world.limits, new.workspace
    id = new.id or world.ids.conversation()
    if id in world.states:
        raise NotFound("conversation", id)
    state = State(
        id=rules.key(limits, "conversation id", id), profile=profile,
        source=rules.key(limits, "source", new.source), kind="root", origin=None, base=0,
        affinity=world.ids.uid().hex(), attribution=None, created_at=now, active_at=now,
        imported_at=new.imported_at,
        workspace=Workspace(
            rules.label(limits, "cwd", place.cwd),
            rules.label(limits, "git_root", place.git_root),
            rules.label(limits, "git_branch", place.git_branch),
        ),
        model=rules.label(limits, "model", new.model), prompt=new.prompt, toolset=new.toolset,
        meta=rules.plain_json(limits, "meta", new.meta), archived=new.archived,
        automation=new.automation, read_only=new.read_only,
    )  # fmt: skip
    if new.title is not None:
        state.titles["user"] = rules.title_of(new.title)
    world.states[id] = state
    return state


def info_of(world: World, state: State) -> ConversationInfo:
    """The facts of a conversation."""
    titles = state.titles
    title, origin = shown_title(titles.get("user"), titles.get("llm"), titles.get("derived"))
    turn = state.open_turn
    return ConversationInfo(
        id=state.id, profile=state.profile, kind=state.kind, source=state.source,
        origin=state.origin, base=state.base, head=state.head, view=state.view,
        generation=len(state.compactions), fence=state.fence,
        turn=None if turn is None else turn.number, title=title, title_origin=origin,
        title_locked=state.title_locked, preview=rules.preview(state),
        message_count=rules.message_count(state), waiting=len(state.waiting),
        cwd=state.workspace.cwd, git_root=state.workspace.git_root,
        git_branch=state.workspace.git_branch, model=state.model, affinity=state.affinity,
        attribution=state.attribution, pinned=state.pinned, archived=state.archived,
        automation=state.automation, read_only=state.read_only, created_at=state.created_at,
        active_at=state.active_at, imported_at=state.imported_at, ended_at=state.ended_at,
        end_reason=state.end_reason, reopened_at=state.reopened_at, meta=state.meta,
        prompt_hash=_digest(state.prompt), toolset_hash=_digest(state.toolset),
    )  # fmt: skip


def _digest(value: Any) -> str | None:
    text = json.dumps(value, separators=(",", ":"))
    return None if value is None else hashlib.sha256(text.encode()).hexdigest()


def end(state: State, reason: str, now: int) -> bool:
    """The first end stays."""
    if state.ended_at is not None:
        return False
    if reason not in rules.BOUNDARIES | rules.ACCIDENTS:
        raise InputError(f"unknown end reason {reason!r}")
    state.ended_at, state.end_reason = now, reason
    return True


def claim(
    world: World, state: State, source: str, foreign_id: str, *, from_seq: int,
    kind: Literal["segment", "foreign"],
) -> str:  # fmt: skip
    """The first claim of an id wins; a later one is kept as ambiguous."""
    source = rules.key(world.limits, "alias source", source)
    foreign_id = rules.key(world.limits, "alias", foreign_id)
    rows = [
        row for row in world.aliases
        if (row.profile, row.source, row.foreign_id) == (state.profile, source, foreign_id)
    ]  # fmt: skip
    for row in rows:
        if row.conversation == state.id:
            return row.state
    taken = any(row.state == "claimed" for row in rows)
    row = AliasRow(
        profile=state.profile, source=source, foreign_id=foreign_id, conversation=state.id,
        from_seq=from_seq, kind=kind, state="ambiguous" if taken else "claimed",
    )  # fmt: skip
    world.aliases.append(row)
    return row.state


def _cut(
    world: World, state: State, uid: str, head: int | None, view: int | None, by: str | None
) -> CutOutcome:
    rules.check_expected(state, head, view)
    seq = rules.seq_of(state, uid)
    return rules.cut_from(state, seq, rules.label(world.limits, "by", by), world.clock.now())


def _point(origin: State, uid: str | None, at_cut: int | None) -> tuple[int, int | None]:
    """The last message a branch inherits, and the cut whose line it is."""
    if at_cut is not None:
        for cut in origin.cuts:
            if cut.number == at_cut:
                return cut.to_seq, cut.number
        raise NotFound("cut", str(at_cut))
    if uid is None:
        return origin.head, None
    seq = rules.seq_of(origin, uid)
    if hidden(origin.cuts, seq):
        raise InputError(f"the message at seq {seq} is hidden by a cut; open its line with at_cut")
    return seq, None


def _inherit(state: State, origin: State, given: NewConversation) -> None:
    """Records that a branch copies: never a binding, a goal or an open turn."""
    place, theirs = given.workspace, origin.workspace
    state.workspace = Workspace(
        place.cwd or theirs.cwd,
        place.git_root or theirs.git_root,
        place.git_branch or theirs.git_branch,
    )
    state.model = given.model or origin.model
    state.prompt = origin.prompt if given.prompt is None else given.prompt
    state.toolset = origin.toolset if given.toolset is None else given.toolset
    state.todos = [todo for todo in origin.todos if todo.state in ("pending", "active")]
    titles = origin.titles
    title, _ = shown_title(titles.get("user"), titles.get("llm"), titles.get("derived"))
    if title is not None:
        state.titles["derived"] = title


def _known_id(world: World, profile: str, id: str | None) -> str | None:
    """The id of a conversation that was made before, by the same call."""
    state = None if id is None else world.states.get(id)
    return None if state is None or state.profile != profile else state.id


def _alike(message: Message, item: Named) -> bool:
    """Whether a message says what a draft says."""
    draft = item.draft
    chat = (message.meta or {}).get("chat"), (draft.meta or {}).get("chat")
    return chat[0] == chat[1] and (message.role, message.parts, message.author) == (
        draft.role, draft.parts, draft.author
    )  # fmt: skip


def _take_right(state: State, holder: str, ttl: int, now: int) -> Right:
    state.fence += 1
    state.holder, state.held_at, state.held_ttl = holder, now, ttl
    return Right(state.id, state.fence, holder, now, ttl)


def _turn_of(state: State, found: Sequence[rules.Found | None]) -> Turn | None:
    """The turn that took messages which are there already."""
    seqs = [f.seq for f in found if f is not None and f.seq is not None]
    number = state.messages[seqs[-1] - 1].turn if seqs else None
    return None if number is None else state.turns[number - 1]


def _attempt(state: State, number: int) -> Attempt:
    if not 0 < number <= len(state.attempts):
        raise NotFound("attempt", str(number))
    return state.attempts[number - 1]


def _end_attempt(
    state: State, number: int, how: AttemptState, now: int, verdict: str | None = None,
    summary_error: str | None = None, tokens_after: int | None = None,
) -> Attempt:  # fmt: skip
    attempt = _attempt(state, number)
    if attempt.state != "open":
        raise Cancelled(number, attempt.state)
    attempt = replace(
        attempt, state=how, ended_at=now, verdict=verdict, summary_error=summary_error,
        tokens_after=tokens_after,
    )  # fmt: skip
    state.attempts[number - 1] = attempt
    return attempt
