"""How an answer ended, where an import told it: an error, or that somebody stopped it."""

from __future__ import annotations

from typing import Any, cast

from clew.context.entries import Entry
from clew.domain.messages import Role
from clew.domain.parts import Reasoning
from clew.exporters.text import one_line

_REASONS = ("stopReason", "stop_reason", "finish", "finish_reason", "status")
_ERRORS = ("errorMessage", "error")
_USUAL = frozenset((
    "stop", "end_turn", "tool_use", "tool_calls", "tool-calls", "tooluse", "function_call",
    "stop_sequence", "completed", "complete", "success", "unknown", "finished_successfully",
))  # fmt: skip


def ended(entry: Entry) -> str:
    """In a line: "aborted: Request was aborted". Empty when it ended as answers do."""
    told = (cast(dict[str, Any], entry.meta or {})).get("import")
    if entry.role is not Role.ASSISTANT or not isinstance(told, dict):
        return ""
    about = cast(dict[str, object], told)
    words = [*_words(about, _REASONS), *_words(about, _ERRORS)]
    if not words and about.get("error") is True:
        words = ["error"]
    if not words and about.get("unfinished") is True:
        words = ["unfinished"]
    return ": ".join(dict.fromkeys(words))


def nothing(entry: Entry) -> bool:
    """Whether there is nothing of it to read."""
    return all(isinstance(part, Reasoning) and not part.text for part in entry.parts)


def _words(about: dict[str, object], names: tuple[str, ...]) -> list[str]:
    found = (about.get(name) for name in names)
    return [
        one_line(value, 500)
        for value in found
        if isinstance(value, str) and value and value.lower() not in _USUAL
    ]
