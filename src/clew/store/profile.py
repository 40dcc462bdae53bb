"""The handle of a profile: one bot's or person's namespace. Nothing of another one is visible.

There is no default profile in the library: a forgotten argument is an error, not another person's
conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from clew.clock import Clock
from clew.domain.boundaries import (
    BoundaryHandler,
    DeliveryReport,
    PendingBoundary,
    Subscriber,
)
from clew.domain.changes import Change, Mark
from clew.domain.conversations import ConversationSummary, ListFilter, NewConversation, Page
from clew.domain.erasure import Erased, ErasurePlan
from clew.domain.messages import Draft
from clew.domain.retention import Binned, Item, Policy, Pruned
from clew.domain.search import SearchPage, SearchQuery
from clew.domain.turns import Delivered, DeliveryState, ModelUsage, UsageBy, UsageRow
from clew.errors import InputError
from clew.store import (
    aliases,
    bindings,
    boundaries,
    calls,
    conversations,
    deletion,
    erasure_run,
    follow,
    listing,
    outbox,
    retention,
)
from clew.store.backend import Transaction
from clew.store.bin import Bin, Unbin, contents
from clew.store.bindings import Bind, Received, Reset, ResetOutcome
from clew.store.conversation import Conversation
from clew.store.database import Database
from clew.store.importing import Importing
from clew.store.search import Search
from clew.store.spool.accepting import Incoming

if TYPE_CHECKING:
    from clew.store.transfer import Transfer

POLL = 0.25
"""Seconds between two looks of a follower, at most; a look costs little while nothing happens."""


class Stats(Struct, frozen=True):
    """Counts of one profile."""

    conversations: int
    messages: int
    archived: int
    pinned: int
    ended: int
    open_turns: int
    waiting: int
    sources: tuple[tuple[str, int, int], ...]
    """(source, conversations, messages)"""


class Profile:
    """All that is done inside one profile."""

    def __init__(self, db: Database, search: Search, name: str) -> None:
        self._db, self._search = db, search
        self.name = db.kit.key("profile", name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def clock(self) -> Clock:
        """The clock that the store was opened with."""
        return self._db.kit.clock

    # ------------------------------------------------------------------ finding one

    def create(self, new: NewConversation | None = None, **fields: Any) -> Conversation:
        """A new conversation. Fields are those of NewConversation. With an `id` that exists in
        this profile, that one: creating again is harmless."""
        new = NewConversation(**fields) if new is None else replace(new, **fields)
        id = new.id or self._db.kit.ids.conversation()
        no = self._db.write(
            lambda tx: conversations.create(tx, self._db.kit, self.name, new, id=id)
        )
        return Conversation(self._db, no, id, self.name)

    def open(self, id: str) -> Conversation:
        """The conversation of an exact id. NotFound."""
        no = self._db.read(lambda tx: conversations.number_of(tx, self.name, id))
        return Conversation(self._db, no, id, self.name)

    def resolve(self, text: str, *, source: str | None = None) -> Conversation:
        """The conversation that a person names: id, alias, or unique prefix of either.

        NotFound, or Ambiguous with at most 20 candidates."""

        def find(tx: Transaction) -> tuple[int, str]:
            id = aliases.resolve(tx, self.name, text, source)
            return conversations.number_of(tx, self.name, id), id

        no, id = self._db.read(find)
        return Conversation(self._db, no, id, self.name)

    # ------------------------------------------------------------------ by an outside key

    def conversation(
        self, key: str, *, source: str = "api", new: NewConversation | None = None
    ) -> Conversation:
        """The conversation of your own stable key: found, or made on first use.

        Two callers with one new key get the same conversation. One that ended at a boundary is
        followed by a new one.
        """
        place = bindings.place_of(self._db.kit, self.name, source, key)
        found = self._db.read(lambda tx: bindings.find_live(tx, place))
        if found is not None:
            return Conversation(self._db, *found, self.name)
        bound = self._db.write(Bind(self._db.kit, place, new or NewConversation(source=source)))
        return self.open(bound.conversation)

    def bound(self, key: str, *, source: str = "api") -> Conversation | None:
        """The conversation a key is bound to, if any."""
        place = bindings.place_of(self._db.kit, self.name, source, key)

        def find(tx: Transaction) -> tuple[int, str] | None:
            id = bindings.find(tx, place)
            return None if id is None else (conversations.number_of(tx, self.name, id), id)

        found = self._db.read(find)
        return None if found is None else Conversation(self._db, *found, self.name)

    def reset(
        self, key: str, *, source: str = "api", reason: str = "reset",
        new: NewConversation | None = None,
    ) -> ResetOutcome:  # fmt: skip
        """Begin anew under the same key: the old conversation ends and stays as history, what
        waits in its inbox is carried over, the key is bound to a new one. One transaction."""
        place = bindings.place_of(self._db.kit, self.name, source, key)
        new = new or NewConversation(source=source)
        return self._db.write(Reset(self._db.kit, place, new, reason))

    def receive(
        self, route: str, drafts: Sequence[Draft], *, source: str, account: str, key: str,
        new: NewConversation | None = None, result: str | None = None, wait: bool = False,
    ) -> Received:  # fmt: skip
        """Accept what a channel delivers: (source, account, key) names the delivery, `route` its
        binding. A redelivery gets the first result, whatever the binding says by now. `wait`: the
        messages wait in the inbox for the turn that answers them, so that `unfinished` names the
        conversation when the host dies before it. Spooled: the store cannot take it; it is
        received as soon as it can, so the channel need not deliver it again."""
        place = bindings.place_of(self._db.kit, self.name, source, route)
        new = new or NewConversation(source=source)
        accepting = Incoming(self._db.kit, place, account, key, drafts, new, result, wait)
        return self._db.accept(accepting)

    def importing(self) -> Importing:
        """What an importer of other tools' transcripts needs."""
        return Importing(self._db.backend, self._db.kit, self.name)

    def was_deleted(self, source: str, foreign_id: str) -> bool:
        """Whether another tool's conversation was imported once and deleted here."""
        return self._db.read(lambda tx: aliases.is_deleted(tx, self.name, source, foreign_id))

    # ------------------------------------------------------------------ many

    def list(
        self, want: ListFilter | None = None, *, limit: int = 50, cursor: str | None = None,
        pinned_first: bool = False,
    ) -> Page[ConversationSummary]:  # fmt: skip
        """Conversations, newest activity first, a stable order with a unique tie-breaker."""
        self._db.kit.limits.check_page(limit)
        want = want or ListFilter()
        return self._db.read(
            lambda tx: listing.list_page(tx, self.name, want, limit, cursor, pinned_first)
        )

    def search(self, query: SearchQuery | str) -> SearchPage:
        """Search all text of this profile. The page says how many committed rows, if any, were
        not looked at (`behind`)."""
        if isinstance(query, str):
            query = SearchQuery(text=query)
        return self._search.query(self.name, query)

    def usage(self, since: int = 0) -> tuple[ModelUsage, ...]:
        """Usage by model of all calls that ended, from `since` (microseconds) on."""
        return self._db.read(lambda tx: calls.usage(tx, self.name, since))

    def usage_by(
        self, by: UsageBy = "model", since: int = 0, until: int | None = None
    ) -> tuple[UsageRow, ...]:
        """Usage of all calls that ended, of `since` <= time < `until` (microseconds), by model and
        purpose, and by "time" (quarters of an hour, of which the caller makes days) or
        "conversation" as well."""
        self._db.kit.choice("by", by, get_args(UsageBy))
        return self._db.read(lambda tx: calls.usage_by(tx, self.name, by, since, until))

    def unfinished(self) -> tuple[Conversation, ...]:
        """Conversations with an open turn or waiting messages: what a recovering host looks at."""
        rows = self._db.read(lambda tx: tx.rows("conversation_open_turns", profile=self.name))
        return tuple(Conversation(self._db, row[0], row[1], self.name) for row in rows)

    def stats(self) -> Stats:
        """Counts."""

        def count(tx: Transaction) -> Stats:
            rows = tx.rows("conversation_counts", profile=self.name)
            sources = tx.rows("conversation_sources", profile=self.name)
            return Stats(*rows[0], sources=tuple((r[0], r[1], r[2]) for r in sources))

        return self._db.read(count)

    def delete(self, id: str) -> None:
        """Delete a conversation for good, also from the bin. Its branches keep all they show;
        delegates stay. In bounded steps; a crash in between leaves it unfindable, and the next
        deletion goes on. What the spool has of it goes too. NotFound."""
        retention.delete(self._db, self.name, id)
        for no in self._db.read(deletion.pending):
            deletion.finish(self._db.backend, self._db.kit, no)

    def bin(self, id: str) -> bool:
        """Put a conversation into the bin: nobody finds it any more, until it is restored or, when
        the bin's window is over, deleted. Its branches read on; its keys are free for a new one.
        False: it is there already. NotFound."""
        return self._db.write(Bin(self._db.kit, self.name, id))

    def unbin(self, id: str) -> Conversation:
        """Restore a conversation from the bin, with all it had but its keys. Harmless if it is not
        there. NotFound when it is gone, or its deletion has begun."""
        no = self._db.write(Unbin(self._db.kit, self.name, id))
        return Conversation(self._db, no, id, self.name)

    def binned(self, limit: int = 1000) -> tuple[Binned, ...]:
        """What is in the bin, the latest first."""
        self._db.kit.limits.check_page(limit)
        return self._db.read(lambda tx: contents(tx, self.name, limit))

    def retain(self, policy: Policy, *, going: Callable[[], bool] | None = None) -> Pruned | None:
        """Do for this profile, at most once a day, what a policy says; gives what was done, None
        when it was not its time. See docs/operating/retention.md. `going`: asked before each
        conversation, in any thread; when it is false the run ends, and the next goes on."""
        return retention.daily(self._db, self._search, policy, self.name, going)

    def empty_bin(self, progress: Callable[[int, int], None] | None = None) -> tuple[Item, ...]:
        """Delete all that is in the bin for good; says what that was. `progress` counts."""
        return retention.empty(self._db, self.name, progress)

    def plan_erasure(
        self, *, messages: Mapping[str, Sequence[int]] | None = None,
        conversations: Sequence[str] = (), person: str | None = None, sub_agents: bool = True,
    ) -> ErasurePlan:  # fmt: skip
        """What an erasure would take: these `messages` (seqs by the id of a conversation), these
        `conversations` as a whole, everything of a `person` (the author of messages, or a peer's
        id in a key). `sub_agents`: of what goes as a whole, theirs too. Writes nothing."""
        backend, kit = self._db.backend, self._db.kit
        return erasure_run.plan(
            backend, kit, self.name, messages, conversations, person, sub_agents
        )

    def erase(
        self, plan: ErasurePlan, progress: Callable[[int, int], None] | None = None
    ) -> Erased:
        """Erase what a plan names, for good: messages become tombstones, what was made from them
        goes, the files are written anew and looked through. `Erased.proof` says what was found.

        In bounded steps, then one long one (the files), during which writers wait. What a crash
        interrupts, the next erasure and `Store.maintain` go on with. `progress` counts messages.
        Busy: another process is at one, or keeps an old state of the file."""
        backend, kit, spool = self._db.backend, self._db.kit, self._db.spool
        return erasure_run.erase(backend, kit, spool, self._search, self.name, plan, progress)

    def transfer(self) -> Transfer:
        """What exporters and the importer of clew's own files need: whole conversations, out and
        in. Its methods wait for the store."""
        module: Any = import_module("clew.store.transfer")  # most programs never need it
        return module.Transfer(self._db.backend, self._db.kit, self.name)

    # ------------------------------------------------------------------ deliveries

    def take_delivery(self, routes: str | None = None) -> Delivered | None:
        """Take a reply that is due to be sent; None: none is. `routes`: only where the next of a
        conversation goes by a route that begins so.

        Send it outside any transaction and settle it within a minute: after that it comes due
        again, since its taker may be gone. So each is sent at least once, always with the same
        `key`, and those of one conversation in their order. Any number may take at once.
        """
        kit = self._db.kit
        wanted = "" if routes is None else kit.key("routes", routes)
        if not self._db.read(lambda tx: outbox.is_due(tx, kit, self.name, wanted)):
            return None
        return self._db.write(outbox.Take(kit, self.name, wanted))

    def settle_delivery(
        self, taken: Delivered, error: str | None = None, *, give_up: bool = False
    ) -> Delivered | None:
        """Note that it was sent, or by `error` why not: it comes due again after 5 seconds, then
        30, then 5 minutes, then each hour, or with `give_up` never. None: it was taken by another
        meanwhile, or settled before, and nothing was changed."""
        unit = outbox.Settle(self._db.kit, self.name, taken, error, give_up)
        return self._db.write(unit)

    def deliveries(
        self, state: DeliveryState | None = None, limit: int = 100
    ) -> tuple[Delivered, ...]:
        """Replies that are pending, sent or failed, or all of them, the latest change first."""
        self._db.kit.limits.check_page(limit)
        return self._db.read(lambda tx: outbox.all_of(tx, self._db.kit, self.name, state, limit))

    # ------------------------------------------------------------------ boundaries

    def subscribe(self, name: str) -> bool:
        """Have `name` told of every compaction, undo and reset in this profile from now on; false
        if it is already. Until it is unsubscribed what it was not told waits in the store."""
        return self._db.write(boundaries.Subscribe(self._db.kit, self.name, name))

    def unsubscribe(self, name: str) -> bool:
        """Forget a subscriber and what it was not told, in bounded steps. False: there was none."""
        known = more = True
        while more:
            unit = boundaries.Unsubscribe(self._db.kit, self.name, name)
            known, more = self._db.write(unit)
        return known

    def subscribers(self) -> tuple[Subscriber, ...]:
        """All by name, with how much each was not told yet."""
        return self._db.read(lambda tx: boundaries.subscribers(tx, self.name))

    def pending(self, name: str, limit: int = 100) -> tuple[PendingBoundary, ...]:
        """What a subscriber was not told yet, and why not, by conversation."""
        self._db.kit.limits.check_page(limit)
        return self._db.read(
            lambda tx: boundaries.pending(tx, self._db.kit, self.name, name, limit)
        )

    def deliver(self, name: str, handler: BoundaryHandler, *, limit: int = 100) -> DeliveryReport:
        """Tell a subscriber what is due, at most `limit` boundaries: `handler` is called with each,
        outside any transaction, those of one conversation in their order.

        At least once: a boundary is told again when the process is gone, or a minute has passed,
        before its handler returned and that was stored. One that the handler raises on comes due
        again after 5 seconds, then 30, then 5 minutes, then each hour; those behind it in its
        conversation wait, no others. Any number may deliver at once. NotFound: no such subscriber.
        """
        self._db.kit.limits.check_page(limit)
        told, failed = 0, list[PendingBoundary]()
        for _ in range(limit):
            if not self._db.read(lambda tx: boundaries.is_due(tx, self._db.kit, self.name, name)):
                break
            mine = self._db.write(boundaries.Take(self._db.kit, self.name, name))
            if mine is None:
                break
            with boundaries.Telling() as telling:
                handler(mine.boundary)
            left = self._db.write(boundaries.Settle(self._db.kit, mine, telling.error))
            told += left is None
            failed += [] if left is None else [left]
        return DeliveryReport(told=told, failed=tuple(failed))

    # ------------------------------------------------------------------ following

    def mark(self) -> Mark:
        """Now, as a point to follow from."""
        return self._db.read(follow.mark)

    def changes(self, since: Mark, conversation: str | None = None) -> tuple[Mark, list[Change]]:
        """What changed since a mark, and the next mark."""
        return self._db.read(lambda tx: follow.after(tx, since, self.name, conversation))

    def follow(
        self, conversation: str | None = None, *, since: Mark | None = None, poll: float = POLL,
        until: Callable[[], bool] | None = None,
    ) -> Iterator[Change]:  # fmt: skip
        """Yield what changes in this profile, or in one conversation of it, from now on.

        Anybody's commits are seen within `poll` seconds; on PostgreSQL, whose server tells, mostly
        at once, and within a second when it does not. Ends when `until()` is true.
        """
        if not 0 < poll <= 1:
            raise InputError(f"poll is {poll} seconds; give more than 0 and at most 1")
        token = self._db.backend.change_token()
        mark = since or self.mark()
        look = since is not None
        while until is None or not until():
            now = self._db.backend.change_token()
            if look or now != token:
                token, look = now, False
                after, found = self.changes(mark, conversation)
                look, mark = after != mark, after
                yield from found
            else:
                self._db.wait(token, poll)
