"""What all renderings share: which entries there are, and which results follow which calls.

A rendering is made of entries (see `entries.Entry`). `entries_of` gives those of a context;
`lawful.lawful` makes of any entries what every provider takes; `chat`, `responses` and
`anthropic` write them down. All pure, none of it is ever stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from clew.context.entries import Entry, entry_of, joined, one
from clew.domain.chat import is_function_result
from clew.domain.compactions import Inline, Ref, Stub
from clew.domain.messages import Message, Role
from clew.domain.parts import Parts, Reasoning, Text, ToolCall, ToolResult, call_ids

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

INTERRUPTED = "[interrupted: this call did not finish]"
CONTINUES = "[conversation continues]"
"""Said by the user where a provider wants one first and the log begins with another."""


# ---------------------------------------------------------------------- entries


def entries_of(inputs: ContextInputs) -> list[Entry]:
    """What stands for the covered part, then every message above it: what was one message of an API
    as one."""
    return list(joined(_entries(inputs)))


def _entries(inputs: ContextInputs) -> Iterator[Entry]:
    for item, messages in inputs.covered:
        match item:
            case Inline(role=role, parts=parts):
                if parts:
                    yield Entry(role, parts)
            case Stub(text=text):
                yield stub_entry(messages[0], text)
            case Ref():
                yield from map(entry_of, messages)
    yield from map(entry_of, inputs.messages)


def stub_entry(message: Message, text: str) -> Entry:
    """A shortened message: its text, but it keeps its calls and answers the calls it answered.
    Thinking, images and files are what it is shortened by."""
    answers: Parts = tuple(
        ToolResult(part.call_id, text, part.name, part.is_error)
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    calls: Parts = tuple(part for part in message.parts if isinstance(part, ToolCall))
    shown = answers or (Text(text), *calls)
    return Entry(message.role, shown, message.author, None, message.api_group, (message,))


# ---------------------------------------------------------------------- calls and results


def closed_calls(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, each call followed by its result wherever that was stored, or a synthetic one.

    A result answers the newest call of its id before it that no other result has answered; one
    whose call is gone is left out, since no provider accepts it alone.
    """
    listed = list(entries)
    unanswered: dict[int, list[str]] = {}
    """By the place of the message that made the calls."""
    behind: dict[int, list[Entry]] = {}
    open_calls: dict[str, list[int]] = {}
    for at, entry in enumerate(listed):
        if entry.role is Role.ASSISTANT and (ids := call_ids(entry.parts)):
            unanswered[at], behind[at] = list(ids), []
            for call in ids:
                open_calls.setdefault(call, []).append(at)
        elif _is_results(entry):
            for place, results in _by_call(entry, open_calls).items():
                for result in results:
                    unanswered[place].remove(result.call_id)
                behind[place].append(entry.having(tuple(results)))
    for at, entry in enumerate(listed):
        if not _is_results(entry):
            yield entry
        if at in behind:
            yield from behind[at]
            if unanswered[at]:
                yield _interrupted(unanswered[at])


def _is_results(entry: Entry) -> bool:
    return entry.role is Role.TOOL and not is_function_result(entry.meta)


def _by_call(entry: Entry, open_calls: dict[str, list[int]]) -> dict[int, list[ToolResult]]:
    """The results of a message by the place of the call that each of them answers."""
    found: dict[int, list[ToolResult]] = {}
    for part in entry.parts:
        if isinstance(part, ToolResult) and (places := open_calls.get(part.call_id)):
            found.setdefault(places.pop(), []).append(part)
    return found


def _interrupted(calls: list[str]) -> Entry:
    results = tuple(ToolResult(call, INTERRUPTED, is_error=True) for call in calls)
    return Entry(Role.TOOL, results)


# ---------------------------------------------------------------------- thinking, roles


def for_model(parts: Parts, model: str | None) -> Parts:
    """The parts without another model's thinking. That of a model nobody named stays."""
    return tuple(
        part for part in parts
        if not isinstance(part, Reasoning) or part.model is None or part.model == model
    )  # fmt: skip


def silent(entry: Entry) -> bool:
    """Whether it says nothing: no parts but thinking and blank text."""
    return all(
        isinstance(part, Reasoning) or (isinstance(part, Text) and not part.text.strip())
        for part in entry.parts
    )


def folded(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, system text among them as words of the user, marked as what they are."""
    for entry in entries:
        if entry.role in (Role.SYSTEM, Role.DEVELOPER):
            text = f"<system>\n{system_text(entry)}\n</system>"
            entry = Entry(Role.USER, (Text(text),), messages=entry.messages)
        yield entry


def system_text(entry: Entry) -> str:
    return "\n".join(part.text for part in entry.parts if isinstance(part, Text))


def merged(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, neighbours of one role (user, assistant) as one: their parts in their order, so
    that the live request is the last part of the last message."""
    held: list[Entry] = []
    for entry in entries:
        same = held and entry.role is held[0].role and entry.role is not Role.TOOL
        if held and not same:
            yield _together(held)
            held = []
        held.append(entry)
    if held:
        yield _together(held)


def _together(entries: Sequence[Entry]) -> Entry:
    if len(entries) == 1:
        return entries[0]
    authors = {entry.author for entry in entries}
    return one(entries)._replace(author=authors.pop() if len(authors) == 1 else None)
