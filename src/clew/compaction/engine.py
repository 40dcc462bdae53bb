"""Compactor: keeps the contexts of conversations within a budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import NamedTuple

from clew.compaction.attempt import Run, Settings, by_ledger
from clew.compaction.draft import Draft
from clew.compaction.ledger import write_epoch
from clew.compaction.outcome import Outcome
from clew.compaction.plan import Nothing, make_plan
from clew.compaction.policy import Guard, due
from clew.compaction.receipt import Receipt, receipt_of
from clew.compaction.summarize import Summarizer
from clew.compaction.view import View, look
from clew.context.budget import Budget
from clew.context.build import Context, fit
from clew.context.measure import Measure
from clew.context.sections import lay_out
from clew.context.shrink import Digest
from clew.domain.compactions import Compaction, Trigger
from clew.domain.conversations import ConversationInfo
from clew.domain.messages import Message
from clew.errors import Cancelled, InputError, Refused
from clew.store.conversation import Conversation

LONGEST_NAME = 200
"""Characters of a model's name."""
LONGEST = 86_400
"""Seconds that anybody waits for a summary."""
TRIES = 8
"""How often a context that must be compacted tries again when others came in between."""


class Preview(NamedTuple):
    """A compaction that was not made."""

    draft: Draft
    """Its body, and the context as it would be."""
    receipt: Receipt


