"""What began in a conversation: its branches, its sub-agents, and those of what it inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from clew.domain.conversations import ConversationInfo
from clew.errors import NotFound
from clew.store.conversation import Conversation
from clew.store.findings import counted
from clew.store.profile import Profile

CHILDREN = 1000
"""Of one conversation, the newest."""
ALL = 1 << 31
"""More than a conversation has."""
ORIGINS = 8
"""Branches of branches whose origins are looked at."""

Calls = Mapping[str, Sequence[ConversationInfo]]
"""Sub-agents by the tool call that began them, oldest first."""


class Family(NamedTuple):
    """Conversations that began in one, oldest first."""

    branches: Sequence[ConversationInfo]
    called: Calls
    others: Sequence[ConversationInfo]
    """Sub-agents of which nobody said which call began them."""
    inherited: Calls = MappingProxyType({})
    """Of a branch: the sub-agents of its origins, whose calls it may have inherited."""


def summary(family: Family, cuts: int) -> str:
    """What there is, in words, with a number of cuts; empty when there is nothing."""
    agents = sum(map(len, family.called.values())) + len(family.others)
    counts = (
        (len(family.branches), "branch", "branches"), (agents, "sub-agent", "sub-agents"),
        (cuts, "cut", "cuts"),
    )  # fmt: skip
    said = ", ".join(counted(number, one, many) for number, one, many in counts if number)
    return f"{said}; --outline shows where" if said else ""


def family_of(conversation: Conversation) -> Family:
    """The branches and sub-agents of a conversation."""
    children = conversation.children(CHILDREN)[::-1]
    called: dict[str, list[ConversationInfo]] = {}
    others: list[ConversationInfo] = []
    for child in children:
        if child.kind == "delegate":
            call = call_of(child)
            (others if call is None else called.setdefault(call, [])).append(child)
    return Family([child for child in children if child.kind == "branch"], called, others)


def sub_agents(profile: Profile, conversation: Conversation) -> Iterator[ConversationInfo]:
    """All sub-agents of a conversation and of these, each behind the one that began it."""
    todo = [conversation]
    while todo:
        for child in todo.pop().children(ALL):
            if child.kind == "delegate":
                yield child
                try:
                    todo.append(profile.open(child.id))
                except NotFound:  # deleted meanwhile
                    pass


def inherited_calls(profile: Profile, info: ConversationInfo) -> Calls:
    """The sub-agents whose calls a branch may have inherited."""
    found: dict[str, Sequence[ConversationInfo]] = {}
    for _ in range(ORIGINS):
        if info.kind != "branch" or info.origin is None:
            break
        try:
            origin = profile.open(info.origin)
            found = {**family_of(origin).called, **found}
            info = origin.info()
        except NotFound:  # being deleted
            break
    return found


def call_of(child: ConversationInfo) -> str | None:
    """The tool call that began a sub-agent, where its import says."""
    found: object = (child.meta or {}).get("import")
    call: object = cast(dict[str, Any], found).get("call") if isinstance(found, dict) else None
    return call if isinstance(call, str) else None
