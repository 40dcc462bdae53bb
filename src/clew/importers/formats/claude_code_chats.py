"""Which conversation a Claude Code record belongs to, and what it follows there.

Little is held for a record: only what is not imported, and the newest records of sub-agents that
stand in the same file, need to be remembered, and of those so many.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

from clew.domain.conversations import Workspace
from clew.domain.parts import Parts, Text, ToolCall
from clew.importers.bridges import Bridges, Recent
from clew.importers.fields import json_of, mapping, text
from clew.importers.formats.claude_code_lines import Line

_SPAWNING = frozenset(("Task", "Agent"))
_PROMPTS = 1000
_SIDES = 1000


class Lineage(Bridges):
    """What records follow, with those bridged that are no messages."""

    def parent(self, line: Line) -> str | None:
        """The message that this record follows."""
        found = line.parent_uuid or line.logical_parent_uuid
        return None if found == line.uuid else self.kept(found)


class Place:
    """A conversation while it is read."""

    __slots__ = ("_branch", "_cwd", "chat", "count", "is_open", "is_side", "newest", "request",
                 "version")  # fmt: skip

    def __init__(self, chat: str, is_side: bool) -> None:
        self.chat, self.is_side = chat, is_side
        self.is_open = False
        self.count = 0
        self.newest: str | None = None
        self.request: str | None = None
        self.version: str | None = None
        self._cwd: str | None = None
        self._branch: str | None = None

    def moved(self, line: Line) -> Workspace | None:
        """Where the agent is, when it was elsewhere before."""
        if line.cwd == self._cwd and line.git_branch == self._branch:
            return None
        self._cwd, self._branch = line.cwd, line.git_branch
        return Workspace(cwd=line.cwd or None, git_branch=line.git_branch or None)


class Places:
    """The conversations of a file."""

    def __init__(self) -> None:
        self._main: Place | None = None
        self._sides: dict[str, Place] = {}
        self._latest: Place | None = None

    def main(self, chat: str) -> Place:
        if self._main is None:
            self._main = Place(chat, False)
        self._latest = self._main
        return self._main

    def side(self, chat: str) -> Place:
        place = self._sides.get(chat)
        if place is None:
            place = self._sides[chat] = Place(chat, True)
            if len(self._sides) > _SIDES:
                del self._sides[next(iter(self._sides))]
        self._latest = place
        return place

    def ending_with(self, uuid: str | None) -> Place | None:
        """The conversation, of the main one and the latest, whose newest message this is."""
        found = (place for place in (self._main, self._latest) if place and place.newest == uuid)
        return next(found, None) if uuid else None


class Sides:
    """Conversations of sub-agents that stand in the session's own file (isSidechain)."""

    def __init__(self) -> None:
        self._chats = Recent()
        self._newest: str | None = None
        self._prompts: deque[tuple[bytes, str]] = deque(maxlen=_PROMPTS)

    def chat(self, session: str, line: Line, parent: str | None) -> str:
        """The conversation of a sidechain record. One that begins a new one is what a user says
        and follows nothing that is known."""
        if line.agent_id:
            return self._remember(line, f"{session}:agent:{line.agent_id}")
        known = self._chats.get(parent) if parent else None
        if known is None and (line.type != "user" or _answers(line)):
            known = self._newest
        return self._remember(line, known or f"{session}:side:{line.uuid or ''}")

    def has(self, uuid: str | None) -> bool:
        """Whether this is a record of one of them, as far as is remembered."""
        return uuid in self._chats

    def _remember(self, line: Line, chat: str) -> str:
        if line.uuid:
            self._chats.put(line.uuid, chat)
        self._newest = chat
        return chat

    def called(self, parts: Parts) -> None:
        """Remember the prompts of the sub-agents that these parts call for."""
        for part in parts:
            if isinstance(part, ToolCall) and part.name in _SPAWNING and (found := _prompt(part)):
                self._prompts.append((_mark(found), part.id))

    def call_of(self, parts: Parts) -> str | None:
        """The call that a sidechain answers, by its first text; None unless there is just one."""
        said = next((part.text for part in parts if isinstance(part, Text)), None)
        if said is None:
            return None
        mark = _mark(said)
        found = [item for item in self._prompts if item[0] == mark]
        if len(found) != 1:
            return None
        self._prompts.remove(found[0])
        return found[0][1]


def _answers(line: Line) -> bool:
    """Whether a user's record holds the results of tools."""
    content = line.message.content if line.message else None
    return isinstance(content, list) and any(block.type == "tool_result" for block in content)


def _prompt(call: ToolCall) -> str | None:
    return text(mapping(json_of(call.arguments)).get("prompt"))


def _mark(prompt: str) -> bytes:
    return blake2b(prompt.encode("utf-8", "replace"), digest_size=16).digest()
