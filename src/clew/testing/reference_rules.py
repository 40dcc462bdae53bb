"""The rules of the log, each a few lines on lists: names, appending, turns, cuts, compactions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from clew.config import Limits
from clew.domain.compactions import Compaction, Inline, Proposal, Ref, Stub, in_effect
from clew.domain.cuts import Cut, CutOutcome, hidden, in_force_at
from clew.domain.messages import Appended, Draft, Message, Role
from clew.domain.parts import (
    File,
    Image,
    Part,
    Parts,
    Text,
    ToolResult,
    answered_ids,
    call_ids,
)
from clew.domain.text import clean, exact, shorten
from clew.domain.turns import CallPlan, CallResult, ModelCall, Turn, TurnState, Usage
from clew.errors import (
    BatchConflict,
    Ended,
    InboxFull,
    InputError,
    InvalidCompaction,
    KeyReused,
    NotFound,
    ReadOnly,
    RightLost,
    Stale,
    TooLarge,
)
from clew.testing.reference_state import Entry, Named, State, World

BOUNDARIES = {
    "closed", "reset", "new", "idle", "daily", "switched", "suspended", "expired", "exhausted",
    "finished",
}  # fmt: skip
ACCIDENTS = {"stale", "imported"}


class Found(NamedTuple):
    """Where a draft already is: a seq of the log, or a number of the inbox."""

    uid: str
    seq: int | None
    number: int | None = None


# ------------------------------------------------------------------ values from outside


def label(limits: Limits, what: str, text: str | None) -> str | None:
    """A text for people."""
    if text is not None and len(text) > limits.label:
        raise TooLarge(what, len(text), limits.label)
    return None if text is None else clean(text)


def key(limits: Limits, what: str, text: str) -> str:
    """A text that is compared."""
    if len(text) > limits.key:
        raise TooLarge(what, len(text), limits.key)
    return exact(what, text)


def plain_json(limits: Limits, what: str, value: Any) -> Any:
    """A small value as it comes back from JSON."""
    if value is None:
        return None
    text = json.dumps(value, separators=(",", ":"))
    if len(text) > limits.meta:
        raise TooLarge(what, len(text), limits.meta)
    return json.loads(text)


def title_of(text: str) -> str:
    """A title as it is kept."""
    short = shorten(text, 80)
    if short is None:
        raise InputError("a title needs at least one visible character")
    return short


def uid_of(uid: str) -> str:
    """A uid in its one spelling."""
    try:
        value = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        value = b""
    if len(value) != 16:
        raise InputError(f"uid {uid!r} is not 32 hexadecimal characters")
    return value.hex()


def named(world: World, drafts: Sequence[Draft]) -> list[Named]:
    """Checked drafts, each with its uid, their bytes put aside; or the first reason why not."""
    if not drafts:
        raise InputError("nothing to append; pass at least one message")
    if len(drafts) > world.limits.batch:
        raise TooLarge("batch (messages)", len(drafts), world.limits.batch)
    ready = [_named(world, draft) for draft in drafts]
    for names in ([n.draft.key for n in ready], [n.uid for n in ready]):
        given = [name for name in names if name is not None]
        if len(set(given)) < len(given):
            raise InputError("two messages of one batch have the same key or uid")
    return ready


def _named(world: World, draft: Draft) -> Named:
    limits = world.limits
    blobs: dict[str, bytes | None] = {}
    parts = tuple(_without_bytes(limits, blobs, part) for part in draft.parts)
    text = json.dumps(msgspec.to_builtins(parts), separators=(",", ":"), ensure_ascii=False)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.message:
        raise TooLarge("message", size, limits.message)
    draft = replace(
        draft,
        parts=msgspec.convert(json.loads(text), tuple[Part, ...]),
        key=None if draft.key is None else key(limits, "message key", draft.key),
        author=label(limits, "author", draft.author),
        api_group=label(limits, "api_group", draft.api_group),
        meta=plain_json(limits, "meta", draft.meta),
    )
    uid = world.ids.uid().hex() if draft.uid is None else uid_of(draft.uid)
    at = world.clock.now() if draft.created_at is None else draft.created_at
    return Named(draft, uid, draft.uid is None, at, blobs)


def _without_bytes(limits: Limits, blobs: dict[str, bytes | None], part: Part) -> Any:
    """The part with a hash in place of its bytes."""
    if isinstance(part, ToolResult) and not isinstance(part.content, str):
        pieces = tuple(_without_bytes(limits, blobs, piece) for piece in part.content)
        return replace(part, content=pieces)
    if not isinstance(part, Image | File):
        return part
    if part.data is None:
        if part.hash is not None:
            if len(part.hash) != 64 or set(part.hash.lower()) - set("0123456789abcdef"):
                raise InputError(f"blob hash {part.hash!r} is not 64 hexadecimal characters")
            blobs.setdefault(part.hash, None)
        return part
    if len(part.data) > limits.blob:
        raise TooLarge(type(part).__name__.lower(), len(part.data), limits.blob)
    digest = hashlib.sha256(part.data).hexdigest()
    blobs[digest] = part.data
    return replace(part, data=None, hash=digest, size=len(part.data))


# ------------------------------------------------------------------ what is there already


def lookup(state: State, wanted: Sequence[Named]) -> list[Found | None]:
    """Which drafts are there already; a name with other content is KeyReused."""
    return [_find(state, item) for item in wanted]


def _find(state: State, item: Named) -> Found | None:
    wanted = item.draft
    for message in state.messages:
        by_key = wanted.key is not None and message.key == wanted.key
        by_uid = not item.minted and message.uid == item.uid and message.seq > wanted.after
        if by_key or by_uid:
            _same(item, message.seq, message.role, message.parts)
            return Found(message.uid, message.seq)
    for entry in state.inbox:
        there = entry.named
        by_key = wanted.key is not None and there.draft.key == wanted.key
        by_uid = not item.minted and there.uid == item.uid and entry.state == "waiting"
        if by_key or by_uid:
            _same(item, entry.seq, there.draft.role, there.draft.parts)
            return Found(there.uid, None, entry.number)
    return None


def _same(item: Named, seq: int | None, role: Role, parts: Parts) -> None:
    if (item.draft.role, item.draft.parts) != (role, parts):
        raise KeyReused(item.draft.key or item.uid, seq)


def fresh_of(wanted: Sequence[Named], found: Sequence[Found | None]) -> list[Named]:
    """The end of the batch that is not there yet; what is there must be its beginning, in order."""
    count = sum(f is not None for f in found)
    seqs = [f.seq for f in found if f is not None and f.seq is not None]
    whole = all(f is not None for f in found[:count])
    if not whole or seqs != list(range(seqs[0], seqs[0] + len(seqs)) if seqs else []):
        raise BatchConflict(seqs)
    return list(wanted[count:])


def outcome(
    state: State, wanted: Sequence[Named], found: Sequence[Found | None], new: int,
    added: Sequence[int] = (), queued: Sequence[int] = (),
) -> Appended:  # fmt: skip
    """What an append answers."""
    return Appended(
        seqs=(*(f.seq for f in found if f is not None and f.seq is not None), *added),
        head=state.head,
        new=new,
        uids=tuple(w.uid if f is None else f.uid for w, f in zip(wanted, found, strict=True)),
        numbers=(*(f.number for f in found if f is not None and f.number is not None), *queued),
    )


# ------------------------------------------------------------------ appending


def check_expected(state: State, head: int | None, view: int | None) -> None:
    """Refuse an old picture."""
    if head is not None and head != state.head:
        raise Stale("head", head, state.head)
    if view is not None and view != state.view:
        raise Stale("view", view, state.view)


def open_for_append(state: State, now: int) -> None:
    """Refuse a read-only or ended conversation; what a sweeper ended is open again."""
    if state.read_only:
        raise ReadOnly(state.id)
    if state.ended_at is not None:
        if state.end_reason in BOUNDARIES:
            raise Ended(state.id, str(state.end_reason), True)
        state.ended_at = state.end_reason = None
        state.reopened_at = now


def keep_blobs(state: State, items: Sequence[Named]) -> None:
    """Keep the bytes that drafts bring; those that they only name have to be here."""
    for item in items:
        for digest, data in item.blobs.items():
            if data is not None:
                state.blobs[digest] = data
            elif digest not in state.blobs:
                raise InputError(f"no bytes with the hash {digest} are stored here; pass them")


def insert(state: State, items: Sequence[Named], turn: int | None = None) -> list[int]:
    """Add to the end of the log; gives the seqs."""
    first = state.head + 1
    keep_blobs(state, items)
    for item in items:
        draft, seq = item.draft, state.head + 1
        if draft.replaces is not None and not 0 < draft.replaces < seq:
            raise InputError(f"replaces names seq {draft.replaces}; give an earlier seq")
        message = Message.of(
            seq=seq, uid=item.uid, role=draft.role, parts=draft.parts, created_at=item.at,
            key=draft.key, turn=turn, author=draft.author, api_group=draft.api_group,
            replaces=draft.replaces, tokens=draft.tokens, meta=draft.meta,
        )  # fmt: skip
        state.messages.append(message)
        state.active_at = max(state.active_at, item.at)
        text = preview_of(message)
        if draft.role is Role.USER and text and (title := shorten(text, 80)):
            state.titles.setdefault("derived", title)
    if any(item.draft.replaces is not None for item in items):
        state.view += 1
    return list(range(first, state.head + 1))


def append(
    world: World, state: State, wanted: Sequence[Named], head: int | None, now: int
) -> Appended:
    """Without a turn of one's own: onto the log, or into the inbox of whoever runs."""
    found = lookup(state, wanted)
    fresh = fresh_of(wanted, found)
    if fresh:
        check_expected(state, head, None)
    if is_busy(state, now):
        return put(world, state, wanted, found, fresh)
    interrupt(state, now, "its holder was gone")
    if not fresh:
        return outcome(state, wanted, found, 0)
    open_for_append(state, now)
    if head is None:
        take(state)
        found = lookup(state, wanted)
    return outcome(state, wanted, found, len(fresh), insert(state, fresh))


