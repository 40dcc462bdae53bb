"""Stores with something of everything in them, for tests of copies; and what a store tells of
itself, read through the public handles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew
import servers
from clew.domain.conversations import ListFilter
from migration.sample import _edits, _talk, _undone, _unfinished

ENGINES = ("file", "server")
ALL = 1000


_made: list[str] = []


def place(engine: str, folder: Path, name: str) -> str:
    """Where a store may be made."""
    if engine == "file":
        return str(folder / f"{name}.db")
    _made.append(servers.server().create_database())
    return _made[-1]


def drop() -> None:
    """Throw away the databases that a test has used."""
    while _made:
        servers.server().drop_database(_made.pop().rpartition("/")[2])


def fill(store: clew.Store) -> None:
    """Everything that a store can hold."""
    profile = store.profile("one")
    profile.subscribe("memory")
    conv = profile.conversation("chat-1", source="web")
    _talk(conv)
    _edits(conv)
    branch = conv.branch(new=clew.NewConversation(id="branch"))
    branch.append([clew.user("on a branch"), clew.assistant("and on")])
    branch.branch(new=clew.NewConversation(id="twig")).append([clew.user("on a twig")])
    conv.delegate().append([clew.user("for the helper")])
    _undone(profile)
    _unfinished(profile)
    deleted(profile)
    imported = profile.create(id="old", archived=True, imported_at=5, read_only=True)
    imported.claim_alias("tool", "old-1")
    profile.create(id="empty", automation=True, meta={"a": [1, None]})
    right = store.claim_job("nightly")
    assert right is not None
    store.release_job(right)
    profile.receive("route-1", [clew.user("by a channel")], source="mail", account="a", key="1")
    other = store.profile("two").create(id="busy")
    turn = other.begin_turn([clew.user("go", key="go")], call=clew.CallPlan(model="m"))
    assert isinstance(turn, clew.TurnHandle)
    other.append([clew.user("waits", key="w")])
    other.open_attempt("user", model="m", tokens_before=3)
    hidden = store.profile("two").create(id="hidden")
    hidden.append([clew.user(f"{i} " + "word " * 200, key=f"h{i}") for i in range(30)])
    hidden.cut(hidden.message(20).uid)
    hidden.append([clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.Text("new 5"),), replaces=5)])
    hidden.end("closed")


def deleted(profile: clew.Profile) -> None:
    """Conversations that are gone; one has left its messages to a branch."""
    gone = profile.create(title="deleted")
    gone.claim_alias("tool", "gone-1")
    profile.delete(gone.id)
    origin = profile.create(id="origin")
    image = clew.Image(media_type="image/png", data=b"\x89PNG")
    origin.append([clew.user(f"{i}") for i in range(9)])
    origin.append([clew.Draft(role=clew.Role.USER, parts=(image,))])
    heir = origin.branch(new=clew.NewConversation(id="heir"))
    heir.append([clew.user("its own")])
    profile.delete(origin.id)


def told(where: str) -> dict[str, Any]:
    """What a store tells, by conversation."""
    found: dict[str, Any] = {}
    with clew.open(where) as store:
        assert store.verify() == []
        found["jobs"] = store.jobs()
        found["profiles"] = store.profiles()
        for name, _ in store.profiles():
            profile = store.profile(name)
            found[f"usage {name}"] = profile.usage()
            found[f"told {name}"] = [
                (s, sorted(profile.pending(s.name), key=lambda row: row.boundary.at))
                for s in profile.subscribers()
            ]
            found[f"search {name}"] = [
                (hit.conversation, hit.seq) for hit in profile.search("word OR on OR said").hits
            ]
            for conv in conversations(profile):
                found[f"{name} {conv.id}"] = of(conv)
    return found


def conversations(profile: clew.Profile) -> Iterator[clew.Conversation]:
    """Those of the lists, and those that belong to another one."""
    for archived in (False, True):
        for info in profile.list(ListFilter(archived=archived), limit=ALL).items:
            conv = profile.open(info.id)
            yield conv
            for child in conv.children():
                if child.kind == "delegate":
                    yield profile.open(child.id)


def of(conv: clew.Conversation) -> tuple[Any, ...]:
    """All about one conversation."""
    messages = [
        (m.seq, m.uid, m.role, m.parts, m.created_at, m.key, m.turn, m.meta)
        for m in conv.messages(hidden=True)
    ]
    turns = conv.turns()
    return (
        conv.info(), messages, conv.context("m"), conv.cuts(), conv.compactions(),
        conv.attempts(), turns, conv.calls(), [conv.deliveries(turn.number) for turn in turns],
        conv.inbox(), conv.todos(), conv.goal(), conv.presence(), conv.aliases(),
        conv.approvals(), conv.allowed_tools(), conv.bindings(),
        [child.id for child in sorted(conv.children(), key=lambda c: c.id)],
    )  # fmt: skip
