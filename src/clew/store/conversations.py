"""The conversation row: its lock, its counters, its titles, flags, end and reopening.

Every unit of work that writes to a conversation calls `lock` first. The row is written here only.
Invariants: I-01 (head), I-04 (fence), I-12 (ends), I-14 (titles).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.clock import check_time
from clew.domain.conversations import (
    ConversationInfo,
    Kind,
    NewConversation,
    TitleOrigin,
    Workspace,
)
from clew.domain.text import clean, shorten
from clew.errors import Ended, InputError, KeyReused, NotFound, ReadOnly, RightLost, Stale
from clew.store import prompts
from clew.store.backend import Transaction
from clew.store.changes import note
from clew.store.drafts import TITLE, Prepared
from clew.store.info import info_of
from clew.store.kit import Kit

DEFAULT_SOURCE = "api"
"""Of a conversation whose maker names none."""


class Locked(NamedTuple):
    """The row as it is while the unit holds its lock."""

    no: int
    id: str
    profile: str
    kind: Kind
    origin: int | None
    base: int
    head: int
    view: int
    generation: int
    fence: int
    holder: str | None
    held_at: int | None
    held_ttl: int | None
    turn: int | None
    ended_at: int | None
    end_reason: str | None
    boundary: int | None
    read_only: int
    binned_at: int | None
    message_count: int
    waiting: int
    title_locked: int
    deleting: int
    clock: int | None
    """The store's own clock at the lock (see Kit.store_time)."""


def lock(tx: Transaction, no: int, name: str = "") -> Locked:
    """Lock the row and read it; NotFound when the conversation is deleted."""
    row = tx.row("conversation_lock", no=no)
    if row is None or row[18] is not None:
        raise NotFound("conversation", name or str(no))
    return Locked._make(row)


def lock_whole(tx: Transaction, no: int) -> Locked | None:
    """Lock for a step of a deletion: against units that write to it or inherit from it. None when
    it is gone. Lock order: a conversation before the one it comes from."""
    row = tx.row("conversation_lock_whole", no=no)
    return None if row is None else Locked._make(row)


def peek(tx: Transaction, no: int) -> Locked | None:
    """As it is, for readers: nothing is locked."""
    row = tx.row("conversation_row", no=no)
    return None if row is None else Locked._make(row)


def lock_fenced(tx: Transaction, no: int, fence: int, name: str) -> Locked:
    """As `lock`, for a write under the right to run; RightLost when the fence has moved."""
    row = tx.row("conversation_lock_fenced", no=no, fence=fence)
    if row is None or row[18] is not None:
        raise RightLost(name, fence)
    return Locked._make(row)


def lock_by_id(tx: Transaction, profile: str, conversation: str) -> Locked:
    """Lock by public id, inside one profile."""
    return lock(tx, number_of(tx, profile, conversation), conversation)


def number_of(tx: Transaction, profile: str | None, conversation: str) -> int:
    """The inner number of an id; ids of another profile are NotFound."""
    row = tx.row("conversation_no", id=conversation)
    if row is None or (profile is not None and row[1] != profile):
        raise NotFound("conversation", conversation)
    return row[0]


def whole_number_of(tx: Transaction, profile: str, conversation: str) -> int:
    """As `number_of`, for what may be in the bin, or on its way out."""
    row = tx.row("conversation_whole", id=conversation)
    if row is None or row[1] != profile:
        raise NotFound("conversation", conversation)
    return row[0]


def check_expected(row: Locked, head: int | None, view: int | None) -> None:
    """Refuse a caller whose picture of the conversation is old."""
    if head is not None and head != row.head:
        raise Stale("head", head, row.head)
    if view is not None and view != row.view:
        raise Stale("view", view, row.view)


def open_for_append(tx: Transaction, row: Locked, now: int) -> None:
    """Refuse a read-only or ended conversation; undo an end that was no boundary."""
    if row.read_only:
        raise ReadOnly(row.id)
    if row.ended_at is not None:
        if row.boundary:
            raise Ended(row.id, str(row.end_reason), True)
        tx.run("conversation_reopen", no=row.no, at=now)
        note(tx, row.id, row.profile, "reopened", now)


