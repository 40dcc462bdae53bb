"""Conversations as records: made, described, ended, named; what a branch copies."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from msgspec.structs import replace

from clew.domain.conversations import (
    ConversationInfo,
    Kind,
    NewConversation,
    Workspace,
    shown_title,
)
from clew.domain.cuts import hidden
from clew.errors import InputError, KeyReused, NotFound
from clew.testing.reference import log, values
from clew.testing.reference.state import AliasRow, State, World


def descended(new: NewConversation | None, origin: State) -> NewConversation:
    """What is said about a branch or delegate: from the same source, unless another is named."""
    new = new or NewConversation()
    return replace(new, source=origin.source) if new.source is None else new


def create(world: World, profile: str, new: NewConversation) -> State:
    """A new conversation in the world."""
    for at in (new.created_at, new.imported_at):
        if at is not None and not 0 <= at <= 1 << 61:
            raise InputError(f"{at} is no time in microseconds since 1970")
    now = world.clock.now() if new.created_at is None else new.created_at
    limits, place = world.limits, new.workspace
    id = new.id or world.ids.conversation()
    if id in world.states:
        raise NotFound("conversation", id)
    state = State(
        id=values.key(limits, "conversation id", id), profile=profile,
        source=values.key(limits, "source", "api" if new.source is None else new.source),
        kind="root", origin=None, base=0,
        affinity=world.ids.uid().hex(), attribution=None, created_at=now, active_at=now,
        imported_at=new.imported_at,
        workspace=Workspace(
            values.label(limits, "cwd", place.cwd),
            values.label(limits, "git_root", place.git_root),
            values.label(limits, "git_branch", place.git_branch),
        ),
        model=values.label(limits, "model", new.model), prompt=new.prompt, toolset=new.toolset,
        meta=values.plain_json(limits, "meta", new.meta), archived=new.archived,
        automation=new.automation, read_only=new.read_only,
    )  # fmt: skip
    if new.title is not None:
        state.titles["user"] = values.title_of(new.title)
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
        title_locked=state.title_locked, preview=log.preview(state),
        message_count=log.message_count(state), waiting=len(state.waiting),
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
    if reason not in log.BOUNDARIES | log.ACCIDENTS:
        raise InputError(f"unknown end reason {reason!r}")
    state.ended_at, state.end_reason = now, reason
    return True


def claim(
    world: World, state: State, source: str, foreign_id: str, *, from_seq: int,
    kind: Literal["segment", "foreign"],
) -> str:  # fmt: skip
    """The first claim of an id wins; a later one is kept as ambiguous."""
    source = values.key(world.limits, "alias source", source)
    foreign_id = values.key(world.limits, "alias", foreign_id)
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


def known_id(world: World, profile: str, id: str | None) -> State | None:
    """The conversation that has this id already."""
    state = None if id is None else world.states.get(id)
    return None if state is None or state.profile != profile else state


def again(state: State, kind: Kind, origin: str | None, base: int | None) -> str:
    """Its id, if the same call would make it again. Base None: any."""
    if (state.kind, state.origin) != (kind, origin) or base not in (None, state.base):
        raise KeyReused(state.id, None, "conversation")
    return state.id


def repeated(
    origin: State, uid: str | None, at_cut: int | None
) -> tuple[Kind, str | None, int | None]:
    """What a branch at this point is: kind, origin and base, None for a head that moves on."""
    base: int | None
    if uid is not None:
        base = log.seq_of(origin, uid)
    elif at_cut is not None:
        base, _ = point(origin, None, at_cut)
    else:
        base = None if origin.head else 0
    return ("root", None, 0) if base == 0 else ("branch", origin.id, base)


def point(origin: State, uid: str | None, at_cut: int | None) -> tuple[int, int | None]:
    """The last message a branch inherits, and the cut whose line it is."""
    if at_cut is not None:
        for cut in origin.cuts:
            if cut.number == at_cut:
                return cut.to_seq, cut.number
        raise NotFound("cut", str(at_cut))
    if uid is None:
        return origin.head, None
    seq = log.seq_of(origin, uid)
    if hidden(origin.cuts, seq):
        raise InputError(f"the message at seq {seq} is hidden by a cut; open its line with at_cut")
    return seq, None


def inherit(state: State, origin: State, given: NewConversation) -> None:
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
