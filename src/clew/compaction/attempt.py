"""One attempt: look, open, plan, summarise, check, commit.

No transaction is open while anything is decided or written; the store decides by swaps, and nothing
here has to be undone:

* Opening is one transaction. It remembers the view, and tells which others are open. Opens of a
  conversation come one after the other (its row is locked), so of all that meet only the first pays
  for a summary, and a person's own besides it.
* The inputs are read when the attempt is open. A cut, an undo or an erasure that comes in between
  or later cancels the attempt in its own transaction; another compaction moves the view. The commit
  is then refused whole: what was withdrawn cannot come back in a summary.
* Commit and cancel are one swap of the attempt; whoever is first wins, in whatever process. Appends
  are not concerned: they lie above the cover.

A process that dies at any point leaves an open attempt, which the next to open one finds past its
deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from clew.clock import SECOND
from clew.compaction.check import Check, check_draft, failed, grounded
from clew.compaction.draft import Draft, Words, write
from clew.compaction.ledger import Row, epoch_of, holding, rows_of
from clew.compaction.outcome import Outcome
from clew.compaction.plan import Nothing, Plan, make_plan
from clew.compaction.policy import (
    EXTRA,
    LEDGER,
    SUMMARY,
    Guard,
    Undone,
    at_work,
    due,
    freed_enough,
    guard,
)
from clew.compaction.receipt import Receipt, Summary, receipt_of
from clew.compaction.summarize import (
    Summarizer,
    SummaryFailed,
    SummaryRequest,
    SummaryStalled,
    SummaryStopped,
    ask,
    instruction,
    words_of,
)
from clew.compaction.view import View, look
from clew.context.budget import Budget
from clew.context.build import fit
from clew.domain.compactions import Attempt, Proposal, Trigger
from clew.domain.conversations import ConversationInfo
from clew.domain.turns import CallPlan, CallResult
from clew.errors import Cancelled, ClewError, ContextTooLarge, InvalidCompaction, Overtaken
from clew.store.conversation import Conversation

GRACE = 60 * SECOND
"""Microseconds of an attempt's deadline beside the patience with a model."""
LOOK = 1.0
"""Seconds between two looks at whether another process cancelled the attempt."""
WIDER = (1.6, 2.4, 4.0)
"""What the ledger's room is multiplied by, while the check finds that something is missing."""
STOPPED = "It was stopped."
ANSWER, ANSWER_SHARE = 1_500, 0.06
"""Tokens that a summary may take: at most so many, and at most this share of the window."""


class Settings(NamedTuple):
    """What a Compactor was made with."""

    budget: Budget | None
    model: str | None
    routes: tuple[Summarizer, ...]
    patience: float
    rotate: Callable[[ConversationInfo], tuple[str, str]] | None
    step: Callable[[str], None]


class _NoCommit(Exception):
    """The attempt ends as failed: its verdict, and why in a sentence."""

    def __init__(self, verdict: str, reason: str) -> None:
        self.verdict, self.reason = verdict, reason
        super().__init__(reason)


