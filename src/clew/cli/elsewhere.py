"""A conversation in the tool that it was imported from: its id there, and how to go on in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clew.cli.settings import quoted
from clew.cli.text import one_line
from clew.domain.conversations import ConversationInfo
from clew.store.conversation import Conversation

_COMMANDS = {
    "claude-code": "claude --resume", "codex": "codex resume", "opencode": "opencode --session",
}  # fmt: skip
"""What a person types before the id of a session."""
_OWN = re.compile(r"record:|.*#[0-9a-f]{32}\Z", re.DOTALL)
"""Names that importers make, which mean nothing to the tool."""
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
"""An id that can be a session's: no path, no part of another's, nothing that a shell or a terminal
acts on, no option."""


class Name(NamedTuple):
    """The id of a conversation in another tool."""

    source: str
    id: str
    command: str | None
    """What a person types to go on there, if that is known."""

    def __str__(self) -> str:
        return f"{one_line(self.source)} {one_line(self.id)}"


def names_of(conversation: Conversation, info: ConversationInfo) -> Sequence[Name]:
    """Its ids in other tools, oldest part first."""
    return [*_names(conversation, info)]


def _names(conversation: Conversation, info: ConversationInfo) -> Iterator[Name]:
    for alias in conversation.aliases():
        if alias.state != "claimed" or _OWN.match(alias.foreign_id):
            continue
        command = _COMMANDS.get(alias.source) if info.kind == "root" else None
        if command is not None and _SESSION.match(alias.foreign_id):
            command = f"{command} {quoted(alias.foreign_id)}"
        else:
            command = None
        yield Name(alias.source, alias.foreign_id, command)
