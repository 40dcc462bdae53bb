"""What a person said in a message that a tool has wrapped, or made itself: for titles and lists.

Tools put commands, surroundings and instructions into user messages. As a title of a conversation
they say nothing, and begin every conversation of a tool alike.
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"<command-name>\s*(\S+?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>\s*(.+?)\s*</command-args>", re.DOTALL)
_SHELL = re.compile(r"<bash-input>\s*(.+?)\s*</bash-input>", re.DOTALL)
_REQUEST = re.compile(r"^## My request for Codex:\s*", re.MULTILINE)
_BLOCKS = re.compile(
    r"<(system-reminder|ide_opened_file|ide_selection|environment_details)>.*?</\1>\s*", re.DOTALL
)
_MADE = (
    "<local-command", "<command-message>", "<bash-stdout>", "<bash-stderr>", "<task-notification>",
    "<user-prompt-submit-hook>", "Caveat: The messages below were", "[Request interrupted",
    "<environment_context>", "<user_instructions>", "<permissions instructions>", "<turn_aborted>",
    "<user_shell_command>", "<skill>", "<INSTRUCTIONS>", "# AGENTS.md instructions",
)  # fmt: skip
"""How messages begin that no person wrote."""
LONGEST = 100_000
"""Characters that are looked at."""


def said(text: str) -> str | None:
    """What a person said; None when nobody said anything."""
    text = text[:LONGEST].strip()
    if not text.startswith(("<", "#", "/", "[", "Caveat")):
        return text or None
    if request := _REQUEST.search(text):
        return text[request.end() :].strip() or None
    if command := _COMMAND.search(text):
        arguments = _ARGUMENTS.search(text)
        return f"{command[1]} {arguments[1]}" if arguments else None
    if shell := _SHELL.search(text):
        return f"! {shell[1]}"
    text = _BLOCKS.sub("", text).strip()
    if not text or text.startswith(_MADE) or (text.startswith("/") and not re.search(r"\s", text)):
        return None
    return text
