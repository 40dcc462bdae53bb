"""What store/conversation.py is, for asyncio.

Generated from that by scripts/aio.py; a change belongs there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clew.context.chat import chat_context
from clew.domain.chat import ChatMessage, draft_of, drafts_of
from clew.domain.compactions import Attempt, Compaction, Proposal, Trigger
from clew.domain.conversations import NewConversation, TitleOrigin, Workspace
from clew.domain.cuts import CutOutcome
from clew.domain.messages import Appended, Draft, Message
from clew.domain.notes import Goal, Todo
from clew.domain.turns import CallPlan, CallResult, TurnBegun, TurnKnown, TurnQueued
from clew.errors import Overtaken
from clew.store import (
    aliases,
    approvals,
    attempts,
    branches,
    calls,
    compactions,
    conversations,
    cuts,
    edits,
    goals,
    inbox,
    presence,
    prompts,
    todos,
    turns,
)
from clew.store.aio.reader import AsyncConversationReader
from clew.store.aio.turn import AsyncTurn
from clew.store.backend import Transaction
from clew.store.conversation import T
from clew.store.conversations import Locked
from clew.store.holders import new_holder
from clew.store.rights import DEFAULT_TTL
from clew.store.spool.accepting import Opening, Plain
from clew.store.unit import Act


class AsyncConversation(AsyncConversationReader):
    """One conversation of a profile."""

    async def add(self, messages: Iterable[ChatMessage | Draft] | ChatMessage | Draft) -> Appended:
        """Append messages of your own loop: Chat Completions dicts, or drafts; no turn needed.

        A message's `id` (or `key`) makes adding it again harmless.
        """
        return await self.append(drafts_of(messages))

    async def context(self, model: str | None = None) -> list[dict[str, Any]]:
        """What to send to a model: Chat Completions messages, valid as they are.

        Thinking goes only to the `model` that made it; a call that was interrupted gets a
        synthetic result here, in the rendering only.
        """

        def render(tx: Transaction) -> list[dict[str, Any]]:
            inputs = self._reading.context_inputs(tx)
            return chat_context(inputs, lambda digest: self._reading.blob(tx, digest), model)

        return await self._db.read(render)

    async def pop(self, count: int = 1) -> list[Message]:
        """Take the newest `count` visible messages out of the log (a cut); gives them, oldest
        first. Fewer when there are fewer."""
        return await self._db.write(edits.Pop(self._db.kit, self._no, self.id, count))

    async def replace(self, messages: Iterable[ChatMessage | Draft]) -> Appended:
        """Make the visible log equal to `messages`: what they share with it stays, the rest is
        cut, the new ones follow. One transaction."""
        drafts = drafts_of(messages)
        return await self._db.write(edits.Replace(self._db.kit, self._no, self.id, drafts))

    async def append(self, drafts: Sequence[Draft], *, head: int | None = None) -> Appended:
        """Append a batch in one transaction, all or nothing.

        With `head`, only onto that head (Stale otherwise). While another's turn is open the
        messages wait in the inbox (`queued`). Keys or uids that are there: the first outcome.
        Where the store cannot take them (disk full, file replaced or damaged, server away, store
        closed) they are durable in the spool, and the outcome says why (`spooled`).
        Raises Ended, ReadOnly, KeyReused, BatchConflict, TooLarge.
        """
        accepting = Plain(
            self._db.kit, self.profile, self._no, self.id, drafts, head, self._known_head
        )
        appended = await self._db.accept(accepting)
        self._known_head = appended.head
        return appended

    _known_head: int = 0
    "Of the last append by this handle: what is in the spool is looked for above it."

    async def withdraw(self, number: int) -> bool:
        """Take a waiting message back; False when it was taken or withdrawn already."""
        return await self._locked(
            lambda tx, row: inbox.withdraw_one(tx, row, number),
            lambda tx, row: tx.row("inbox_state", no=row.no, number=number) == ("withdrawn",),
        )

    async def begin_turn(
        self,
        drafts: Sequence[Draft] = (),
        *,
        holder: str | None = None,
        ttl: int = DEFAULT_TTL,
        key: str | None = None,
        call: CallPlan | None = None,
        head: int | None = None,
    ) -> AsyncTurn | TurnQueued | TurnKnown:
        """Open a turn with these messages and all that wait, and take the right to run. `head`
        instead of messages: to answer what stands at the end of the log, which is there.

        TurnQueued: another holder's turn is open, the messages wait in its inbox. TurnKnown: the
        messages were in the log already. `ttl`: microseconds of silence after which others may
        take over; renew at a third of it. Stale: the head is another one. Spooled: the store
        cannot take the messages; they will wait in the inbox.
        """
        holder = holder or new_holder()
        accepting = Opening(
            self._db.kit,
            self.profile,
            self._no,
            self.id,
            drafts,
            holder,
            ttl,
            key,
            call,
            head,
            self._known_head,
        )
        begun = await self._db.accept(accepting)
        return self._handle(begun) if isinstance(begun, TurnBegun) else begun

    async def resume_turn(self, *, holder: str | None = None, ttl: int = DEFAULT_TTL) -> AsyncTurn:
        """Take over the open turn: one that waited for a person, or whose holder is gone.

        Raises NotFound (no open turn) or TurnOpen (its holder is alive)."""
        unit = turns.Resume(self._db.kit, self._no, self.id, holder or new_holder(), ttl)
        return self._handle(await self._db.write(unit))

    async def interrupt_turn(self, why: str | None = None) -> bool:
        """End the open turn whoever holds it; its next write is refused. False: none was open."""
        reason, now = (self._db.kit.remark(why), self._now())

        def interrupt(tx: Transaction, row: Locked) -> bool:
            turns.interrupt(tx, self._db.kit, row, now, reason)
            return row.turn is not None

        return await self._locked(interrupt, lambda tx, row: turns.ended_at(tx, row, now))

    def _handle(self, begun: TurnBegun) -> AsyncTurn:
        return AsyncTurn(self._db, self._no, begun, self.profile)

    async def answer_call(
        self, call_id: str, allow: bool, *, always: bool = False, by: str | None = None
    ) -> bool:
        """Answer for a person a call that the open turn waits for (`approvals`); `always`: allow
        its tool in this conversation from now on. False: it was answered already. NotFound."""
        now = self._now()
        return await self._locked(
            lambda tx, row: approvals.answer(
                tx, self._db.kit, row, call_id, allow, always, by, now
            ),
            lambda tx, row: approvals.was_answered(tx, row, call_id, now),
        )

    async def plan_call(self, plan: CallPlan, attempt: int | None = None) -> int:
        """Note a model call outside any turn (a title, a summary, a review); gives its number."""
        return await self._db.write(calls.Plan(self._db.kit, self._no, self.id, plan, attempt))

    async def finish_call(self, number: int, result: CallResult) -> None:
        """Store the result of a planned call; a second result changes nothing."""
        await self._locked(lambda tx, row: calls.finish(tx, self._db.kit, row, number, result))

    async def cut(
        self, uid: str, *, head: int | None = None, view: int | None = None, by: str | None = None
    ) -> CutOutcome:
        """Hide the message `uid` and all after it (rewind).

        Give the `head` and `view` you saw: Stale when the conversation changed since. Ends the
        open turn and withdraws what waits in the inbox; the outcome says so.
        """
        return await self._db.write(
            cuts.MakeCut(self._db.kit, self._no, self.id, uid, head, view, by)
        )

    async def undo_cut(
        self, number: int | None = None, *, head: int | None = None, view: int | None = None
    ) -> CutOutcome:
        """Undo the newest cut in force. CutOvertaken once messages follow it: then open its line
        with `branch(at_cut=...)`."""
        return await self._db.write(
            cuts.UndoCut(self._db.kit, self._no, self.id, number, head, view)
        )

    async def edit(
        self,
        uid: str,
        draft: Draft | ChatMessage,
        *,
        head: int | None = None,
        view: int | None = None,
        by: str | None = None,
    ) -> Appended:
        """Cut at a message and append another in its place, in one transaction.

        The new message's meta names the old one (`retry_of`). Give it a key to make a repeated
        edit harmless.
        """
        cut = cuts.MakeCut(self._db.kit, self._no, self.id, uid, head, view, by)
        unit = edits.Edit(self._db.kit, self._no, self.id, uid, draft_of(draft), cut)
        return await self._db.write(unit)

    async def retry(
        self, uid: str, *, key: str | None = None, head: int | None = None, view: int | None = None
    ) -> Appended:
        """Cut at a message and append the same content again (regenerate)."""
        message = await self.message(uid)
        draft = Draft(
            role=message.role,
            parts=message.parts,
            author=message.author,
            key=key,
            meta=message.meta,
        )
        return await self.edit(uid, draft, head=head, view=view)

    async def branch(
        self,
        uid: str | None = None,
        *,
        at_cut: int | None = None,
        head: int | None = None,
        new: NewConversation | None = None,
    ) -> AsyncConversation:
        """A new conversation that continues this one's numbers: from its head, from a message, or
        of the line that cut `at_cut` hides. Give `new.id` to make a repeat harmless."""
        new = new or NewConversation()
        unit = branches.Branch(
            self._db.kit, self._no, self.id, new, uid=uid, at_cut=at_cut, head=head
        )
        return AsyncConversation(self._db, await self._db.write(unit), unit.id, self.profile)

    async def delegate(self, new: NewConversation | None = None) -> AsyncConversation:
        """A sub-agent's conversation: empty, with this one as its origin."""
        unit = branches.Delegate(self._db.kit, self._no, self.id, new or NewConversation())
        return AsyncConversation(self._db, await self._db.write(unit), unit.id, self.profile)

    async def open_attempt(
        self,
        trigger: Trigger = "soft",
        *,
        model: str | None = None,
        deadline: int | None = None,
        tokens_before: int | None = None,
    ) -> Attempt:
        """Begin an attempt at a compaction; it remembers the view. Open attempts past their
        deadline become failed('abandoned'); `rivals` of what is returned are those still open."""
        unit = attempts.Open(
            self._db.kit, self._no, self.id, trigger, model, deadline, tokens_before
        )
        return await self._db.write(unit)

    async def commit_attempt(
        self,
        number: int,
        proposal: Proposal,
        *,
        segment: tuple[str, str] | None = None,
        summary_error: str | None = None,
        verdict: str | None = None,
    ) -> Compaction:
        """Commit an attempt's result; committing again gives the same compaction.

        `segment` (source, id) also names what follows by another id (rotation). `summary_error`
        and `verdict` stay with the attempt: what a summariser said that failed, where the result
        does without it. Raises Cancelled, Overtaken (the attempt is then `overtaken`),
        InvalidCompaction.
        """
        unit = compactions.Commit(
            self._db.kit, self._no, self.id, number, proposal, segment, verdict, summary_error
        )
        committed = (await self._db.write(unit)).compaction
        if committed is None:
            raise Overtaken(number)
        return committed

    async def cancel_attempt(self, number: int) -> Attempt:
        """Cancel an open attempt; Cancelled when it was not open (somebody was first)."""
        unit = attempts.Close(self._db.kit, self._no, self.id, number, "cancelled", None, None)
        return await self._db.write(unit)

    async def fail_attempt(
        self, number: int, verdict: str, *, summary_error: str | None = None
    ) -> Attempt:
        """End an open attempt as failed; `verdict` says why."""
        unit = attempts.Close(
            self._db.kit, self._no, self.id, number, "failed", verdict, summary_error
        )
        return await self._db.write(unit)

    async def record_foreign_compaction(self, proposal: Proposal) -> Compaction:
        """Store another tool's compaction as it was; its counts need not shrink."""
        unit = compactions.Commit(self._db.kit, self._no, self.id, None, proposal)
        committed = (await self._db.write(unit)).compaction
        assert committed is not None
        return committed

    async def undo_compaction(self, generation: int, *, tokens: int | None = None) -> bool:
        """Take a compaction out of effect; False when it was already. `tokens`: the size of the
        context without it, kept as `undone_tokens`."""
        return await self._db.write(
            compactions.UndoCompaction(self._db.kit, self._no, self.id, generation, tokens)
        )

    async def set_title(self, title: str | None, origin: TitleOrigin = "user") -> bool:
        """Set the title of one origin; shown is user, then llm, then derived. False: locked."""
        return await self._locked(
            lambda tx, row: conversations.set_title(tx, row, title, origin, self._now())
        )

    async def lock_title(self, title: str, locked: bool = True) -> bool:
        """Set the user's title and lock it (or unlock it): no writer may change a locked one."""
        return await self._locked(
            lambda tx, row: conversations.set_title(
                tx, row, title, "user", self._now(), lock_it=locked
            ),
            lambda _, row: bool(row.title_locked) == locked,
        )

    async def pin(self, pinned: bool = True) -> None:
        """Pinned conversations come first and are never pruned."""
        await self._flags(pinned=pinned)

    async def archive(self, archived: bool = True) -> None:
        """Archived conversations leave the list; everything else works."""
        await self._flags(archived=archived)

    async def mark(self, *, automation: bool | None = None, read_only: bool | None = None) -> None:
        """Mark as owned by an automation, or as taking no messages; None leaves a mark."""
        await self._flags(automation=automation, read_only=read_only)

    async def _flags(self, **flags: bool | None) -> None:
        await self._locked(lambda tx, row: conversations.set_flags(tx, row, self._now(), **flags))

    async def set_workspace(
        self, workspace: Workspace | None = None, *, model: str | None = None
    ) -> None:
        """Replace folder, repository and branch, and the model; None leaves them."""
        await self._locked(
            lambda tx, row: conversations.set_workspace(tx, self._db.kit, row, workspace, model)
        )

    async def set_prompt(
        self, prompt: str | None = None, toolset: prompts.ToolSchemas | None = None
    ) -> None:
        """Point at another system prompt or tool set (an explicit reload); None leaves one."""

        def reload(tx: Transaction, row: Locked) -> None:
            conversations.set_prompt(tx, row, *prompts.store(tx, self._db.kit, prompt, toolset))

        await self._locked(reload)

    async def end(self, reason: str = "closed") -> bool:
        """End the conversation; its open turn is interrupted. False when it had ended."""
        now = self._now()

        def end(tx: Transaction, row: Locked) -> bool:
            row = turns.interrupt(tx, self._db.kit, row, now, f"ended: {reason}")
            return conversations.end(tx, row, reason, now)

        return await self._locked(end, lambda _, row: row.ended_at == now)

    async def reopen(self) -> bool:
        """A person's undo of an end. False when it had not ended."""
        return await self._locked(
            lambda tx, row: conversations.reopen(tx, row, self._now()),
            lambda _, row: row.ended_at is None,
        )

    async def claim_alias(self, source: str, foreign_id: str, *, from_seq: int = 1) -> str:
        """Name this conversation by another tool's id: "claimed", or "ambiguous" when that id
        names another one already, or "deleted" when its import was deleted here."""
        return await self._locked(
            lambda tx, row: aliases.claim(
                tx, self._db.kit, row, source, foreign_id, from_seq=from_seq, kind="foreign"
            )
        )

    async def set_todos(self, items: Sequence[Todo]) -> None:
        """Make the todo list equal to `items`."""
        await self._locked(
            lambda tx, row: todos.replace_all(tx, self._db.kit, row.no, items, self._now())
        )

    async def set_goal(self, text: str) -> Goal:
        """Set the active goal; another one is cleared."""
        return await self._locked(
            lambda tx, row: goals.set_active(tx, self._db.kit, row.no, text, self._now())
        )

    async def close_goal(self, *, done: bool = True) -> bool:
        """Close the active goal as done or cleared; False when there is none."""
        state = "done" if done else "cleared"
        return await self._locked(
            lambda tx, row: goals.close(tx, row.no, state, self._now()),
            lambda tx, row: goals.active(tx, row.no) is None,
        )

    async def beat(self, owner: str, label: str | None = None) -> None:
        """A sign of life of somebody at work here."""
        await self._locked(
            lambda tx, row: presence.beat(tx, self._db.kit, row.no, owner, label, self._now())
        )

    async def leave(self, owner: str) -> None:
        """The end of that work."""
        await self._locked(lambda tx, row: presence.leave(tx, row.no, owner))

    def _now(self) -> int:
        return self._db.kit.clock.now()

    async def _locked(
        self,
        work: Callable[[Transaction, Locked], T],
        stored: Callable[[Transaction, Locked], bool] | None = None,
    ) -> T:
        """Run work under the conversation's lock. Work that would answer otherwise when it runs
        again tells by `stored` whether what it did is there."""

        def run(tx: Transaction) -> T:
            return work(tx, conversations.lock(tx, self._no, self.id))

        if stored is None:
            return await self._db.write(run)
        return await self._db.write(
            Act(run, lambda tx: stored(tx, conversations.lock(tx, self._no, self.id)))
        )