class Compactor:
    """Keeps contexts within a budget. Holds settings only: one serves any number of conversations,
    threads and hosts, and two of them that meet do no harm.

    `budget`, or the window of `model`'s family. `summarizer`: a model that writes a narrative
    beside the ledger; None: the ledger alone, which needs no model. `fallback`: another one, for
    when the first fails or does not answer within `patience` (seconds). `rotate`: gives a (source,
    id) under which the conversation is known from each compaction on, for hosts whose ids change
    then. `watch` is told the name of each step before it is taken.
    """

    def __init__(
        self, budget: Budget | None = None, *, model: str | None = None,
        summarizer: Summarizer | None = None, fallback: Summarizer | None = None,
        patience: float = 120.0,
        rotate: Callable[[ConversationInfo], tuple[str, str]] | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        if not 0 < patience <= LONGEST:  # neither nan nor inf
            raise InputError(f"patience is {patience}; give seconds, above 0 and up to {LONGEST}")
        for route in (summarizer, fallback):
            name: object = None if route is None else getattr(route, "model", None)
            if route is not None and not (isinstance(name, str) and 0 < len(name) <= LONGEST_NAME):
                raise InputError(f"a summariser's model is {name!r:.80}; give its name")
            if route is not None and iscoroutinefunction(route.__call__):
                raise InputError(
                    "a summariser is called in a thread and gives its answer; wrap a coroutine: "
                    "asyncio.run_coroutine_threadsafe(work, loop).result(request.patience)"
                )
        routes = tuple(route for route in (summarizer, fallback) if route is not None)
        self._settings = Settings(
            budget, model, routes, patience, rotate, watch or _unwatched
        )  # fmt: skip

    # ------------------------------------------------------------------ what a model is sent

    def context(
        self, conv: Conversation, *, stop: threading.Event | None = None,
        notices: Sequence[str] = (), told: Callable[[Outcome], None] | None = None,
    ) -> Context:  # fmt: skip
        """The context of the next request; compacts first when that is due. `notices`: what the
        host has to say in this one request, beside goal and todos. `told`: called with what came
        of each attempt that was opened.

        Always within the budget, or ContextTooLarge. A soft compaction that its guards hold back,
        that somebody else is at, or that `stop` ends, costs nothing: the context fits without it.
        """
        view = self._look(conv)
        for _ in range(TRIES):
            trigger = view.told(notices).due()
            if trigger is None:
                break
            outcome = self._run(conv, trigger, stop=stop).compact(view)
            if told is not None and outcome.attempt is not None:
                told(outcome)
            view = self._look(conv)
            if outcome.state not in ("overtaken", "cancelled") or (stop and stop.is_set()):
                break
        return _fitted(view.told(notices))

    def peek(self, conv: Conversation, *, notices: Sequence[str] = ()) -> Context:
        """The context as it is, never compacted. ContextTooLarge when it does not fit."""
        return _fitted(self._look(conv).told(notices))

    # ------------------------------------------------------------------ compacting

    def plan(self, conv: Conversation, *, target: int | None = None) -> Preview | Nothing:
        """What `compact` would do without a model; writes nothing."""
        view = self._look(conv)
        planned = make_plan(view.inputs, view.layout, view.budget, view.measure, target)
        if isinstance(planned, Nothing):
            return planned
        draft, checks, _ = by_ledger(view, planned)
        return Preview(draft, receipt_of(draft, view.layout, "user", checks, None, ()))

    def compact(
        self, conv: Conversation, trigger: Trigger = "user", *, target: int | None = None,
        stop: threading.Event | None = None,
    ) -> Outcome:  # fmt: skip
        """Compact now: "user" because a person asked (no guard holds), "hard" because the provider
        refused a request as too large, "soft" if the guards allow it.

        `target`: tokens of the context afterwards, low water when None. Setting `stop` cancels it
        unless the commit was first. Never raises for what a summariser does.
        """
        return self._run(conv, trigger, target, stop).compact(self._look(conv))

    def guard(self, conv: Conversation, trigger: Trigger = "soft") -> Guard:
        """Whether an attempt may begin now, and why not."""
        return self._run(conv, trigger).guard(self._look(conv))

    def cancel(self, conv: Conversation) -> list[int]:
        """Cancel every open attempt of the conversation, whoever is at it; gives their numbers.
        One that commits first stays."""
        cancelled: list[int] = []
        for attempt in conv.attempts():
            if attempt.state == "open":
                try:
                    conv.cancel_attempt(attempt.number)
                except Cancelled:
                    continue
                cancelled.append(attempt.number)
        return cancelled

    def undo(self, conv: Conversation) -> Compaction:
        """Take the compaction in effect out of effect; gives it as it is then.

        Refused when what stood there before would not fit the window. Soft compactions wait until
        the context has grown by a tenth.
        """
        view = self._look(conv)
        record = view.inputs.compaction
        if record is None:
            raise Refused(
                "no compaction is in effect here; `clew compactions` lists all there were"
            )
        before = conv.context_inputs(without=record.generation)
        layout = lay_out(before, view.measure)
        tokens = layout.tokens
        if due(tokens, view.budget, layout.bytes) == "hard":
            raise Refused(
                f"without this compaction the context takes {tokens:,} of {view.budget.room:,} "
                f"tokens and {layout.bytes:,} of {view.budget.bytes:,} bytes, so it stays. recall "
                "reads what it covers."
            )
        conv.undo_compaction(record.generation, tokens=tokens)
        return next(c for c in conv.compactions() if c.generation == record.generation)

    def _look(self, conv: Conversation) -> View:
        return look(conv, self._settings.budget, self._settings.model)

    def _run(
        self, conv: Conversation, trigger: Trigger, target: int | None = None,
        stop: threading.Event | None = None,
    ) -> Run:  # fmt: skip
        return Run(self._settings, conv, trigger, target, stop)


def _unwatched(_: str) -> None:
    """Nobody wants to know."""


def _fitted(view: View) -> Context:
    return fit(
        view.inputs, view.layout, view.budget, view.measure, model=view.model,
        digest=_digest(view.measure),
    )  # fmt: skip


def _digest(measure: Measure) -> Digest:
    """Steps of the turn in flight that are left out are told by the ledger, too."""

    def digest(messages: Sequence[Message], room: int) -> str:
        return write_epoch((), messages, number=0, room=room, count=measure.text).text

    return digest