def create(
    tx: Transaction,
    kit: Kit,
    profile: str,
    new: NewConversation,
    *,
    id: str,
    kind: Kind = "root",
    origin: Locked | None = None,
    base: int = 0,
    generation: int = 0,
    message_count: int = 0,
    preview: str | None = None,
    attribution: str | None = None,
    unused: bool = False,
) -> int:
    """Insert a conversation; gives its inner number. Creating an id again returns the first, if it
    is of the same kind and comes from the same place; KeyReused otherwise, or if it had to be
    `unused`."""
    check_time("created_at", new.created_at)
    check_time("imported_at", new.imported_at)
    at = kit.clock.now() if new.created_at is None else new.created_at
    prompt, toolset = prompts.store(tx, kit, new.prompt, new.toolset)
    inserted = tx.changed(
        "conversation_insert",
        id=kit.key("conversation id", id),
        profile=profile,
        kind=kind,
        source=kit.key("source", DEFAULT_SOURCE if new.source is None else new.source),
        origin=None if origin is None else origin.no,
        base=base,
        title_user=None if new.title is None else title_text(new.title),
        title_derived=None,
        preview=preview,
        message_count=message_count,
        cwd=kit.label("cwd", new.workspace.cwd),
        git_root=kit.label("git_root", new.workspace.git_root),
        git_branch=kit.label("git_branch", new.workspace.git_branch),
        model=kit.label("model", new.model),
        prompt_hash=prompt,
        toolset_hash=toolset,
        affinity=kit.ids.uid().hex(),
        attribution=attribution,
        archived=int(new.archived),
        automation=int(new.automation),
        read_only=int(new.read_only),
        at=at,
        imported_at=new.imported_at,
        generation=generation,
        meta=kit.json("meta", new.meta),
    )
    if not inserted and tx.row("conversation_no", id=id) is None:
        raise KeyReused(id, None, "conversation")  # in the bin, or on its way out
    no = number_of(tx, profile, id)
    if inserted:
        prompts.use(tx, no, prompt, toolset)
        note(tx, id, profile, "created", at)
    elif unused or not is_made(tx, no, kind, origin, base):
        raise KeyReused(id, None, "conversation")
    return no


def is_made(tx: Transaction, no: int, kind: Kind, origin: Locked | None, base: int | None) -> bool:
    """Whether a conversation is what a repeated creation would make. Base None: any."""
    row = peek(tx, no)
    if row is None:
        return False
    place = None if origin is None else origin.no
    return (row.kind, row.origin) == (kind, place) and base in (None, row.base)


def appended(tx: Transaction, row: Locked, prepared: Sequence[Prepared]) -> int:
    """Move head and the list's columns after `prepared` were inserted at head+1...

    Gives how many more messages are visible: one that replaces another adds none.
    """
    preview = title = None
    at, replaced = 0, 0
    for item in prepared:
        preview = item.preview or preview
        title = title or item.title
        at = max(at, item.at)
        replaced += item.replaces is not None
    tx.run(
        "conversation_append",
        no=row.no,
        head=row.head + len(prepared),
        visible=len(prepared) - replaced,
        at=at,
        preview=preview,
        title=title,
        moved=int(replaced > 0),
    )
    return len(prepared) - replaced


def imported(tx: Transaction, no: int, to: int | None, now: int) -> None:
    """Mark up to where the log is that of an import's source."""
    tx.run("conversation_imported", no=no, seq=to, at=now)


def title_text(title: str) -> str:
    """A title as it is stored: one line, cleaned, at most 80 characters; InputError when empty."""
    text = shorten(title, TITLE)
    if text is None:
        raise InputError("a title needs at least one visible character")
    return text