class _Passed(NamedTuple):
    """A draft that may be committed, and what is to be said of it."""

    draft: Draft
    checks: tuple[Check, ...]
    summary: Summary | None

    @property
    def verdict(self) -> str:
        used = self.summary is not None and self.summary.state == "used"
        return SUMMARY if used else LEDGER

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should be told."""
        found: list[str] = []
        if self.summary is not None and self.summary.state != "used":
            why = self.summary.error or "the request would not fit its window"
            found.append(
                f"{self.summary.model} wrote no summary ({why}); the ledger stands alone, and "
                "nothing is lost"
            )
        found += [f"{check.name}: no room for {check.note}" for check in failed(self.checks)]
        return tuple(found)


class Run:
    """One call for a compaction of one conversation."""

    def __init__(
        self, settings: Settings, conv: Conversation, trigger: Trigger, target: int | None,
        stop: threading.Event | None,
    ) -> None:  # fmt: skip
        self._settings, self._conv = settings, conv
        self._trigger: Trigger = trigger
        self._target, self._stop, self._step = target, stop, settings.step
        self._failure: str | None = None
        """What the summariser failed with last, in this attempt or in one that it made stall: it
        rests for it, whatever becomes of the attempt."""

    def compact(self, view: View) -> Outcome:
        """Go through all of it; `view` is what the guards are asked about."""
        self._step("guard")
        if self._is_stopped():
            return Outcome(state="cancelled", reason=STOPPED)
        allowed = self.guard(view)
        if not allowed.go:
            return Outcome(state="refused", reason=allowed.reason)
        if self._trigger != "soft" and isinstance(plan := self._plan(view), Nothing):
            # A soft one is noted, so that the guards hold the next ones back. These are held back
            # by nothing: a long turn over the window would note one at each of its steps.
            return Outcome(state="refused", reason=plan.reason)
        return self._open(view, self._settings.routes if allowed.paid else ())

    def guard(self, view: View) -> Guard:
        """What the attempts before say to another one."""
        return guard(
            self._trigger, attempts=self._conv.attempts(), readings=view.readings,
            model=view.model, now=self._conv.clock.now(), threshold=view.budget.high_tokens,
            undone=_undone(self._conv, view),
        )  # fmt: skip

    def _open(self, view: View, routes: tuple[Summarizer, ...]) -> Outcome:
        """Open an attempt and bring it to its end, whatever that is."""
        self._step("open")
        patience = int(self._settings.patience * SECOND) * len(routes)
        attempt = self._conv.open_attempt(
            self._trigger, model=view.model, tokens_before=view.layout.tokens,
            deadline=self._conv.clock.now() + patience + GRACE,
        )  # fmt: skip
        rivals = self._rivals(attempt)
        if rivals and self._trigger == "soft":
            self._end("cancelled", attempt)
            return Outcome(
                state="refused", reason="Another attempt is at work.", attempt=attempt.number
            )
        if rivals > (EXTRA if self._trigger == "user" else 0):
            routes = ()
        try:
            return self._carry_out(attempt, view, routes)
        except Exception:
            with suppress(ClewError):  # the one that is on its way says more
                self._end("failed", attempt, "error")
            raise
        except BaseException:  # somebody wants to leave
            with suppress(ClewError):
                self._end("cancelled", attempt)
            raise

    def _rivals(self, attempt: Attempt) -> int:
        """How many others were open when this one was opened, and are at work."""
        if not attempt.rivals:
            return 0
        others = (a for a in self._conv.attempts() if a.number in attempt.rivals)
        return len(at_work(list(others), self._conv.clock.now()))

    def _carry_out(self, attempt: Attempt, before: View, routes: tuple[Summarizer, ...]) -> Outcome:
        """The attempt from here on. Each way out but the commit has changed nothing but the
        attempt itself."""
        number = attempt.number
        self._step("read")
        view = look(self._conv, self._settings.budget, self._settings.model)
        if self._is_late(before, view):
            self._end("cancelled", attempt)
            reason = "Another compaction has made room meanwhile."
            return Outcome(state="overtaken", reason=reason, attempt=number)
        try:
            return self._commit(attempt, view, self._passed(attempt, view, routes))
        except SummaryStalled as stalled:
            self._end("cancelled", attempt)
            self._failure = str(stalled)
            return self._open(view, routes[1:])
        except SummaryStopped:
            self._end("cancelled", attempt)
            return Outcome(state="cancelled", reason=STOPPED, attempt=number)
        except Cancelled as gone:
            state = "failed" if gone.state == "failed" else "cancelled"
            return Outcome(
                state=state, reason=f"The attempt is {gone.state} already.", attempt=number
            )
        except Overtaken:
            reason = "A cut or another compaction came first."
            return Outcome(state="overtaken", reason=reason, attempt=number)
        except _NoCommit as ended:
            self._end("failed", attempt, ended.verdict)
            return Outcome(
                state="refused" if ended.verdict == "no-op" else "failed", reason=ended.reason,
                attempt=number,
            )  # fmt: skip

    def _is_late(self, before: View, view: View) -> bool:
        """Whether somebody else has done what this attempt was for since it was decided on."""
        wanted = self._trigger != "user" and self._target is None
        return wanted and before.due() is not None and view.due() is None

    def _end(self, state: str, attempt: Attempt, verdict: str = "") -> None:
        """Close the attempt, unless somebody did."""
        try:
            if state == "cancelled":
                self._conv.cancel_attempt(attempt.number)
            else:
                self._conv.fail_attempt(attempt.number, verdict, summary_error=self._failure)
        except Cancelled:
            pass

    # ------------------------------------------------------------------ what is written

    def _plan(self, view: View) -> Plan | Nothing:
        return make_plan(view.inputs, view.layout, view.budget, view.measure, self._target)

    def _passed(self, attempt: Attempt, view: View, routes: tuple[Summarizer, ...]) -> _Passed:
        """A draft that passed the check. Raises _NoCommit."""
        self._step("plan")
        plan = self._plan(view)
        if isinstance(plan, Nothing):
            raise _NoCommit("no-op", plan.reason)
        self._step("ledger")
        draft, checks, rows = by_ledger(view, plan)
        self._step("check")
        self._weigh(view, draft, checks)  # before anything is paid for
        summary: Summary | None = None
        if routes and draft.epoch is not None and plan.messages:
            words, summary = self._words(attempt, view, draft, routes)
            if words is not None and summary is not None:
                words = grounded(words, draft, rows)
                better = write(plan, view.inputs, view.measure, words, draft.wider, _answer(view))
                found = check_draft(better, view.layout, rows)
                worse = _worse(found, checks)
                if worse is None and self._trigger == "soft" and not _freed_enough(view, better):
                    worse = Check("narrative", False, "too long for what it would free")
                if worse is not None:
                    self._failure = f"{worse.name}: {worse.note}"
                    summary = Summary(summary.model, "rejected", self._failure)
                else:
                    draft, checks = better, found
        return _Passed(draft, checks, summary)

    def _weigh(self, view: View, draft: Draft, checks: tuple[Check, ...]) -> None:
        """Whether the draft may be committed. What must hold must always; what only should be
        there does not stop a hard one: the next request would not fit."""
        before, after = view.layout.tokens, draft.layout.tokens
        missing = failed(checks)
        if after >= before:
            raise _NoCommit("no-op", f"it would free nothing ({before:,} tokens, {after:,} after)")
        for check in missing:
            if check.level == "must":
                raise _NoCommit("check", f"the check of its {check.name} failed: {check.note}")
        if self._trigger == "hard":
            return
        if self._trigger == "soft" and not _freed_enough(view, draft):
            raise _NoCommit("ineffective", f"{before:,} tokens would become {after:,}: too little")
        for check in missing:
            if check.level == "should":
                raise _NoCommit("check", f"no room for {check.name}: {check.note}")

    # ------------------------------------------------------------------ the model

    def _words(
        self, attempt: Attempt, view: View, draft: Draft, routes: tuple[Summarizer, ...]
    ) -> tuple[Words | None, Summary | None]:
        """What a model adds; of each route that fails, why. Only a stall of one that has another
        behind it leaves this attempt (SummaryStalled): its answer may still come, and must find
        nothing to commit."""
        summary: Summary | None = None
        for at, route in enumerate(routes):
            request = self._request(view, draft)
            if request is None:
                return None, summary or Summary(route.model, "skipped")
            self._step("summary")
            if self._is_stopped():
                raise SummaryStopped("stopped before a model was asked")
            try:
                return self._asked(attempt, draft, route, request), Summary(route.model, "used")
            except SummaryStalled as stalled:
                if at + 1 < len(routes):
                    raise
                self._failure = str(stalled)
            except SummaryFailed as error:
                self._failure = str(error)
            summary = Summary(route.model, "failed", self._failure)
        return None, summary

    def _request(self, view: View, draft: Draft) -> SummaryRequest | None:
        """The conversation's own request with one instruction; None when that would not fit."""
        assert draft.epoch is not None
        answer = _answer(view)
        text = instruction(draft.epoch, answer)
        beside = view.measure.text(text) + answer
        if view.layout.tokens + beside > view.budget.window:
            return None
        try:
            context = fit(
                view.inputs, view.layout, view.budget, view.measure, model=view.model
            )  # fmt: skip
        except ContextTooLarge:
            return None
        messages = [*context.chat(self._conv.blob), {"role": "user", "content": text}]
        return SummaryRequest(
            messages=messages, tools=view.inputs.toolset, max_tokens=answer,
            patience=self._settings.patience, cancelled=self._is_stopped,
        )  # fmt: skip

    def _asked(
        self, attempt: Attempt, draft: Draft, route: Summarizer, request: SummaryRequest
    ) -> Words:
        """One call of a model, noted before and after like every other."""
        assert draft.epoch is not None
        plan = CallPlan(model=route.model, purpose="summary")
        number = self._conv.plan_call(plan, attempt.number)
        result = CallResult(state="failed")
        try:
            reply = ask(route, request, _Watch(self._conv, attempt, self._is_stopped))
            result = CallResult(usage=reply.usage, cost=reply.cost)
            return words_of(reply, draft.epoch)
        except ClewError as error:
            result = CallResult(
                state=result.state, usage=result.usage, cost=result.cost, error=str(error)
            )
            raise
        finally:
            self._conv.finish_call(number, result)

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    # ------------------------------------------------------------------ the commit

    def _commit(self, attempt: Attempt, view: View, passed: _Passed) -> Outcome:
        """Swap the attempt; nothing of it exists before."""
        self._step("commit")
        if self._is_stopped():
            raise SummaryStopped("stopped before the commit")
        draft, summary = passed.draft, passed.summary
        receipt = receipt_of(
            draft, view.layout, self._trigger, passed.checks, summary, passed.notices
        )  # fmt: skip
        proposal = Proposal(
            covers_to=draft.plan.covers_to, body=draft.body, tokens_before=view.layout.tokens,
            tokens_after=draft.layout.tokens, receipt=receipt.to_dict(),
        )  # fmt: skip
        rotate = self._settings.rotate
        try:
            record = self._conv.commit_attempt(
                attempt.number, proposal, verdict=passed.verdict,
                segment=None if rotate is None else rotate(view.inputs.conversation),
                summary_error=self._failure,
            )  # fmt: skip
        except InvalidCompaction as error:
            raise _NoCommit("check", str(error)) from error
        self._step("committed")
        return Outcome(
            state="committed", reason=_sentence(receipt), attempt=attempt.number,
            compaction=record, receipt=receipt, notice=". ".join(passed.notices) or None,
        )  # fmt: skip


