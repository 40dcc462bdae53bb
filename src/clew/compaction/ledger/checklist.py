"""The list of things to do that an agent keeps with a tool, whatever the tool is called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.sentences import clip

SLOT = "todo list"
_LISTS = ("todos", "todo_list", "todoList", "plan", "tasks", "steps", "items")
_TEXTS = ("content", "step", "text", "title", "task", "subject", "description", "name")
_STATES = ("status", "state", "done", "completed")
_OVER = frozenset(("completed", "complete", "done", "cancelled", "canceled", "skipped", "deleted",
                   "finished", "closed", "x", "true"))  # fmt: skip
_UNDERWAY = frozenset(("in_progress", "in-progress", "inprogress", "active", "doing", "~", "-"))
_LINE = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])?[ \t]*\[([ xX~-])\][ \t]+(.{1,500})$", re.M)
_MOST = 100
"""Items of one list that are read."""


class Checklist:
    """The newest list, item by item: text and state."""

    def __init__(self) -> None:
        self.known = False
        """Whether there was any list."""
        self._items: dict[str, tuple[str, str]] = {}
        self._seq = 0
        self._at: int | None = None

    def read(self, arguments: Mapping[str, Any], seq: int, at: int | None) -> None:
        """Take over the list that a call holds, if it holds one; one that says `merge` changes
        items of the last one."""
        found = _items(arguments)
        if found is None:
            return
        merges = arguments.get("merge") is True
        self._items = {**self._items, **_kept(found, self._items)} if merges else found
        self.known, self._seq, self._at = True, seq, at

    def row(self) -> Row | None:
        """What is still to be done, what is being done first; None when nothing is."""
        left = [(text, state) for text, state in self._items.values() if state not in _OVER]
        if not left:
            return None
        left.sort(key=lambda item: item[1] not in _UNDERWAY)
        parts = [f"{text} (begun)" if state in _UNDERWAY else text for text, state in left]
        over = len(self._items) - len(left)
        text = f"Todo list{f', {over} done' if over else ''}: {clip('; '.join(parts), 500)}"
        return Row("ask", text, self._seq, SLOT, None, self._at, (), "listed")


def _kept(
    new: dict[str, tuple[str, str]], old: dict[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Changed items, with the texts they had when they come without one."""
    return {key: (text or old.get(key, ("", ""))[0], state) for key, (text, state) in new.items()}


def _items(arguments: Mapping[str, Any]) -> dict[str, tuple[str, str]] | None:
    """(text, state) of the items of a list by their id, or None when there is no such list."""
    for key in _LISTS:
        value = arguments.get(key)
        if isinstance(value, str) and (lines := _LINE.findall(value[:50_000])):
            return {text: (text.strip(), mark.strip().lower()) for mark, text in lines[:_MOST]}
        if not isinstance(value, list):
            continue
        items = [_item(one) for one in cast(list[Any], value)[:_MOST]]
        if items and all(items):
            return {key: (text, state) for key, text, state in filter(None, items)}
        if key == "todos" and not value:
            return {}
    return None


def _item(one: Any) -> tuple[str, str, str] | None:
    """(id, text, state) of an item, which has a state and a text or an id."""
    if not isinstance(one, dict):
        return None
    item = cast(dict[str, Any], one)
    state = next((str(item[key]).lower() for key in _STATES if key in item), None)
    text = next((" ".join(item[key].split()) for key in _TEXTS if _is_text(item.get(key))), "")
    name = str(item.get("id") or text)
    return (name, text, state) if state is not None and name else None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