def set_title(
    tx: Transaction, row: Locked, title: str | None, origin: TitleOrigin, now: int,
    lock_it: bool | None = None,
) -> bool:  # fmt: skip
    """Write one of the three titles; False when the title is locked and nothing was written.

    Each origin has its own column, so no robot can overwrite a person's title.
    """
    if row.title_locked and lock_it is not False:
        return False
    text = None if title is None else title_text(title)
    match origin:
        case "user":
            locked = row.title_locked if lock_it is None else int(lock_it)
            tx.run("conversation_title_user", no=row.no, title=text, locked=locked)
        case "llm":
            tx.run("conversation_title_llm", no=row.no, title=text)
        case "derived":
            tx.run("conversation_title_derived", no=row.no, title=text)
        case _:
            raise InputError(f"title origin is {origin!r}; give user, llm or derived")
    note(tx, row.id, row.profile, "titled", now)
    return True


def set_flags(tx: Transaction, row: Locked, now: int, **flags: bool | None) -> None:
    """Change pinned, archived, automation or read_only; None leaves one as it is."""
    current = info(tx, row.no)
    values = {
        name: int(getattr(current, name) if flags.get(name) is None else bool(flags[name]))
        for name in ("pinned", "archived", "automation", "read_only")
    }
    if all(bool(values[name]) == getattr(current, name) for name in values):
        return
    tx.run("conversation_flags", no=row.no, **values)
    note(tx, row.id, row.profile, "flagged", now)


def set_workspace(
    tx: Transaction, kit: Kit, row: Locked, workspace: Workspace | None, model: str | None
) -> None:
    """Replace folder, repository and branch (all three), or the model; None leaves it."""
    current = info(tx, row.no)
    place = workspace or Workspace(current.cwd, current.git_root, current.git_branch)
    tx.run(
        "conversation_workspace",
        no=row.no,
        cwd=kit.label("cwd", place.cwd),
        git_root=kit.label("git_root", place.git_root),
        git_branch=kit.label("git_branch", place.git_branch),
        model=kit.label("model", model) or current.model,
    )
    note(tx, row.id, row.profile, "flagged", kit.clock.now())


def check_reason(tx: Transaction, reason: str, boundary: bool = False) -> None:
    """Refuse an unclassified reason and, for a `boundary`, one that infrastructure writes."""
    rows: list[tuple[str, int]] = [(r[0], r[1]) for r in tx.rows("end_reason_all")]
    known = [name for name, is_boundary in rows if is_boundary or not boundary]
    if reason not in known:
        raise InputError(f"end reason {clean(reason)!r} is none of: {', '.join(known)}")


def end(tx: Transaction, row: Locked, reason: str, now: int) -> bool:
    """End with a known reason; the first end wins: False when it had ended already."""
    if row.ended_at is not None:
        return False
    check_reason(tx, reason)
    tx.run("conversation_end", no=row.no, at=now, reason=reason)
    note(tx, row.id, row.profile, "ended", now, reason)
    return True


def reopen(tx: Transaction, row: Locked, now: int) -> bool:
    """A person's undo of an end; restores no binding. False when it had not ended."""
    if row.ended_at is None:
        return False
    tx.run("conversation_reopen", no=row.no, at=now)
    note(tx, row.id, row.profile, "reopened", now)
    return True


def take_right(tx: Transaction, row: Locked, holder: str, ttl: int, now: int) -> Locked:
    """Take the right to run; the caller has checked that it is free."""
    tx.run("conversation_take", no=row.no, holder=holder, at=now, ttl=ttl)
    return row._replace(fence=row.fence + 1, holder=holder, held_at=now, held_ttl=ttl)


def renew_right(tx: Transaction, row: Locked, now: int) -> None:
    """The holder's sign of life."""
    tx.run("conversation_renew", no=row.no, at=now)


def release_right(tx: Transaction, row: Locked) -> Locked:
    """Give the right back; the fence stays."""
    tx.run("conversation_release", no=row.no)
    return row._replace(holder=None, held_at=None, held_ttl=None)


def revoke_right(tx: Transaction, row: Locked) -> Locked:
    """End whoever runs: the next write under the old fence is refused."""
    tx.run("conversation_fence", no=row.no)
    return row._replace(fence=row.fence + 1, holder=None, held_at=None, held_ttl=None)


