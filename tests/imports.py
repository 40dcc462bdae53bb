"""Importing files in tests, and what a store shows afterwards, without what differs from run to run
(ids of conversations, the time of the import)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from clew.importers.bring import Imported, bring, find
from clew.importers.run import Options
from clew.store.conversation import Conversation
from clew.store.profile import Profile

SAMPLES = Path(__file__).parent / "data" / "transcripts"
WHOLE_FOLDERS = ("opencode/storage_v2",)
"""Samples that are a folder."""


def samples() -> list[str]:
    """All sample files, and the folders that are one sample, relative to SAMPLES."""
    files = [
        str(path.relative_to(SAMPLES))
        for path in sorted(SAMPLES.rglob("*"))
        if path.is_file() and path.suffix not in (".tsv", ".md")
    ]
    return [*(f for f in files if not f.startswith(WHOLE_FOLDERS)), *WHOLE_FOLDERS]


def import_into(profile: Profile, *paths: Path, **options: bool) -> Imported:
    """Import, with nothing left unread or failed."""
    sources, walk = find(paths)
    done = bring(profile, sources, walk, Options(**options))
    assert not done.failed
    for source in done.sources:
        assert source.error is None, source.error
    return done


def conversations(profile: Profile) -> Iterator[Conversation]:
    """All of a profile: those that a list shows, and sub-agents; oldest first."""
    seen: set[str] = set()
    waiting: list[Conversation] = []
    for archived in (False, True):
        from_list = profile.list(_filter(archived), limit=1000).items
        waiting.extend(profile.open(item.id) for item in from_list)
    while waiting:
        each = waiting.pop()
        if each.id not in seen:
            seen.add(each.id)
            yield each
            waiting.extend(profile.open(child.id) for child in each.children())


def _filter(archived: bool) -> Any:
    from clew.domain.conversations import ListFilter  # noqa: PLC0415

    return ListFilter(archived=archived)


def shown(profile: Profile) -> list[Any]:
    """What a store shows of its conversations: log, cuts, compactions, context, usage, facts."""
    by_name = {}
    for conversation in conversations(profile):
        names = sorted(f"{a.source}/{a.foreign_id}" for a in conversation.aliases())
        by_name["|".join(names)] = _facts(conversation)
    return sorted(by_name.items())


def _facts(conversation: Conversation) -> dict[str, Any]:
    info = conversation.info()
    usage = [(u.model, u.calls, msgspec.to_builtins(u.usage), u.cost) for u in conversation.usage()]
    return {
        "kind": info.kind, "base": info.base, "head": info.head, "title": info.title,
        "count": info.message_count, "model": info.model, "cwd": info.cwd,
        "git": info.git_branch, "created": info.created_at, "active": info.active_at,
        "preview": info.preview, "prompt": info.prompt_hash, "tools": info.toolset_hash,
        "archived": info.archived, "meta": info.meta, "usage": usage,
        "messages": [message.to_dict() for message in conversation.messages(hidden=True)],
        "cuts": [msgspec.to_builtins(cut) for cut in conversation.cuts()],
        "compactions": [msgspec.to_builtins(c) for c in conversation.compactions()],
        "context": conversation.context(info.model),
    }  # fmt: skip
