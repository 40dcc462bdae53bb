"""The rules of the log, each a few lines on lists: names, appending, the inbox, cuts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from clew.domain.cuts import Cut, CutOutcome, hidden
from clew.domain.messages import Appended, Message, Role, partial, wants_next
from clew.domain.parts import File, Image, Parts, Text, ToolResult, answered_ids, call_ids
from clew.domain.text import shorten
from clew.errors import (
    BatchConflict,
    Ended,
    InboxFull,
    InputError,
    KeyReused,
    NotFound,
    ReadOnly,
    Stale,
    TooLarge,
)
from clew.testing.reference import turns
from clew.testing.reference.state import Entry, Named, State, World
from clew.testing.reference.values import label, named, uid_of

BOUNDARIES = {
    "closed", "reset", "new", "idle", "daily", "switched", "suspended", "expired", "exhausted",
    "finished",
}  # fmt: skip
ACCIDENTS = {"stale", "imported"}


class Found(NamedTuple):
    """Where a draft already is: a seq of the log, a number of the inbox; neither: withdrawn."""

    uid: str
    seq: int | None
    number: int | None = None


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
            return Found(there.uid, None, entry.number if entry.state == "waiting" else None)
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


def shared(messages: Sequence[Message], wanted: Sequence[Named]) -> int:
    """How many messages at the beginning say what the drafts say."""
    for count, (message, item) in enumerate(zip(messages, wanted, strict=False)):
        if not alike(message, item):
            return count
    return min(len(messages), len(wanted))


def alike(message: Message, item: Named) -> bool:
    """Whether a message says what a draft says."""
    draft = item.draft
    chat = (message.meta or {}).get("chat"), (draft.meta or {}).get("chat")
    return chat[0] == chat[1] and (message.role, message.parts, message.author) == (
        draft.role, draft.parts, draft.author
    )  # fmt: skip


def renamed(world: World, state: State, item: Named) -> Named:
    """A draft that comes again after it was cut off: its names are taken, so it gets new ones."""
    uid = world.ids.uid().hex()
    anonymous = Named(replace(item.draft, key=None, uid=None), uid, True, item.at, item.blobs)
    try:
        found = _find(state, item)
    except KeyReused:
        return anonymous
    return item if found is None or found.number is not None else anonymous


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


def check_asked(state: State, fresh: Sequence[Named]) -> None:
    """A tool result answers a call that was made before it."""
    made = {call for message in state.messages for call in call_ids(message.parts)}
    for item in fresh:
        if not set(answered_ids(item.draft.parts)) <= made:
            raise InputError("a tool result answers a call that was not made")
        made.update(call_ids(item.draft.parts))


def blob_of(world: World, state: State, digest: str) -> bytes | None:
    """Bytes of this conversation, or of one that it inherits from."""
    here: State | None = state
    while here is not None:
        if (data := here.blobs.get(digest)) is not None:
            return data
        here = world.states.get(here.origin) if here.base and here.origin else None
    return None


def keep_blobs(world: World, state: State, items: Sequence[Named]) -> None:
    """Keep the bytes that drafts bring; those that they only name are here, or are copied."""
    for item in items:
        for digest, given in item.blobs.items():
            data = blob_of(world, state, digest) if given is None else given
            if data is None:
                raise InputError(f"no bytes with the hash {digest} are stored here; pass them")
            state.blobs[digest] = data


def hashes(parts: Parts) -> set[str]:
    """The blobs that parts name."""
    pieces: list[object] = []
    for part in parts:
        pieces += [part] if not isinstance(part, ToolResult) else part.content
    return {p.hash for p in pieces if isinstance(p, Image | File) and p.hash is not None}


def insert(
    world: World, state: State, items: Sequence[Named], turn: int | None = None
) -> list[int]:
    """Add to the end of the log; gives the seqs."""
    first = state.head + 1
    keep_blobs(world, state, items)
    for item in items:
        draft, seq = item.draft, state.head + 1
        if draft.replaces is not None and not 0 < draft.replaces < seq:
            raise InputError(f"replaces names seq {draft.replaces}; give an earlier seq")
        if draft.replaces is not None and hidden(state.cuts, draft.replaces):
            raise InputError(f"the message at seq {draft.replaces} is hidden by a cut")
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
    if turns.is_busy(state, now):
        return put(world, state, wanted, found, fresh)
    interrupt(world, state, now, "its holder was gone")
    if not fresh:
        return outcome(state, wanted, found, 0)
    open_for_append(state, now)
    if head is None:
        take(world, state)
        found = lookup(state, wanted)
    return outcome(state, wanted, found, len(fresh), insert(world, state, fresh))


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
    keep_blobs(world, state, fresh)
    first = max((entry.number for entry in state.inbox), default=0) + 1
    state.inbox += [Entry(number, item) for number, item in enumerate(fresh, first)]
    numbers = range(first, first + len(fresh))
    return outcome(state, wanted, found, len(fresh), queued=numbers)


def interrupt(world: World, state: State, now: int, why: str | None) -> int | None:
    """End the open turn from outside: its holder's next write is refused. What its model had
    streamed is a message then. Gives its number."""
    turn = state.open_turn
    if turn is None:
        return None
    said = [c.partial for c in state.calls if c.turn == turn.number and c.state == "planned"]
    text = next((text for text in reversed(said) if text is not None), "")
    if text.strip():
        with suppress(TooLarge):  # it stays beside its call: an end must not fail
            insert(world, state, named(world, [partial(text)]), turn.number)
    turns.close_turn(state, "interrupted", now, why)
    state.fence += 1
    return turn.number


def take(
    world: World, state: State, turn: int | None = None, *, steering: bool = False
) -> tuple[int, ...]:
    """What waits enters the log, in order of arrival; into a turn that runs, only what does not
    want the next one."""
    waiting = state.waiting
    if steering:
        waiting = list(takewhile(lambda e: not wants_next(e.named.draft.meta), waiting))
    for entry in waiting:
        (seq,) = insert(world, state, [entry.named], turn)
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


# ------------------------------------------------------------------ what is shown, and cuts


def visible(state: State, first: int = 1, last: int | None = None) -> list[Message]:
    """Messages that no cut in force hides."""
    found = state.messages[first - 1 : last]
    return [message for message in found if not hidden(state.cuts, message.seq)]


def shown(state: State, messages: Sequence[Message]) -> list[Message]:
    """Each message, or the newest that stands in its place."""
    place = places(state)
    newest = {
        root: state.messages[seq - 1]
        for seq, root in place.items()
        if not hidden(state.cuts, seq)
    }  # fmt: skip
    return [newest.get(m.seq, m) for m in messages if m.seq not in place]


def places(state: State) -> dict[int, int]:
    """For each message that replaces another: the seq where its place is."""
    place: dict[int, int] = {}
    for message in state.messages:
        if message.replaces is not None:
            place[message.seq] = place.get(message.replaces, message.replaces)
    return place


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


def cut_from(world: World, state: State, seq: int, by: str | None, now: int) -> CutOutcome:
    """Hide seq..head, end the open turn, withdraw what waits."""
    open_for_append(state, now)
    if hidden(state.cuts, seq):
        raise InputError(f"the message at seq {seq} is hidden by a cut already")
    turn = interrupt(world, state, now, "cut")
    withdrawn = withdraw(state)
    number = max((cut.number for cut in state.cuts), default=0) + 1
    cut = Cut(number=number, from_seq=seq, to_seq=state.head, by=by, at=now)
    state.cuts.append(cut)
    moved(state, now)
    return CutOutcome(number, seq, state.head, withdrawn, turn, state.head, state.view)


def pop(world: World, state: State, count: int, now: int) -> list[Message]:
    """Hide the newest messages that are shown; gives them."""
    place = places(state)
    standing = [m for m in visible(state) if m.seq not in place][-count:]
    if not standing:
        return []
    first, found = standing[0].seq, shown(state, standing)
    for seq, root in place.items():
        seen = not hidden(state.cuts, seq) and not hidden(state.cuts, root)
        if root < first <= seq and seen:
            raise InputError(f"the message at seq {root} would show its old text")
    cut_from(world, state, first, "pop", now)
    return found


def cut_at(
    world: World, state: State, uid: str, head: int | None, view: int | None, by: str | None
) -> CutOutcome:
    """A cut at the message of a uid, by somebody who saw this head and view."""
    check_expected(state, head, view)
    seq = seq_of(state, uid)
    return cut_from(world, state, seq, label(world.limits, "by", by), world.clock.now())