def set_turn(tx: Transaction, row: Locked, turn: int | None) -> Locked:
    """Name the open turn."""
    tx.run("conversation_turn", no=row.no, turn=turn)
    return row._replace(turn=turn)


def count_waiting(tx: Transaction, row: Locked, by: int) -> Locked:
    """Keep the number of waiting inbox messages."""
    tx.run("conversation_waiting", no=row.no, by=by)
    return row._replace(waiting=row.waiting + by)


def compacted(tx: Transaction, row: Locked, generation: int) -> None:
    """Move view and generation with a compaction (or its undo)."""
    tx.run("conversation_generation", no=row.no, generation=generation)


def set_prompt(tx: Transaction, row: Locked, prompt: bytes | None, toolset: bytes | None) -> None:
    """Point at another prompt or tool set; None leaves one as it is."""
    prompts.use(tx, row.no, prompt, toolset)
    tx.run("conversation_prompt", no=row.no, prompt=prompt, toolset=toolset)


def inherit_records(tx: Transaction, origin: int, branch: int) -> None:
    """Give a branch what its origin points at and the list shows: prompt, tool set, title."""
    prompts.copy_use(tx, origin, branch)
    tx.run("conversation_inherit", origin=origin, branch=branch)


def bin(tx: Transaction, row: Locked, now: int) -> None:
    """Into the bin: nobody finds the conversation any more, and nothing of it is gone."""
    tx.run("conversation_bin", no=row.no, at=now)


def unbin(tx: Transaction, row: Locked) -> None:
    """Out of the bin, as it was."""
    tx.run("conversation_unbin", no=row.no)


def doom(tx: Transaction, row: Locked, now: int) -> None:
    """Begin a deletion: nobody restores the conversation any more, its rows follow in steps."""
    tx.run("conversation_doom", no=row.no, at=now)


def lower_base(tx: Transaction, no: int, base: int, origin: int | None) -> None:
    """A branch has taken over inherited rows: what it still inherits, and from whom."""
    tx.run("conversation_base", no=no, base=base, origin=origin)


def orphan(tx: Transaction, no: int) -> None:
    """Delegates of a conversation that is being deleted lose their origin, and stay."""
    tx.run("conversation_orphan", no=no)


def delete(tx: Transaction, no: int) -> None:
    """The last step of a deletion."""
    tx.run("conversation_delete", no=no)


def view_moved(
    tx: Transaction, row: Locked, message_count: int, preview: str | None, moves: int = 1
) -> None:
    """Move the view: a cut, an undo or an erasure changed what rows already there mean."""
    tx.run(
        "conversation_view", no=row.no, moves=moves, message_count=message_count, preview=preview
    )


def info(tx: Transaction, no: int) -> ConversationInfo:
    """The row as values; NotFound when it is deleted."""
    row = tx.row("conversation_info", no=no)
    if row is None or row[36] is not None:
        raise NotFound("conversation", str(no))
    return info_of(row)


def texts(tx: Transaction, no: int) -> tuple[str | None, ...]:
    """title_user, title_llm, title_derived, preview, cwd, git_root, git_branch, meta."""
    return tx.rows("conversation_texts", no=no)[0]


def erase(
    tx: Transaction, row: Locked, title: str | None, derived: str | None, preview: str | None
) -> Locked:
    """What the list shows of messages, made anew after some were erased; the view moves."""
    tx.run(
        "conversation_erase", no=row.no, title_user=title, title_derived=derived, preview=preview
    )
    return row._replace(view=row.view + 1)


def forget(tx: Transaction, row: Locked) -> Locked:
    """All that it says of itself, with the prompts it points at; the view moves."""
    tx.run("conversation_forget", no=row.no)
    return row._replace(view=row.view + 1)


def place(tx: Transaction, profile: str, id: str) -> tuple[int, str, str, int | None, int, int]:
    """(no, id, kind, origin, base, head); NotFound."""
    row = tx.row("conversation_place", id=id, profile=profile)
    if row is None:
        raise NotFound("conversation", id)
    return row[0], row[1], row[2], row[3], row[4], row[5]