class _Watch:
    """Looks, while a model writes, whether the attempt was stopped: here at every call, in the
    store once a second."""

    def __init__(self, conv: Conversation, attempt: Attempt, stopped: Callable[[], bool]) -> None:
        self._conv, self._attempt, self._stopped = conv, attempt, stopped
        self._next = time.monotonic() + LOOK

    def __call__(self) -> None:
        if self._stopped():
            raise SummaryStopped("stopped while the summary was written")
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK
        number = self._attempt.number
        mine = next(a for a in self._conv.attempts() if a.number == number)
        if mine.state != "open":
            raise Cancelled(number, mine.state)


class Ledger(NamedTuple):
    """A draft without a model's words, its check, and the rows that the parser found."""

    draft: Draft
    checks: tuple[Check, ...]
    rows: Sequence[Row]


def by_ledger(view: View, plan: Plan) -> Ledger:
    """The ledger alone, with as much room as it takes for all that should be there."""
    draft = write(plan, view.inputs, view.measure)
    rows = rows_of(draft.taken)
    if plan.fold:  # what was written before is written anew: nothing of it may go unseen
        rows = [*holding([e for e in map(epoch_of, plan.earlier) if e is not None]), *rows]
    checks = check_draft(draft, view.layout, rows)
    for wider in WIDER:
        if draft.epoch is None or all(check.level == "may" for check in failed(checks)):
            break
        again = write(plan, view.inputs, view.measure, wider=wider)
        found = check_draft(again, view.layout, rows)
        if any(check.level == "must" for check in failed(found)):
            break
        draft, checks = again, found
    return Ledger(draft, checks, rows)


