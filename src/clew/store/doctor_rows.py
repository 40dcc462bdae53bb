"""The part of a diagnosis that reads the store's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.store.dictionary import ENOUGH
from clew.store.findings import Ask, Finding, counted
from clew.store.migrations import is_unfinished
from clew.store.rights import is_free

SHOWN = 5
"""Conversations named in one finding."""


def look(ask: Ask, opening: str, now: int) -> Iterator[Finding]:
    """What is in a store, and what was left half done. `opening`: Python that opens it. Raises
    StoreError."""
    maintain = f'python -c "import clew; {opening}.maintain()"'
    yield _rows(ask)
    yield from _turns(ask, now)
    yield from _waiting(ask)
    yield from _deletions(ask, maintain)
    yield _dictionary(ask, maintain)


def moved(meta: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the store is sealed, because another place has it now."""
    if "moved_to" in meta:
        yield Finding(
            "error", "schema", f"the store was moved to {meta['moved_to']}, and is sealed here",
            "Open that one: change --store or CLEW_STORE",
            code="schema.moved",
        )  # fmt: skip


def unfinished(meta: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the store is a copy that lacks some of its source, and that nobody can open."""
    if is_unfinished(meta):
        yield Finding(
            "error", "schema", "the store is a copy that is not finished",
            "Run `clew copy` again, which goes on where it stopped; or delete it",
            code="schema.unfinished",
        )  # fmt: skip


def newer(meta: Mapping[str, str], ours: int) -> Finding | None:
    """What a schema after ours means; None for one that is not."""
    version, floor = int(meta.get("schema_version", 0)), int(meta.get("min_writer_version", 0))
    if version > ours and floor > ours:
        return Finding(
            "error", "schema",
            f"schema {version} was written by a newer clew; this one knows {ours}",
            "pip install -U clew",
            code="schema.newer",
        )  # fmt: skip
    if version > ours:
        return Finding(
            "ok", "schema", f"schema {version}, newer than this clew's {ours} but compatible"
        )
    return None


def _rows(ask: Ask) -> Finding:
    conversations, messages, *_ = ask("contents")[0]
    what = f"{counted(conversations, 'conversation')}, {counted(messages, 'message')}"
    return Finding("ok", "contents", what)


def _turns(ask: Ask, now: int) -> Iterator[Finding]:
    rows = ask("open_turns")
    stale: list[str] = []
    running = waiting = 0
    for id, profile, _, state, holder, held_at, ttl in rows:
        if state == "waiting":
            waiting += 1
        elif is_free(holder, held_at, ttl, now):
            stale.append(f"{profile}/{id}")
        else:
            running += 1
    if stale:
        yield Finding(
            "warn", "turns",
            f"{counted(len(stale), 'turn')} open, though nobody runs {_it(stale)}: {_named(stale)}",
            "The host's recovery, or the next message, ends each as interrupted; "
            "by hand: conversation.interrupt_turn()",
            code="turns.abandoned",
        )  # fmt: skip
    else:
        yield Finding(
            "ok", "turns", f"{running} running, {waiting} waiting for a person, none abandoned"
        )


def _waiting(ask: Ask) -> Iterator[Finding]:
    rows = ask("waiting_without_turn")
    if rows:
        named = [f"{profile}/{id}" for id, profile, _ in rows]
        total = sum(row[2] for row in rows)
        yield Finding(
            "warn", "inbox",
            f"{counted(total, 'message')} wait, though no turn is open: {_named(named)}",
            "The next turn takes them; a host finds them at its start (profile.unfinished())",
            code="inbox.waiting",
        )  # fmt: skip


def _deletions(ask: Ask, maintain: str) -> Iterator[Finding]:
    count = ask("binned")[0][0]
    if count:
        yield Finding(
            "warn", "deletions",
            f"the deletion of {counted(count, 'conversation')} was interrupted",
            f"Nobody finds them any more; to free their space: {maintain}",
            code="deletions.interrupted",
        )  # fmt: skip


def _dictionary(ask: Ask, maintain: str) -> Finding:
    count, messages = ask("dictionaries")[0][0], ask("contents")[0][1]
    if count:
        trained = counted(count, "dictionary", "dictionaries")
        return Finding("ok", "dictionary", f"{trained} trained")
    if messages < ENOUGH:
        return Finding("ok", "dictionary", f"none yet: trained once there are {ENOUGH:,} messages")
    return Finding(
        "warn", "dictionary",
        f"none, though there are {messages:,} messages: the store is larger than it need be",
        f"To train one: {maintain}",
        code="dictionary.missing",
    )  # fmt: skip


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
