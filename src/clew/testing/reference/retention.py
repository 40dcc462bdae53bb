"""The bin, deletions and policies of the reference."""

from __future__ import annotations

from msgspec.structs import replace

from clew.domain.conversations import shown_title
from clew.domain.retention import Aged, Binned, Item, Policy, Pruned, due
from clew.testing.reference import log, records
from clew.testing.reference.state import AliasRow, State, World


def hide(world: World, state: State) -> None:
    """Nobody finds it any more."""
    log.interrupt(world, state, world.clock.now(), "deleted")
    world.bindings = {k: v for k, v in world.bindings.items() if v != state.id}
    world.aliases = [
        replace(row, state="deleted") if row.conversation == state.id else row
        for row in world.aliases
    ]


def bin(world: World, profile: str, id: str) -> bool:
    """False: it is there already."""
    state = world.whole(profile, id)
    if state.binned_at is not None:
        return False
    hide(world, state)
    state.binned_at = world.clock.now()
    return True


def unbin(world: World, profile: str, id: str) -> None:
    """As it was, but for its keys, and for foreign ids that others have claimed."""
    state = world.whole(profile, id)
    if state.binned_at is not None:
        state.binned_at = None
        world.aliases = [
            _revived(world, row) if row.conversation == id else row for row in world.aliases
        ]


def _revived(world: World, row: AliasRow) -> AliasRow:
    place = (row.profile, row.source, row.foreign_id)
    taken = any(
        (other.profile, other.source, other.foreign_id) == place and other.state == "claimed"
        for other in world.aliases
    )
    return replace(row, state="ambiguous" if taken else "claimed")


def binned(world: World, profile: str) -> tuple[Binned, ...]:
    """What can be restored, the latest first."""
    found = [
        (state.binned_at, at, state) for at, state in enumerate(world.states.values())
        if state.profile == profile and state.binned_at is not None
    ]  # fmt: skip
    return tuple(_binned(state, at) for at, _, state in sorted(found, key=lambda f: f[:2])[::-1])


def _binned(state: State, at: int) -> Binned:
    titles = state.titles
    title, _ = shown_title(titles.get("user"), titles.get("llm"), titles.get("derived"))
    return Binned(
        id=state.id, title=title, source=state.source, kind=state.kind,
        origin=state.origin, messages=log.message_count(state), active_at=state.active_at,
        binned_at=at,
    )  # fmt: skip


def delete(world: World, profile: str, id: str) -> None:
    """Its branches keep all they show; delegates stay."""
    gone = world.whole(profile, id)
    hide(world, gone)
    del world.states[id]
    for child in world.states.values():
        if child.origin == id:
            for message in child.messages[gone.base : child.base]:
                for digest in log.hashes(message.parts) & gone.blobs.keys():
                    child.blobs[digest] = gone.blobs[digest]
            child.base = min(child.base, gone.base)
            child.origin = gone.origin if child.base else None


def empty(world: World, profile: str | None, before: int, why: str) -> list[Item]:
    """Delete what came into the bin by then."""
    found = [
        s for s in world.states.values()
        if s.binned_at is not None and s.binned_at <= before and profile in (None, s.profile)
    ]  # fmt: skip
    for state in found:
        delete(world, state.profile, state.id)
    return [_item(s, "deleted", s.binned_at or 0, why) for s in found]


def prune(world: World, policy: Policy, profile: str | None) -> Pruned:
    """What a policy says, at once."""
    now = world.clock.now()
    items = empty(world, profile, now - policy.bin, "in the bin for long")
    for state in list(world.states.values()):
        spared = state.pinned or state.archived or state.open_turn or state.waiting
        if spared or state.binned_at is not None or profile not in (None, state.profile):
            continue
        found = due(policy, _aged(state), now)
        if found is None:
            continue
        if found.act == "close":
            records.end(state, "stale", now)
        else:
            bin(world, state.profile, state.id)
        did = "closed" if found.act == "close" else "binned"
        items.append(_item(state, did, found.since, found.why))
    return Pruned(items=tuple(items))


def _aged(state: State) -> Aged:
    return Aged(
        no=0, id=state.id, profile=state.profile, kind=state.kind, source=state.source,
        automation=state.automation, active_at=state.active_at, imported_at=state.imported_at,
        ended_at=state.ended_at, reopened_at=state.reopened_at, messages=log.message_count(state),
    )  # fmt: skip


def _item(state: State, did: str, since: int, why: str) -> Item:
    return Item(
        id=state.id, profile=state.profile, kind=state.kind, source=state.source,
        did=did,  # pyright: ignore[reportArgumentType]
        since=since, messages=log.message_count(state), why=why,
    )  # fmt: skip