def _freed_enough(view: View, draft: Draft) -> bool:
    """Of the tokens; or of the bytes, where these are what is used up."""
    before, after = view.layout, draft.layout
    if freed_enough(before.tokens, after.tokens):
        return True
    heavy = due(0, view.budget, before.bytes) is not None
    return heavy and freed_enough(before.bytes, after.bytes)


def _undone(conv: Conversation, view: View) -> Undone | None:
    """The hold of an undo: of the newest compaction, if it was undone."""
    if not view.inputs.conversation.generation:
        return None
    newest = next(iter(conv.compactions()), None)
    if newest is None or newest.undone_at is None or newest.undone_tokens is None:
        return None
    return Undone(newest.undone_tokens, view.layout.tokens)


def _answer(view: View) -> int:
    """Tokens of an answer, and of the room that a narrative gets beside the rows."""
    return min(ANSWER, int(view.budget.window * ANSWER_SHARE))


def _worse(found: tuple[Check, ...], before: tuple[Check, ...]) -> Check | None:
    """The first thing that is missing with a model's words and was there without."""
    fine = {check.name for check in before if check.ok}
    return next((check for check in found if not check.ok and check.name in fine), None)


def _sentence(receipt: Receipt) -> str:
    before, after = receipt.tokens["before"], receipt.tokens["after"]
    freed = 100 * (before - after) // before if before else 0
    return f"{before:,} tokens became {after:,} ({freed} % freed)."