# ------------------------------------------------------------------ inbox


def put(
    world: World, state: State, wanted: Sequence[Named], found: Sequence[Found | None],
    fresh: Sequence[Named],
) -> Appended:  # fmt: skip
    """Let messages wait."""
    if fresh and state.read_only:
        raise ReadOnly(state.id)
    if len(state.waiting) + len(fresh) > world.limits.inbox:
        raise InboxFull(state.id, world.limits.inbox)
    keep_blobs(state, fresh)
    first = max((entry.number for entry in state.inbox), default=0) + 1
    state.inbox += [Entry(number, item) for number, item in enumerate(fresh, first)]
    numbers = range(first, first + len(fresh))
    return outcome(state, wanted, found, len(fresh), queued=numbers)


def take(state: State, turn: int | None = None) -> tuple[int, ...]:
    """All that waits enters the log, in order of arrival."""
    waiting = state.waiting
    for entry in waiting:
        (seq,) = insert(state, [entry.named], turn)
        taken = replace(entry, state="taken", seq=seq)
        state.inbox = [taken if old is entry else old for old in state.inbox]
    return tuple(entry.number for entry in waiting)


def withdraw(state: State) -> tuple[int, ...]:
    """Nothing waits any more."""
    numbers = tuple(entry.number for entry in state.waiting)
    state.inbox = [
        replace(e, state="withdrawn") if e.state == "waiting" else e for e in state.inbox
    ]
    return numbers


