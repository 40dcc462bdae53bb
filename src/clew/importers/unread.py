"""Formats that people have and that are not read yet: told apart, so that the answer can name them
and say what to do instead."""

from __future__ import annotations

from clew.importers.probe import Probe

_INSTEAD = """write it as lines {"messages": [...]} of Chat Completions, which are read"""
REMEDIES = {
    "Claude.ai export": f"an export of claude.ai is not read yet; {_INSTEAD}",
    "Cursor": f"Cursor's state.vscdb is not read yet; {_INSTEAD}",
    "Cline": f"Cline's api_conversation_history.json is not read yet; {_INSTEAD}",
    "Aider": f"Aider's .aider.chat.history.md is not read yet; {_INSTEAD}",
}
"""What to say of each."""


def unread_name(look: Probe) -> str | None:
    """The name of a known format that is not read, if a source is of one."""
    if "chat_messages" in look.item_keys or "chat_messages" in look.keys:
        return "Claude.ai export"
    if look.name == "state.vscdb" or "cursorDiskKV" in look.tables:
        return "Cursor"
    if look.name in ("api_conversation_history.json", "ui_messages.json"):
        return "Cline"
    if look.name.startswith(".aider.") or look.head.startswith(b"# aider chat started at"):
        return "Aider"
    return None
