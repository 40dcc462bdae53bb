"""What is said to a model beside the conversation, for one request: the goal, the open todos, and
what the host has to say.

It stands in the last message of the request. A provider's cache holds what two requests begin with,
so that what changes from one to the next belongs at the end. Never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from clew.context.entries import Entry
from clew.context.media import utf8
from clew.context.wire import silent
from clew.domain.messages import Role
from clew.domain.notes import Goal, Todo
from clew.domain.parts import File, Image, Text, ToolResult
from clew.errors import InputError

OF_THE_AGENT = "Kept beside the conversation by the agent, not words of the user:"
OF_THE_HOST = "Said by the program that runs this conversation, not words of the user:"


def notices_of(todos: Iterable[Todo], goal: Goal | None, notices: Sequence[str] = ()) -> str | None:
    """The goal, the open todos and a host's notices in words for the model; None when there is
    nothing to say."""
    lines = _of_agent(todos, goal)
    said = [notice.strip() for notice in _texts(notices)]
    if told := [f"- {notice}" for notice in said if notice]:
        lines += [OF_THE_HOST, *told]
    return "\n".join(("<notes>", *lines, "</notes>")) if lines else None


def _of_agent(todos: Iterable[Todo], goal: Goal | None) -> list[str]:
    open_todos = [todo for todo in todos if todo.state in ("pending", "active")]
    lines: list[str] = []
    if goal is not None and goal.state == "active":
        lines.append(f"Goal: {goal.text}")
    if open_todos:
        lines.append("Open todos:")
        lines += [
            f"- {todo.text}{' (in progress)' if todo.state == 'active' else ''}"
            for todo in open_todos
        ]
    return [OF_THE_AGENT, *lines] if lines else []


def _texts(notices: Sequence[str]) -> Sequence[str]:
    """Refuse one text in the place of several, each letter of which would be a notice."""
    if isinstance(notices, str) or not all(isinstance(notice, str) for notice in notices):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"notices is {notices!r:.80}; give a list of texts")
    return notices


def noticed(entries: Iterable[Entry], notice: str | None, *, blank: bool = False) -> list[Entry]:
    """Entries that are about to be written down, the notice in the last that says something.

    Behind the words of a user, as a part; inside the last result of a step, behind its text; else
    (behind a step with images or files, which are worth a place in the cache, or behind a system's
    words) as an entry of a user. Behind an answer nobody asks for another: there it stands with the
    newest words of a user in the log; without any it is left out. `blank`: whether a message of a
    user that says nothing is sent.
    """
    shown = list(entries)
    at = _last(shown, blank)
    if notice is None or at is None:
        return shown
    entry, text = shown[at], Text(utf8(notice))
    if entry.role is Role.TOOL and not _carries(shown, at):
        shown[at] = _inside(entry, text)
    elif entry.role is Role.TOOL or (entry.role is Role.USER and _follows_step(shown, at)):
        shown.insert(at + 1, Entry(Role.USER, (text,)))
    elif (newest := _newest_words(shown)) is None:
        return shown
    elif entry.role in (Role.SYSTEM, Role.DEVELOPER):
        shown.insert(at + 1, Entry(Role.USER, (text,)))
    else:
        shown[newest] = _behind(shown[newest], text)
    return shown


def _last(entries: Sequence[Entry], blank: bool) -> int | None:
    """Where the last entry is that is sent."""
    for at in range(len(entries) - 1, -1, -1):
        if not silent(entries[at]) or (blank and entries[at].role is Role.USER):
            return at
    return None


def _newest_words(entries: Sequence[Entry]) -> int | None:
    """Where the newest message of a user in the log is. What a compaction wrote is none."""
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].role is Role.USER and entries[at].messages:
            return at
    return None


def _follows_step(entries: Sequence[Entry], at: int) -> bool:
    """Whether this is no message of the log, but the images and files that a step returned."""
    return not entries[at].messages and at > 0 and entries[at - 1].role is Role.TOOL


def _carries(entries: Sequence[Entry], at: int) -> bool:
    """Whether a result of the step that ends here holds an image or a file."""
    while at >= 0 and entries[at].role is Role.TOOL:
        if any(isinstance(piece, Image | File) for piece in _pieces(entries[at])):
            return True
        at -= 1
    return False


def _pieces(entry: Entry) -> Iterator[object]:
    for part in entry.parts:
        if isinstance(part, ToolResult) and isinstance(part.content, tuple):
            yield from part.content


def _inside(entry: Entry, notice: Text) -> Entry:
    """Results, the notice in the last of them."""
    *before, last = entry.parts
    if not isinstance(last, ToolResult):
        return entry
    if isinstance(last.content, tuple):
        last = structs.replace(last, content=(*last.content, notice))
    else:
        text = f"{last.content}\n\n{notice.text}" if last.content.strip() else notice.text
        last = structs.replace(last, content=text)
    return entry._replace(parts=(*before, last))


def _behind(entry: Entry, notice: Text) -> Entry:
    return entry._replace(parts=(*entry.parts, notice))