# ------------------------------------------------------------------ turns and the right to run


def is_free(state: State, now: int) -> bool:
    """Whether another may take the right. Nobody dies here, so only time frees it."""
    return state.holder is None or not 0 <= now - state.held_at < state.held_ttl


def is_busy(state: State, now: int) -> bool:
    """Whether an open turn keeps others from appending."""
    turn = state.open_turn
    return turn is not None and (not is_free(state, now) or turn.state == "waiting")


def set_turn(here: State, number: int, /, **fields: Any) -> Turn:
    """Change a turn."""
    turn = here.turns[number - 1] = replace(here.turns[number - 1], **fields)
    return turn


def close_turn(state: State, how: TurnState, now: int, error: str | None = None) -> None:
    """The open turn is over, its right free, its planned calls failed."""
    turn = state.open_turn
    if turn is None:
        return
    set_turn(state, turn.number, state=how, ended_at=now, error=error)
    state.holder = None
    state.calls = [
        replace(call, state="failed", error="interrupted")
        if call.turn == turn.number and call.state == "planned" else call
        for call in state.calls
    ]  # fmt: skip


def interrupt(state: State, now: int, why: str | None) -> int | None:
    """End the open turn from outside: its holder's next write is refused. Gives its number."""
    turn = state.open_turn
    if turn is None:
        return None
    close_turn(state, "interrupted", now, why)
    state.fence += 1
    return turn.number


def held(state: State, fence: int, turn: int | None = None) -> None:
    """RightLost unless the fence is the current one and the turn is open."""
    still_open = state.open_turn
    if state.fence != fence or still_open is None or turn not in (None, still_open.number):
        raise RightLost(state.id, fence)


def plan_call(
    world: World, state: State, plan: CallPlan, now: int, turn: int | None = None
) -> int:
    """Note a model call before it is made."""
    plain_json(world.limits, "settings", plan.settings)
    call = ModelCall(
        number=len(state.calls) + 1, turn=turn, purpose=plan.purpose,
        model=key(world.limits, "model", plan.model), state="planned",
        generation=len(state.compactions), up_to_seq=state.head, usage=Usage(), cost=None,
        latency=None, started_at=now,
    )  # fmt: skip
    state.calls.append(call)
    return call.number


def finish_call(world: World, state: State, number: int, result: CallResult) -> None:
    """Note how it ended; the first result stays."""
    if not 0 < number <= len(state.calls):
        raise NotFound("model call", str(number))
    call = state.calls[number - 1]
    if call.state == "planned":
        state.calls[number - 1] = replace(
            call, state=result.state, usage=result.usage, cost=result.cost,
            latency=result.latency, error=label(world.limits, "call error", result.error),
            partial=None,
        )  # fmt: skip


def check_asked(state: State, fresh: Sequence[Named]) -> None:
    """A tool result answers a call that was made before it."""
    made = {call for message in state.messages for call in call_ids(message.parts)}
    for item in fresh:
        if not set(answered_ids(item.draft.parts)) <= made:
            raise InputError("a tool result answers a call that was not made")
        made.update(call_ids(item.draft.parts))


def open_calls(state: State, turn: int) -> set[str]:
    """Tool calls of a turn that have no result yet."""
    mine = state.messages[state.turns[turn - 1].first_seq - 1 :]
    made = {call for message in mine for call in call_ids(message.parts)}
    return made - {call for message in mine for call in answered_ids(message.parts)}


# ------------------------------------------------------------------ cuts


def visible(state: State, first: int = 1, last: int | None = None) -> list[Message]:
    """Messages that no cut in force hides."""
    found = state.messages[first - 1 : last]
    return [message for message in found if not hidden(state.cuts, message.seq)]


def shown(state: State, messages: Sequence[Message]) -> list[Message]:
    """Each message, or the newest that stands in its place."""
    place: dict[int, int] = {}
    newest: dict[int, Message] = {}
    for message in state.messages:
        if message.replaces is not None:
            place[message.seq] = place.get(message.replaces, message.replaces)
            if not hidden(state.cuts, message.seq):
                newest[place[message.seq]] = message
    return [newest.get(m.seq, m) for m in messages if m.seq not in place]


def message_count(state: State) -> int:
    """What a reader sees; a replacement counts for the one it replaces."""
    replacing = sum(m.replaces is not None for m in visible(state))
    return len(visible(state)) - replacing


def preview(state: State) -> str | None:
    """The newest visible text of a person or model."""
    return next(filter(None, map(preview_of, reversed(visible(state)))), None)


def preview_of(message: Message) -> str | None:
    """The beginning of the first text, of a message that a person reads."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    spoken = message.role in (Role.USER, Role.ASSISTANT)
    return shorten(texts[0], 160) if spoken and texts else None


def seq_of(state: State, uid: str) -> int:
    """Where the message of a uid is."""
    wanted = uid_of(uid)
    for message in reversed(state.messages):
        if message.uid == wanted:
            return message.seq
    raise NotFound("message", uid)


def moved(state: State, now: int) -> None:
    """Rows already there mean something else now: no summary of them may be committed."""
    state.view += 1
    state.attempts = [
        replace(a, state="cancelled", ended_at=now) if a.state == "open" else a
        for a in state.attempts
    ]


def cut_from(state: State, seq: int, by: str | None, now: int) -> CutOutcome:
    """Hide seq..head, end the open turn, withdraw what waits."""
    open_for_append(state, now)
    if hidden(state.cuts, seq):
        raise InputError(f"the message at seq {seq} is hidden by a cut already")
    turn = interrupt(state, now, "cut")
    withdrawn = withdraw(state)
    number = max((cut.number for cut in state.cuts), default=0) + 1
    cut = Cut(number=number, from_seq=seq, to_seq=state.head, by=by, at=now)
    state.cuts.append(cut)
    moved(state, now)
    return CutOutcome(number, seq, state.head, withdrawn, turn, state.head, state.view)


# ------------------------------------------------------------------ compactions


def effective(state: State, cuts: Sequence[Cut], last: int) -> Compaction | None:
    """The compaction that stands for the beginning of the log."""
    return in_effect([c for c in state.compactions if c.covers_to <= last], cuts)


def check(state: State, proposal: Proposal) -> None:
    """What a compaction may cover."""
    to = proposal.covers_to
    if not 0 < to <= state.head:
        raise InvalidCompaction(f"covers_to {to} is not within 1..{state.head}")
    if state.open_turn is not None and to >= state.open_turn.first_seq:
        raise InvalidCompaction("it reaches into the open turn")
    for item in proposal.body:
        if isinstance(item, Ref) and not 0 < item.first <= item.last <= to:
            raise InvalidCompaction(f"{item} is not covered")
        if isinstance(item, Stub) and (not 0 < item.seq <= to or hidden(state.cuts, item.seq)):
            raise InvalidCompaction(f"{item} names no visible covered message")
        assert isinstance(item, Ref | Stub | Inline)
    above, below = visible(state, to + 1), visible(state, 1, to)
    made = {call for message in below for call in call_ids(message.parts)}
    if above and made & set(answered_ids(above[0].parts)):
        raise InvalidCompaction("it splits a call from its result")
    answered: set[str] = set()
    for message in reversed(below):
        if not answered_ids(message.parts):
            if set(call_ids(message.parts)) - answered:
                raise InvalidCompaction("it covers a call that wants its result")
            return
        answered.update(answered_ids(message.parts))


def compact(
    world: World, state: State, attempt: int | None, proposal: Proposal, now: int
) -> Compaction:
    """Add the record; nothing else changes."""
    record = Compaction(
        generation=len(state.compactions) + 1, attempt=attempt, covers_to=proposal.covers_to,
        body=tuple(proposal.body), cuts=in_force_at(state.cuts, proposal.covers_to),
        kind="foreign" if attempt is None else "ours", tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after, created_at=now,
        receipt=plain_json(world.limits, "receipt", proposal.receipt),
    )  # fmt: skip
    state.compactions.append(record)
    state.view += 1
    return record



# ------------------------------------------------------------------ other views of a state


def at_head(state: State, head: int, cuts: Sequence[Cut]) -> State:
    """The state as a snapshot of that head shows it."""
    return dataclasses.replace(state, messages=state.messages[:head], cuts=list(cuts))


def renamed(world: World, state: State, item: Named) -> Named:
    """A draft that comes again after it was cut off: its names are taken, so it gets new ones."""
    uid = world.ids.uid().hex()
    anonymous = Named(replace(item.draft, key=None, uid=None), uid, True, item.at, item.blobs)
    try:
        found = _find(state, item)
    except KeyReused:
        return anonymous
    return item if found is None or found.seq is None else anonymous
